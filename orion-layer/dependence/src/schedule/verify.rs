//! Checks a schedule against the loop's dependences: the runtime's own, and those of users.
use super::{ScheduleError, Steps, Tile, cell_number, for_each_cell};
use crate::analysis::{Dependence, Dependences, Distance};
use crate::loop_nest::{LoopNest, Order};
use crate::mutant::{self, Mutant};
use crate::placement::{Placement, TilePlan};
use std::ops::Range;

/// Refuses a schedule that misses a cell, runs one twice, runs conflicting iterations at once, or breaks the
/// order of an ordered loop. The error says what it would break.
///
/// Only tiles of one step need a look: tiles of different steps that conflict write a part of one array, and
/// that part goes from one worker to the next in the order of the steps.
pub fn verify(
    nest: &LoopNest,
    dependences: &Dependences,
    grid: &[usize],
    steps: &Steps,
    workers: usize,
) -> Result<(), ScheduleError> {
    if let Some(step) = steps.iter().position(|step| step.len() != workers) {
        return Err(ScheduleError::Workers { step, tiles: steps[step].len(), workers });
    }
    covers(grid, steps)?;
    for (number, step) in steps.iter().enumerate() {
        let tiles: Vec<(usize, &Tile)> =
            step.iter().enumerate().filter_map(|(worker, tile)| Some((worker, tile.as_ref()?))).collect();
        for (at, (first, a)) in tiles.iter().enumerate() {
            for (second, b) in &tiles[at + 1..] {
                if let Some(conflict) =
                    dependences.list.iter().find(|dependence| !keeps_apart(dependence, a, b))
                {
                    return Err(ScheduleError::Conflict {
                        step: number,
                        workers: [*first, *second],
                        conflict: dependences.describe_conflict(nest, conflict),
                    });
                }
            }
        }
    }
    if nest.order == Order::Ordered && !mutant::is(Mutant::OrderIgnored) {
        let cut = |dim: usize| grid[dim] > 1;
        let broken = dependences.list.iter().find(|dependence| {
            (0..nest.dims.len()).any(|dim| cut(dim) && dependence.vector[dim] != Distance::Exact(0))
        });
        if let Some(broken) = broken {
            return Err(ScheduleError::Order { conflict: dependences.describe_conflict(nest, broken) });
        }
    }
    Ok(())
}

/// Refuses tiles that are run in any order, at any time, by whoever has the parts that they need, if two that share no part
/// conflict. That each cell is run once, [`verify`] has found.
pub fn verify_dynamic(
    nest: &LoopNest,
    dependences: &Dependences,
    placement: &Placement,
) -> Result<(), ScheduleError> {
    if nest.order == Order::Ordered
        && let Some(conflict) = dependences.list.first()
    {
        return Err(ScheduleError::Order { conflict: dependences.describe_conflict(nest, conflict) });
    }
    let tiles: Vec<(usize, &TilePlan)> = placement
        .tiles
        .iter()
        .enumerate()
        .flat_map(|(worker, tiles)| tiles.iter().map(move |tile| (worker, tile)))
        .collect();
    for (at, (first, a)) in tiles.iter().enumerate() {
        for (second, b) in &tiles[at + 1..] {
            let shares = |(a, b): (&Range<usize>, &Range<usize>)| a.start < b.end && b.start < a.end;
            if a.parts.iter().zip(&b.parts).any(shares) {
                continue;
            }
            let conflict =
                dependences.list.iter().find(|dependence| !keeps_apart(dependence, &a.tile, &b.tile));
            if let Some(conflict) = conflict {
                return Err(ScheduleError::Conflict {
                    step: 0,
                    workers: [*first, *second],
                    conflict: dependences.describe_conflict(nest, conflict),
                });
            }
        }
    }
    Ok(())
}

/// Whether no iteration of one tile can depend on one of the other.
fn keeps_apart(dependence: &Dependence, a: &Tile, b: &Tile) -> bool {
    if mutant::is(Mutant::ConflictsAllowed) {
        return true;
    }
    (0..a.cells.len()).any(|dim| {
        let disjoint = a.cells[dim].end <= b.cells[dim].start || b.cells[dim].end <= a.cells[dim].start;
        disjoint && (dependence.vector[dim] == Distance::Exact(0) || mutant::is(Mutant::ApartAnywhere))
    })
}

/// Refuses steps that miss a cell, or run one twice.
pub(super) fn covers(grid: &[usize], steps: &Steps) -> Result<(), ScheduleError> {
    let mut runs = vec![0u8; grid.iter().product()];
    let mut wrong = None;
    for tile in steps.iter().flatten().flatten() {
        let fits = tile.cells.len() == grid.len()
            && tile.cells.iter().zip(grid).all(|(range, cells)| range.end <= *cells);
        if !fits {
            return Err(ScheduleError::Outside { cells: tile.cells.clone(), grid: grid.to_vec() });
        }
        for_each_cell(tile, |cell| {
            let count = &mut runs[cell_number(grid, cell)];
            *count += 1;
            if *count > 1 && !mutant::is(Mutant::CellsTwice) {
                wrong = Some(ScheduleError::Twice { cell: cell.to_vec() });
            }
            wrong.is_none()
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
    }
    match runs.iter().position(|count| *count == 0) {
        Some(number) if !mutant::is(Mutant::CellsMissing) => {
            let mut rest = number;
            let mut cell = vec![0; grid.len()];
            for (at, cells) in cell.iter_mut().zip(grid).rev() {
                (*at, rest) = (rest % cells, rest / cells);
            }
            Err(ScheduleError::Missing { cell, grid: grid.to_vec() })
        }
        _ => Ok(()),
    }
}
