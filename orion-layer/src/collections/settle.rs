//! Merging what all workers contributed into the map.
use super::map::DistMap;
use super::pending::{Part, unpack};
use super::{Key, Merge, image};
use crate::array::Value;
use crate::array::exchange::exchange_parcels;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::panics::merging_at;
use crate::panics::{caught, caught_merging};
use crate::site::Site;
use hectare_dsm::Rank;
use std::any::type_name;
use std::cell::Cell;

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// Sends contributions to whoever has their keys, merges them, each exactly once, and publishes what has become of the
    /// map. Collective.
    pub(super) fn settle(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        let mut some = false;
        context.exchange(site, Outcome::Value(&[u8::from(!self.pending.is_empty())]), |_, said| {
            some |= said[0] != 0;
            Ok(())
        })?;
        if !some {
            return Ok(());
        }
        let (name, me) = (self.name.clone(), context.rank());
        let at = (&name[..], me);
        let wrong = |key: String, what: String| Error::Entry { array: name.clone(), worker: me, key, what };
        let finish = || self.pending.finish().map_err(|(key, what)| wrong(format!("{key:?}"), what));
        let finished = caught(at, finish, || "a contribution".into());
        let (parcels, mut parts) = self.pending.take();
        // Whatever becomes of it, nothing is left for the next time.
        self.pending.clear();
        exchange_parcels(context, site, finished.map(|()| parcels), &mut |from, parcel| {
            let key = || format!("a contribution of worker {from}");
            let run = || unpack(parcel, &mut parts).map_err(|error| wrong(key(), error.to_string()));
            caught(at, run, key)
        })?;
        // A cell was with one worker, which made one part for each key: so this is one order of the parts of each key.
        parts.sort_by_key(|part| part.cell);
        let merged = self.merge(site, at, parts);
        let merged = context.agree_on_same(site, merged);
        self.or_poison(merged)?;
        self.publish(context, site)
    }

    fn merge(&mut self, site: Site, at: (&str, Rank), parts: Vec<Part<K, V>>) -> Result<()> {
        let (own, rule) = (&mut self.own, &self.rule);
        let run = || {
            for Part { key, value, .. } in parts {
                match own.get_mut(&key) {
                    Some(before) => {
                        let shown = || format!("{key:?}");
                        merging_at(at.0, type_name::<M>(), shown, || rule.merge(before, value));
                    }
                    None => {
                        own.insert(key, value);
                    }
                }
            }
            Ok(())
        };
        caught_merging(site, at, run, || "a contribution".into())
    }

    /// Shows this worker's entries to all. Collective.
    pub(super) fn publish(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        let (name, me) = (&self.name, context.rank());
        let current = Cell::new(0);
        let named = || self.own.keys().nth(current.get()).map_or_else(String::new, |key| format!("{key:?}"));
        let failed = |key: &K, error: Error| Error::Entry {
            array: name.clone(),
            worker: me,
            key: format!("{key:?}"),
            what: error.to_string(),
        };
        let encoded = caught((name, me), || image::encode(&self.own, failed, &current), named);
        let published = self.images.publish(context, site, encoded);
        self.or_poison(published)?;
        let mut count = 0;
        let counted = context.exchange_values(site, &(self.own.len() as u64), |_, own: u64| {
            count += own as usize;
            Ok(())
        });
        self.or_poison(counted)?;
        self.count = count;
        Ok(())
    }

    /// After an error that leaves half of the map changed, it refuses every use.
    fn or_poison<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(error) = &result {
            self.poisoned = Some(error.to_string());
        }
        result
    }
}
