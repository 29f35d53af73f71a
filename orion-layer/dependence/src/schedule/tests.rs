//! The verification of schedules against brute force over concrete iterations.
use super::{Schedule, ScheduleError, Steps, for_each_cell, verify};
use crate::analysis::{Dependences, analyze};
use crate::common::case::{Case, Iteration, SpaceSpec};
use crate::common::generate;
use crate::common::replay::touched;
use crate::common::schedules::Arbitrary;
use crate::loop_nest::{LoopNest, LoopVar, NamedArray, Order, Space};
use crate::mutant::{self, Mutant};
use std::collections::BTreeMap;

/// An iteration that touches an element: whether it writes it, and when it runs.
type Touch = (bool, Turn, Iteration);

/// When a cell is run: step, worker, and how many cells of the tile come before it.
type Turn = (usize, usize, usize);

const WORKERS: usize = 3;

/// The description of a case's first loop.
fn nest(case: &Case) -> LoopNest {
    let bounds = case.space.bounds();
    let var = |(name, bounds): (&&str, &(i64, i64))| LoopVar { name: (*name).into(), bounds: Some(*bounds) };
    let dims = ["i", "j", "k"].iter().zip(&bounds).map(var).collect();
    let space = match &case.space {
        SpaceSpec::Dense(_) => Space::Dense,
        SpaceSpec::Entries { keys, .. } => Space::Entries { array: "entries".into(), count: keys.len() },
    };
    let mut nest = LoopNest::new("loop", case.loops[0].order, space, dims);
    let named = |shape: &Vec<usize>| NamedArray { name: "a".into(), shape: shape.clone(), element_bytes: 8 };
    nest.arrays = case.shapes.iter().map(named).collect();
    case.loops[0].describe(&mut nest);
    nest
}

/// The turn of every cell, or which cell has none or two.
fn turns(grid: &[usize], steps: &Steps) -> Result<BTreeMap<Vec<usize>, Turn>, String> {
    let mut turns: BTreeMap<Vec<usize>, Turn> = BTreeMap::new();
    let mut twice = None;
    for (step, tiles) in steps.iter().enumerate() {
        for (worker, tile) in tiles.iter().enumerate() {
            let mut before = 0;
            let mut visit = |cell: &[usize]| {
                if turns.insert(cell.to_vec(), (step, worker, before)).is_some() {
                    twice = Some(cell.to_vec());
                }
                before += 1;
                true
            };
            tile.iter().for_each(|tile| for_each_cell(tile, &mut visit));
        }
    }
    match twice {
        Some(cell) => Err(format!("cell {cell:?} runs twice")),
        None if turns.len() != grid.iter().product::<usize>() => Err("a cell does not run".into()),
        None => Ok(turns),
    }
}

/// Checks a schedule by looking at every cell and at all iterations that touch an element.
fn wrong(case: &Case, grid: &[usize], steps: &Steps) -> Result<(), String> {
    let turns = turns(grid, steps)?;
    let bounds = case.space.bounds();
    let cell = |index: &[i64]| -> Vec<usize> {
        // Cells of about the same width; where they end makes no difference to the verification.
        let of = |(dim, i): (usize, &i64)| {
            let (start, extent) = (bounds[dim].0, bounds[dim].1 - bounds[dim].0);
            (0..grid[dim]).rposition(|cell| start + extent * cell as i64 / grid[dim] as i64 <= *i)
        };
        index.iter().enumerate().map(|at| of(at).expect("an index within bounds")).collect()
    };
    // By element, in lexicographic order: whether it is written, and when.
    let mut elements: BTreeMap<(usize, usize), Vec<Touch>> = BTreeMap::new();
    for (index, id) in case.space.iterations() {
        let turn = turns[&cell(&index)];
        for (element, written) in touched(case, &case.loops[0], &index, id) {
            elements.entry(element).or_default().push((written, turn, (index.clone(), id)));
        }
    }
    let ordered = case.loops[0].order == Order::Ordered;
    for touching in elements.values() {
        for (number, (_, b, later)) in touching.iter().enumerate().filter(|(_, (written, ..))| *written) {
            for (at, (_, a, other)) in touching.iter().enumerate().filter(|(at, _)| *at != number) {
                if a.0 == b.0 && a.1 != b.1 {
                    return Err(format!("{other:?} and {later:?} run at the same time"));
                }
                // Hand-overs keep the order of the steps.
                let (first, second) = if at < number { (a, b) } else { (b, a) };
                if ordered && other.0 != later.0 && (first.0, first.2) > (second.0, second.2) {
                    return Err(format!("{other:?} and {later:?} run in the wrong order"));
                }
            }
        }
    }
    Ok(())
}

