//! The segment: one sparse memfd per job and host, and what lies where in it.
pub(crate) mod about;
pub(crate) mod element;
mod inspect;
pub(crate) mod layout;
pub(crate) mod mapping;
pub(crate) mod parts;
pub(crate) mod pins;
pub(crate) mod table_reader;
pub(crate) mod tally;
