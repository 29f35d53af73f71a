//! Jobs that have few areas: what a program does not use any more is given back, and a worker that gets no memory is named at once.
use hectare_dsm::Job;
use hectare_orion::relax::{Consistency, Sum};
use hectare_orion::schedule::Dynamic;
use hectare_orion::{Context, Result, parallel_for, run_on};
use std::time::{Duration, Instant};

/// How many areas the job has.
fn areas(w: &mut Context<'_>) -> usize {
    w.barrier().unwrap();
    let areas = w.worker().job().areas().unwrap().len();
    w.barrier().unwrap();
    areas
}

/// Runs a loop whose tiles are taken as they come free, over arrays of its own.
fn taken_as_they_come_free(w: &mut Context<'_>) -> Result<()> {
    let (mut a, mut b) = (w.zeros::<u64, 1>([40])?, w.zeros::<u64, 1>([40])?);
    parallel_for!(w, unordered, write [a, b], schedule = Dynamic; for i in 0..40 {
        for j in 0..40 {
            a[i] += 1;
            b[j] += 1;
        }
    })?;
    a.delete(w)?;
    b.delete(w)
}

/// Runs a loop over entries of its own that say what it touches: workers show them each other to find out.
fn inspected(w: &mut Context<'_>) -> Result<()> {
    let entries = w.entries([400], 400, |k| ([k], (k * 7919 % 300) as u32))?;
    let mut a = w.zeros::<f32, 2>([300, 8])?;
    parallel_for!(w, unordered, read entries, write a; for ((_i), row) in entries {
        let row = *row as usize;
        for k in 0..8 {
            a[[row, k]] += 1.0;
        }
    })?;
    let found = w.explain().iter().any(|one| one.inspected.is_some());
    assert!(found, "{}", w.explain());
    a.delete(w)
}

