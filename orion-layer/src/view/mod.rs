//! Views of arrays in loop bodies: the part that the worker holds, with checked rows and elements.
mod gathered;
mod kernels;
#[cfg(test)]
mod lines_tests;
mod read;
mod recording;
mod transfer;
mod window;
mod write;

pub(crate) use self::gathered::Gathered;
pub use self::kernels::{axpy, dot, norm2, scale};
pub use self::read::View;
pub(crate) use self::recording::{Recorder, Recording, Touch};
pub(crate) use self::transfer::copy_box;
pub use self::window::RowIndex;
pub(crate) use self::window::{PartBounds, RefusedAccess, Window, refuse};
pub use self::write::ViewMut;
#[doc(hidden)]
pub use hectare_dsm::tasks::Line;

/// The lines of an array of `N` dimensions. `None` if they have another number of subscripts: the compiler says so where the subscripts
/// stand, and not where the macro writes lines.
#[inline(always)]
fn of_dims<const M: usize, const N: usize, const K: usize>(lines: [Line<M>; K]) -> Option<[Line<N>; K]> {
    use crate::mutant::{Mutant, is};
    let line = |Line { first, step, writes }: Line<M>| match writes {
        false if is(Mutant::StuckLines) => {
            Line { first: std::array::from_fn(|k| first[k]), step: [0; N], writes }
        }
        _ => {
            Line { first: std::array::from_fn(|k| first[k]), step: std::array::from_fn(|k| step[k]), writes }
        }
    };
    (M == N).then(|| lines.map(line))
}

/// A subscript of an element.
#[doc(hidden)]
pub trait Subscript {}

impl Subscript for usize {}

impl<const N: usize> Subscript for [usize; N] {}

/// Tells compilers the type of a subscript; for `parallel_for!`.
#[doc(hidden)]
pub fn subscript<I: Subscript>(_: I) {}

/// The shortest innermost loop for which it pays to check whole lines.
#[doc(hidden)]
pub const LEAST_LINE: usize = 8;
