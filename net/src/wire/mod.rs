//! Frames and their bytes. `NET.md` has the layouts.
mod bytes;
mod errors;
mod frame;
mod register;

pub use frame::{Announced, Cut, Data, Frame, FrameError, Hello, VERSION, decode, encode};
pub(crate) use frame::{announced_cost, data_cost, put_data_header};
pub use register::{Forced, Handover, Key, Left, Owner, Register, Stage, Stated, Subscription, Wanted};
