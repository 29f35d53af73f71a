//! Collections made of what a checkpoint has of them.
use super::list::Coded;
use super::map::DistMap;
use super::vector::{DistVec, place};
use super::{Key, Merge, hash, owner};
use crate::array::Value;
use crate::context::Context;
use crate::error::Result;
use crate::lazy::gather::Item;
use crate::lazy::spread::scatter;
use crate::site::Site;

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// A map of the entries that the workers bring. Collective.
    pub(crate) fn restore(
        context: &mut Context<'_>,
        site: Site,
        (name, rule): (&str, M),
        mine: Result<Vec<(K, V)>>,
    ) -> Result<DistMap<K, V, M>> {
        let item = |(key, value)| Item { key: Coded(key), origin: 0u64, value };
        let items = mine.map(|list| list.into_iter().map(item).collect());
        let size = context.size();
        let items = scatter(context, site, name, items, |key| owner(hash(&key.0), size))?;
        let own = items.into_iter().map(|item| (item.key.0, item.value)).collect();
        Ok(DistMap::make(context, site, own, rule)?.named(name))
    }
}

impl<T: Value> DistVec<T> {
    /// A vector of the elements that the workers bring, with their indices. Collective.
    pub(crate) fn restore(
        context: &mut Context<'_>,
        site: Site,
        name: &str,
        mine: Result<Vec<(u64, T)>>,
    ) -> Result<DistVec<T>> {
        let item = |(index, value)| Item { key: Coded(index), origin: 0u64, value };
        let items = mine.map(|list| list.into_iter().map(item).collect());
        let size = context.size();
        let mut items = scatter(context, site, name, items, |index| place(index.0, size).0)?;
        items.sort_by(|a, b| a.key.cmp(&b.key));
        let mut len = 0;
        context.exchange_values(site, &(items.len() as u64), |_, count: u64| {
            len += count;
            Ok(())
        })?;
        let own = items.into_iter().map(|item| item.value).collect();
        Ok(DistVec::make(context, site, own, len)?.named(name))
    }

    /// The elements that worker `rank` has, with their indices.
    pub(crate) fn indexed(&self, rank: usize, workers: usize) -> impl Iterator<Item = (u64, &T)> {
        self.own.iter().enumerate().map(move |(at, element)| (index(at as u64, rank, workers), element))
    }
}

/// The other way round than [`place`].
fn index(at: u64, rank: usize, workers: usize) -> u64 {
    use super::vector::BLOCK;
    ((at / BLOCK) * workers as u64 + rank as u64) * BLOCK + at % BLOCK
}

#[cfg(test)]
mod tests {
    use super::super::vector::count;
    use super::*;

    #[test]
    fn every_element_has_one_place() {
        for workers in [1, 2, 3, 7] {
            for len in [0, 1, 1023, 1024, 1025, 5000, 3 * 1024 * 7] {
                let mut next = vec![0; workers];
                for number in 0..len {
                    let (rank, at) = place(number, workers);
                    assert_eq!((index(at as u64, rank, workers), at as u64), (number, next[rank]));
                    next[rank] += 1;
                }
                let counts: Vec<u64> = (0..workers).map(|rank| count(len, rank, workers)).collect();
                assert_eq!(counts, next, "{len} on {workers}");
            }
        }
    }
}
