//! Values of any type in words, for errors.
use crate::checksum::checksum;
use hectare_dsm::{Element, bytemuck};
use serde::Serialize;
use std::any::Any;
use std::fmt::{Display, Formatter};

/// Bytes that are shown of a value without words.
const BYTES: usize = 32;

/// A number, a text or a name as itself, all else as the bytes in which it travels.
pub(super) fn value(value: &impl Serialize) -> String {
    struct Shown<'v, T>(&'v T);
    impl<T: Serialize> Display for Shown<'_, T> {
        fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
            self.0.serialize(f)
        }
    }
    let mut text = String::new();
    match std::fmt::write(&mut text, format_args!("{}", Shown(value))) {
        Ok(()) => text,
        Err(_) => bytes(&encoded(value)),
    }
}

/// The bytes in which a value travels; none if it cannot.
pub(super) fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// A number as itself, all else as its bytes.
pub(super) fn element<T: Element>(value: &T) -> String {
    let any: &dyn Any = value;
    macro_rules! number {
        ($($of:ty)*) => { $(
            if let Some(number) = any.downcast_ref::<$of>() {
                return format!("{number:?}");
            }
        )* };
    }
    number!(f32 f64 u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
    bytes(bytemuck::bytes_of(value))
}

fn bytes(all: &[u8]) -> String {
    let shown: String = all.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
    match all.len() > BYTES {
        // Values that differ have different words.
        true => format!("bytes {shown}.. of the checksum {:016x}", checksum(all)),
        false => format!("bytes {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_far_as_they_have_words() {
        assert_eq!((value(&0.5f32), value(&"a b"), value(&7u8)), ("0.5".into(), "a b".into(), "7".into()));
        assert_eq!((element(&0.5f32), element(&-7i64)), ("0.5".to_owned(), "-7".to_owned()));
        assert_eq!(
            (value(&[1u8, 2]), element(&[1u8, 2])),
            ("bytes 0102".to_owned(), "bytes 0102".to_owned())
        );
        let mut long = [9u8; 64];
        let shown = element(&long);
        assert!(shown.starts_with(&format!("bytes {}.. of the checksum ", "09".repeat(BYTES))), "{shown}");
        long[63] = 8;
        assert_ne!(element(&long), shown);
    }
}
