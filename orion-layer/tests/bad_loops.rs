//! Loops that are wrong: every worker gets an error that says what, where and who; none hangs.
#![allow(clippy::single_range_in_vec_init)]
use crate::common;

use common::hand::{access, blames, head, index, on_each};
use common::watchdog::watched;
use hectare_orion::accumulate::{Min, Sum};
use hectare_orion::execute::{LoopHead, Ranges, entry_parts};
use hectare_orion::loop_nest::{Affine, LoopNest, Mode, Subscript};
use hectare_orion::schedule::{Candidate, Schedule, Steps, Tile, Verdict};
use hectare_orion::{Context, Error, Site, run};
use std::panic::resume_unwind;

/// A rotation over 12 by 12 iterations that does `wrong` before each of them.
fn rotation(w: &mut Context<'_>, wrong: impl Fn(usize, usize)) -> Result<(u64,), Error> {
    rotation_by(w, None, wrong)
}

fn rotation_by(
    w: &mut Context<'_>,
    schedule: Option<&dyn Schedule>,
    wrong: impl Fn(usize, usize),
) -> Result<(u64,), Error> {
    let mut a = w.zeros::<u64, 1>([12])?.named("rows");
    let mut b = w.zeros::<u64, 1>([12])?.named("columns");
    let result = w.run_loop(
        &LoopHead { schedule, ..head(&["i", "j"], &["a", "b"]) },
        &Ranges([0..12, 0..12]),
        (&mut a, &mut b),
        (Sum::<u64>::new(),),
        &|nest| {
            nest.arrays.iter_mut().for_each(|array| array.element_bytes = 1 << 16);
            nest.accesses.push(access(0, index(Affine::var(0)), Mode::Update, "a[i]"));
            nest.accesses.push(access(1, index(Affine::var(1)), Mode::Update, "b[j]"));
        },
        |[is, js], (a, b)| {
            let mut count = 0;
            for (i, j) in is.flat_map(|i| js.clone().map(move |j| (i, j))) {
                wrong(i, j);
                a[i] += 1;
                b[j] += 1;
                count += 1;
            }
            (count,)
        },
    );
    let rotates = |candidate: &Candidate| {
        candidate.name.starts_with("rotation") && matches!(candidate.verdict, Verdict::Chosen(_))
    };
    assert!(schedule.is_some() || w.explain()[0].candidates.iter().any(rotates));
    if result.is_err() {
        for array in [&a, &b] {
            assert!(matches!(array.read(w), Err(Error::Poisoned { .. })), "{array:?} can be read");
        }
    }
    result
}

#[test]
fn a_panic_on_any_worker_at_any_time_is_an_error_on_all() {
    for workers in [2, 3, 4] {
        for (culprit, at) in (0..workers).flat_map(|culprit| [0, 5, 11].map(|at| (culprit, at))) {
            let results = on_each(workers, |w| {
                let me = w.rank() as usize;
                let result = rotation(w, |i, j| {
                    if me == culprit && i == 12 * me / workers && j == at {
                        resume_unwind(Box::new(format!("broken at {i}, {j}")));
                    }
                });
                // The program can go on, with other arrays.
                rotation(w, |_, _| {}).expect("a loop after a loop that failed");
                result
            });
            blames(&results, culprit);
            let error = results[culprit].as_ref().unwrap_err();
            let Error::BodyPanicked { loop_name, worker, message, .. } = error else { panic!("{error}") };
            assert_eq!((loop_name.as_str(), *worker as usize), ("wrong.rs:7:1", culprit));
            assert!(message.starts_with("broken at"), "{message}");
        }
    }
}

/// A chain of three workers: the second fails before the first hands it what the third waits for.
#[derive(Debug)]
struct Chain;

impl Schedule for Chain {
    fn name(&self) -> String {
        "chain".into()
    }

    fn grid(&self, _extents: &[usize], _workers: usize) -> Vec<usize> {
        vec![3, 3]
    }

