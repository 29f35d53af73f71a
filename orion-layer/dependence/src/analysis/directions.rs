//! The sign patterns of the distances of two accesses, and the extents of each, where the set itself is large.
use super::budget::Budget;
use super::cone::{Cone, extent_of};
use super::distance::{NEGATIVE, POSITIVE, ZERO};
use super::fourier_motzkin::project;
use super::lattice::Lattice;
use super::linear::Row;
use super::search::{Answer, Search};
use super::system::System;

/// Cones that cover every distance, one sign pattern each, as far as the budget allows.
///
/// A hierarchy of directions (Burke and Cytron 1986): a dimension after the other is refined to zero, positive and
/// negative; a branch ends where the quick tests, the equations or the elimination rule it out.
pub(super) fn cones(system: &System, budget: Budget) -> Vec<Cone> {
    let mut search = Hierarchy { system, budget, signs: vec![ANY; system.dims], cones: Vec::new() };
    let mut lattice = Lattice::all(system.variables);
    let mut rows = system.nonnegative.clone();
    for zero in &system.zero {
        let before = lattice.clone();
        match lattice.restrict(zero) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            // Without the equation there are more solutions, which is sound.
            Err(_) => lattice = before,
        }
    }
    let extents: Option<Vec<Extent128>> =
        (0..system.dims).map(|k| search.extent(&lattice, &rows, k)).collect();
    let Some(extents) = extents else { return Vec::new() };
    search.refine(0, &lattice, &mut rows, &extents);
    search.cones
}

const ANY: u8 = NEGATIVE | ZERO | POSITIVE;

/// Nodes that the search for one witness may cost, in multiplications.
const WITNESS: u64 = 4096;

type Extent128 = (Option<i128>, Option<i128>);

struct Hierarchy<'s> {
    system: &'s System,
    budget: Budget,
    /// The branch: dimensions that are not refined yet have any sign.
    signs: Vec<u8>,
    cones: Vec<Cone>,
}

impl Hierarchy<'_> {
    /// Refines dimension `k` and those after it, where distances lie within `extents`.
    fn refine(&mut self, k: usize, lattice: &Lattice, rows: &mut Vec<Row>, extents: &[Extent128]) {
        if !self.system.differences.iter().all(|difference| difference.may_vanish(&self.signs)) {
            return;
        }
        if k == self.system.dims {
            return self.leaf(lattice, rows);
        }
        // Two dimensions and more below: worth an elimination.
        if k > 0 && k + 1 < self.system.dims && self.extent(lattice, rows, k).is_none() {
            return;
        }
        if self.budget.is_spent() {
            return self.cover(k);
        }
        let n = self.system.variables;
        let (low, high) = extents[k];
        for sign in [ZERO, POSITIVE, NEGATIVE] {
            let possible = match sign {
                ZERO => low.is_none_or(|low| low <= 0) && high.is_none_or(|high| high >= 0),
                POSITIVE => high.is_none_or(|high| high > 0),
                _ => low.is_none_or(|low| low < 0),
            };
            if !possible {
                continue;
            }
            self.signs[k] = sign;
            if sign == ZERO {
                let mut plane = lattice.clone();
                match plane.restrict(&Row::single(0, 1, k, n)) {
                    Ok(true) => self.refine(k + 1, &plane, rows, extents),
                    Ok(false) => {}
                    Err(_) => self.refine(k + 1, lattice, rows, extents),
                }
            } else {
                rows.push(Row::single(-1, if sign == POSITIVE { 1 } else { -1 }, k, n));
                self.refine(k + 1, lattice, rows, extents);
                rows.pop();
            }
        }
        self.signs[k] = ANY;
    }

    /// All dimensions have a sign: is there a distance?
    fn leaf(&mut self, lattice: &Lattice, rows: &[Row]) {
        if !self.system.reflexive && self.signs.iter().all(|signs| *signs == ZERO) {
            return;
        }
        let occurs = match self.witness(lattice, rows) {
            Answer::No => return,
            Answer::Yes => !self.system.assumed,
            Answer::Unknown => false,
        };
        let mut extents = Vec::with_capacity(self.system.dims);
        for (k, signs) in self.signs.clone().into_iter().enumerate() {
            let Some((low, high)) = self.extent(lattice, rows, k) else { return };
            let narrow = |bound: Option<i128>| bound.and_then(|bound| i64::try_from(bound).ok());
            let (least, greatest) = extent_of(signs);
            let upper = match (narrow(high), greatest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            extents.push((narrow(low).max(least), upper));
        }
        self.cones.push(Cone { signs: self.signs.clone(), extents, occurs });
    }

    fn witness(&mut self, lattice: &Lattice, rows: &[Row]) -> Answer {
        let mut lattice = lattice.clone();
        if lattice.echelon(0..self.system.dims).is_err() {
            return Answer::Unknown;
        }
        let rows = rows.iter().map(|row| lattice.substitute(row));
        let Some(projection) = project(rows, lattice.basis.len(), 0, &mut self.budget) else {
            return Answer::No;
        };
        let mut share = self.budget.at_most(WITNESS);
        let answer = Search::new(&projection, &mut share).witness();
        self.budget.give_back(share);
        answer
    }

    /// The extent of the distance in dimension `k`, by eliminating all else; `None` if there is no solution.
    fn extent(&mut self, lattice: &Lattice, rows: &[Row], k: usize) -> Option<Extent128> {
        if let Some(fixed) = lattice.fixed(k) {
            return Some((Some(fixed), Some(fixed)));
        }
        let mut lattice = lattice.clone();
        let unknown = Some((None, None));
        if self.budget.is_spent() || lattice.echelon(std::iter::once(k)).is_err() {
            return unknown;
        }
        let rows = rows.iter().map(|row| lattice.substitute(row));
        let projection = project(rows, lattice.basis.len(), 1, &mut self.budget)?;
        let Ok((low, high)) = projection.range(0, &vec![0; lattice.basis.len()]) else { return unknown };
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            return None;
        }
        let at = |t: Option<i128>| t.and_then(|t| lattice.value(k, &[t]));
        match lattice.basis[0][k] > 0 {
            true => Some((at(low), at(high))),
            false => Some((at(high), at(low))),
        }
    }

    /// The budget is spent: covers all distances that begin with the first `k` signs, each part with one order of the
    /// two iterations.
    fn cover(&mut self, k: usize) {
        let dims = self.system.dims;
        let mut prefix = self.signs[..k].to_vec();
        if prefix.iter().any(|signs| *signs != ZERO) {
            self.cones.push(Cone::beginning(&prefix, dims));
            return;
        }
        for _ in k..dims {
            for sign in [POSITIVE, NEGATIVE] {
                prefix.push(sign);
                self.cones.push(Cone::beginning(&prefix, dims));
                prefix.pop();
            }
            prefix.push(ZERO);
        }
        if self.system.reflexive {
            self.cones.push(Cone::beginning(&prefix, dims));
        }
    }
}
