//! The arrays of a loop, whatever their types.
use super::{ArrayTrace, KeyNotes, LoopArray, PassTrace};
use crate::error::Result;
use hectare_dsm::Worker;
use std::ops::Range;

/// The type of a family for one lifetime.
pub type Of<'a, F> = <F as Family>::Of<'a>;

/// A type for every lifetime. A body is generic over the lifetime of what it is given, and this names that type
/// without a bound on the lifetime of the array that it comes from.
pub trait Family {
    /// The type.
    type Of<'a>;
}

/// An array as it is passed to a loop: `&DistArray` to read it, `&mut DistArray` to write it.
pub trait ArrayArg: LoopArray {
    /// The view of the body.
    type View: Family;
    /// The view of a slice of the body, which says before the body runs which keys of served arrays it uses, or of written arrays
    /// whose subscripts come from data.
    type Keys: Family;

    /// Makes what a slice sees. Of a loop that is inspected, what it names is noted in `notes`.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn keys<'a>(&'a mut self, worker: &'a Worker, notes: KeyNotes<'a>) -> Result<Of<'a, Self::Keys>>;

    /// Makes the view of these parts. A view that notes what is touched is of one part.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core) if this worker does not hold them.
    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<Of<'a, Self::View>>;
}

/// The arrays of one loop, whatever their types. What a pass does with them as a whole is compiled once, and not for every loop.
pub trait AnyArrays {
    /// Each array, in order.
    fn each(&mut self) -> Vec<&mut dyn LoopArray>;

    /// The numbers of the arrays, and which are written, for the key of a plan.
    fn numbers(&self) -> Vec<(u64, bool)>;
}

/// The arrays of one loop: a tuple of up to eight.
pub trait Arrays: AnyArrays {
    /// The views of the body.
    type Views: Family;
    /// The views of a slice of the body.
    type Keys: Family;

    /// Makes what a slice sees. Of a loop that is inspected, what it names is noted in `notes`.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn keys<'a>(&'a mut self, worker: &'a Worker, notes: KeyNotes<'a>) -> Result<Of<'a, Self::Keys>>;

    /// Makes the views; `parts` says which parts of each.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn views<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: &[Range<usize>],
        trace: PassTrace<'a>,
    ) -> Result<Of<'a, Self::Views>>;
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: Family),*> Family for ($($name,)*) {
            type Of<'a> = ($($name::Of<'a>,)*);
        }

        impl<$($name: ArrayArg),*> AnyArrays for ($($name,)*) {
            fn each(&mut self) -> Vec<&mut dyn LoopArray> {
                vec![$(&mut self.$index as &mut dyn LoopArray),*]
            }

            fn numbers(&self) -> Vec<(u64, bool)> {
                vec![$((self.$index.number(), self.$index.is_written())),*]
            }
        }

        impl<$($name: ArrayArg),*> Arrays for ($($name,)*) {
            type Views = ($($name::View,)*);
            type Keys = ($($name::Keys,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn keys<'a>(&'a mut self, worker: &'a Worker, notes: KeyNotes<'a>) -> Result<Of<'a, Self::Keys>> {
                Ok(($(self.$index.keys(worker, notes.array($index))?,)*))
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn views<'a>(
                &'a mut self,
                worker: &'a Worker,
                parts: &[Range<usize>],
                trace: PassTrace<'a>,
            ) -> Result<Of<'a, Self::Views>> {
                Ok(($(self.$index.view(worker, parts[$index].clone(), trace.of($index))?,)*))
            }
        }
    )*};
}
tuples! {
    () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5) (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