    fn steps(&self, _grid: &[usize], _workers: usize) -> Steps {
        let tile = |(i, j): (usize, usize)| Tile { cells: vec![i..i + 1, j..j + 1] };
        let step = |cells: [Option<(usize, usize)>; 3]| cells.map(|cell| cell.map(tile)).to_vec();
        vec![
            step([Some((0, 0)), Some((1, 1)), None]),
            step([None, Some((1, 0)), None]),
            step([Some((0, 1)), None, Some((2, 0))]),
            step([Some((0, 2)), None, Some((2, 1))]),
            step([None, Some((1, 2)), None]),
            step([None, None, Some((2, 2))]),
        ]
    }
}

#[test]
fn who_waits_for_what_a_failed_worker_was_to_hand_on_learns_of_it() {
    for at in [(4, 4), (4, 0), (4, 8)] {
        let results = on_each(3, |w| {
            rotation_by(w, Some(&Chain), |i, j| {
                if (i, j) == at {
                    resume_unwind(Box::new("broken"));
                }
            })
        });
        blames(&results, 1);
    }
}

#[test]
fn panics_on_all_workers_at_once_are_errors_on_all() {
    let results = on_each(4, |w| rotation(w, |_, _| resume_unwind(Box::new("broken"))));
    for (rank, result) in results.iter().enumerate() {
        assert!(matches!(result, Err(Error::BodyPanicked { worker, .. }) if *worker as usize == rank));
    }
}

#[test]
fn a_worker_that_fails_before_a_loop_is_named_by_the_others() {
    for workers in [2, 3, 5] {
        let error = watched("a worker that is missing", || {
            run(workers, |w| {
                if w.rank() == 1 {
                    return Err::<(), _>(Error::Invalid("worker 1 does not like it".into()));
                }
                match rotation(w, |_, _| {}) {
                    Err(error) => {
                        assert!(
                            matches!(&error, Error::PeerFailed { rank: 1, message, .. } if message.contains("does not like")),
                            "{error}"
                        );
                        Err(error)
                    }
                    Ok(_) => panic!("a loop without worker 1"),
                }
            })
        });
        assert!(matches!(error, Err(Error::Invalid(_))), "{error:?}");
    }
}

#[test]
fn a_worker_at_another_loop_has_diverged() {
    let results = on_each(3, |w| {
        let mut a = w.zeros::<u64, 1>([9])?;
        let mut head = head(&["i"], &["a"]);
        head.site.line += u32::from(w.rank() == 2);
        w.run_loop(
            &head,
            &Ranges([0..9]),
            (&mut a,),
            (),
            &|nest: &mut LoopNest| nest.accesses.push(access(0, index(Affine::var(0)), Mode::Update, "a[i]")),
            |[is], (a,)| is.for_each(|i| a[i] += 1),
        )
    });
    for result in &results {
        let text = result.as_ref().unwrap_err().to_string();
        assert!(text.contains("wrong.rs:7") && text.contains("wrong.rs:8"), "{text}");
    }
}

#[test]
fn an_array_may_be_passed_twice_for_reading() {
    for result in on_each(3, |w| {
        let a = w.from_fn([20], |[i]| i as u64)?;
        let mut b = w.zeros::<u64, 1>([20])?;
        w.run_loop(
            &head(&["i"], &["a", "same", "b"]),
            &Ranges([0..20]),
            (&a, &a, &mut b),
            (),
            &|nest: &mut LoopNest| {
                nest.accesses.push(access(0, index(Affine::var(0)), Mode::Read, "a[i]"));
                let last = Affine::var(0).times(-1).plus(&Affine::constant(19));
                nest.accesses.push(access(1, index(last), Mode::Read, "same[19 - i]"));
                nest.accesses.push(access(2, index(Affine::var(0)), Mode::Write, "b[i]"));
            },
            |[is], (a, same, b)| is.for_each(|i| b[i] = 100 * a[i] + same[19 - i]),
        )?;
        b.to_vec(w)
    }) {
        assert_eq!(result.unwrap(), (0..20).map(|i| 100 * i + 19 - i).collect::<Vec<u64>>());
    }
}

