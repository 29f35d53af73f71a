//! Values from outside of a loop.

/// A number, truth value or character from outside the loop, and that of all workers: one that differs ends the loop with
/// [`Error::Diverged`](crate::Error::Diverged).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapturedValue {
    /// An integer.
    Integer(i128),
    /// One that is larger.
    Large(u128),
    /// The bits of a float.
    F32(u32),
    /// The bits of a float.
    F64(u64),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(char),
}

impl std::fmt::Display for CapturedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CapturedValue::Integer(value) => write!(f, "{value}"),
            CapturedValue::Large(value) => write!(f, "{value}"),
            CapturedValue::F32(bits) => write!(f, "{:?}", f32::from_bits(*bits)),
            CapturedValue::F64(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            CapturedValue::Bool(value) => write!(f, "{value}"),
            CapturedValue::Char(value) => write!(f, "{value:?}"),
        }
    }
}
