//! Which elements of an array the iterations of a tile touch: boxes with strides, never fewer than there are.
use crate::loop_nest::{Access, Affine, LoopNest, Subscript};
use crate::mutant::{self, Mutant};

/// Every `step`-th index of a dimension from `start` on, below `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
    /// From one to the next, not 0.
    pub step: usize,
}

/// The elements of an array that a tile touches: boxes of its indices, with one span for each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The elements that it may read.
    pub reads: Vec<Vec<Span>>,
    /// The elements that it may write.
    pub writes: Vec<Vec<Span>>,
}

/// The elements of array `array` that iterations with these values of the loop's dimensions, `start..end`, touch.
pub fn touched(nest: &LoopNest, array: usize, values: &[(i64, i64)]) -> Touched {
    let inner = nest.inner.iter().map(|variable| variable.bounds);
    let variables: Vec<Option<(i64, i64)>> = values.iter().copied().map(Some).chain(inner).collect();
    let mut touched = Touched::default();
    let forgotten = if mutant::is(Mutant::TouchedForgotten) { nest.accesses.last() } else { None };
    for access in nest.accesses_of(array).filter(|access| Some(*access) != forgotten) {
        let spans = spans(access, &nest.arrays[array].shape, &variables);
        if access.mode.reads() {
            touched.reads.push(spans.clone());
        }
        if access.mode.writes() {
            touched.writes.push(spans);
        }
    }
    for boxes in [&mut touched.reads, &mut touched.writes] {
        boxes.sort_unstable();
        boxes.dedup();
    }
    touched
}

fn spans(access: &Access, shape: &[usize], variables: &[Option<(i64, i64)>]) -> Vec<Span> {
    let of = |(subscript, extent): (&Subscript, &usize)| {
        let found = match subscript {
            Subscript::Index(index) => progression(index, variables),
            Subscript::Range(start, end) => {
                let hull = (progression(start, variables), progression(end, variables));
                // The end of a range is behind it.
                if let (Some(start), Some(end)) = hull {
                    Some((start.0, end.1.saturating_sub(1), 1))
                } else {
                    None
                }
            }
            Subscript::Full | Subscript::Unknown => None,
        };
        let whole = Span { start: 0, end: *extent, step: 1 };
        found.map_or(whole, |found| within(found, *extent))
    };
    access.subscripts.iter().zip(shape).map(of).collect()
}

/// The first and the last value of an affine form over a box, and the distance between its values; `None` if a side of the box is
/// not known, or on overflow. A box without values has the last below the first.
fn progression(form: &Affine, variables: &[Option<(i64, i64)>]) -> Option<(i64, i64, u64)> {
    let (mut low, mut high, mut step) = (form.constant, form.constant, 0u64);
    for (coefficient, side) in form.coefficients.iter().zip(variables).filter(|(c, _)| **c != 0) {
        let (start, end) = (*side)?;
        if start >= end {
            return Some((0, -1, 1));
        }
        let (a, b) = (coefficient.checked_mul(start)?, coefficient.checked_mul(end - 1)?);
        low = low.checked_add(a.min(b))?;
        high = high.checked_add(a.max(b))?;
        if end - start > 1 {
            step = gcd(step, coefficient.unsigned_abs());
        }
    }
    Some((low, high, step.max(1)))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The values of a progression that are indices below `extent`.
fn within((low, high, step): (i64, i64, u64), extent: usize) -> Span {
    let none = Span { start: 0, end: 0, step: 1 };
    let Ok(step) = i64::try_from(step) else { return none };
    let start = if low < 0 { low.rem_euclid(step) } else { low };
    let end = high.saturating_add(1).min(extent as i64);
    match start < end {
        // A step that leads nowhere is one like any other.
        true if end - start <= step => Span { start: start as usize, end: start as usize + 1, step: 1 },
        true => Span { start: start as usize, end: end as usize, step: step as usize },
        false => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(constant: i64, coefficients: &[i64]) -> Affine {
        Affine { constant, coefficients: coefficients.to_vec() }
    }

    #[test]
    fn spans_have_every_index_that_a_form_takes() {
        let sides = [(0, 5), (-3, 4), (2, 3), (1, 1)];
        for constant in [-7, 0, 4] {
            for a in [-3, 0, 2, 4] {
                for b in [0, 1, -2, 6] {
                    for (x, y) in sides.iter().flat_map(|x| sides.iter().map(move |y| (*x, *y))) {
                        let Some(found) = progression(&form(constant, &[a, b]), &[Some(x), Some(y)]) else {
                            panic!("all is known")
                        };
                        let span = within(found, 16);
                        let has = |at: i64| {
                            let inside = (span.start as i64..span.end as i64).contains(&at);
                            inside && (at - span.start as i64) % span.step as i64 == 0
                        };
                        for (i, j) in (x.0..x.1).flat_map(|i| (y.0..y.1).map(move |j| (i, j))) {
                            let at = constant + a * i + b * j;
                            assert!(
                                !(0..16).contains(&at) || has(at),
                                "{constant} {a} {b} {x:?} {y:?} {span:?}"
                            );
                        }
                        assert!(span.end <= 16);
                    }
                }
            }
        }
    }

    #[test]
    fn a_stride_is_kept() {
        // 2*i + 1 for i in 3..9, and i + 8*j.
        assert_eq!(progression(&form(1, &[2]), &[Some((3, 9))]), Some((7, 17, 2)));
        assert_eq!(within((7, 17, 2), 100), Span { start: 7, end: 18, step: 2 });
        assert_eq!(within((-5, 17, 2), 10), Span { start: 1, end: 10, step: 2 });
        assert_eq!(progression(&form(0, &[1, 8]), &[Some((4, 5)), Some((0, 3))]), Some((4, 20, 8)));
        assert_eq!(progression(&form(0, &[1, 8]), &[Some((4, 5)), None]), None);
        assert_eq!(progression(&form(0, &[i64::MAX]), &[Some((4, 6))]), None);
    }
}
