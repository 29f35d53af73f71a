//! Which iterations of a loop depend on which others.
//!
//! [`analyze`] compares every two accesses to the same array of which at least one writes, and says how far apart
//! iterations lie that may touch the same element: exactly where the subscripts are affine and the set is small,
//! otherwise by directions. It never fails and takes a few milliseconds at most, whatever the bounds are; what it
//! does not know it takes for a dependence. `docs/src/algorithms.md` of the project has the tests and their sources.
//!
//! - Vectors are sink minus source in the lexicographic order of the indices. Ordered loops have to keep that order;
//!   in unordered loops a vector and its negative are the same conflict, and only one of the two is listed.
//! - Writes of two iterations to one element are a conflict in both: swapping them changes what is left in the end,
//!   and an iteration that writes two elements would no longer be atomic.
//! - Two entries of a sparse array may have the same index. Their conflict is the zero vector. Every schedule that
//!   gives an index to one worker satisfies it; one that splits equal indices does not. Dense loops have no such
//!   vector.
//! - Each access has its own instances of the variables of inner loops.
//! - Arrays whose dependences are given up ([`LoopNest::relaxed`]) have none.
//! - Extents of arrays are not used: an access outside of its array is an error when the loop runs.
use std::collections::HashMap;
use std::rc::Rc;

use self::budget::Budget;
use self::cone::{Cone, Conflict};
use self::distance::NEGATIVE;
use self::mutant::Mutant;
use self::system::System;
use crate::loop_nest::{LoopNest, Order, Space, Subscript};

mod budget;
mod cone;
mod describe;
mod difference;
mod directions;
mod distance;
mod fourier_motzkin;
mod lattice;
mod linear;
mod merge;
mod mutant;
mod points;
mod pool;
mod rotation;
mod search;
mod system;
#[cfg(test)]
mod tests;
mod vector;

pub use self::distance::Distance;
pub use self::vector::{Dependence, Exactness, Kind};

/// Multiplications that an analysis may cost, over all pairs of accesses.
const BUDGET: u64 = 1 << 20;
/// Multiplications that a pair may cost at least.
const PAIR_BUDGET: u64 = 1 << 12;

/// The dependences of a loop.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Dependences {
    /// The dependences, sorted by source, sink and vector.
    pub list: Vec<Dependence>,
    /// Dimensions of the nest.
    pub dims: usize,
    /// The pairs of accesses that were compared, in either direction.
    sets: Vec<DistanceSet>,
}

/// Distances from one access to another.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
struct DistanceSet {
    source: usize,
    sink: usize,
    /// All of them, sorted, if they are known.
    points: Option<Vec<Vec<i64>>>,
}

impl Dependences {
    /// Whether no two iterations conflict: they may run anywhere, in any order.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All distances between two accesses (indices into [`LoopNest::accesses`]), sink minus source, sorted, if the
    /// set is known and has at most 1024 members. Like the vectors, the distances are not lexicographically negative.
    pub fn distances(&self, source: usize, sink: usize) -> Option<&[Vec<i64>]> {
        let set = self.sets.iter().find(|set| (set.source, set.sink) == (source, sink));
        set.map_or(Some(&[]), |set| set.points.as_deref())
    }
}

/// Finds the dependences of a loop.
pub fn analyze(nest: &LoopNest) -> Dependences {
    let dims = nest.dims.len();
    let mut found = Dependences { list: Vec::new(), dims, sets: Vec::new() };
    let empty = nest.dims.iter().any(|variable| system::values(variable) == Some(None));
    if empty || matches!(nest.space, Space::Entries { count: 0 | 1, .. }) {
        return found;
    }
    let pairs = pairs(nest);
    let budget = (BUDGET / pairs.len().max(1) as u64).max(PAIR_BUDGET);
    let mut known: HashMap<[&[Subscript]; 2], Rc<Conflict>> = HashMap::new();
    for (a, b) in pairs {
        let subscripts = [a, b].map(|access| nest.accesses[access].subscripts.as_slice());
        let conflict = known.entry(subscripts).or_insert_with(|| Rc::new(solve(nest, subscripts, budget)));
        found.add(nest, a, b, conflict);
    }
    found.list.sort_by(|x, y| (x.source, x.sink, &x.vector).cmp(&(y.source, y.sink, &y.vector)));
    found
}

