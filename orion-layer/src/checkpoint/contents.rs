//! The table of contents of a checkpoint.
use super::files::{Files, Span};
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The trailer of every file.
pub(super) const MARK: &[u8; 8] = b"HA-CKPT2";
/// Bytes behind the table: its length, its checksum, the mark.
pub(super) const TAIL: usize = 24;

/// The contents of the file, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Contents {
    /// The files of other hosts; none if all is in this one.
    #[serde(default)]
    pub(super) files: Files,
    pub(super) values: BTreeMap<String, StoredValue>,
    pub(super) arrays: BTreeMap<String, StoredArray>,
    pub(super) entries: BTreeMap<String, StoredEntries>,
    #[serde(default)]
    pub(super) maps: BTreeMap<String, StoredList>,
    #[serde(default)]
    pub(super) vectors: BTreeMap<String, StoredList>,
}

impl Contents {
    /// Reads a table of contents.
    pub(super) fn parse(path: &Path, table: &[u8]) -> Result<Contents> {
        let wrong = |error: serde_json::Error| {
            let what = format!("its table of contents cannot be read: {error}");
            Error::Format { file: path.display().to_string(), what }
        };
        let contents: Contents = serde_json::from_slice(table).map_err(wrong)?;
        let is_sound = contents.spans().all(|span| span.file < contents.files.len());
        match is_sound {
            true => Ok(contents),
            false => Err(wrong(serde::de::Error::custom("it names a file that does not belong to it"))),
        }
    }

    fn spans(&self) -> impl Iterator<Item = &Span> {
        let dense = self.arrays.values().flat_map(|array| array.pieces.iter().map(|piece| &piece.span));
        let sparse = self.entries.values().map(|entries| &entries.blocks);
        let lists = self.maps.values().chain(self.vectors.values()).map(|list| &list.blocks);
        dense.chain(sparse.chain(lists).flatten().map(|block| &block.span))
    }

    /// Whether there is an array, a map or a vector of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
            || self.entries.contains_key(name)
            || self.maps.contains_key(name)
            || self.vectors.contains_key(name)
    }
}

/// A dense array: its elements in row-major order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredArray {
    pub(super) shape: Vec<usize>,
    pub(super) element: String,
    pub(super) element_bytes: usize,
    pub(super) pieces: Vec<Piece>,
}

/// Elements that follow each other, those of one host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) span: Span,
    pub(super) checksum: u64,
}

/// A sparse array: its entries in blocks, which are read by themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredEntries {
    pub(super) shape: Vec<usize>,
    pub(super) value: String,
    pub(super) blocks: Vec<Block>,
}

/// A map, or a vector: its items in blocks, which are read by themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredList {
    pub(super) item: String,
    pub(super) len: u64,
    pub(super) blocks: Vec<Block>,
}

/// Some entries, one after the other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) entries: u64,
    pub(super) span: Span,
    pub(super) checksum: u64,
}

/// A value as JSON. That has no numbers that are not finite, and writes `null` for them; values with a `null` are
/// stored in a second form that keeps them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredValue {
    json: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact: Option<Exact>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Exact {
    of_type: String,
    postcard: Vec<u8>,
}

/// The name of a type without the modules in which it is found, which may change between versions of a program.
pub(super) fn type_name<T>() -> String {
    let mut name = String::new();
    for piece in
        std::any::type_name::<T>().split_inclusive(|c: char| !c.is_alphanumeric() && !"_:".contains(c))
    {
        name.push_str(piece.rsplit("::").next().unwrap_or(piece));
    }
    name
}

fn has_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(list) => list.iter().any(has_null),
        serde_json::Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

impl StoredValue {
    pub(super) fn of<T: Serialize>(name: &str, value: &T) -> Result<StoredValue> {
        let refused = |error| Error::Invalid(format!("value {name:?} cannot be stored as JSON: {error}"));
        let json = serde_json::to_value(value).map_err(refused)?;
        let exact = || {
            let postcard = postcard::to_stdvec(value).ok()?;
            Some(Exact { of_type: type_name::<T>(), postcard })
        };
        let exact = if has_null(&json) { exact() } else { None };
        Ok(StoredValue { json, exact })
    }

    pub(super) fn get<T: Serialize + DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        if let Some(Exact { of_type, postcard }) = &self.exact
            && *of_type == type_name::<T>()
            && let Ok(value) = postcard::from_bytes::<T>(postcard)
            // Types that leave out fields are not read as they were written.
            && serde_json::to_value(&value).is_ok_and(|json| json == self.json)
        {
            return Ok(value);
        }
        serde_json::from_value(self.json.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn stored_and_read<T: Serialize + DeserializeOwned>(value: &T) -> T {
        let stored = serde_json::to_vec(&StoredValue::of("x", value).unwrap()).unwrap();
        serde_json::from_slice::<StoredValue>(&stored).unwrap().get().unwrap()
    }

    #[test]
    fn values_are_kept_bit_for_bit() {
        for value in [0.1f32, -0.0, f32::MIN_POSITIVE / 3.0, f32::MAX, f32::INFINITY, f32::NAN] {
            assert_eq!(stored_and_read(&value).to_bits(), value.to_bits(), "{value}");
        }
        for value in [0.1f64, -0.0, 5e-324, f64::MAX, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(stored_and_read(&value).to_bits(), value.to_bits(), "{value}");
        }
        let losses = vec![Some(f64::INFINITY), None, Some(0.25)];
        assert_eq!(stored_and_read(&losses), losses);
        assert_eq!(stored_and_read(&u64::MAX), u64::MAX);
        let map = HashMap::from([("a".to_owned(), (1u8, "b".to_owned()))]);
        assert_eq!(stored_and_read(&map), map);
    }

    #[test]
    fn fields_that_are_left_out_do_not_confuse() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct State {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            left_out: Option<u8>,
            best: Option<u8>,
            epoch: u8,
        }
        let state = State { left_out: None, best: None, epoch: 1 };
        assert_eq!(stored_and_read(&state), state);
    }

    #[test]
    fn types_are_named_without_their_modules() {
        assert_eq!(type_name::<f32>(), "f32");
        assert_eq!(type_name::<StoredValue>(), "StoredValue");
        assert_eq!(type_name::<Vec<Option<StoredValue>>>(), "Vec<Option<StoredValue>>");
        assert_eq!(type_name::<(String, [HashMap<u8, Block>; 3])>(), "(String, [HashMap<u8, Block>; 3])");
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        let error = StoredValue::of("table", &HashMap::from([((1, 2), 3)])).unwrap_err().to_string();
        assert!(error.contains("value \"table\" cannot be stored as JSON: key must be a string"), "{error}");
    }
}
