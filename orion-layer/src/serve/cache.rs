//! The cache of one loop over a served array: which keys each interval uses, and the values it has fetched.
use super::blocks::Blocks;
use super::homes::{BlockUsers, Versions};
use hectare_dsm::Element;

/// In the table of slots: the key has none.
pub(super) const NONE: u32 = u32::MAX;
/// A version that no block has.
pub(super) const NEVER: u64 = u64::MAX;

/// In the state of a slot: it is contributed to, and that is not published or written back.
pub(super) const TOUCHED: u32 = 1;
/// In the state of a slot: this worker is the home of the key, and alone uses it.
pub(super) const RELOCATED: u32 = 2;
/// Above these bits: the number of the last interval that it was fetched for, and one.
const INTERVAL: u32 = 2;

/// The state of a slot that was fetched for an interval, with `flags`.
#[inline(always)]
pub(super) fn fetched_for(interval: u32, flags: u32) -> u32 {
    (interval + 1) << INTERVAL | flags & (TOUCHED | RELOCATED)
}

/// Whether a slot was fetched for an interval.
#[inline(always)]
pub(super) fn is_fetched_for(interval: u32, state: u32) -> bool {
    state >> INTERVAL == interval + 1
}

/// The inputs of lists: `None` if they cannot be compared, and the generation of the intents at that time.
pub(super) type Basis = (Option<u64>, u64);

/// The keys of a loop have *slots*: first those that more than half of the intervals use, then those that the first
/// interval uses besides, then what is new in the second, and so on, each in ascending order. So what an interval goes
/// through lies nearly side by side.
#[derive(Debug)]
pub(super) struct Cache<T, S> {
    basis: Option<Basis>,
    /// Told apart from what other lists were.
    pub(super) generation: u64,
    /// When it was used last, in passes of the array.
    pub(super) used: u64,
    /// The key of each slot.
    pub(super) keys: Vec<u32>,
    pub(super) values: Vec<T>,
    /// Contributions since the last clock; for keys that are relocated they are merged at once.
    pub(super) sums: Vec<T>,
    /// The remembered state of when a value was fetched.
    pub(super) seen: Vec<S>,
    /// The versions of the keys' blocks when their values were fetched.
    pub(super) versions: Vec<u64>,
    /// In a pass: [`TOUCHED`], [`RELOCATED`], and the interval for which the slot was fetched.
    pub(super) states: Vec<u32>,
    /// The workers that merge contributions.
    pub(super) homes: Vec<u16>,
    pub(super) relocated: Vec<bool>,
    /// The announcements of when homes were found.
    pub(super) announced: Vec<u64>,
    /// Slots to which something was contributed.
    pub(super) touched: Vec<u32>,
    /// Slots of relocated keys that were changed and not yet written back.
    pub(super) dirty: Vec<u32>,
    /// The number of the first slots that are refreshed with each interval.
    pub(super) standing: u32,
    /// The other slots of each interval.
    pub(super) lists: Vec<Vec<u32>>,
    /// For each interval, how much every worker had changed when its keys were fetched last.
    pub(super) fetched_at: Vec<Vec<u64>>,
    /// Whether the lists were made for the present pass.
    pub(super) is_new: bool,
}

impl<T: Element, S: Element> Cache<T, S> {
    /// A loop of which nothing is known.
    pub(super) fn empty() -> Cache<T, S> {
        Cache {
            basis: None,
            generation: 0,
            used: 0,
            keys: Vec::new(),
            values: Vec::new(),
            sums: Vec::new(),
            seen: Vec::new(),
            versions: Vec::new(),
            states: Vec::new(),
            homes: Vec::new(),
            relocated: Vec::new(),
            announced: Vec::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            standing: 0,
            lists: Vec::new(),
            fetched_at: Vec::new(),
            is_new: false,
        }
    }

