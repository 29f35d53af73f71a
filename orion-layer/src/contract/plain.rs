//! Values from outside of a loop.

/// A number, truth value or character from outside the loop, and that of all workers: one that differs ends the loop with
/// [`Error::Diverged`](crate::Error::Diverged).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plain {
    /// An integer.
    Integer(i128),
    /// One that is larger.
    Large(u128),
    /// The bits of a float.
    Single(u32),
    /// The bits of a float.
    Double(u64),
    /// A truth value.
    Truth(bool),
    /// A character.
    Character(char),
}

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Plain::Integer(value) => write!(f, "{value}"),
            Plain::Large(value) => write!(f, "{value}"),
            Plain::Single(bits) => write!(f, "{:?}", f32::from_bits(*bits)),
            Plain::Double(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Plain::Truth(value) => write!(f, "{value}"),
            Plain::Character(value) => write!(f, "{value:?}"),
        }
    }
}
