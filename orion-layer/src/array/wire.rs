//! The bytes of a value on its way to another worker: numbers as they are, everything else as postcard has it.
use super::Value;
use crate::error::{Error, Result};
use std::any::{Any, type_name};

macro_rules! numbers {
    ($($number:ty),*) => {
        /// How many bytes every value of this type takes, if that is known beforehand.
        pub(crate) fn fixed_len<T: Value>() -> Option<usize> {
            let probe: Option<T> = None;
            let probe: &dyn Any = &probe;
            $(if probe.is::<Option<$number>>() {
                return Some(size_of::<$number>());
            })*
            probe.is::<Option<()>>().then_some(0)
        }

        /// Writes a value of [`fixed_len`] bytes. The comparisons of types are decided when this is compiled.
        #[inline]
        pub(crate) fn put_fixed<T: Value>(value: &T, bytes: &mut [u8]) {
            let value: &dyn Any = value;
            $(if let Some(number) = value.downcast_ref::<$number>() {
                bytes.copy_from_slice(&number.to_le_bytes());
            })*
        }

        /// Reads a value of [`fixed_len`] bytes.
        #[inline]
        fn get_fixed<T: Value>(bytes: &[u8]) -> Option<T> {
            let mut value: Option<T> = None;
            let place: &mut dyn Any = &mut value;
            $(if let Some(number) = place.downcast_mut::<Option<$number>>() {
                *number = bytes.try_into().ok().map(<$number>::from_le_bytes);
            })*
            if let Some(nothing) = place.downcast_mut::<Option<()>>() {
                *nothing = Some(());
            }
            value
        }
    };
}
numbers!(f32, f64, u8, i8, u16, i16, u32, i32, u64, i64);

/// Appends a value as [`take`] reads it.
pub(crate) fn put_any<T: Value>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    let Some(len) = fixed_len::<T>() else { return put(value, bytes) };
    let at = bytes.len();
    bytes.resize(at + len, 0);
    put_fixed(value, &mut bytes[at..]);
    Ok(())
}

/// Appends a value that has no fixed length.
pub(crate) fn put<T: Value>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    let extended = postcard::to_extend(value, std::mem::take(bytes));
    *bytes = extended.map_err(|error| {
        let of = type_name::<T>();
        Error::Message(format!(
            "encoded: a value of {of}: {error}: its `Serialize` must write what postcard can"
        ))
    })?;
    Ok(())
}

/// Takes a value off the front.
#[inline]
pub(crate) fn take<T: Value>(bytes: &mut &[u8]) -> Result<T> {
    let broken = |what: String| {
        let of = type_name::<T>();
        Error::Message(format!(
            "decoded: a value of {of}: {what}: its `Deserialize` must read what its `Serialize` writes"
        ))
    };
    let (value, rest) = match fixed_len::<T>() {
        Some(len) => bytes
            .split_at_checked(len)
            .and_then(|(head, rest)| Some((get_fixed(head)?, rest)))
            .ok_or_else(|| broken("it is cut off".into()))?,
        None => postcard::take_from_bytes::<T>(bytes).map_err(|error| broken(error.to_string()))?,
    };
    *bytes = rest;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Value + PartialEq + std::fmt::Debug>(values: &[T]) {
        let mut bytes = Vec::new();
        for value in values {
            match fixed_len::<T>() {
                Some(len) => {
                    bytes.resize(bytes.len() + len, 0xee);
                    let at = bytes.len() - len;
                    put_fixed(value, &mut bytes[at..]);
                }
                None => put(value, &mut bytes).unwrap(),
            }
        }
        let mut rest = bytes.as_slice();
        for value in values {
            assert_eq!(take::<T>(&mut rest).unwrap(), *value);
        }
        assert!(rest.is_empty());
        if !bytes.is_empty() {
            assert!(take::<T>(&mut &bytes[..0]).is_err());
        }
    }

    #[test]
    fn values_come_back_as_they_went() {
        there_and_back(&[1.5f32, -0.0, f32::MAX]);
        there_and_back(&[u64::MAX, 0, 7]);
        there_and_back(&[i8::MIN, 3]);
        there_and_back(&[(), ()]);
        there_and_back(&[(3u32, 1.0f64), (9, -2.0)]);
        there_and_back(&["one".to_owned(), String::new()]);
        assert_eq!((fixed_len::<f64>(), fixed_len::<(u8,)>(), fixed_len::<()>()), (Some(8), None, Some(0)));
    }
}