/// The accesses to be compared, the earlier in the text first.
fn pairs(nest: &LoopNest) -> Vec<(usize, usize)> {
    let dropped = |a: usize, b: usize| {
        let (x, y) = (&nest.accesses[a], &nest.accesses[b]);
        let both_write = !x.mode.reads() && !y.mode.reads();
        a == b && mutant::is(Mutant::DroppedSelfPair)
            || both_write && nest.order == Order::Unordered && mutant::is(Mutant::DroppedWritePair)
    };
    let all = (0..nest.accesses.len()).flat_map(|a| (a..nest.accesses.len()).map(move |b| (a, b)));
    let conflicting = all.filter(|(a, b)| {
        let (x, y) = (&nest.accesses[*a], &nest.accesses[*b]);
        x.array == y.array && (x.mode.writes() || y.mode.writes()) && !nest.relaxed.contains(&x.array)
    });
    conflicting.filter(|(a, b)| !dropped(*a, *b)).collect()
}

/// How two accesses conflict: the exact set, if it is small, otherwise directions.
fn solve(nest: &LoopNest, subscripts: [&[Subscript]; 2], budget: u64) -> Conflict {
    let Some(system) = System::of(nest, subscripts[0], subscripts[1]) else { return Conflict::none() };
    let any = vec![distance::NEGATIVE | distance::ZERO | distance::POSITIVE; system.dims];
    if !system.differences.iter().all(|difference| difference.may_vanish(&any)) {
        return Conflict::none();
    }
    let mut budget = Budget::new(budget);
    let mut share = budget.split(2);
    if let Some(points) = points::enumerate(&system, &mut share) {
        return Conflict::of_points(points);
    }
    budget.give_back(share);
    Conflict { points: None, cones: directions::cones(&system, budget) }
}

impl Dependences {
    /// Adds the distances between two accesses, those that run backwards with source and sink exchanged.
    fn add(&mut self, nest: &LoopNest, a: usize, b: usize, conflict: &Conflict) {
        let negative = |point: &[i64]| point.iter().find(|d| **d != 0).is_some_and(|d| *d < 0);
        let split = |backwards: bool| {
            let zero = |point: &[i64]| point.iter().all(|d| *d == 0);
            let keep = |point: &&Vec<i64>| zero(point) || negative(point) == backwards;
            let sign = if backwards { -1 } else { 1 };
            let turn = |point: &Vec<i64>| point.iter().map(|d| d * sign).collect();
            let mut points: Option<Vec<Vec<i64>>> =
                conflict.points.as_ref().map(|points| points.iter().filter(keep).map(turn).collect());
            points.iter_mut().for_each(|points| points.sort_unstable());
            points
        };
        let (mut forward, mut backward): (Vec<Cone>, Vec<Cone>) = Default::default();
        for cone in &conflict.cones {
            match cone.leading() {
                NEGATIVE if mutant::is(Mutant::ForwardOnly) && cone.signs[0] == NEGATIVE => {}
                NEGATIVE => backward.push(cone.reversed()),
                distance::ZERO => {
                    forward.push(cone.clone());
                    backward.push(cone.clone());
                }
                _ => forward.push(cone.clone()),
            }
        }
        self.add_directed(nest, (a, b), forward, split(false));
        if a != b && !mutant::is(Mutant::DroppedReversal) {
            self.add_directed(nest, (b, a), backward, split(true));
        }
    }

    fn add_directed(
        &mut self,
        nest: &LoopNest,
        (source, sink): (usize, usize),
        cones: Vec<Cone>,
        points: Option<Vec<Vec<i64>>>,
    ) {
        let access = &nest.accesses[source];
        let kind = Kind::of(access.mode, nest.accesses[sink].mode);
        let kind = kind.expect("one of two compared accesses writes");
        let mut list = Vec::with_capacity(cones.len());
        for cone in cones {
            let components = cone.signs.iter().zip(&cone.extents);
            let vector = components.map(|(signs, extent)| merge::component(*signs, *extent)).collect();
            let exactness = match (&points, cone.occurs) {
                (Some(_), _) => Exactness::Points,
                (None, true) => Exactness::Occurs,
                (None, false) => Exactness::Assumed,
            };
            let extents = cone.extents;
            list.push(Dependence { array: access.array, source, sink, kind, vector, extents, exactness });
        }
        merge::merge(&mut list);
        self.list.extend(list);
        self.sets.push(DistanceSet { source, sink, points });
    }
}
