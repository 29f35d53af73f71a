//! How far apart two dependent iterations lie in one dimension.
use std::fmt;

/// A set of signed distances in one dimension: sink index minus source index.
///
/// # Examples
/// ```
/// use hectare_dependence::analysis::Distance;
/// assert!(Distance::NonZero.contains(-3) && !Distance::NonZero.contains(0));
/// assert_eq!(Distance::Exact(1).to_string(), "+1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Distance {
    /// This distance only.
    Exact(i64),
    /// 1 and more.
    Positive,
    /// -1 and less.
    Negative,
    /// 0 and more.
    NonNegative,
    /// 0 and less.
    NonPositive,
    /// Everything but 0.
    NonZero,
    /// Everything.
    Any,
}

impl Distance {
    /// Whether the distance is among them.
    pub fn contains(self, distance: i64) -> bool {
        match self {
            Distance::Exact(exact) => distance == exact,
            sign => sign.signs() & bit(distance) != 0,
        }
    }

    /// Whether it is 0 and nothing else.
    pub fn is_zero(self) -> bool {
        self == Distance::Exact(0)
    }

    /// The signs among them: [`NEGATIVE`], [`ZERO`] and [`POSITIVE`], added up.
    pub(super) fn signs(self) -> u8 {
        match self {
            Distance::Exact(exact) => bit(exact),
            Distance::Positive => POSITIVE,
            Distance::Negative => NEGATIVE,
            Distance::NonNegative => ZERO | POSITIVE,
            Distance::NonPositive => ZERO | NEGATIVE,
            Distance::NonZero => NEGATIVE | POSITIVE,
            Distance::Any => NEGATIVE | ZERO | POSITIVE,
        }
    }

    /// Every distance of one of these signs (at least one).
    pub(super) fn of_signs(signs: u8) -> Distance {
        let (negative, zero, positive) = (signs & NEGATIVE != 0, signs & ZERO != 0, signs & POSITIVE != 0);
        match (negative, zero, positive) {
            (true, true, true) => Distance::Any,
            (true, false, true) => Distance::NonZero,
            (true, true, false) => Distance::NonPositive,
            (false, true, true) => Distance::NonNegative,
            (true, false, false) => Distance::Negative,
            (false, false, true) => Distance::Positive,
            (false, _, false) => Distance::Exact(0),
        }
    }
}

/// Distances below zero.
pub(super) const NEGATIVE: u8 = 1;
/// The distance zero.
pub(super) const ZERO: u8 = 2;
/// Distances above zero.
pub(super) const POSITIVE: u8 = 4;

/// The sign of a distance.
pub(super) fn bit(distance: i64) -> u8 {
    match distance.signum() {
        -1 => NEGATIVE,
        0 => ZERO,
        _ => POSITIVE,
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distance::Exact(0) => f.write_str("0"),
            Distance::Exact(exact) => write!(f, "{exact:+}"),
            Distance::Positive => f.write_str("+"),
            Distance::Negative => f.write_str("-"),
            Distance::NonNegative => f.write_str("0+"),
            Distance::NonPositive => f.write_str("0-"),
            Distance::NonZero => f.write_str("±"),
            Distance::Any => f.write_str("*"),
        }
    }
}
