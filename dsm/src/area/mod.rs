//! Areas: the table of them, who owns one, the writer's and the readers' side.
pub(crate) mod cells;
pub(crate) mod element;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod info;
pub(crate) mod lend;
pub(crate) mod observer;
pub(crate) mod open;
pub(crate) mod owned;
pub(crate) mod owned_set;
pub(crate) mod ownership;
pub(crate) mod parts;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod spec;
pub(crate) mod table;
pub(crate) mod transfer;
