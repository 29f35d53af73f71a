//! Entries that other workers may run: each worker offers its own to all, and keeps those that it has run for others.
use super::{PlacedEntries, Value};
use crate::array::wire::{fixed_len, put_fixed, take};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fabric::{Fabric, Parcel, Parcels};
use crate::site::Site;
use hectare_data::entries::Entry;
use std::cell::OnceCell;

/// The entries that workers offer to each other.
#[derive(Debug)]
pub(super) struct SharedEntries<T, const N: usize> {
    /// The name of the parcels.
    name: String,
    /// The entries of cells of others that were brought here, by the cell's number.
    brought: Vec<OnceCell<Vec<Entry<T, N>>>>,
}

impl<T: Value, const N: usize> SharedEntries<T, N> {
    /// Offers the entries of this worker; values are of a fixed length. Collective.
    pub(super) fn offer(
        context: &mut Context<'_>,
        site: Site,
        number: u64,
        placed: &PlacedEntries<T, N>,
    ) -> Result<SharedEntries<T, N>> {
        let name = format!("{}{}", names(number), context.next_number());
        let each = 4 * N + fixed_len::<T>().unwrap_or(0);
        let head = 8 * placed.starts.len();
        let parcel = Parcels::OneForAll(head + placed.entries.len() * each);
        let offered = context.fabric.offer(&name, parcel, &mut |bytes| {
            let (table, bytes) = bytes.split_at_mut(head);
            for (start, place) in placed.starts.iter().zip(table.chunks_exact_mut(8)) {
                place.copy_from_slice(&((head + start * each) as u64).to_le_bytes());
            }
            for (entry, place) in placed.entries.iter().zip(bytes.chunks_exact_mut(each)) {
                let (keys, value) = place.split_at_mut(4 * N);
                for (place, key) in keys.chunks_exact_mut(4).zip(entry.key) {
                    place.copy_from_slice(&key.to_le_bytes());
                }
                put_fixed(&entry.value, value);
            }
        });
        if let Err(error) = context.agree_on(site, offered) {
            context.fabric.withdraw(&name)?;
            return Err(error);
        }
        let brought = placed.starts[1..].iter().map(|_| OnceCell::new()).collect();
        Ok(SharedEntries { name, brought })
    }

    /// Copies cells of worker `from` that are not here yet.
    pub(super) fn bring(&self, context: &mut Context<'_>, from: usize, cells: &[usize]) -> Result<()> {
        let missing: Vec<usize> =
            cells.iter().copied().filter(|cell| self.brought[*cell].get().is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        context.fabric.fetch(&self.name, from, Parcel::ForAll, &mut |bytes| {
            for cell in &missing {
                let entries = read_cell(bytes, *cell)?;
                self.brought[*cell].get_or_init(|| entries);
            }
            Ok(())
        })
    }
}

/// How the names of the parcels of an array begin.
fn names(number: u64) -> String {
    format!("orion/{number}/shared/")
}

/// Gives the memory back by which workers showed each other the entries of an array whose handle is gone here: no loop runs over them
/// any more.
pub(crate) fn withdraw_left(context: &mut Context<'_>, number: u64) {
    if let Err(error) = context.fabric.withdraw_all(&names(number)) {
        tracing::warn!(number, %error, "entries that were shown to others stay until the job ends");
    }
}

/// The entries of a cell in what a worker offers: the places of all cells, and behind them their entries.
fn read_cell<T: Value, const N: usize>(bytes: &[u8], cell: usize) -> Result<Vec<Entry<T, N>>> {
    let cut_off = || Error::Message("decoded: an entry is cut off".into());
    let place = |number: usize| {
        let word = bytes.get(8 * number..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word) as usize)
    };
    let range = place(cell).zip(place(cell + 1)).and_then(|(start, end)| bytes.get(start..end));
    let mut rest = range.ok_or_else(cut_off)?;
    let mut entries = Vec::with_capacity(rest.len() / (4 * N + fixed_len::<T>().unwrap_or(0)).max(1));
    while !rest.is_empty() {
        let (keys, value) = rest.split_at_checked(4 * N).ok_or_else(cut_off)?;
        let keys = keys.as_chunks::<4>().0;
        let key = std::array::from_fn(|dim| u32::from_le_bytes(keys[dim]));
        rest = value;
        entries.push(Entry { key, value: take(&mut rest)? });
    }
    Ok(entries)
}

impl<T, const N: usize> SharedEntries<T, N> {
    /// The entries of a cell of another worker; none if they were not brought.
    #[inline]
    pub(super) fn brought(&self, cell: usize) -> &[Entry<T, N>] {
        self.brought[cell].get().map_or(&[], Vec::as_slice)
    }

    /// Gives the memory back. When nobody brings entries any more.
    pub(super) fn withdraw(&self, context: &mut Context<'_>) -> Result<()> {
        context.fabric.withdraw(&self.name)
    }
}
