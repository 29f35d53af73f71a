//! Elements of an array in a loop that does not name it: an error of the compiler that says so.
use super::DistArray;
use hectare_dsm::Element;
use std::convert::Infallible;
use std::ops::Index;

/// No type is one: outside of loops that name it, an array has no elements to point at.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this array has no elements here: the loop does not name it",
    label = "name the array after `read` or `write` in the head of the loop",
    note = "outside of loops, `array.read(context)` is a view of its elements"
)]
pub trait Declared {
    #[doc(hidden)]
    fn never<R>(&self) -> R;
}

impl Declared for Infallible {
    fn never<R>(&self) -> R {
        match *self {}
    }
}

#[doc(hidden)]
impl<T: Element, const N: usize, I: Declared> Index<I> for DistArray<T, N> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        index.never()
    }
}

/// The methods of views, by which the body of a loop uses the arrays that it names.
#[doc(hidden)]
impl<T: Element, const N: usize> DistArray<T, N> {
    pub fn row<I: Declared>(&self, index: I) -> &[T] {
        index.never()
    }

    pub fn slice<I: Declared>(&self, range: I) -> &[T] {
        range.never()
    }

    pub fn row_mut<I: Declared>(&self, index: I) -> &mut [T] {
        index.never()
    }

    pub fn rows_mut<I: Declared>(&self, first: I, _second: I) -> (&mut [T], &mut [T]) {
        first.never()
    }

    pub fn slice_mut<I: Declared>(&self, range: I) -> &mut [T] {
        range.never()
    }
}
