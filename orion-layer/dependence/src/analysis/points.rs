//! The exact set of distances of two accesses, where it is small.
use super::budget::Budget;
use super::fourier_motzkin::project;
use super::lattice::Lattice;
use super::search::Search;
use super::system::System;

/// Sets with more distances are described by their signs and extents only.
pub(super) const LIMIT: usize = 1024;

/// All distances, sorted; `None` if there are too many, or if it would cost too much to know them.
///
/// The solutions of the equations are a lattice whose first few coordinates fix the distances; the other
/// coordinates are searched for one completion of each.
pub(super) fn enumerate(system: &System, budget: &mut Budget) -> Option<Vec<Vec<i64>>> {
    if system.assumed {
        return None;
    }
    let mut lattice = Lattice::all(system.variables);
    for zero in &system.zero {
        if !lattice.restrict(zero).ok()? {
            return Some(Vec::new());
        }
    }
    let count = lattice.echelon(0..system.dims).ok()?;
    let rows = system.nonnegative.iter().map(|row| lattice.substitute(row));
    let Some(projection) = project(rows, lattice.basis.len(), count, budget) else { return Some(Vec::new()) };
    let mut found = Vec::new();
    Search::new(&projection, budget).enumerate(count, LIMIT, &mut found)?;
    let mut points = Vec::with_capacity(found.len());
    for t in found {
        let value = |k: usize| lattice.value(k, &t).and_then(|value| i64::try_from(value).ok());
        let point: Vec<i64> = (0..system.dims).map(value).collect::<Option<_>>()?;
        if system.reflexive || point.iter().any(|d| *d != 0) {
            points.push(point);
        }
    }
    points.sort_unstable();
    Some(points)
}
