//! Schedules of one's own: right ones run, wrong ones are refused with what is wrong about them.
use crate::common;

use common::case::{Case, LoopSpec, SpaceSpec};
use common::check::check;
use common::generate;
use common::random::Random;
use common::running::{Options, Pass, run_case};
use common::schedules::{Arbitrary, Fault};
use common::watchdog::watched;
use hectare_orion::loop_nest::{Access, Affine, Mode, Order, Subscript};
use hectare_orion::schedule::{Dynamic, Rotation, Schedule, Steps, Tile};
use hectare_orion::{Error, run};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

fn run_with(workers: usize, case: &Case, schedule: &(dyn Schedule + Sync)) -> Vec<Result<Vec<Pass>, Error>> {
    let clock = AtomicU64::new(0);
    let options = Options { schedule: Some(schedule), slow: true };
    run(workers, |w| Ok(run_case(w, case, &clock, options))).expect("the program itself goes well")
}

#[test]
fn random_schedules_are_refused_or_right() {
    watched("random schedules", || {
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..300 {
            let workers = 1 + Random(seed).below(4);
            let case = generate::case(3_000_000 + seed);
            let schedule = Arbitrary { seed, broken: true };
            let place = format!("{workers} workers, {schedule:?} ({:?})\n{case}", schedule.fault());
            let results = run_with(workers, &case, &schedule);
            if results.iter().all(Result::is_ok) {
                let right = matches!(schedule.fault(), Fault::None | Fault::Empty);
                assert!(right, "a broken schedule is accepted: {place}");
                *outcomes.entry("accepted").or_default() += 1;
                let passes: Vec<Vec<Pass>> = results.into_iter().map(Result::unwrap).collect();
                check(&case, &passes).unwrap_or_else(|what| panic!("{what}: {place}"));
                continue;
            }
            for result in results {
                let Err(Error::InvalidSchedule { what, schedule: name, .. }) = result else {
                    panic!("{result:?}: {place}")
                };
                assert_eq!(name, schedule.name());
                let expected = match schedule.fault() {
                    Fault::Repeated => "would run twice",
                    Fault::Omitted => "would not run",
                    Fault::Outside => "lies outside the grid",
                    Fault::ShortStep => "has tiles for",
                    Fault::FineGrid | Fault::LongGrid => "does not fit a loop of",
                    Fault::None | Fault::Empty => {
                        let reasons = [
                            "would run conflicting iterations at once",
                            "ordered",
                            "would both need",
                            "cannot be cut",
                            "with its arrays in place",
                        ];
                        reasons.into_iter().find(|reason| what.contains(reason)).unwrap_or("a reason")
                    }
                };
                assert!(what.contains(expected), "{what:?}, not {expected:?}: {place}");
                *outcomes.entry(expected).or_default() += 1;
            }
        }
        for (outcome, least) in
            [("accepted", 40), ("would run conflicting iterations at once", 20), ("ordered", 10)]
        {
            assert!(outcomes.get(outcome).is_some_and(|count| *count >= least), "{outcomes:?}");
        }
    });
}

/// Tiles that are taken as they come free: each iteration once a pass, and never two at once that conflict.
#[test]
fn random_loops_run_as_tiles_come_free() {
    watched("random loops as tiles come free", || {
        let mut free = 0;
        for seed in 0..100 {
            let workers = 2 + Random(seed).below(4);
            let case = generate::case(5_000_000 + seed);
            let place = format!("{workers} workers\n{case}");
            let clock = AtomicU64::new(0);
            let options = Options { schedule: Some(&Dynamic), slow: seed % 2 == 0 };
            let passes = run(workers, |w| {
                let passes = run_case(w, &case, &clock, options)?;
                Ok((passes, w.explain().iter().filter(|one| one.is_dynamic).count()))
            });
            let (passes, counts): (Vec<_>, Vec<_>) =
                passes.unwrap_or_else(|error| panic!("{error}: {place}")).into_iter().unzip();
            check(&case, &passes).unwrap_or_else(|what| panic!("{what}: {place}"));
            free += counts[0];
        }
        assert!(free >= 10, "only {free} loops were run so");
    });
}

fn variable(k: usize) -> Vec<Subscript> {
    vec![Subscript::Index(Affine::var(k))]
}

/// A loop over 9 by 12 iterations that updates `a[i]` and `b[j]`, and one that updates `b[j]` in order.
fn factors(order: Order) -> Case {
    let access = |array, k, text: &str| {
        let (subscripts, mode) = (variable(k), Mode::Update);
        Access { array, subscripts, mode, text: text.into(), line: 0 }
    };
    let accesses = match order {
        Order::Unordered => vec![access(0, 0, "a[i]"), access(1, 1, "b[j]")],
        Order::Ordered => vec![access(1, 1, "b[j]")],
    };
    Case {
        seed: 0,
        shapes: vec![vec![9], vec![12]],
        space: SpaceSpec::Dense(vec![0..9, 0..12]),
        loops: vec![LoopSpec { order, inner: Vec::new(), element_bytes: 8, inspected: false, accesses }],
        passes: vec![0, 0],
    }
}

/// A schedule by its grid and tiles: step, worker, cells.
#[derive(Debug)]
struct Given(Vec<usize>, Vec<(usize, usize, [Range<usize>; 2])>);

impl Schedule for Given {
    fn name(&self) -> String {
        "given".into()
    }

