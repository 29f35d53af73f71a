//! One dependence between two accesses.
use std::fmt;

use super::Distance;
use crate::loop_nest::{LoopNest, Mode};

/// The kind of a dependence, by what passes from the source to the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Kind {
    /// The source writes what the sink reads.
    Flow,
    /// The source reads what the sink writes.
    Anti,
    /// Both write.
    Output,
}

impl Kind {
    /// The strongest kind that these modes allow; `None` if both only read.
    pub(super) fn of(source: Mode, sink: Mode) -> Option<Kind> {
        match (source.writes(), sink.writes()) {
            (true, _) if sink.reads() => Some(Kind::Flow),
            (true, true) => Some(Kind::Output),
            (_, true) => Some(Kind::Anti),
            _ => None,
        }
    }
}

/// How much is known about a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Exactness {
    /// All distances between the two accesses are known: [`Dependences::distances`](super::Dependences::distances).
    Points,
    /// At least one of the distances that the vector stands for occurs, if every point within the bounds is an
    /// iteration.
    Occurs,
    /// It could not be ruled out: subscripts depend on data, or the answer would have cost too much.
    Assumed,
}

/// Iterations at these distances may touch the same element of an array, and at least one of them writes it.
///
/// The vector is never lexicographically negative. In an ordered loop the sink has to run after the source. In an
/// unordered loop the two must not run at the same time; the serial order of which the vector speaks is then only
/// one of those allowed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Dependence {
    /// Index into [`LoopNest::arrays`].
    pub array: usize,
    /// The access of the earlier iteration: index into [`LoopNest::accesses`].
    pub source: usize,
    /// The access of the later iteration: index into [`LoopNest::accesses`].
    pub sink: usize,
    /// The kind of the dependence. An update both reads and writes; then the first of flow, output and anti that
    /// applies.
    pub kind: Kind,
    /// Sink index minus source index, per dimension of the nest.
    pub vector: Vec<Distance>,
    /// The least and the greatest distance per dimension, as far as known: never narrower than what occurs.
    pub extents: Vec<(Option<i64>, Option<i64>)>,
    /// How much is known.
    pub exactness: Exactness,
}

impl Dependence {
    /// Whether the distance (one number per dimension) is among those that the vector stands for.
    pub fn covers(&self, distance: &[i64]) -> bool {
        let inside = |k: usize, d: i64| {
            self.vector[k].contains(d)
                && self.extents[k].0.is_none_or(|low| low <= d)
                && self.extents[k].1.is_none_or(|high| d <= high)
        };
        distance.len() == self.vector.len() && distance.iter().enumerate().all(|(k, d)| inside(k, *d))
    }

    /// Whether it is zero in every dimension: two entries with the same index.
    pub fn is_zero(&self) -> bool {
        self.vector.iter().all(|distance| distance.is_zero())
    }

    /// The dependence in the words of the source: `flow from u[i] (line 3) to u[i - 1] (line 4): (+1, *)`.
    pub fn describe(&self, nest: &LoopNest) -> String {
        let kind = match self.kind {
            Kind::Flow => "flow",
            Kind::Anti => "anti",
            Kind::Output => "output",
        };
        let place = |access: usize| {
            let access = &nest.accesses[access];
            match access.line {
                0 => access.text.clone(),
                line => format!("{} (line {line})", access.text),
            }
        };
        format!("{kind} from {} to {}: {self}", place(self.source), place(self.sink))
    }
}

impl fmt::Display for Dependence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (k, distance) in self.vector.iter().enumerate() {
            write!(f, "{}{distance}", if k == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}
