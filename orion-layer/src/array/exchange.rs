//! Moving entries between workers, through an area of each that the others read in place.
use super::sparse::Value;
use super::wire;
use crate::context::{Context, Say};
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_data::entries::Entry;
use hectare_dsm::{AreaSpec, Lent, Owned, Tracking, Worker};
use std::time::Duration;

/// How long a worker waits for what another has to send.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends every entry to the worker that `to` says; returns what this worker gets, by sender. Collective.
pub(super) fn exchange_entries<T: Value, const N: usize>(
    context: &mut Context<'_>,
    site: Site,
    name: &str,
    mut entries: Vec<Entry<T, N>>,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<Vec<Entry<T, N>>> {
    let size = context.size();
    if size == 1 {
        return Ok(entries);
    }
    let me = context.rank() as usize;
    let area = format!("{name}/{me}");
    let sent = match wire::fixed_len::<T>() {
        Some(len) => send_fixed(context.worker(), &area, &mut entries, len, size, me, to),
        None => send(context.worker(), &area, &mut entries, size, me, to),
    };
    let (lent, sent) = sent.map_or_else(|error| (None, Err(error)), |lent| (Some(lent), Ok(())));
    let mut kept = Some(entries);
    let mut got = Vec::new();
    let received = context.agree_on(site, sent).and_then(|()| {
        let received = (0..size).try_for_each(|rank| {
            match kept.take_if(|_| rank == me) {
                // What comes first need not be moved.
                Some(mine) if got.is_empty() => got = mine,
                Some(mine) => got.extend(mine),
                None => receive(context.worker(), &format!("{name}/{rank}"), me, &mut got)?,
            }
            Ok(())
        });
        context.agree_on(site, received)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    lent.map_or(Ok(()), |lent| lent.delete(context.worker))?;
    received?;
    context.exchange(site, Say::Value(&[]), |_, _| Ok(()))?;
    Ok(got)
}

/// Sends `parcels[rank]` to worker `rank`, and calls `visit` with what each worker sends to this one, by rank. An error
/// of one worker is an error of all. Collective.
pub(crate) fn exchange_parcels(
    context: &mut Context<'_>,
    site: Site,
    parcels: Result<Vec<Vec<u8>>>,
    mut visit: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let (me, size, number) = (context.rank() as usize, context.size(), context.next_number());
    let name = |rank: usize| format!("orion/parcels/{number}/{rank}");
    if size == 1 {
        let parcels = context.agree_on_same(site, parcels)?;
        let visited = parcels.iter().try_for_each(|parcel| visit(0, parcel));
        return context.agree_on_same(site, visited);
    }
    let sent = parcels.and_then(|mut parcels| {
        let own = std::mem::take(&mut parcels[me]);
        let lent = send_parcels(context.worker(), &name(me), &parcels)?;
        Ok((lent, own))
    });
    let (lent, sent) = match sent {
        Ok((lent, own)) => (Some(lent), Ok(own)),
        Err(error) => (None, Err(error)),
    };
    let agreed = context.agree_on_same(site, sent);
    let visited = agreed.and_then(|own| {
        let visited = (0..size).try_for_each(|rank| {
            if rank == me {
                return visit(rank, &own);
            }
            let worker = context.worker();
            let area = worker.attach_within::<u8>(&name(rank), PATIENCE)?;
            visit(rank, parcel_of(area.read_lent(worker)?, me))
        });
        context.agree_on_same(site, visited)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    lent.map_or(Ok(()), |lent| lent.delete(context.worker()))?;
    visited?;
    context.exchange(site, Say::Value(&[]), |_, _| Ok(()))
}

fn send_parcels(worker: &mut Worker, name: &str, parcels: &[Vec<u8>]) -> Result<Lent<u8>> {
    let lengths: Vec<usize> = parcels.iter().map(Vec::len).collect();
    let (mut owned, starts) = area_for(worker, name, &lengths)?;
    let bytes = owned.write_whole(worker)?;
    for (parcel, start) in parcels.iter().zip(starts) {
        bytes[start..start + parcel.len()].copy_from_slice(parcel);
    }
    lend(owned, worker)
}

/// What an area made by [`area_for`] has for worker `me`.
fn parcel_of(bytes: &[u8], me: usize) -> &[u8] {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at * 8 + k])) as usize;
    &bytes[word(me)..word(me + 1)]
}

/// An area with room for parcels of these lengths, which begins with where each of them does.
fn area_for(worker: &mut Worker, name: &str, lengths: &[usize]) -> Result<(Owned<u8>, Vec<usize>)> {
    let mut starts = vec![(lengths.len() + 1) * 8];
    for len in lengths {
        starts.push(starts[starts.len() - 1] + len);
    }
    let spec = AreaSpec::new(name).copies(0).tracking(Tracking::Whole);
    let mut owned = worker.create::<u8>(spec, starts[lengths.len()])?;
    let bytes = owned.write_whole(worker)?;
    for (place, start) in bytes.chunks_exact_mut(8).zip(&starts) {
        place.copy_from_slice(&(*start as u64).to_le_bytes());
    }
    Ok((owned, starts))
}

fn lend(owned: Owned<u8>, worker: &Worker) -> Result<Lent<u8>> {
    Ok(owned.lend(worker).map_err(hectare_dsm::Error::from)?)
}

/// Puts the entries that go to others into an area and leaves the rest; `len` bytes for each value.
fn send_fixed<T: Value, const N: usize>(
    worker: &mut Worker,
    name: &str,
    entries: &mut Vec<Entry<T, N>>,
    len: usize,
    size: usize,
    me: usize,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<Lent<u8>> {
    let each = 4 * N + len;
    let mut lengths = vec![0; size];
    entries.iter().for_each(|entry| lengths[to(entry)] += each);
    lengths[me] = 0;
    let (mut owned, mut ends) = area_for(worker, name, &lengths)?;
    let bytes = owned.write_whole(worker)?;
    entries.retain(|entry| {
        let rank = to(entry);
        if rank != me {
            let (keys, value) = bytes[ends[rank]..ends[rank] + each].split_at_mut(4 * N);
            for (place, key) in keys.chunks_exact_mut(4).zip(entry.key) {
                place.copy_from_slice(&key.to_le_bytes());
            }
            wire::put_fixed(&entry.value, value);
            ends[rank] += each;
        }
        rank == me
    });
    lend(owned, worker)
}

/// The same for values of any length.
fn send<T: Value, const N: usize>(
    worker: &mut Worker,
    name: &str,
    entries: &mut Vec<Entry<T, N>>,
    size: usize,
    me: usize,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<Lent<u8>> {
    let mut parcels = vec![Vec::new(); size];
    let mut encoded = Ok(());
    entries.retain(|entry| {
        let rank = to(entry);
        if rank != me && encoded.is_ok() {
            for key in entry.key {
                parcels[rank].extend_from_slice(&key.to_le_bytes());
            }
            encoded = wire::put(&entry.value, &mut parcels[rank]);
        }
        rank == me
    });
    encoded?;
    send_parcels(worker, name, &parcels)
}

fn receive<T: Value, const N: usize>(
    worker: &mut Worker,
    name: &str,
    me: usize,
    got: &mut Vec<Entry<T, N>>,
) -> Result<()> {
    let area = worker.attach_within::<u8>(name, PATIENCE)?;
    let mut parcel = parcel_of(area.read_lent(worker)?, me);
    if let Some(len) = wire::fixed_len::<T>() {
        got.reserve(parcel.len() / (4 * N + len).max(1));
    }
    while !parcel.is_empty() {
        let cut_off = || Error::Message("decoded: an entry is cut off".into());
        let (keys, rest) = parcel.split_at_checked(4 * N).ok_or_else(cut_off)?;
        let keys = keys.as_chunks::<4>().0;
        let key = std::array::from_fn(|dim| u32::from_le_bytes(keys[dim]));
        parcel = rest;
        got.push(Entry { key, value: wire::take(&mut parcel)? });
    }
    Ok(())
}