    fn grid(&self, _extents: &[usize], _workers: usize) -> Vec<usize> {
        self.0.clone()
    }

    fn steps(&self, _grid: &[usize], workers: usize) -> Steps {
        let count = self.1.iter().map(|(step, ..)| step + 1).max().unwrap_or(0);
        let mut steps = vec![vec![None; workers]; count];
        for (step, worker, cells) in &self.1 {
            steps[*step][*worker] = Some(Tile { cells: cells.to_vec() });
        }
        steps
    }
}

#[test]
fn right_schedules_of_all_kinds_give_right_results() {
    let right = |case: &Case, workers: usize, schedule: &(dyn Schedule + Sync)| {
        let results = watched("a schedule", || run_with(workers, case, schedule));
        let passes: Vec<Vec<Pass>> = results.into_iter().map(|result| result.unwrap()).collect();
        check(case, &passes).unwrap();
        passes
    };
    let unordered = factors(Order::Unordered);
    for workers in 1..=4 {
        right(&unordered, workers, &Rotation::over(vec![0, 1]));
        right(&unordered, workers, &Rotation::over(vec![1, 0]));
    }
    // A rotation by hand, backwards; one worker idles at times.
    let tiles = [(0, 0, 2, 1), (0, 1, 1, 0), (1, 0, 2, 0), (1, 1, 0, 1), (2, 1, 1, 1), (2, 0, 0, 0)];
    let tile = |(step, worker, i, j): (usize, usize, usize, usize)| (step, worker, [i..i + 1, j..j + 1]);
    right(&unordered, 2, &Given(vec![3, 2], tiles.map(tile).to_vec()));
    // Serial, on the last worker.
    let passes = right(&unordered, 3, &Given(vec![1, 1], vec![(0, 2, [0..1, 0..1])]));
    assert_eq!(passes[2][0].ran.len(), 9 * 12);
    // Blocks of columns keep the order of what is carried along rows, in any order of the blocks.
    let ordered = factors(Order::Ordered);
    let columns =
        vec![(0, 0, [0..1, 6..7]), (0, 1, [0..1, 0..3]), (1, 1, [0..1, 3..5]), (2, 0, [0..1, 5..6])];
    right(&ordered, 2, &Given(vec![1, 7], columns));
}

#[test]
fn wrong_schedules_are_refused_with_what_is_wrong_about_them() {
    let refused = |case: &Case, schedule: &Given, because: &str| {
        for result in watched("a schedule", || run_with(2, case, schedule)) {
            let Err(Error::InvalidSchedule { what, .. }) = result else {
                panic!("{result:?}, not {because:?}")
            };
            assert!(what.contains(because), "{what:?}, not {because:?}");
        }
    };
    let unordered = factors(Order::Unordered);
    let grid = vec![2, 2];
    let tile = |(step, worker, i, j): (usize, usize, usize, usize)| (step, worker, [i..i + 1, j..j + 1]);
    let given = |tiles: &[(usize, usize, usize, usize)]| {
        Given(grid.clone(), tiles.iter().copied().map(tile).collect())
    };
    let same_row = given(&[(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 1, 1), (1, 1, 1, 0)]);
    refused(
        &unordered,
        &same_row,
        "in step 0, workers 0 and 1 would run conflicting iterations at once: iterations with the same i",
    );
    let same_column = given(&[(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1), (2, 0, 1, 0)]);
    assert!(run_with(2, &unordered, &same_column).iter().all(Result::is_ok));
    let same_column = given(&[(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1), (1, 1, 1, 0)]);
    assert!(run_with(2, &unordered, &same_column).iter().all(Result::is_ok));
    let same_column = given(&[(0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1), (1, 1, 1, 1)]);
    refused(&unordered, &same_column, "elements of b");
    refused(&unordered, &given(&[(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1)]), "cell [1, 0]");
    refused(
        &unordered,
        &given(&[(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1), (1, 1, 1, 0), (2, 0, 1, 1)]),
        "cell [1, 1] would run twice",
    );
    refused(&unordered, &Given(vec![1, 1], vec![(0, 0, [0..1, 0..2])]), "lies outside the grid");
    refused(&unordered, &Given(vec![1, 13], vec![(0, 0, [0..1, 0..13])]), "the grid [1, 13] does not fit");
    refused(&unordered, &Given(vec![1, 0], vec![]), "the grid [1, 0] does not fit");
    let ordered = factors(Order::Ordered);
    let backwards = Given(vec![2, 1], vec![(0, 0, [1..2, 0..1]), (1, 0, [0..1, 0..1])]);
    refused(&ordered, &backwards, "the loop is ordered");
}

/// A schedule that panics.
#[derive(Debug)]
struct Broken;

impl Schedule for Broken {
    fn name(&self) -> String {
        "broken".into()
    }

    fn grid(&self, extents: &[usize], _workers: usize) -> Vec<usize> {
        vec![1; extents.len()]
    }

    fn steps(&self, _grid: &[usize], _workers: usize) -> Steps {
        std::panic::resume_unwind(Box::new("no steps"))
    }
}

#[test]
fn a_schedule_that_panics_does_not_hang() {
    let case = factors(Order::Unordered);
    let clock = AtomicU64::new(0);
    let options = Options { schedule: Some(&Broken), slow: false };
    let result = watched("a panic", || run(3, |w| run_case(w, &case, &clock, options)));
    assert!(result.is_err());
}
