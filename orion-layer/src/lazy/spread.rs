//! Sorting items over all workers: afterwards worker 0 has the least keys, the last worker the greatest, and all items
//! of one key are with one worker.
//!
//! Parallel sorting by regular sampling (Shi and Schaeffer, 1992): every worker sorts its own items and shows evenly
//! spaced keys of them to all; keys that cut the samples of all into equal shares cut the items nearly so.
use super::gather::{Item, sort};
use super::stage::Origin;
use crate::array::Value;
use crate::array::exchange::exchange_parcels;
use crate::array::wire;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::panics::caught;
use crate::site::Site;
use std::fmt::Debug;

/// Keys that a worker shows, for each worker that there is.
const SAMPLES: usize = 32;

/// A key that can be sent.
pub(crate) trait Sortable: Ord + Clone + Debug {
    fn put(&self, bytes: &mut Vec<u8>) -> Result<()>;
    fn take(bytes: &mut &[u8]) -> Result<Self>;
}

impl<const N: usize> Sortable for [u32; N] {
    fn put(&self, bytes: &mut Vec<u8>) -> Result<()> {
        Origin::put(self, bytes);
        Ok(())
    }

    fn take(bytes: &mut &[u8]) -> Result<Self> {
        Origin::take(bytes).ok_or_else(cut_off)
    }
}

fn cut_off() -> Error {
    Error::Message("decoded: an entry is cut off".into())
}

/// Spreads sorted items over the workers; those of each stay sorted. `name` is that of the array in errors. Collective.
pub(crate) fn spread<K: Sortable, O: Origin, V: Value>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    items: Result<Vec<Item<K, O, V>>>,
) -> Result<Vec<Item<K, O, V>>> {
    let items = context.agree_on_same(site, items)?;
    if context.size() == 1 {
        return Ok(items);
    }
    let bounds = bounds(context, site, name, &items)?;
    exchange(context, site, name, items, |key| bounds.partition_point(|bound| bound < key))
}

/// Sends every item to the worker that `to` says; what each gets is sorted. Collective.
pub(crate) fn scatter<K: Sortable, O: Origin, V: Value>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    items: Result<Vec<Item<K, O, V>>>,
    to: impl Fn(&K) -> usize,
) -> Result<Vec<Item<K, O, V>>> {
    let items = context.agree_on_same(site, items)?;
    if context.size() == 1 { Ok(items) } else { exchange(context, site, name, items, to) }
}

fn exchange<K: Sortable, O: Origin, V: Value>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    items: Vec<Item<K, O, V>>,
    to: impl Fn(&K) -> usize,
) -> Result<Vec<Item<K, O, V>>> {
    let (worker, size) = (context.rank(), context.size());
    let packed = pack((name, worker), items, to, size);
    let mut got = Vec::new();
    exchange_parcels(context, site, packed, &mut |from, parcel| {
        let run = || unpack((name, worker), parcel, &mut got);
        caught((name, worker), run, || format!("an entry from worker {from}"))
    })?;
    sort(&mut got);
    Ok(got)
}

/// The greatest key of each worker but the last.
fn bounds<K: Sortable, O, V>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    items: &[Item<K, O, V>],
) -> Result<Vec<K>> {
    let (size, worker) = (context.size(), context.rank());
    let count = items.len().min(SAMPLES * size);
    let mut said = (items.len() as u64).to_le_bytes().to_vec();
    let sample = |number: usize| &items[(2 * number + 1) * items.len() / (2 * count)].key;
    let packed = (0..count).try_for_each(|number| {
        let key = sample(number);
        caught((name, worker), || key.put(&mut said), || format!("{key:?}"))
            .map_err(|error| unsendable((name, worker), key, error))
    });
    context.agree_on_same(site, packed)?;
    let mut samples: Vec<(K, f64)> = Vec::new();
    let mut total = 0.0;
    let mut read = Ok(());
    context.exchange(site, Outcome::Value(&said), |_, mut bytes| {
        let len = <u64 as Origin>::take(&mut bytes).unwrap_or(0) as f64;
        total += len;
        let from = samples.len();
        while !bytes.is_empty() && read.is_ok() {
            let taken = || K::take(&mut bytes);
            match caught((name, worker), taken, || "a key of another worker".into()) {
                Ok(key) => samples.push((key, 0.0)),
                Err(error) => read = Err(error),
            }
        }
        let each = len / (samples.len() - from).max(1) as f64;
        samples[from..].iter_mut().for_each(|(_, weight)| *weight = each);
        Ok(())
    })?;
    context.agree_on_same(site, read)?;
    samples.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut bounds = Vec::with_capacity(size - 1);
    let mut sum = 0.0;
    for (key, weight) in samples {
        sum += weight;
        while bounds.len() + 1 < size && sum >= total * (bounds.len() + 1) as f64 / size as f64 {
            bounds.push(key.clone());
        }
    }
    Ok(bounds)
}

fn unsendable((name, worker): (&str, hectare_dsm::Rank), key: &impl Debug, error: Error) -> Error {
    match error {
        Error::Message(what) => {
            let what = format!("it could not be {what}");
            Error::Entry { array: name.into(), worker, key: format!("{key:?}"), what }
        }
        other => other,
    }
}

/// A parcel for each of `size` workers.
fn pack<K: Sortable, O: Origin, V: Value>(
    (name, worker): (&str, hectare_dsm::Rank),
    items: Vec<Item<K, O, V>>,
    to: impl Fn(&K) -> usize,
    size: usize,
) -> Result<Vec<Vec<u8>>> {
    let at = std::cell::Cell::new(0);
    let run = || {
        let mut parcels = vec![Vec::new(); size];
        for (number, item) in items.iter().enumerate() {
            at.set(number);
            let parcel = &mut parcels[to(&item.key)];
            let room = parcel.try_reserve(64 + size_of::<Item<K, O, V>>());
            room.map_err(|_| Error::Message("encoded: there is no memory".into()))?;
            item.key.put(parcel)?;
            item.origin.put(parcel);
            wire::put_any(&item.value, parcel)?;
        }
        Ok(parcels)
    };
    let packed = caught((name, worker), run, || format!("{:?}", items[at.get()].key));
    packed.map_err(|error| unsendable((name, worker), &items[at.get()].key, error))
}

fn unpack<K: Sortable, O: Origin, V: Value>(
    at: (&str, hectare_dsm::Rank),
    mut parcel: &[u8],
    got: &mut Vec<Item<K, O, V>>,
) -> Result<()> {
    while !parcel.is_empty() {
        let key = K::take(&mut parcel)?;
        let origin = O::take(&mut parcel).ok_or_else(cut_off)?;
        let value = wire::take(&mut parcel).map_err(|error| unsendable(at, &key, error))?;
        got.push(Item { key, origin, value });
    }
    Ok(())
}
