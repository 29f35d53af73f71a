//! What a loop body sees of an array: the part that its worker holds, with checked rows and elements.
mod frame;
mod gathered;
mod kernels;
mod read;
mod recording;
mod transfer;
mod write;

pub use self::frame::RowIndex;
pub(crate) use self::frame::{Frame, PartBounds, Refused, refuse};
pub(crate) use self::gathered::Gathered;
pub use self::kernels::{axpy, dot, norm2, scale};
pub use self::read::View;
pub(crate) use self::recording::{Recorder, Recording, Touch};
pub(crate) use self::transfer::copy_box;
pub use self::write::ViewMut;