    /// With these lists of keys, each ascending and without doubles, for the intervals in their order, and keys that every
    /// interval uses. `table` has a place for each key, [`NONE`] in all.
    pub(super) fn make(
        mut lists: Vec<Vec<u32>>,
        always: &[u32],
        basis: Basis,
        unit: usize,
        remembers: bool,
        table: &mut [u32],
    ) -> Cache<T, S> {
        // Without a slot: how many intervals use the key, above this mark; or that more than half of them do.
        const COUNT: u32 = 1 << 31;
        const STANDING: u32 = NONE - 1;
        let most = COUNT + lists.len() as u32 / 2;
        let mut keys: Vec<u32> = Vec::new();
        for key in lists.iter().flatten() {
            let uses = &mut table[*key as usize];
            if *uses == STANDING {
                continue;
            }
            *uses = if *uses == NONE { COUNT + 1 } else { *uses + 1 };
            if *uses > most {
                *uses = STANDING;
                keys.push(*key);
            }
        }
        for key in always {
            if std::mem::replace(&mut table[*key as usize], STANDING) != STANDING {
                keys.push(*key);
            }
        }
        keys.sort_unstable();
        let standing = keys.len() as u32;
        for list in &mut lists {
            list.retain_mut(|key| {
                let place = &mut table[*key as usize];
                if *place >= COUNT && *place != STANDING {
                    *place = keys.len() as u32;
                    keys.push(*key);
                }
                *key = *place;
                *place != STANDING
            });
            list.shrink_to_fit();
        }
        keys.iter().for_each(|key| table[*key as usize] = NONE);
        let slots = keys.len();
        Cache {
            basis: Some(basis),
            values: vec![T::zeroed(); slots * unit],
            sums: vec![T::zeroed(); slots * unit],
            seen: vec![S::zeroed(); if remembers { slots * unit } else { 0 }],
            versions: vec![NEVER; slots],
            states: vec![0; slots],
            homes: vec![0; slots],
            relocated: vec![false; slots],
            fetched_at: vec![Vec::new(); lists.len()],
            is_new: true,
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

    /// The lists are not to be used again: too much of what the loop uses is not in them.
    pub(super) fn give_up(&mut self) {
        self.basis = None;
    }

    /// All values are to be fetched again.
    pub(super) fn distrust(&mut self) {
        self.versions.fill(NEVER);
        self.fetched_at.iter_mut().for_each(Vec::clear);
    }

    /// The value of a slot is to be fetched again.
    pub(super) fn forget(&mut self, slot: usize) {
        self.versions[slot] = NEVER;
        self.fetched_at.iter_mut().for_each(Vec::clear);
    }

    /// Finds the home of each key. What is relocated to this worker, or was, is fetched again if it was changed meanwhile;
    /// so is what is to be remembered of its state.
    pub(super) fn find_homes(&mut self, users: &BlockUsers<'_>, versions: &Versions<'_>, blocks: &Blocks) {
        let mut last = None;
        for (slot, key) in self.keys.iter().enumerate() {
            let block = blocks.block(*key);
            let (home, only) = match last {
                Some((known, answer)) if known == block => answer,
                _ => users.home(block),
            };
            last = Some((block, (home, only)));
            self.homes[slot] = home as u16;
            let was = std::mem::replace(&mut self.relocated[slot], only);
            if was != only || only && self.versions[slot] != versions.of(block) {
                self.versions[slot] = NEVER;
            }
        }
        self.fetched_at.iter_mut().for_each(Vec::clear);
    }

    /// The most keys that an interval uses.
    pub(super) fn most(&self) -> usize {
        self.standing as usize + self.lists.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Keys in all lists.
    pub(super) fn listed(&self) -> u64 {
        let standing = self.standing as usize * self.lists.len().max(1);
        (standing + self.lists.iter().map(Vec::len).sum::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_slots() {
        let mut table = vec![NONE; 100];
        let lists = vec![vec![5, 9, 20], vec![9, 30], vec![9], vec![3, 5]];
        let cache = Cache::<f32, ()>::make(lists, &[40], (Some(1), 0), 2, false, &mut table);
        // 9 is in three of four lists, 5 in two, 40 in all.
        assert_eq!((cache.standing, &cache.keys[..]), (2, &[9, 40, 5, 20, 30, 3][..]));
        assert_eq!(cache.lists, [vec![2, 3], vec![4], vec![], vec![5, 2]]);
        assert_eq!((cache.values.len(), cache.most(), cache.listed()), (12, 4, 13));
        assert!(table.iter().all(|slot| *slot == NONE));
        assert!(cache.is_of((Some(1), 0)) && !cache.is_of((Some(1), 1)) && !cache.is_of((None, 0)));
    }

    #[test]
    fn what_is_always_used_may_be_in_lists_too() {
        let mut table = vec![NONE; 10];
        let lists = vec![vec![1, 2], vec![2], vec![2]];
        let cache = Cache::<f32, ()>::make(lists, &[1, 2, 7], (None, 0), 1, true, &mut table);
        assert_eq!((cache.standing, &cache.keys[..], cache.seen.len()), (3, &[1, 2, 7][..], 3));
        assert!(cache.lists.iter().all(Vec::is_empty) && table.iter().all(|slot| *slot == NONE));
        let none = Cache::<f32, ()>::make(Vec::new(), &[], (None, 0), 1, true, &mut table);
        assert_eq!((none.keys.len(), none.most(), none.listed()), (0, 0, 0));
    }

    #[test]
    fn states_tell_intervals_and_flags() {
        let state = fetched_for(6, RELOCATED | 0b1000);
        assert!(is_fetched_for(6, state) && !is_fetched_for(5, state) && !is_fetched_for(0, RELOCATED));
        assert_eq!(state & (TOUCHED | RELOCATED), RELOCATED);
    }
}
