//! Frames and their bytes. `NET.md` has the layouts.
mod bytes;
mod frame;
mod register;

pub use frame::{Cut, Data, Frame, FrameError, Hello, VERSION, decode, encode};
pub(crate) use frame::{data_cost, put_data_header};
pub use register::{Forced, Handover, Key, Owner, Register, Stage, Stated, Subscription, Wanted};