/// The verdicts on a random schedule for a random loop: that of the verification, and that of brute force.
fn verdicts(seed: u64, fault: Option<Mutant>) -> Option<(Result<(), ScheduleError>, Result<(), String>)> {
    let case = generate::case(seed);
    let nest = nest(&case);
    let schedule = Arbitrary { seed, broken: true };
    let extents: Vec<usize> = case.space.bounds().iter().map(|(start, end)| (end - start) as usize).collect();
    let grid = schedule.grid(&extents, WORKERS);
    let fits = grid.len() == extents.len() && grid.iter().zip(&extents).all(|(n, extent)| n <= extent);
    let mut steps = schedule.steps(&grid, WORKERS);
    steps.iter_mut().flatten().for_each(|tile| *tile = tile.take().filter(|tile| !tile.is_empty()));
    let dependences: Dependences = analyze(&nest);
    let verdict = mutant::with(fault, || verify(&nest, &dependences, &grid, &steps, WORKERS));
    // A schedule that does not fit the grid cannot be looked at cell by cell.
    let outside = |steps: &Steps| {
        let tiles = steps.iter().flatten().flatten();
        tiles.flat_map(|tile| tile.cells.iter().zip(&grid)).any(|(range, cells)| range.end > *cells)
    };
    if !fits || outside(&steps) {
        return None;
    }
    Some((verdict, wrong(&case, &grid, &steps)))
}

#[test]
fn no_wrong_schedule_is_accepted() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..1500 {
        match verdicts(seed, None) {
            Some((Ok(()), Err(what))) => {
                panic!("schedule {seed} is accepted: {what}\n{}", generate::case(seed))
            }
            Some((Ok(()), Ok(()))) => accepted += 1,
            Some((Err(_), Err(_))) => refused += 1,
            _ => {}
        }
    }
    assert!(
        accepted >= 200 && refused >= 300,
        "{accepted} right ones accepted, {refused} wrong ones refused"
    );
}

#[test]
fn every_fault_of_the_verification_lets_a_wrong_schedule_pass() {
    let faults = [
        Mutant::CellsTwice,
        Mutant::CellsMissing,
        Mutant::ConflictsAllowed,
        Mutant::ApartAnywhere,
        Mutant::OrderIgnored,
    ];
    for fault in faults {
        let noticed = (0..1500).any(|seed| matches!(verdicts(seed, Some(fault)), Some((Ok(()), Err(_)))));
        assert!(noticed, "{fault:?} survives");
    }
}

#[test]
fn scrambled_cells_are_all_cells_once() {
    for cells in [vec![2..5, 1..7], vec![0..6, 3..5], vec![1..2, 0..1, 4..9], vec![0..4, 2..2]] {
        let tile = super::Tile { cells };
        let mut rows = Vec::new();
        super::for_each_cell(&tile, |cell| {
            rows.push(cell.to_vec());
            true
        });
        let order = super::scrambled(&tile, 1, 2);
        assert_eq!(order, super::scrambled(&tile, 1, 2));
        let visited: Vec<usize> = order.chunks(tile.cells.len()).map(|cell| cell[1]).collect();
        let changes = visited.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 2 * tile.cells[1].len(), "{visited:?}");
        let mut cells: Vec<Vec<usize>> = order.chunks(tile.cells.len()).map(<[usize]>::to_vec).collect();
        assert!(cells.len() < 4 || cells != rows);
        cells.sort();
        assert_eq!(cells, rows);
    }
}
