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

impl Span {
    /// The last; of a span that is not empty.
    const fn last(self) -> usize {
        self.end - 1 - (self.end - 1 - self.start) % self.step
    }

    const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// One span of exactly the indices of both, of which none is empty, if there is one.
    fn joined(self, other: Span) -> Option<Span> {
        let (a, b) = if self.start <= other.start { (self, other) } else { (other, self) };
        let fits = a.step == b.step && (b.start - a.start).is_multiple_of(a.step);
        let reaches = b.start <= a.last() + a.step;
        (fits && reaches).then(|| Span { start: a.start, end: a.end.max(b.end), step: a.step })
    }
}

/// Whether a box has all elements of another, as far as steps of 1 tell.
fn covers(one: &[Span], other: &[Span]) -> bool {
    let inside = |(a, b): (&Span, &Span)| a == b || a.step == 1 && a.start <= b.start && b.end <= a.end;
    one.iter().zip(other).all(inside)
}

/// Makes `one` a box of exactly the elements of both, if there is one.
fn join(one: &mut [Span], other: &[Span]) -> bool {
    if covers(one, other) {
        return true;
    }
    if covers(other, one) {
        one.copy_from_slice(other);
        return true;
    }
    let mut differing = (0..one.len()).filter(|dim| one[*dim] != other[*dim]);
    let (Some(dim), None) = (differing.next(), differing.next()) else { return false };
    let Some(joined) = one[dim].joined(other[dim]) else { return false };
    one[dim] = joined;
    true
}

/// Adds the elements of a box, in as few boxes as fit together: a loop may have hundreds of accesses next to each other, and each of its
/// tiles a list of what it touches.
fn add(boxes: &mut Vec<Vec<Span>>, spans: &[Span]) {
    if spans.iter().any(|span| span.is_empty()) {
        return;
    }
    let Some(at) = boxes.iter_mut().position(|one| join(one, spans)) else {
        boxes.push(spans.to_vec());
        return;
    };
    // What has grown may fit others by now.
    let mut grown = boxes.swap_remove(at);
    while let Some(at) = boxes.iter().position(|other| join(&mut grown, other)) {
        boxes.swap_remove(at);
    }
    boxes.push(grown);
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
    let (mut touched, mut of_access) = (Touched::default(), Vec::new());
    let forgotten = if mutant::is(Mutant::TouchedForgotten) { nest.accesses.last() } else { None };
    for access in nest.accesses_of(array).filter(|access| Some(*access) != forgotten) {
        of_access.clear();
        of_access.extend(spans(access, &nest.arrays[array].shape, &variables));
        if access.mode.reads() {
            add(&mut touched.reads, &of_access);
        }
        if access.mode.writes() {
            add(&mut touched.writes, &of_access);
        }
    }
    touched.reads.sort_unstable();
    touched.writes.sort_unstable();
    touched
}

fn spans(access: &Access, shape: &[usize], variables: &[Option<(i64, i64)>]) -> impl Iterator<Item = Span> {
    let of = move |(subscript, extent): (&Subscript, &usize)| {
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
    access.subscripts.iter().zip(shape).map(of)
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

    /// Boxes of two dimensions, some of them next to each other: joined, they have the elements that they had.
    #[test]
    fn boxes_that_fit_together_are_one() {
        let has = |boxes: &[Vec<Span>], at: [usize; 2]| {
            let inside = |span: &Span, at: usize| {
                (span.start..span.end).contains(&at) && (at - span.start).is_multiple_of(span.step)
            };
            boxes.iter().any(|one| one.iter().zip(at).all(|(span, at)| inside(span, at)))
        };
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % below) as usize
        };
        for _ in 0..3000 {
            let (mut all, mut joined) = (Vec::new(), Vec::new());
            for _ in 0..random(7) {
                let one: Vec<Span> = (0..2)
                    .map(|_| {
                        let (start, len, step) = (random(5), random(6), [1, 1, 2, 3][random(4)]);
                        Span { start, end: start + len, step }
                    })
                    .collect();
                add(&mut joined, &one);
                all.push(one);
            }
            for (i, j) in (0..12).flat_map(|i| (0..12).map(move |j| (i, j))) {
                assert_eq!(has(&joined, [i, j]), has(&all, [i, j]), "{all:?} {joined:?}");
            }
            assert!(joined.len() <= all.len());
        }
        // A square of a hundred accesses, row by row.
        let mut boxes = Vec::new();
        for (i, j) in (0..10).flat_map(|i| (0..10).map(move |j| (i, j))) {
            add(
                &mut boxes,
                &[i..i + 4, j..j + 7].map(|range| Span { start: range.start, end: range.end, step: 1 }),
            );
        }
        assert_eq!(boxes, [[Span { start: 0, end: 13, step: 1 }, Span { start: 0, end: 16, step: 1 }]]);
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
