//! Moving entries between workers, through an area of each that the others read in place.
use super::entries::Entry;
use super::sparse::Value;
use crate::context::{Context, Say, Site};
use crate::error::{Error, Result};
use hectare_dsm::{AreaSpec, Lent, Tracking, Worker};
use std::time::Duration;

/// How long a worker waits for what another has to send.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends every entry to the worker that `to` says; returns what this worker gets, by sender. Collective.
pub(super) fn exchange_entries<T: Value, const N: usize>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    entries: Vec<Entry<T, N>>,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<Vec<Entry<T, N>>> {
    let size = context.size();
    if size == 1 {
        return Ok(entries);
    }
    let me = context.rank() as usize;
    let mut kept = Vec::new();
    let mut parcels = vec![Vec::new(); size];
    let mut encoded = Ok(());
    for entry in entries {
        match to(&entry) {
            rank if rank == me => kept.push(entry),
            rank => encoded = encoded.and_then(|()| encode(&entry, &mut parcels[rank])),
        }
    }
    let sent = encoded.and_then(|()| send(context.worker(), &format!("{name}/{me}"), &parcels));
    let lent = context.agree_on(site, sent)?;
    drop(parcels);
    let mut kept = Some(kept);
    let mut got = Vec::new();
    let received = (0..size).try_for_each(|rank| {
        match kept.take_if(|_| rank == me) {
            Some(mine) => got.extend(mine),
            None => receive(context.worker(), &format!("{name}/{rank}"), me, &mut got)?,
        }
        Ok(())
    });
    context.agree_on(site, received)?;
    lent.delete(context.worker)?;
    context.exchange(site, Say::Value(&[]), |_, _| Ok(()))?;
    Ok(got)
}

fn encode<T: Value, const N: usize>(entry: &Entry<T, N>, parcel: &mut Vec<u8>) -> Result<()> {
    for key in entry.key {
        parcel.extend_from_slice(&key.to_le_bytes());
    }
    let bytes = postcard::to_extend(&entry.value, std::mem::take(parcel));
    *parcel = bytes.map_err(|error| Error::Message(format!("encoded: {error}")))?;
    Ok(())
}

/// An area of all parcels: where each begins, then their bytes.
fn send(worker: &mut Worker, name: &str, parcels: &[Vec<u8>]) -> Result<Lent<u8>> {
    let mut at = (parcels.len() + 1) * 8;
    let mut head = Vec::with_capacity(at);
    for parcel in parcels {
        head.extend_from_slice(&(at as u64).to_le_bytes());
        at += parcel.len();
    }
    head.extend_from_slice(&(at as u64).to_le_bytes());
    let mut owned = worker.create::<u8>(AreaSpec::new(name).copies(0).tracking(Tracking::Whole), at)?;
    let mut rest = owned.write_whole(worker)?;
    for piece in std::iter::once(&head).chain(parcels) {
        let (place, after) = rest.split_at_mut(piece.len());
        place.copy_from_slice(piece);
        rest = after;
    }
    Ok(owned.lend(worker).map_err(hectare_dsm::Error::from)?)
}

fn receive<T: Value, const N: usize>(
    worker: &mut Worker,
    name: &str,
    me: usize,
    got: &mut Vec<Entry<T, N>>,
) -> Result<()> {
    let area = worker.attach_within::<u8>(name, PATIENCE)?;
    let bytes = area.read_lent(worker)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at * 8 + k])) as usize;
    let mut parcel = &bytes[word(me)..word(me + 1)];
    while !parcel.is_empty() {
        let cut_off = || Error::Message("decoded: an entry is cut off".into());
        let (keys, rest) = parcel.split_at_checked(4 * N).ok_or_else(cut_off)?;
        let keys = keys.as_chunks::<4>().0;
        let key = std::array::from_fn(|dim| u32::from_le_bytes(keys[dim]));
        let (value, rest) = postcard::take_from_bytes::<T>(rest)
            .map_err(|error| Error::Message(format!("decoded: {error}")))?;
        got.push(Entry { key, value });
        parcel = rest;
    }
    Ok(())
}
