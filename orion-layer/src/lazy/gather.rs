//! Running a pipeline on one worker, and bringing what comes out of it into the order of its keys.
use super::duplicates::{Duplicates, Resolution};
use super::stage::{Origin, Stage};
use crate::error::{Error, Result};
use crate::panics::caught;
use hectare_dsm::Rank;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// An entry on its way to its place.
#[derive(Debug)]
pub(crate) struct Item<K, O, V> {
    pub(crate) key: K,
    pub(crate) origin: O,
    pub(crate) value: V,
}

/// A key of the result that no array can have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("its new key {key:?} lies outside the shape {shape:?}")]
    Outside { key: Vec<usize>, shape: Vec<usize> },
    #[error("its new key {key:?} is too large: indices are below 2^32")]
    TooLarge { key: Vec<usize> },
}

/// The items that a pipeline makes.
pub(crate) type Items<K, P> = Vec<Item<K, <P as Stage>::Origin, <P as Stage>::Value>>;

/// By key; those of one key by where they come from, and else as they were.
pub(super) fn sort<K: Ord, O: Origin, V>(items: &mut [Item<K, O, V>]) {
    items.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| a.origin.cmp(&b.origin)));
}

/// Runs a pipeline over this worker's entries, once; `key` says what the key of an item is. The items
/// are sorted, or in the order of the source.
pub(crate) fn gather<P: Stage, K: Ord + Hash + Debug, D: Duplicates<P::Value>>(
    pipe: P,
    worker: Rank,
    (duplicates, sorted): (&mut D, bool),
    mut key: impl FnMut(P::Key) -> Result<K, KeyError>,
) -> Result<Items<K, P>> {
    let (name, at) = (pipe.name(), Cell::new(None));
    let place = || at.get().map_or_else(|| "its beginning".to_owned(), |origin| format!("{origin:?}"));
    let wrong = |what: String| Error::Entry { array: name.clone(), worker, key: place(), what };
    let run = || {
        let mut items: Items<K, P> = Vec::new();
        let mut push = |item| {
            if items.len() == items.capacity() {
                let more = items.len().max(64);
                items.try_reserve(more).map_err(|_| wrong(format!("no memory for {more} more entries")))?;
            }
            items.push(item);
            Ok(())
        };
        match duplicates.early() {
            None => pipe.drive(&at, |origin, old, value| {
                push(Item { key: key(old).map_err(|error| wrong(error.to_string()))?, origin, value })
            })?,
            Some(combine) => {
                let mut met: HashMap<K, (P::Origin, Option<P::Value>)> = HashMap::new();
                pipe.drive(&at, |origin, old, value| {
                    let key = key(old).map_err(|error| wrong(error.to_string()))?;
                    match met.get_mut(&key) {
                        Some((_, held)) => {
                            *held = match held.take() {
                                Some(before) => Some(combine(before, value)),
                                None => Some(value),
                            };
                        }
                        None => {
                            met.try_reserve(1).map_err(|_| wrong("no memory for one more key".into()))?;
                            met.insert(key, (origin, Some(value)));
                        }
                    }
                    Ok(())
                })?;
                for (key, (origin, value)) in met {
                    value.map_or(Ok(()), |value| push(Item { key, origin, value }))?;
                }
            }
        }
        if sorted {
            sort(&mut items);
        }
        Ok(items)
    };
    caught((&name, worker), run, place)
}

/// Lets sorted items of one key meet.
pub(crate) fn meet<K: Ord + Debug, O: Origin, V, D: Duplicates<V>>(
    (array, worker): (&str, Rank),
    items: Vec<Item<K, O, V>>,
    mut duplicates: D,
) -> Result<Vec<(K, D::Out)>> {
    // Outside of what may panic, so that the error can name it.
    let current: RefCell<Option<K>> = RefCell::new(None);
    let named = || current.borrow().as_ref().map_or_else(String::new, |key| format!("{key:?}"));
    let run = || {
        let mut list: Vec<(K, D::Out)> = Vec::new();
        let mut open: Option<D::Out> = None;
        for Item { key, value, .. } in items {
            let same = current.borrow().as_ref() == Some(&key);
            let before = open.take();
            match before {
                Some(before) if same => match duplicates.resolve(before, value) {
                    Resolution::One(one) => open = Some(one),
                    Resolution::Two(before, value) => {
                        let earlier = current.replace(Some(key));
                        list.extend(earlier.map(|key| (key, before)));
                        open = Some(duplicates.first(value));
                    }
                    Resolution::Refused => {
                        let what = "several entries have this key: say what becomes of them by `combine`, `reduce`, \
                                    `keep_all` or `group_by`";
                        let (array, key) = (array.to_owned(), format!("{key:?}"));
                        return Err(Error::Entry { array, worker, key, what: what.into() });
                    }
                },
                before => {
                    let earlier = current.replace(Some(key));
                    list.extend(earlier.zip(before));
                    open = Some(duplicates.first(value));
                }
            }
        }
        let last = current.take();
        list.extend(last.zip(open));
        Ok(list)
    };
    caught((array, worker), run, named)
}