#[test]
fn a_poisoned_array_is_refused_on_all_workers() {
    for (worker, result) in on_each(3, |w| {
        let mut a = w.zeros::<u64, 1>([10])?.named("half");
        let pass = |w: &mut Context<'_>, a: &mut hectare_orion::DistArray<u64, 1>, broken: bool| {
            let me = w.rank();
            w.run_loop(
                &head(&["i"], &["a"]),
                &Ranges([0..10]),
                (a,),
                (),
                &|nest| nest.accesses.push(access(0, index(Affine::var(0)), Mode::Update, "a[i]")),
                |[is], (a,)| {
                    if broken && me == 0 {
                        resume_unwind(Box::new("broken"));
                    }
                    is.for_each(|i| a[i] += 1)
                },
            )
        };
        pass(w, &mut a, false)?;
        pass(w, &mut a, true).expect_err("one worker panics");
        pass(w, &mut a, false)
    })
    .into_iter()
    .enumerate()
    {
        let error = result.expect_err("the array is half written");
        let text = error.to_string();
        assert!(text.contains("array \"half\" was left half written"), "worker {worker}: {text}");
    }
}

#[test]
fn nothing_to_do_is_done() {
    assert!(matches!(run(0, |_| Ok(())), Err(Error::Invalid(_))));
    let many = run(257, |_| Ok(())).unwrap_err().to_string();
    assert!(many.starts_with("257 workers asked for, and `run` takes at most 256"), "{many}");
    for workers in 1..=4 {
        for result in on_each(workers, |w| {
            let mut a = w.zeros::<u64, 2>([0, 3])?;
            let mut b = w.fill::<u64, 1>([3], 7)?;
            let site = Site::here();
            let mut counts = Vec::new();
            for space in [[0..0, 0..3], [0..0, 3..3], [2..2, 0..3]] {
                counts.push(w.run_loop(
                    &LoopHead { site, ..head(&["i", "j"], &["a", "b"]) },
                    &Ranges(space),
                    (&mut a, &mut b),
                    (Sum::<u64>::new(), Min::<f64>::new()),
                    &|nest| {
                        let subscripts = vec![Subscript::Index(Affine::var(0)), Subscript::Full];
                        nest.accesses.push(access(0, subscripts, Mode::Update, "a[i, ..]"));
                        nest.accesses.push(access(1, index(Affine::var(1)), Mode::Update, "b[j]"));
                    },
                    |[is, js], (_, b)| {
                        is.for_each(|_| js.clone().for_each(|j| b[j] = 0));
                        (0, f64::INFINITY)
                    },
                )?);
            }
            let none = w.entries::<u8, 2>([4, 4], 0, |_| ([0, 0], 0))?;
            counts.push(w.run_loop(
                &LoopHead { site: Site::here(), ..head(&["i", "j"], &["b"]) },
                &none,
                (&mut b,),
                (Sum::<u64>::new(), Min::<f64>::new()),
                &|nest| nest.accesses.push(access(0, index(Affine::var(1)), Mode::Update, "b[j]")),
                |entries, (b,)| {
                    entries.iter().for_each(|entry| b[entry_parts(entry).0[1]] = 0);
                    (entries.len() as u64, f64::INFINITY)
                },
            )?);
            assert_eq!(b.to_vec(w)?, [7; 3]);
            Ok(counts)
        }) {
            assert_eq!(result.unwrap(), [(0, f64::INFINITY); 4]);
        }
    }
}

#[test]
fn a_program_on_several_hosts_is_run_by_all_workers_of_the_job() {
    let job = hectare_dsm::Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
    let refused = hectare_orion::run_on(&job, 1, |_| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("1 workers in a job of 2 on 2 hosts"), "{refused}");
    let job = hectare_dsm::Job::builder().hosts(&[1], 0).embedded().unwrap();
    hectare_orion::run_on(&job, 1, |_| Ok(())).unwrap();
}
