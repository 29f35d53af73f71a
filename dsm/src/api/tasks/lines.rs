//! Lines: elements of an array at equal distances, whose bounds are checked once and not at each element.
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Elements of an array of `N` dimensions whose indices differ by the same step from one to the next: of a loop, those that one
/// expression names while one variable counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<const N: usize> {
    /// The index of the first.
    pub first: [usize; N],
    /// From one index to the next, by dimension.
    pub step: [i64; N],
    /// Whether they are to be written.
    pub writes: bool,
}

impl<const N: usize> Line<N> {
    /// Elements from one to the next, of an array with these strides, of which the last is 1.
    #[inline(always)]
    pub(super) fn stride(&self, strides: &[usize; N]) -> isize {
        // The last as what it is: compilers see which lines have an element right behind the other.
        let last = self.step[N - 1] as isize;
        (0..N - 1)
            .fold(last, |sum, k| sum.wrapping_add((self.step[k] as isize).wrapping_mul(strides[k] as isize)))
    }
}

/// Whether `len` numbers, the first of them `at` and each `step` behind the one before, are all below `extent`.
#[inline(always)]
pub(super) fn stays_below(extent: usize, at: usize, step: i64, len: usize) -> bool {
    let Some(reach) = (step.unsigned_abs() as usize).checked_mul(len.saturating_sub(1)) else { return false };
    at < extent && if step < 0 { reach <= at } else { reach < extent - at }
}

/// `K` lines of the same length through one array. `lines[(k, n)]` is element `n` of line `k`. Lines may cross: each look borrows
/// all of them, as a look into the array would.
///
/// ```
/// use hectare_dsm::tasks::{Line, Patches};
///
/// let mut elements = [1.0, 2.0, 3.0, 4.0];
/// let mut part = Patches::of_parts(&[9], vec![([4..8], &mut elements[..])]);
/// let from = Line { first: [4], step: [1], writes: false };
/// let to = Line { first: [5], step: [1], writes: true };
/// let mut lines = part.lines([from, to], 3).unwrap();
/// for n in 0..3 {
///     lines[(1, n)] += lines[(0, n)];
/// }
/// assert_eq!(part.slice(4..8).unwrap(), [1.0, 3.0, 6.0, 10.0]);
/// ```
#[derive(Debug)]
pub struct Lines<'a, T, const K: usize> {
    first: [*mut T; K],
    stride: [isize; K],
    writes: [bool; K],
    len: usize,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T, const K: usize> Lines<'a, T, K> {
    /// # Safety
    /// For `'a`, each of the `len` elements of each line may be read, and of lines that `writes` marks written, by whoever has
    /// these lines, as a `&mut` to all of them would allow.
    #[inline(always)]
    pub(super) unsafe fn new(
        first: [*mut T; K],
        stride: [isize; K],
        writes: [bool; K],
        len: usize,
    ) -> Lines<'a, T, K> {
        Lines { first, stride, writes, len, elements: PhantomData }
    }

    /// Lines to be read: of each the elements that it lies among, the place of the first there, and elements from one to the next.
    /// `None` if they do not all lie there.
    #[inline(always)]
    pub fn of_slices(lines: [(&'a [T], usize, isize); K], len: usize) -> Option<Lines<'a, T, K>> {
        let mut first = [std::ptr::dangling_mut(); K];
        let mut stride = [0; K];
        for (k, (elements, at, step)) in lines.into_iter().enumerate() {
            if !stays_below(elements.len(), at, step as i64, len) {
                return None;
            }
            first[k] = elements.as_ptr().cast_mut().wrapping_add(at);
            stride[k] = step;
        }
        // SAFETY: the elements are borrowed for reading, and no line is to be written.
        Some(unsafe { Lines::new(first, stride, [false; K], len) })
    }

    #[inline(always)]
    fn element(&self, line: usize, at: usize) -> *mut T {
        if at >= self.len {
            outside(at, self.len);
        }
        self.first[line].wrapping_offset(self.stride[line].wrapping_mul(at as isize))
    }
}

impl<T, const K: usize> Index<(usize, usize)> for Lines<'_, T, K> {
    type Output = T;

    #[inline(always)]
    fn index(&self, (line, at): (usize, usize)) -> &T {
        // SAFETY: an element of a line, which may be read, see `new`; what was lent to be written borrows all lines.
        unsafe { &*self.element(line, at) }
    }
}

impl<T, const K: usize> IndexMut<(usize, usize)> for Lines<'_, T, K> {
    #[inline(always)]
    fn index_mut(&mut self, (line, at): (usize, usize)) -> &mut T {
        if !self.writes[line] {
            not_written(line);
        }
        // SAFETY: an element of a line that may be written, see `new`; all lines are borrowed for as long as it is.
        unsafe { &mut *self.element(line, at) }
    }
}

// Numbers and no references: what a message is made from would have to lie in memory in every iteration.
#[cold]
#[inline(never)]
fn outside(at: usize, len: usize) -> ! {
    panic!("element {at} of a line of {len}")
}

#[cold]
#[inline(never)]
fn not_written(line: usize) -> ! {
    panic!("line {line} is not to be written")
}
