//! The quick tests of one subscript pair: GCD and bounds (Banerjee).
use super::distance::{NEGATIVE, POSITIVE, ZERO};
use super::linear::{add_product, gcd_of};
use super::mutant::{self, Mutant};

/// First and last value of a variable.
pub(super) type Bounds = Option<(i128, i128)>;

/// Sink subscript minus source subscript: `constant + Σ (sink · i'ₖ - source · iₖ) + Σ factor · inner variable`.
/// The accesses touch the same place in this dimension of the array where it is zero.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) constant: i128,
    /// Per dimension of the nest: the factors in the source and in the sink, and the bounds.
    pub(super) dims: Vec<(i128, i128, Bounds)>,
    /// Inner variables of either access.
    pub(super) inner: Vec<(i128, Bounds)>,
}

impl Difference {
    /// Whether the difference can be zero where the distances have these signs, one set of signs per dimension.
    /// "Yes" may be wrong, "no" never.
    pub(super) fn may_vanish(&self, signs: &[u8]) -> bool {
        self.gcd_test(signs) && self.banerjee_test(signs).unwrap_or(true)
    }

    /// The greatest common divisor of the factors must divide the constant (Banerjee 1988, chapter 5; dimensions
    /// with distance zero count with the difference of their factors, after Wolfe 1989).
    fn gcd_test(&self, signs: &[u8]) -> bool {
        let dims = self.dims.iter().zip(signs).flat_map(|((source, sink, _), signs)| match *signs {
            ZERO => [sink - source, 0],
            _ => [*source, *sink],
        });
        let mut divisor = gcd_of(dims.chain(self.inner.iter().map(|(factor, _)| *factor)));
        if mutant::is(Mutant::GreedyGcd) {
            divisor *= 2;
        }
        if divisor == 0 { self.constant == 0 } else { self.constant % divisor == 0 }
    }

    /// Zero must lie between the least and the greatest value within the bounds (Banerjee 1988, chapter 6, with
    /// directions after Wolfe 1989). `None` on overflow.
    fn banerjee_test(&self, signs: &[u8]) -> Option<bool> {
        let (mut least, mut greatest) = (Some(self.constant), Some(self.constant));
        let mut add = |low: Option<i128>, high: Option<i128>| -> Option<()> {
            least = match (least, low) {
                (Some(sum), Some(low)) => Some(add_product(sum, low, 1)?),
                _ => None,
            };
            greatest = match (greatest, high) {
                (Some(sum), Some(high)) => Some(add_product(sum, high, 1)?),
                _ => None,
            };
            Some(())
        };
        for ((source, sink, bounds), signs) in self.dims.iter().zip(signs) {
            let Some((low, high)) = dimension(*source, *sink, *bounds, *signs)? else { return Some(false) };
            add(low, high)?;
        }
        for (factor, bounds) in self.inner.iter().filter(|_| !mutant::is(Mutant::NarrowBanerjee)) {
            match bounds {
                Some((first, last)) => {
                    let (a, b) = (add_product(0, *factor, *first)?, add_product(0, *factor, *last)?);
                    add(Some(a.min(b)), Some(a.max(b)))?;
                }
                None if *factor != 0 => add(None, None)?,
                None => {}
            }
        }
        Some(least.is_none_or(|least| least <= 0) && greatest.is_none_or(|greatest| greatest >= 0))
    }
}

/// The least and the greatest value of one term.
type Extent = (Option<i128>, Option<i128>);

/// The extent of `sink · i' - source · i` where `i' - i` has one of these signs: its values at the corners of the
/// triangle, diagonal or square of pairs `(i, i')`. `Some(None)` if there is no such pair; `None` on overflow.
fn dimension(source: i128, sink: i128, bounds: Bounds, signs: u8) -> Option<Option<Extent>> {
    let Some((first, last)) = bounds else { return Some(Some(unbounded(source, sink, signs))) };
    let corners: &[(i128, i128)] = match signs {
        ZERO => &[(first, first), (last, last)],
        POSITIVE if first < last => &[(first, first + 1), (first, last), (last - 1, last)],
        NEGATIVE if first < last => &[(first + 1, first), (last, first), (last, last - 1)],
        POSITIVE | NEGATIVE => return Some(None),
        _ => &[(first, first), (first, last), (last, first), (last, last)],
    };
    let (mut least, mut greatest) = (i128::MAX, i128::MIN);
    for (i, j) in corners {
        let value = add_product(add_product(0, sink, *j)?, -source, *i)?;
        (least, greatest) = (least.min(value), greatest.max(value));
    }
    Some(Some((Some(least), Some(greatest))))
}

