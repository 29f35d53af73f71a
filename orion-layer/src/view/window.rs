//! Where the elements of a part of an array lie.
use crate::error::Error;
use hectare_dsm::tasks::Line;
use std::ops::Range;

/// The window of a view, which places an index in a part: the part is a box of the array, the whole of it in
/// every dimension but one, and lies in memory in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window<const N: usize> {
    pub(super) base: [usize; N],
    pub(super) extent: [usize; N],
    stride: [usize; N],
    /// The extent of dimension 0, if rows lie whole in the part, otherwise 0.
    pub(super) rows: usize,
}

/// The part that views of one array share, for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartBounds<'a> {
    pub(crate) array: &'a str,
    pub(crate) shape: &'a [usize],
    pub(crate) dim: usize,
}

impl<const N: usize> Window<N> {
    /// The part of an array of this shape that holds `range` of dimension `dim`.
    pub(crate) fn new(shape: &[usize; N], dim: usize, range: &Range<usize>) -> Window<N> {
        let ranges = std::array::from_fn(|k| if k == dim { range.clone() } else { 0..shape[k] });
        let mut window = Window::of_box(&ranges);
        if N > 1 && window.extent[N - 1] != shape[N - 1] {
            window.rows = 0;
        }
        window
    }

    /// The elements with these indices in each dimension, in row-major order.
    pub(crate) fn of_box(ranges: &[Range<usize>; N]) -> Window<N> {
        let base = ranges.each_ref().map(|range| range.start);
        let extent = ranges.each_ref().map(Range::len);
        let mut stride = [1; N];
        for k in (0..N.saturating_sub(1)).rev() {
            stride[k] = stride[k + 1] * extent[k + 1];
        }
        let rows = extent.first().copied().unwrap_or(0);
        Window { base, extent, stride, rows }
    }

    /// Whether both have elements in common.
    pub(crate) fn meets(&self, other: &Window<N>) -> bool {
        (0..N).all(|dim| {
            let (a, b) = (self.range(dim), other.range(dim));
            a.start.max(b.start) < a.end.min(b.end)
        })
    }

    /// Elements in the part.
    pub(crate) fn len(&self) -> usize {
        self.extent.iter().product()
    }

    /// Elements in a row: the extent of the last dimension.
    #[inline]
    pub(crate) fn row_len(&self) -> usize {
        self.extent[N - 1]
    }

    /// The values of dimension `dim` that the part holds.
    pub(crate) fn range(&self, dim: usize) -> Range<usize> {
        self.base[dim]..self.base[dim] + self.extent[dim]
    }

    /// The indices of the elements, in the order in which they lie.
    pub(crate) fn indices(&self) -> impl Iterator<Item = [usize; N]> + use<N> {
        let Window { base, extent, .. } = *self;
        let mut next = (self.len() > 0).then_some(base);
        std::iter::from_fn(move || {
            let index = next?;
            let mut after = index;
            // Counts up, the last dimension fastest.
            next = (0..N).rev().find_map(|dim| {
                after[dim] += 1;
                if after[dim] < base[dim] + extent[dim] {
                    return Some(after);
                }
                after[dim] = base[dim];
                None
            });
            Some(index)
        })
    }

    /// The place of an element, if the part holds it.
    #[inline]
    pub(crate) fn place(&self, index: [usize; N]) -> Option<usize> {
        let mut place = 0;
        for (k, index) in index.into_iter().enumerate() {
            let at = index.wrapping_sub(self.base[k]);
            if at >= self.extent[k] {
                return None;
            }
            // Elements of the last dimension lie side by side.
            place += if k + 1 == N { at } else { at * self.stride[k] };
        }
        Some(place)
    }

    /// The place of an element, if the part holds it; in one dimension perhaps one that is not below [`Window::len`], for
    /// the caller to refuse, which looks at it anyway.
    #[inline(always)]
    pub(crate) fn place_or_beyond(&self, index: [usize; N]) -> Option<usize> {
        match N {
            1 => Some(index[0].wrapping_sub(self.base[0])),
            _ => self.place(index),
        }
    }

    /// The place of the first of `len` elements of a line, and elements from one to the next, if the part holds all.
    #[inline(always)]
    pub(crate) fn line_place(&self, line: &Line<N>, len: usize) -> Option<(usize, isize)> {
        let first = self.place(line.first)?;
        let mut last = line.first;
        let mut stride = 0isize;
        for (k, last) in last.iter_mut().enumerate() {
            let reach = line.step[k].checked_mul(i64::try_from(len.saturating_sub(1)).ok()?)?;
            *last = last.checked_add_signed(reach as isize)?;
            // The last as what it is: compilers see which lines have an element right behind the other.
            let apart = if k + 1 == N { 1 } else { self.stride[k] as isize };
            stride = stride.wrapping_add((line.step[k] as isize).wrapping_mul(apart));
        }
        // Of a box: what lies between two of its elements lies in it.
        self.place(last)?;
        Some((first, stride))
    }

