//! Moving entries between workers, in a parcel of each for every other.
use super::Value;
use super::wire;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::fabric::{Fabric, Parcel, Parcels};
use crate::site::Site;
use hectare_data::entries::Entry;

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
    let sent = match wire::fixed_len::<T>() {
        Some(len) => send_fixed(&mut context.fabric, name, &mut entries, len, size, me, to),
        None => send(&mut context.fabric, name, &mut entries, size, me, to),
    };
    let mut kept = Some(entries);
    let mut got = Vec::new();
    let received = context.agree_on(site, sent).and_then(|()| {
        let received = (0..size).try_for_each(|rank| {
            match kept.take_if(|_| rank == me) {
                // The first need not be moved.
                Some(mine) if got.is_empty() => got = mine,
                Some(mine) => got.extend(mine),
                None => receive(&mut context.fabric, name, rank, &mut got)?,
            }
            Ok(())
        });
        context.agree_on(site, received)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    context.fabric.withdraw(name)?;
    received?;
    context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
    Ok(got)
}

/// Sends `parcels[rank]` to worker `rank`, and calls `visit` with what each worker sends to this one, by rank. An error
/// of one worker is an error of all. Collective.
pub(crate) fn exchange_parcels(
    context: &mut Context<'_>,
    site: Site,
    parcels: Result<Vec<Vec<u8>>>,
    visit: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let (me, size, number) = (context.rank() as usize, context.size(), context.next_number());
    let name = format!("orion/parcels/{number}");
    if size == 1 {
        let parcels = context.agree_on_same(site, parcels)?;
        let visited = parcels.iter().try_for_each(|parcel| visit(0, parcel));
        return context.agree_on_same(site, visited);
    }
    let sent = parcels.and_then(|mut parcels| {
        let own = std::mem::take(&mut parcels[me]);
        send_parcels(&mut context.fabric, &name, &parcels)?;
        Ok(own)
    });
    let agreed = context.agree_on_same(site, sent);
    let visited = agreed.and_then(|own| {
        let visited = (0..size).try_for_each(|rank| {
            if rank == me {
                return visit(rank, &own);
            }
            context.fabric.fetch(&name, rank, Parcel::Mine, &mut |parcel| visit(rank, parcel))
        });
        context.agree_on_same(site, visited)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    context.fabric.withdraw(&name)?;
    visited?;
    context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))
}

fn send_parcels(fabric: &mut dyn Fabric, name: &str, parcels: &[Vec<u8>]) -> Result<()> {
    let lengths: Vec<usize> = parcels.iter().map(Vec::len).collect();
    fabric.offer(name, Parcels::OneForEach(&lengths), &mut |mut bytes| {
        for parcel in parcels {
            let (place, rest) = bytes.split_at_mut(parcel.len());
            place.copy_from_slice(parcel);
            bytes = rest;
        }
    })
}

/// Puts the entries that go to others into parcels and leaves the rest; `len` bytes for each value.
fn send_fixed<T: Value, const N: usize>(
    fabric: &mut dyn Fabric,
    name: &str,
    entries: &mut Vec<Entry<T, N>>,
    len: usize,
    size: usize,
    me: usize,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<()> {
    let each = 4 * N + len;
    let mut lengths = vec![0; size];
    entries.iter().for_each(|entry| lengths[to(entry)] += each);
    lengths[me] = 0;
    let mut ends = vec![0; size];
    (1..size).for_each(|rank| ends[rank] = ends[rank - 1] + lengths[rank - 1]);
    fabric.offer(name, Parcels::OneForEach(&lengths), &mut |bytes| {
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
    })
}

/// The same for values of any length.
fn send<T: Value, const N: usize>(
    fabric: &mut dyn Fabric,
    name: &str,
    entries: &mut Vec<Entry<T, N>>,
    size: usize,
    me: usize,
    to: impl Fn(&Entry<T, N>) -> usize,
) -> Result<()> {
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
    send_parcels(fabric, name, &parcels)
}

fn receive<T: Value, const N: usize>(
    fabric: &mut dyn Fabric,
    name: &str,
    from: usize,
    got: &mut Vec<Entry<T, N>>,
) -> Result<()> {
    fabric.fetch(name, from, Parcel::Mine, &mut |mut parcel| {
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
    })
}
