//! What a worker keeps for one loop over a served array: which keys each stretch uses, and the values it has fetched.
use hectare_dsm::Element;

/// In the table of slots: the key has none at present.
pub(super) const NONE: u32 = u32::MAX;
/// In the table of slots: this worker is the home of the key, and alone uses it.
pub(super) const RELOCATED: u32 = 1 << 31;
/// A version that no block has.
const NEVER: u64 = u64::MAX;

/// What lists were made from: `None` if that cannot be compared, and what was intended by hand at that time.
pub(super) type Basis = (Option<u64>, u64);

/// The keys of a loop have *slots*, in the order of the keys.
#[derive(Debug)]
pub(super) struct Cache<T, S> {
    basis: Option<Basis>,
    /// Told apart from what other lists were.
    pub(super) generation: u64,
    pub(super) keys: Vec<u32>,
    pub(super) values: Vec<T>,
    /// What was contributed since the last clock; for keys that are relocated it is merged at once.
    pub(super) sums: Vec<T>,
    /// What was to be remembered of the state when a value was fetched.
    pub(super) seen: Vec<S>,
    /// The versions of the keys' blocks when their values were fetched.
    pub(super) versions: Vec<u64>,
    /// The workers that merge contributions.
    pub(super) homes: Vec<u16>,
    pub(super) relocated: Vec<bool>,
    /// What had been announced when homes were found.
    pub(super) announced: Vec<u64>,
    /// Slots to which something was contributed.
    pub(super) touched: Vec<u32>,
    /// Slots of relocated keys that were changed and not yet written back.
    pub(super) dirty: Vec<u32>,
    /// Whether a slot is in one of these.
    pub(super) is_touched: Vec<bool>,
    /// Slots that more than half of the stretches use: refreshed with each.
    pub(super) standing: Vec<u32>,
    /// The other slots of each stretch.
    pub(super) lists: Vec<Vec<u32>>,
}

impl<T: Element, S: Element> Cache<T, S> {
    /// A loop of which nothing is known.
    pub(super) fn empty() -> Cache<T, S> {
        Cache {
            basis: None,
            generation: 0,
            keys: Vec::new(),
            values: Vec::new(),
            sums: Vec::new(),
            seen: Vec::new(),
            versions: Vec::new(),
            homes: Vec::new(),
            relocated: Vec::new(),
            announced: Vec::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            is_touched: Vec::new(),
            standing: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// With these lists of keys, each ascending and without doubles, for the stretches in their order, and keys that every
    /// stretch uses. `table` has a place for each key, [`NONE`] in all.
    pub(super) fn make(
        mut lists: Vec<Vec<u32>>,
        always: &[u32],
        basis: Basis,
        unit: usize,
        remembers: bool,
        table: &mut [u32],
    ) -> Cache<T, S> {
        // How many stretches use each key.
        let mut keys: Vec<u32> = Vec::new();
        let mut count = |key: u32, uses: u32| {
            if table[key as usize] == NONE {
                table[key as usize] = 0;
                keys.push(key);
            }
            table[key as usize] = table[key as usize].saturating_add(uses).min(NONE - 1);
        };
        lists.iter().flatten().for_each(|key| count(*key, 1));
        let most = lists.len() as u32 / 2;
        always.iter().for_each(|key| count(*key, most + 1));
        keys.sort_unstable();
        let is_standing: Vec<bool> = keys.iter().map(|key| table[*key as usize] > most).collect();
        for (slot, key) in keys.iter().enumerate() {
            table[*key as usize] = slot as u32;
        }
        for list in &mut lists {
            list.iter_mut().for_each(|key| *key = table[*key as usize]);
            list.retain(|slot| !is_standing[*slot as usize]);
            list.shrink_to_fit();
        }
        keys.iter().for_each(|key| table[*key as usize] = NONE);
        let slots = keys.len();
        let standing = (0..slots as u32).filter(|slot| is_standing[*slot as usize]).collect();
        Cache {
            basis: Some(basis),
            values: vec![T::zeroed(); slots * unit],
            sums: vec![T::zeroed(); slots * unit],
            seen: vec![S::zeroed(); if remembers { slots * unit } else { 0 }],
            versions: vec![NEVER; slots],
            is_touched: vec![false; slots],
            standing,
            lists,
            keys,
            ..Cache::empty()
        }
    }

    /// Whether the lists are those of what they would be made from now.
    pub(super) fn is_of(&self, basis: Basis) -> bool {
        basis.0.is_some() && self.basis == Some(basis)
    }

    /// All values are to be fetched again.
    pub(super) fn distrust(&mut self) {
        self.versions.fill(NEVER);
    }

    /// The slot of a key.
    pub(super) fn find(&self, key: u32) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The most keys that a stretch uses.
    pub(super) fn most(&self) -> usize {
        self.standing.len() + self.lists.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Keys in all lists.
    pub(super) fn listed(&self) -> u64 {
        let standing = self.standing.len() * self.lists.len().max(1);
        (standing + self.lists.iter().map(Vec::len).sum::<usize>()) as u64
    }

    /// The slots of a stretch, those that all share first.
    pub(super) fn slots_of(&self, stretch: usize) -> impl Iterator<Item = u32> + '_ {
        let own = self.lists.get(stretch).map_or(&[][..], |list| list);
        self.standing.iter().chain(own).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_slots() {
        let mut table = vec![NONE; 100];
        let lists = vec![vec![5, 9, 20], vec![9, 30], vec![9], vec![5]];
        let cache = Cache::<f32, ()>::make(lists, &[40], (Some(1), 0), 2, false, &mut table);
        assert_eq!(cache.keys, [5, 9, 20, 30, 40]);
        // 9 is in three of four lists, 5 in two, 40 in all.
        assert_eq!(cache.standing, [1, 4]);
        assert_eq!(cache.lists, [vec![0, 2], vec![3], vec![], vec![0]]);
        assert_eq!((cache.values.len(), cache.most(), cache.listed()), (10, 4, 12));
        assert_eq!(cache.slots_of(0).collect::<Vec<_>>(), [1, 4, 0, 2]);
        assert_eq!((cache.find(20), cache.find(21)), (Some(2), None));
        assert!(table.iter().all(|slot| *slot == NONE));
        assert!(cache.is_of((Some(1), 0)) && !cache.is_of((Some(1), 1)) && !cache.is_of((None, 0)));
    }
}
