//! A value that serde may refuse.
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that serde cannot write (1), or cannot read (2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Difficult(pub u8);

impl Serialize for Difficult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            1 => Err(serde::ser::Error::custom("a one")),
            other => serializer.serialize_u8(other),
        }
    }
}

impl<'de> Deserialize<'de> for Difficult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Difficult, D::Error> {
        match u8::deserialize(deserializer)? {
            2 => Err(serde::de::Error::custom("a two")),
            other => Ok(Difficult(other)),
        }
    }
}
