//! Views of arrays in loop bodies: the part that the worker holds, with checked rows and elements.
mod gathered;
mod kernels;
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
