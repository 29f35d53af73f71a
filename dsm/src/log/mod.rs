//! The write log: which lines the owner wrote since the last publication. See `LOG.md`.
pub(crate) mod bitmap;
pub(crate) mod track;