/// The extent without bounds: `(sink - source) · i + sink · distance`.
fn unbounded(source: i128, sink: i128, signs: u8) -> Extent {
    let step = match signs {
        ZERO => 0,
        POSITIVE => sink,
        NEGATIVE => -sink,
        _ if sink == 0 => 0,
        _ => return (None, None),
    };
    match (source == sink, step.signum()) {
        (false, _) => (None, None),
        (true, 0) => (Some(0), Some(0)),
        (true, 1) => (Some(step), None),
        (true, _) => (None, Some(step)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u8 = NEGATIVE | ZERO | POSITIVE;

    fn one(constant: i128, source: i128, sink: i128, bounds: Bounds) -> Difference {
        Difference { constant, dims: vec![(source, sink, bounds)], inner: Vec::new() }
    }

    #[test]
    fn divisors_and_bounds_rule_out() {
        assert!(!one(1, 2, 2, None).may_vanish(&[ALL]), "A[2i] and A[2i + 1]");
        assert!(one(2, 2, 2, None).may_vanish(&[ALL]));
        assert!(!one(10, 1, 1, Some((0, 9))).may_vanish(&[ALL]), "A[i] and A[i + 10], i < 10");
        assert!(one(9, 1, 1, Some((0, 9))).may_vanish(&[ALL]));
    }

    #[test]
    fn directions_rule_out_what_bounds_alone_do_not() {
        // A[i] and A[i + 1]: the sink reads what is written at i' + 1 = i, so the distance is -1.
        let shifted = one(1, 1, 1, Some((0, 9)));
        assert!(
            shifted.may_vanish(&[NEGATIVE])
                && !shifted.may_vanish(&[POSITIVE])
                && !shifted.may_vanish(&[ZERO])
        );
        let endless = one(1, 1, 1, None);
        assert!(
            endless.may_vanish(&[NEGATIVE])
                && !endless.may_vanish(&[POSITIVE])
                && !endless.may_vanish(&[ZERO])
        );
    }

    #[test]
    fn an_inner_variable_without_bounds_may_have_any_value() {
        // A[i] and A[i + 10 + m], i < 4: the same place for some m below zero; A[2i] and A[2i + 1 + 2m] never meet.
        let with = |constant, factor, inner| Difference {
            inner: vec![(inner, None)],
            ..one(constant, factor, factor, Some((0, 3)))
        };
        for signs in [ALL, ZERO, POSITIVE, NEGATIVE] {
            assert!(with(10, 1, 1).may_vanish(&[signs]) && with(-10, 1, -1).may_vanish(&[signs]));
            assert!(!with(1, 2, 2).may_vanish(&[signs]));
            // One that does not occur adds nothing.
            assert!(!with(10, 1, 0).may_vanish(&[signs]));
        }
    }

    #[test]
    fn triangles_have_the_extent_that_trying_every_pair_gives() {
        for (source, sink) in (-3..=3).flat_map(|a| (-3..=3).map(move |b| (a, b))) {
            for signs in [ZERO, POSITIVE, NEGATIVE, ALL] {
                let pairs = (-2..=3).flat_map(|i: i128| (-2..=3).map(move |j: i128| (i, j)));
                let fits = |(i, j): &(i128, i128)| signs & super::super::distance::bit((j - i) as i64) != 0;
                let values: Vec<i128> = pairs.filter(fits).map(|(i, j)| sink * j - source * i).collect();
                let expected = (values.iter().min().copied(), values.iter().max().copied());
                assert_eq!(dimension(source, sink, Some((-2, 3)), signs), Some(Some(expected)));
            }
        }
    }
}
