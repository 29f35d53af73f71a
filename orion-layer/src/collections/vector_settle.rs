//! Appending what all workers pushed to a vector.
use super::image;
use super::vector::{DistVec, Pushed, place};
use crate::array::exchange::exchange_parcels;
use crate::array::{Value, wire};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::panics::caught;
use crate::site::Site;
use std::cell::Cell;
use std::collections::BTreeMap;

impl<T: Value> DistVec<T> {
    /// Gives what was pushed its indices, sends it to its places, and publishes the vector. Collective.
    pub(super) fn settle(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.pushed.close();
        let cells = std::mem::replace(&mut self.pushed, Pushed::NONE).cells;
        let counts: Vec<(u64, u64)> = cells.iter().map(|(cell, list)| (*cell, list.len() as u64)).collect();
        let mut all: Vec<(u64, u32, u64)> = Vec::new();
        context.exchange_values(site, &counts, |rank, counts: Vec<(u64, u64)>| {
            all.extend(counts.into_iter().map(|(cell, count)| (cell, rank, count)));
            Ok(())
        })?;
        if all.is_empty() {
            return Ok(());
        }
        all.sort_unstable();
        let (me, size) = (context.rank(), context.size());
        let (mut next, mut firsts) = (self.len, BTreeMap::new());
        for (cell, rank, count) in all {
            if rank == me {
                firsts.insert(cell, next);
            }
            next += count;
        }
        let name = self.name.clone();
        let at = Cell::new(self.len);
        let mut kept: Vec<(u64, T)> = Vec::new();
        let pack = || {
            let mut parcels = vec![Vec::new(); size];
            for (cell, list) in cells {
                for (index, element) in (firsts[&cell]..).zip(list) {
                    at.set(index);
                    let to = place(index, size).0;
                    if to == me as usize {
                        kept.push((index, element));
                    } else {
                        parcels[to].extend_from_slice(&index.to_le_bytes());
                        wire::put_any(&element, &mut parcels[to])?;
                    }
                }
            }
            Ok(parcels)
        };
        let wrong = |error: Error| match error {
            Error::Message(what) => {
                let what = format!("it could not be {what}");
                Error::Entry { array: name.clone(), worker: me, key: at.get().to_string(), what }
            }
            other => other,
        };
        let named = || at.get().to_string();
        let packed = caught((&name, me), pack, named).map_err(wrong);
        exchange_parcels(context, site, packed, &mut |_, mut parcel| {
            let run = || {
                while let Some((index, rest)) = parcel.split_first_chunk::<8>() {
                    parcel = rest;
                    let index = u64::from_le_bytes(*index);
                    at.set(index);
                    kept.push((index, wire::take(&mut parcel)?));
                }
                Ok(())
            };
            caught((&name, me), run, named).map_err(wrong)
        })?;
        kept.sort_unstable_by_key(|(index, _)| *index);
        self.own.extend(kept.into_iter().map(|(_, element)| element));
        self.len = next;
        self.publish(context, site)
    }

    pub(super) fn publish(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        let at = Cell::new(0);
        let place = || format!("place {} of this worker", at.get());
        let encoded = caught((&self.name, context.rank()), || image::encode_list(&self.own, &at), place);
        let encoded = encoded.map_err(|error| match error {
            Error::Message(what) => {
                let what = format!("it could not be {what}");
                Error::Entry { array: self.name.clone(), worker: context.rank(), key: place(), what }
            }
            other => other,
        });
        let published = self.images.publish(context, site, encoded);
        if let Err(error) = &published {
            self.poisoned = Some(error.to_string());
        }
        published
    }
}