#[test]
fn loops_whose_arrays_are_gone_leave_no_areas() {
    for run in [taken_as_they_come_free, inspected] {
        run_on(&Job::builder().embedded().unwrap(), 2, |w| {
            for _ in 0..3 {
                run(w)?;
            }
            let before = areas(w);
            for _ in 0..10 {
                run(w)?;
            }
            assert_eq!(areas(w), before);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn arrays_of_failed_passes_give_their_memory_back() {
    for kind in ["written", "relaxed", "buffered", "in place", "free"] {
        run_on(&Job::builder().embedded().unwrap(), 2, |w| {
            let fail = |w: &mut Context<'_>| -> Result<()> {
                let mut a = w.zeros::<f32, 1>([40])?;
                let failed = match kind {
                    "written" => parallel_for!(w, unordered, write a; for i in 0..40 {
                        assert!(i != 30, "an accident");
                        a[i] += 1.0;
                    }),
                    "free" => {
                        let mut b = w.zeros::<f32, 1>([40])?;
                        let failed = parallel_for!(w, unordered, write [a, b], schedule = Dynamic;
                        for i in 0..40 {
                            for j in 0..40 {
                                assert!(i + j != 30, "an accident");
                                a[i] += 1.0;
                                b[j] += 1.0;
                            }
                        });
                        b.delete(w)?;
                        failed
                    }
                    "in place" => parallel_for!(w, ordered, write a; for i in 1..40 {
                        assert!(i != 30, "an accident");
                        a[i] += a[i - 1];
                    }),
                    "relaxed" => parallel_for!(w, unordered, relax a, consistency = Consistency::Bsp;
                    for i in 0..40 {
                        assert!(i != 30, "an accident");
                        a.add(i, 1.0);
                    }),
                    _ => {
                        let mut b = w.buffered(a, Sum)?;
                        let failed = parallel_for!(w, unordered, buffer b, consistency = Consistency::Bsp;
                        for i in 0..40 {
                            assert!(i != 30, "an accident");
                            b.add(i, 1.0);
                        });
                        a = b.into_parts(w)?.0;
                        failed
                    }
                };
                failed.expect_err("one worker panics");
                a.delete(w)
            };
            for _ in 0..3 {
                fail(w)?;
            }
            let before = areas(w);
            for _ in 0..10 {
                fail(w)?;
            }
            assert_eq!(areas(w), before, "{kind}");
            Ok(())
        })
        .unwrap();
    }
}

/// Areas that were left of what a worker makes for a relaxed loop, if it does not have all of them.
fn half_made(job: &Job) -> Vec<String> {
    let names: Vec<String> = job.areas().unwrap().into_iter().map(|area| area.name).collect();
    let kinds: [&[&str]; 2] = [
        &["buffer/lengths", "buffer/elements", "buffer/updates"],
        &["heads", "generations", "keys", "updates"],
    ];
    let mut found = Vec::new();
    for (kind, rank) in kinds.iter().flat_map(|kind| [(kind, 0), (kind, 1)]) {
        let is_of = |name: &&String| {
            let is_buffered = name.contains("/buffer/");
            kind.iter().any(|part| name.ends_with(&format!("/{part}/{rank}")))
                && is_buffered == kind[0].starts_with("buffer")
        };
        let of: Vec<String> = names.iter().filter(is_of).cloned().collect();
        if !of.is_empty() && of.len() != kind.len() {
            found.extend(of);
        }
    }
    found
}

/// Who cannot make all areas that belong together has none of them.
#[test]
fn nothing_is_left_of_what_a_worker_cannot_make_whole() {
    for most in 4..60 {
        let job = Job::builder().max_areas(most).embedded().unwrap();
        let _ended = run_on(&job, 2, |w| {
            let (b, c) = (w.zeros::<f32, 1>([40])?, w.zeros::<f32, 1>([40])?);
            let (mut b, mut c) = (w.buffered(b, Sum)?, w.served(c, Sum)?);
            parallel_for!(w, unordered, buffer b, serve c, consistency = Consistency::Bsp; for i in 0..40 {
                b.add(i, 1.0);
                c.add(i, 1.0);
            })
        });
        let left = half_made(&job);
        assert!(left.is_empty(), "{most} areas: {left:?}");
    }
}

/// The last area goes to one worker, and the other lacks one: nobody waits for what is not made.
#[test]
fn a_worker_that_lacks_memory_for_a_relaxed_loop_is_named_at_once() {
    let (since, mut refused) = (Instant::now(), 0);
    for most in 4..60 {
        let job = Job::builder().max_areas(most).embedded().unwrap();
        let ended = run_on(&job, 2, |w| {
            let mut a = w.zeros::<f32, 1>([40])?;
            let (b, c) = (w.zeros::<f32, 1>([40])?, w.zeros::<f32, 1>([40])?);
            let (mut b, mut c) = (w.buffered(b, Sum)?, w.served(c, Sum)?);
            parallel_for!(w, unordered, relax a, buffer b, serve c, consistency = Consistency::Bsp;
            for i in 0..40 {
                a.add(i, 1.0);
                b.add(i, 1.0);
                c.add(i, 1.0);
            })
        });
        if let Err(error) = ended {
            assert!(error.to_string().contains("area slots are taken"), "{most} areas: {error}");
            refused += 1;
        }
    }
    assert!((20..50).contains(&refused), "{refused}");
    // Less than any time limit of the loop layer, many times.
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

/// The same of the clocks by which workers of a loop wait for each other, and of the words of tiles that are taken as they come free: all
/// workers hear what one of them lacks, though it stays in the job.
#[test]
fn what_a_worker_lacks_for_tiles_that_come_free_is_told_to_all() {
    let mut refused = 0;
    for most in 4..24 {
        let job = Job::builder().max_areas(most).embedded().unwrap();
        let told = run_on(&job, 2, |w| {
            let ended = taken_as_they_come_free(w).map_err(|error| error.to_string());
            w.barrier()?;
            Ok(ended.err())
        });
        let told = told.unwrap();
        let is_named = |error: &Option<String>| {
            error.as_ref().is_some_and(|error| error.contains("area slots are taken"))
        };
        let is_refused = told.iter().any(Option::is_some);
        assert!(!is_refused || told.iter().all(is_named), "{most} areas: {told:?}");
        refused += usize::from(is_refused);
    }
    assert!((5..20).contains(&refused), "{refused}");
}
