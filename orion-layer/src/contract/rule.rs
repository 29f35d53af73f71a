//! The rule of an array that a loop contributes to.
use crate::text::short_name;
use std::fmt::Debug;

/// How contributions to an array are merged.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// The type, with its path.
    pub type_name: &'static str,
    /// With its settings.
    pub shown: Option<&'a dyn Debug>,
}

impl Rule<'_> {
    /// The type without the paths in it.
    pub(crate) fn short_name(&self) -> String {
        short_name(self.type_name)
    }
}

impl std::fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.shown {
            Some(shown) => write!(f, "{shown:?}"),
            None => f.write_str(&self.short_name()),
        }
    }
}
