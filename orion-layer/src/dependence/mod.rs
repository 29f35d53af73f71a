//! Which iterations of a loop depend on which others.