    /// The place of the first element of a row, if the part holds the whole of it.
    #[inline]
    pub(crate) fn row_place<R: RowIndex<N>>(&self, row: R) -> Option<usize> {
        let mut place = 0;
        for k in 0..N - 1 {
            let at = row.at(k).wrapping_sub(self.base[k]);
            if at >= if k == 0 { self.rows } else { self.extent[k] } {
                return None;
            }
            place += at * self.stride[k];
        }
        Some(place)
    }
}

/// The index of a row: all dimensions but the last. A number for two dimensions, an array of numbers for more.
pub trait RowIndex<const N: usize>: Copy {
    /// The index in dimension `dim`.
    fn at(self, dim: usize) -> usize;
    /// All of it.
    fn to_vec(self) -> Vec<usize>;
}

impl RowIndex<2> for usize {
    #[inline]
    fn at(self, _dim: usize) -> usize {
        self
    }

    fn to_vec(self) -> Vec<usize> {
        vec![self]
    }
}

macro_rules! row_index {
    ($($n:literal $m:literal),*) => {$(
        impl RowIndex<$n> for [usize; $m] {
            #[inline]
            fn at(self, dim: usize) -> usize {
                self[dim]
            }

            fn to_vec(self) -> Vec<usize> {
                <[usize]>::to_vec(&self)
            }
        }
    )*};
}
row_index!(2 1, 3 2, 4 3, 5 4);

/// The access that a view refused: the executor turns it into [`Error::OutOfBounds`].
#[derive(Debug)]
pub(crate) struct RefusedAccess {
    array: String,
    index: Vec<usize>,
    what: String,
}

impl RefusedAccess {
    /// The error, for this iteration of the loop, as far as that is known.
    pub(crate) fn into_error(self, loop_name: &str, worker: hectare_dsm::Rank, iteration: String) -> Error {
        let RefusedAccess { array, index, what } = self;
        Error::OutOfBounds { loop_name: loop_name.into(), array, index, what: what.into(), worker, iteration }
    }
}

/// Ends the body because of an element or a row: the executor catches this and reports which loop and worker it was.
/// `held` is what the worker holds of dimension `bounds.dim`.
#[cold]
#[inline(never)]
pub(crate) fn refuse(bounds: PartBounds<'_>, index: Vec<usize>, held: &[Range<usize>]) -> ! {
    let outside = index.iter().zip(bounds.shape).any(|(index, extent)| index >= extent);
    refuse_as(bounds, index, held, outside)
}

/// The same because of a slice of an array of one dimension.
#[cold]
#[inline(never)]
pub(crate) fn refuse_slice(bounds: PartBounds<'_>, slice: Range<usize>, held: &[Range<usize>]) -> ! {
    let outside = slice.start > slice.end || slice.end > bounds.shape[0];
    refuse_as(bounds, vec![slice.start, slice.end], held, outside)
}

fn refuse_as(bounds: PartBounds<'_>, index: Vec<usize>, held: &[Range<usize>], outside: bool) -> ! {
    let PartBounds { array, shape, dim } = bounds;
    let ranges: Vec<String> = held.iter().map(|range| format!("{}..{}", range.start, range.end)).collect();
    let what = match (outside, &ranges[..]) {
        (true, _) => format!("outside of its shape {shape:?}"),
        (false, []) => {
            "not with this worker, which holds nothing of it: the loop's description misses this access"
                .into()
        }
        (false, ranges) => format!(
            "not with this worker, which holds {} of dimension {dim} of the shape {shape:?}: the loop's description misses \
             this access",
            ranges.join(", ")
        ),
    };
    // Not a panic with a message: the executor adds what the view does not know.
    std::panic::resume_unwind(Box::new(RefusedAccess { array: array.into(), index, what }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_row_major_in_the_part() {
        let window = Window::new(&[10, 4, 3], 1, &(1..3));
        assert_eq!(window.len(), 10 * 2 * 3);
        let mut expected = 0;
        for i in 0..10 {
            for j in 1..3 {
                assert_eq!(window.row_place([i, j]), Some(expected));
                for k in 0..3 {
                    assert_eq!(window.place([i, j, k]), Some(expected));
                    assert_eq!(window.indices().nth(expected), Some([i, j, k]));
                    expected += 1;
                }
            }
        }
        assert_eq!(window.indices().count(), window.len());
        assert_eq!(Window::new(&[10, 4, 3], 1, &(2..2)).indices().next(), None);
        for outside in [[10, 1, 0], [0, 0, 0], [0, 3, 0], [0, 1, 3], [usize::MAX, 1, 0]] {
            assert_eq!(window.place(outside), None);
        }
    }
}
