//! libhectare: Hectare for programs in C and C++.
//!
//! The documentation for users is the header, `include/hectare/hectare.h`, which is generated from the comments in
//! this crate. Here is how it works inside.
//!
//! - Every function is an entry: it runs its body in `status::enter`, which turns failures and panics into an
//!   `ha_status` and keeps the text for `ha_last_error`.
//! - Handles are pointers to a `handle::Shell`, whose memory always remains that of a handle of its kind, so that a
//!   closed handle is recognized.
//! - A worker and what belongs to it are used by one thread, which each entry checks before it touches anything but
//!   words that never change. Cells see to it that callbacks do not enter a worker twice.
//! - Areas have their element type at run time (`element`): one trait object per handle.
//!
//! The contract of every `unsafe` entry is the paragraph "Pointers" of its comment, and what the header says of
//! pointers at its top; "the header's contract" in the comments here.
#![expect(non_camel_case_types, reason = "names as C has them")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the contract is the paragraph `Pointers`, for readers of the header"
)]

// In the order of the header: rustfmt keeps the groups.
pub mod status;

pub mod version;

pub mod job;

pub mod run;

pub mod worker;

pub mod element;

pub mod area;

pub mod log;

pub mod read;

pub mod owner;

pub mod wait;

pub mod reduce;

pub mod array;

pub mod row_plan;

pub mod rows;

pub mod nest;

pub mod loop_run;

pub mod observer;

pub mod info;

mod argument;
mod handle;
mod in_place;
mod loop_plan;
