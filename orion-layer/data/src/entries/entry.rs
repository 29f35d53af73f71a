//! One entry: its key and its value side by side.
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// An entry of a sparse array.
///
/// It is exchanged between workers as a tuple of the indices and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Entry<T, const N: usize> {
    /// One index per dimension.
    pub key: [u32; N],
    /// The text that is there.
    pub value: T,
}

impl<T: Serialize, const N: usize> Serialize for Entry<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N + 1)?;
        self.key.iter().try_for_each(|index| tuple.serialize_element(index))?;
        tuple.serialize_element(&self.value)?;
        tuple.end()
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Entry<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry<T, N>, D::Error> {
        struct Elements<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
            type Value = Entry<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{N} indices and a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Entry<T, N>, A::Error> {
                let mut key = [0; N];
                for (at, index) in key.iter_mut().enumerate() {
                    *index = elements.next_element()?.ok_or_else(|| Error::invalid_length(at, &self))?;
                }
                let value = elements.next_element()?.ok_or_else(|| Error::invalid_length(N, &self))?;
                Ok(Entry { key, value })
            }
        }

        deserializer.deserialize_tuple(N + 1, Elements(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_takes_twelve_bytes() {
        assert_eq!(size_of::<Entry<f32, 2>>(), 12);
        assert_eq!(size_of::<Entry<f32, 3>>(), 16);
        assert_eq!(size_of::<Entry<f64, 2>>(), 16);
    }

    #[test]
    fn entries_travel_as_tuples() {
        let entry = Entry { key: [3, 4], value: "x".to_owned() };
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(text, r#"[3,4,"x"]"#);
        assert_eq!(serde_json::from_str::<Entry<String, 2>>(&text).unwrap(), entry);
        let error = serde_json::from_str::<Entry<String, 2>>("[3]").unwrap_err().to_string();
        assert!(error.contains("2 indices and a value"), "{error}");
    }
}
