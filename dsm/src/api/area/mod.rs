//! Areas: the writer's and the readers' side, and how ownership passes.
pub(crate) mod ask;
mod attach;
pub(crate) mod bytes;
pub(crate) mod cells;
mod clock_words;
mod copy;
mod create;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod info;
pub(crate) mod lend;
#[cfg(test)]
mod lend_tests;
pub(crate) mod observer;
pub(crate) mod open;
pub(crate) mod own_or_shared;
pub(crate) mod owned;
pub(crate) mod reduce;
mod release;
pub(crate) mod transfer;
mod wait;
mod wake;
