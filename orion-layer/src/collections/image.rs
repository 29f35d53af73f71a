//! The entries of a worker as bytes in which all look keys up: a table of hashes with open addressing and linear probing
//! (Knuth, The Art of Computer Programming 3, section 6.4), then the entries.
use super::{Key, hash, owner};
use crate::array::{Value, wire};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fabric::attach_to;
use crate::fabric::shown::{self, Shown, read_shown};
use crate::site::Site;
use hectare_dsm::{Area, Worker};
use std::borrow::Borrow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

/// The time limit for the publications of other workers.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Bytes of the number of slots, which comes first.
const HEAD: usize = 8;
/// Bytes of a slot: a hash, and the place of its entry. Place 0, where the head is, stands for an empty slot.
const SLOT: usize = 16;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]))
}

/// Encodes entries; an error names the key by [`Error::Entry`].
pub(super) fn encode<K: Key, V: Value>(
    entries: &BTreeMap<K, V>,
    failed: impl Fn(&K, Error) -> Error,
    current: &Cell<usize>,
) -> Result<Vec<u8>> {
    let slots = match entries.len() {
        0 => 0,
        count => (2 * count).next_power_of_two(),
    };
    let mut bytes = vec![0; HEAD + slots * SLOT];
    bytes[..HEAD].copy_from_slice(&(slots as u64).to_le_bytes());
    for (number, (key, value)) in entries.iter().enumerate() {
        current.set(number);
        let (hash, at) = (hash(key), bytes.len() as u64);
        let mut slot = hash as usize & (slots - 1);
        while word(&bytes, HEAD + slot * SLOT + 8) != 0 {
            slot = (slot + 1) & (slots - 1);
        }
        let place = HEAD + slot * SLOT;
        bytes[place..place + 8].copy_from_slice(&hash.to_le_bytes());
        bytes[place + 8..place + 16].copy_from_slice(&at.to_le_bytes());
        let put = wire::put_any(key, &mut bytes).and_then(|()| wire::put_any(value, &mut bytes));
        put.map_err(|error| failed(key, error))?;
    }
    Ok(bytes)
}

/// The bytes of the value at `key`, which has this hash.
fn find<'b, K: Key + Borrow<Q>, Q: Hash + Eq + ?Sized>(
    bytes: &'b [u8],
    key: &Q,
    hash: u64,
) -> Result<Option<&'b [u8]>> {
    let slots = word(bytes, 0) as usize;
    if slots == 0 {
        return Ok(None);
    }
    let mut slot = hash as usize & (slots - 1);
    // At least every second slot is empty.
    loop {
        let place = HEAD + slot * SLOT;
        let at = word(bytes, place + 8) as usize;
        if at == 0 {
            return Ok(None);
        }
        if word(bytes, place) == hash {
            let mut rest = &bytes[at..];
            if wire::take::<K>(&mut rest)?.borrow() == key {
                return Ok(Some(rest));
            }
        }
        slot = (slot + 1) & (slots - 1);
    }
}

/// Encodes a list: the number of values, where each begins, the values.
pub(super) fn encode_list<T: Value>(list: &[T], current: &Cell<usize>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD + list.len() * 8];
    bytes[..HEAD].copy_from_slice(&(list.len() as u64).to_le_bytes());
    for (number, value) in list.iter().enumerate() {
        current.set(number);
        let (place, at) = (HEAD + number * 8, bytes.len() as u64);
        bytes[place..place + 8].copy_from_slice(&at.to_le_bytes());
        wire::put_any(value, &mut bytes)?;
    }
    Ok(bytes)
}

/// The bytes of an element of a list, if there is one.
pub(super) fn element(bytes: &[u8], place: usize) -> Option<&[u8]> {
    (place < word(bytes, 0) as usize).then(|| &bytes[word(bytes, HEAD + place * 8) as usize..])
}

/// The published images of a map or a vector, of all workers.
#[derive(Debug, Default)]
pub(super) struct Images {
    mine: Option<Shown<u8>>,
    all: Vec<Area<u8>>,
    spans_hosts: bool,
    /// Incremented with each publication.
    pub(super) version: u64,
}

impl Images {
    /// Replaces the published bytes by `bytes`. Collective; an error of one worker is an error of all.
    pub(super) fn publish(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        bytes: Result<Vec<u8>>,
    ) -> Result<()> {
        let (me, size, number) = (context.rank() as usize, context.size(), context.next_number());
        let name = |rank: usize| format!("orion/map/{number}/{rank}");
        let mine = bytes.and_then(|bytes| show(context.worker(), &name(me), &bytes));
        let mine = mine.map_err(|error| error.of_array(&site.to_string(), "a worker's entries"));
        let (mine, shown) = mine.map_or_else(|error| (None, Err(error)), |mine| (Some(mine), Ok(())));
        let found = context.agree_on_same(site, shown).and_then(|()| {
            let worker = context.worker();
            let place = site.to_string();
            let attach = |rank| attach_to::<u8>(worker, &place, &name(rank), rank, TIME_LIMIT);
            let all: Result<Vec<_>> = (0..size).map(attach).collect();
            context.agree_on_same(site, all)
        });
        // Of the two, nobody reads the one before any more, or the one that not all have found.
        let (idle, result) = match found {
            Ok(all) => {
                (self.all, self.version) = (all, number);
                self.spans_hosts = context.fabric.spans_hosts();
                (std::mem::replace(&mut self.mine, mine), Ok(()))
            }
            Err(error) => (mine, Err(error)),
        };
        idle.map_or(Ok(()), |idle| idle.delete(context.worker()))?;
        result
    }

    /// The value at a key.
    pub(super) fn look_up<K: Key + Borrow<Q>, V: Value, Q: Hash + Eq + ?Sized>(
        &self,
        worker: &Worker,
        key: &Q,
    ) -> Result<Option<V>> {
        let hash = hash(key);
        let area = &self.all[owner(hash, self.all.len())];
        value::<K, V, Q>(read_shown(area, worker, self.spans_hosts)?, key, hash)
    }

    /// The bytes of all workers, in place.
    pub(super) fn read<'w>(&self, worker: &'w Worker) -> Result<Vec<&'w [u8]>> {
        self.all.iter().map(|area| read_shown(area, worker, self.spans_hosts)).collect()
    }

    /// Gives the memory back.
    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.mine.map_or(Ok(()), |mine| mine.delete(worker))
    }
}

/// Looks a key up in the bytes of all workers.
pub(super) fn look_up<K: Key + Borrow<Q>, V: Value, Q: Hash + Eq + ?Sized>(
    images: &[&[u8]],
    key: &Q,
) -> Result<Option<V>> {
    let hash = hash(key);
    value::<K, V, Q>(images[owner(hash, images.len())], key, hash)
}

/// Looks a key up in the bytes of the worker that has it, if anybody has.
fn value<K: Key + Borrow<Q>, V: Value, Q: Hash + Eq + ?Sized>(
    bytes: &[u8],
    key: &Q,
    hash: u64,
) -> Result<Option<V>> {
    match find::<K, Q>(bytes, key, hash)? {
        Some(mut bytes) => wire::take(&mut bytes).map(Some),
        None => Ok(None),
    }
}

fn show(worker: &mut Worker, name: &str, bytes: &[u8]) -> Result<Shown<u8>> {
    let spans_hosts = shown::spans_hosts(worker);
    let mut owned = worker.create::<u8>(shown::spec(name, spans_hosts), bytes.len())?;
    owned.write_whole(worker)?[..bytes.len()].copy_from_slice(bytes);
    Shown::new(owned, worker, spans_hosts)
}
