//! Distances of one sign pattern, and what two accesses have of them.
use super::distance::{NEGATIVE, POSITIVE, ZERO, bit};

/// The least and the greatest distance in one dimension, as far as known.
pub(super) type Extent = (Option<i64>, Option<i64>);

/// Distances with these signs (per dimension a set of signs) within these extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cone {
    pub(super) signs: Vec<u8>,
    pub(super) extents: Vec<Extent>,
    /// Whether one of them is known to occur.
    pub(super) occurs: bool,
}

/// The conflict of two accesses, at distances in either direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflict {
    /// All distances, if they are known, sorted.
    pub(super) points: Option<Vec<Vec<i64>>>,
    /// Cones that cover all distances.
    pub(super) cones: Vec<Cone>,
}

impl Conflict {
    /// No distance at all.
    pub(super) fn none() -> Conflict {
        Conflict { points: Some(Vec::new()), cones: Vec::new() }
    }

    /// These distances, sorted, as cones of one sign pattern each.
    pub(super) fn of_points(points: Vec<Vec<i64>>) -> Conflict {
        let mut cones: Vec<Cone> = Vec::new();
        for point in &points {
            let signs: Vec<u8> = point.iter().map(|d| bit(*d)).collect();
            match cones.iter_mut().find(|cone| cone.signs == signs) {
                Some(cone) => cone.extend(point),
                None => {
                    let extents = point.iter().map(|d| (Some(*d), Some(*d))).collect();
                    cones.push(Cone { signs, extents, occurs: true });
                }
            }
        }
        Conflict { points: Some(points), cones }
    }
}

impl Cone {
    /// Every distance in `dims` dimensions that begins with these signs.
    pub(super) fn beginning(signs: &[u8], dims: usize) -> Cone {
        let any = NEGATIVE | ZERO | POSITIVE;
        let signs: Vec<u8> = signs.iter().copied().chain(std::iter::repeat(any)).take(dims).collect();
        let extents = signs.iter().map(|signs| extent_of(*signs)).collect();
        Cone { signs, extents, occurs: false }
    }

    fn extend(&mut self, point: &[i64]) {
        for ((low, high), d) in self.extents.iter_mut().zip(point) {
            *low = low.map(|low| low.min(*d));
            *high = high.map(|high| high.max(*d));
        }
    }

    /// The sign of the first distance that is not zero in each dimension before it: that of the order in which the
    /// two iterations run.
    pub(super) fn leading(&self) -> u8 {
        self.signs.iter().copied().find(|signs| *signs != ZERO).unwrap_or(ZERO)
    }

    /// The same with source and sink exchanged.
    pub(super) fn reversed(&self) -> Cone {
        let flip = |signs: &u8| {
            let swap = |from: u8, to: u8| if signs & from != 0 { to } else { 0 };
            signs & ZERO | swap(NEGATIVE, POSITIVE) | swap(POSITIVE, NEGATIVE)
        };
        let negate = |bound: Option<i64>| bound.and_then(i64::checked_neg);
        let extents = self.extents.iter().map(|(low, high)| (negate(*high), negate(*low)));
        Cone { signs: self.signs.iter().map(flip).collect(), extents: extents.collect(), ..*self }
    }
}

/// The extent that the signs allow.
pub(super) fn extent_of(signs: u8) -> Extent {
    match signs {
        ZERO => (Some(0), Some(0)),
        POSITIVE => (Some(1), None),
        NEGATIVE => (None, Some(-1)),
        _ => (None, None),
    }
}
