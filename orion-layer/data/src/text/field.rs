//! Numbers in text, without allocating.
use super::LineError;

/// A value that stands in one column.
///
/// Numbers have to be finite and to fit; nothing else is rounded away or cut off.
pub trait Field: Sized {
    /// The value of this column.
    ///
    /// # Errors
    /// [`LineError`].
    fn parse(text: &str) -> Result<Self, LineError>;
}

/// An index: decimal digits only.
#[inline]
pub(super) fn index(text: &str) -> Result<usize, LineError> {
    let digits = text.as_bytes();
    // 19 digits always fit.
    if digits.is_empty() || digits.len() > 19 {
        return slow_index(text);
    }
    let mut value = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return slow_index(text);
        }
        value = value * 10 + u64::from(digit);
    }
    usize::try_from(value).or_else(|_| slow_index(text))
}

#[cold]
fn slow_index(text: &str) -> Result<usize, LineError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineError::NotAnIndex { found: text.into() });
    }
    text.parse().map_err(|_| LineError::IndexTooLarge { index: text.into() })
}

/// Digits with at most one point, as `(digits, decimals, negative)`; `None` for everything else, which the
/// standard library takes.
#[inline]
fn simple_decimal(text: &[u8]) -> Option<(u64, usize, bool)> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let (mut value, mut decimals, mut point) = (0u64, 0, false);
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
            decimals += usize::from(point);
        } else if byte == b'.' && !point {
            point = true;
        } else {
            return None;
        }
    }
    (digits.len() > usize::from(point)).then_some((value, decimals, negative))
}

macro_rules! real {
    ($type:ty, $mantissa:expr, [$($power:expr),*]) => {
        impl Field for $type {
            #[inline]
            fn parse(text: &str) -> Result<$type, LineError> {
                // Both are exact, so that the quotient is the nearest number (Clinger, 1990).
                const POWERS: &[$type] = &[$($power),*];
                match simple_decimal(text.as_bytes()) {
                    Some((digits, decimals, negative)) if digits < 1 << $mantissa && decimals < POWERS.len() => {
                        let value = digits as $type / POWERS[decimals];
                        Ok(if negative { -value } else { value })
                    }
                    _ => match text.parse::<$type>() {
                        Ok(value) if value.is_finite() => Ok(value),
                        Ok(_) => Err(LineError::NotFinite { kind: stringify!($type), found: text.into() }),
                        Err(_) => Err(LineError::NotANumber { found: text.into() }),
                    },
                }
            }
        }
    };
}
real!(f32, 24, [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10]);
real!(
    f64,
    53,
    [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22
    ]
);

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Field for $type {
            #[inline]
            fn parse(text: &str) -> Result<$type, LineError> {
                text.parse().map_err(|_| LineError::NotWhole {
                    least: <$type>::MIN as i128,
                    greatest: <$type>::MAX as i128,
                    found: text.into(),
                })
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 u8 u16 u32 u64 usize);

impl Field for String {
    fn parse(text: &str) -> Result<String, LineError> {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(text in "[+-]?[0-9]{0,20}(\\.[0-9]{0,12})?(e-?[0-9]{1,2})?") {
            let (single, double) = (text.parse::<f32>(), text.parse::<f64>());
            let finite = |x: f64| x.is_finite().then(|| x.to_bits());
            let expected = single.ok().filter(|x| x.is_finite()).map(f32::to_bits);
            prop_assert_eq!(f32::parse(&text).ok().map(f32::to_bits), expected);
            prop_assert_eq!(f64::parse(&text).ok().map(f64::to_bits), double.ok().and_then(finite));
        }

        #[test]
        fn indices_are_whole_numbers(value: u64, text in "\\PC{0,8}") {
            prop_assert_eq!(index(&value.to_string()), Ok(value as usize));
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            prop_assert_eq!(index(&text).is_ok(), digits);
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in ["", "-1", "+1", "1.5", "nan", "1 ", "99999999999999999999", "18446744073709551616", "１"]
        {
            assert!(index(text).is_err(), "{text}");
        }
        assert_eq!(index("00000000000000000000000007"), Ok(7));
        assert!(index("-3").unwrap_err().to_string().contains("\"-3\""));
        for text in ["", ".", "-", "nan", "inf", "-infinity", "1e99", "1.2.3", "0x1"] {
            assert!(f32::parse(text).is_err(), "{text}");
        }
        assert!(f64::parse("1e99").is_ok());
        assert_eq!(f32::parse("-0").map(f32::to_bits), Ok((-0.0f32).to_bits()));
        assert!(u8::parse("256").unwrap_err().to_string().contains("from 0 to 255"));
    }
}
