//! The state of a served array on a worker: the caches of its loops, and its part in carrying contributions.
use super::blocks::Blocks;
use super::cache::{Cache, NONE, RELOCATED};
use super::carrier::{self, Carrier};
use super::homes::{Homes, Versions};
use super::intend::Intents;
use super::lookaside::{LookasideTable, PendingUpdates};
use crate::contract::PrefetchStats;
use crate::error::{Error, Result};
use crate::relax::{Additive, Apply, Consistency};
use hectare_dsm::bytemuck::Zeroable;
use hectare_dsm::{Cells, Worker};
use std::cell::Cell;
use std::collections::HashMap;

/// The number of loops whose lists and values are kept: those that were used last.
const LOOPS: usize = 8;
/// Lists are rebuilt after a pass that missed more than one key for every this many that they have.
const MISSES: u64 = 100;
/// The least room of a slot of a ring, in keys: for those that no slice has foreseen.
const LEAST_ROOM: usize = 256;

/// The elements of the array, and the states of its rule, while they are open to all.
#[derive(Debug)]
pub(super) struct Home<'w, T: Additive, A: Apply<T>> {
    pub(super) target: Cells<'w, T>,
    pub(super) state: Option<Cells<'w, A::State>>,
    pub(super) rule: &'w A,
}

impl<T: Additive, A: Apply<T>> Home<'_, T, A> {
    /// Merges a contribution into a value, of the element at `place`.
    #[inline]
    pub(super) fn merge(&self, value: &mut T, place: usize, contribution: T) {
        if contribution.is_zero() {
            return;
        }
        let mut state = self.state.map_or_else(A::State::zeroed, |state| state.get(place));
        let seen = self.rule.snapshot(&state);
        self.rule.apply(value, &mut state, contribution, seen);
        if let Some(all) = self.state {
            all.set(place, state);
        }
    }

    /// The same by one who has seen something.
    #[inline]
    pub(super) fn merge_seen(&self, value: &mut T, place: usize, contribution: T, seen: A::Snapshot) {
        if contribution.is_zero() {
            return;
        }
        let mut state = self.state.map_or_else(A::State::zeroed, |state| state.get(place));
        self.rule.apply(value, &mut state, contribution, seen);
        if let Some(all) = self.state {
            all.set(place, state);
        }
    }

    /// Writes elements from `first` on.
    #[inline]
    pub(super) fn store(&self, first: usize, values: &[T]) {
        match values {
            [value] => self.target.set(first, *value),
            values => self.target.part(first, values.len()).store(values),
        }
    }

    /// Notes what the rule remembers of the states of elements from `first` on.
    pub(super) fn snapshot(&self, first: usize, seen: &mut [A::Snapshot]) {
        let Some(state) = self.state else { return };
        seen.iter_mut().enumerate().for_each(|(at, seen)| *seen = self.rule.snapshot(&state.get(first + at)));
    }
}

/// See above. `A::Snapshot` is what a rule remembers.
#[derive(Debug)]
pub(super) struct State<T: Additive, A: Apply<T>> {
    pub(super) blocks: Blocks,
    number: u64,
    /// For each key its slot in the cache of a loop.
    pub(super) table: Vec<u32>,
    /// That loop.
    mapped: Option<u64>,
    /// That of the loop that runs.
    pub(super) cache: Cache<T, A::Snapshot>,
    active: Option<u64>,
    /// The interval whose keys were fetched last.
    pub(super) interval: u32,
    caches: HashMap<u64, Cache<T, A::Snapshot>>,
    pub(super) shared: Option<(Homes, Carrier<T, A::Snapshot>)>,
    /// The last announcement: loop and generation of its lists.
    announced: Option<(u64, u64)>,
    made_lists: u64,
    passes: u64,
    /// Passes that have begun since the last that fetched anything.
    pub(super) begun: u32,
    pub(super) lookaside: LookasideTable<T>,
    pub(super) pending: PendingUpdates<T, A::Snapshot>,
    /// Keys that the slice has named for the present interval, and those of the intervals before.
    pub(super) named: Vec<u32>,
    pub(super) lists: Vec<Vec<u32>>,
    pub(super) intents: Intents,
    pub(super) tally: PrefetchStats,
    pub(super) read_misses: Cell<u64>,
    pub(super) workers: usize,
}

impl<T: Additive, A: Apply<T>> State<T, A> {
    pub(super) const REMEMBERS: bool = size_of::<A::Snapshot>() > 0;

    pub(super) fn new(blocks: Blocks, number: u64) -> State<T, A> {
        State {
            blocks,
            number,
            table: Vec::new(),
            mapped: None,
            cache: Cache::empty(),
            active: None,
            interval: 0,
            caches: HashMap::new(),
            shared: None,
            announced: None,
            made_lists: 0,
            passes: 0,
            begun: 0,
            lookaside: LookasideTable::new(),
            pending: PendingUpdates::new(),
            named: Vec::new(),
            lists: Vec::new(),
            intents: Intents::default(),
            tally: PrefetchStats::default(),
            read_misses: Cell::new(0),
            workers: 0,
        }
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        let Some((homes, carrier)) = self.shared else { return Ok(()) };
        homes.delete(worker)?;
        carrier.delete(worker)
    }

    /// The table of slots has a place for each key, and no key has a slot: for making lists.
    pub(super) fn prepare(&mut self) {
        self.table.resize(self.blocks.keys, NONE);
        if let Some(cache) = self.mapped.take().and_then(|plan| self.caches.get(&plan)) {
            cache.keys.iter().for_each(|key| self.table[*key as usize] = NONE);
        }
    }

    /// Ends a list of keys; one that the slice could not name is empty, so that its interval looks keys up.
    pub(super) fn end_list(&mut self, named: bool) {
        let mut list = std::mem::take(&mut self.named);
        list.iter().for_each(|key| self.table[*key as usize] = NONE);
        if !named {
            list.clear();
        }
        list.sort_unstable();
        self.lists.push(list);
    }

    pub(super) fn knows(&self, plan: u64, basis: Option<u64>) -> bool {
        self.caches.get(&plan).is_some_and(|cache| cache.is_of((basis, self.intents.generation)))
    }

    pub(super) fn end_lists(&mut self, plan: u64, basis: Option<u64>) {
        self.prepare();
        let lists = std::mem::take(&mut self.lists);
        let (basis, always) = ((basis, self.intents.generation), self.intents.keys());
        let (unit, table) = (self.blocks.unit, &mut self.table[..]);
        self.tally.plans_made += u64::from(!lists.is_empty());
        let mut cache = Cache::make(lists, &always, basis, unit, Self::REMEMBERS, table);
        self.made_lists += 1;
        cache.generation = self.made_lists;
        self.keep(plan, cache);
    }

    /// Keeps the cache of a loop, for those that were not used for longest. What `table` maps stays.
    fn keep(&mut self, plan: u64, mut cache: Cache<T, A::Snapshot>) {
        cache.used = self.passes;
        self.caches.insert(plan, cache);
        while self.caches.len() > LOOPS {
            let others = self.caches.iter().filter(|(known, _)| **known != plan);
            let Some(oldest) = others.min_by_key(|(_, cache)| cache.used).map(|(known, _)| *known) else {
                return;
            };
            if self.mapped == Some(oldest) {
                self.prepare();
            }
            self.caches.remove(&oldest);
        }
    }

    /// Tells which blocks the loop uses here; makes what others look for when they enter the pass, if it is the first.
    pub(super) fn announce(&mut self, worker: &mut Worker, plan: u64, workers: usize) -> Result<()> {
        self.workers = workers;
        let cache = self.caches.entry(plan).or_insert_with(Cache::empty);
        let capacity = cache.most().max(LEAST_ROOM).min(self.blocks.keys.max(1));
        let (homes, carrier) = match &mut self.shared {
            Some(shared) => shared,
            none => {
                let name = format!("orion/{}/served", self.number);
                let room = (capacity, Self::REMEMBERS);
                none.insert(carrier::make(worker, &name, &self.blocks, room, workers)?)
            }
        };
        carrier.grow(worker, capacity)?;
        if self.announced != Some((plan, cache.generation)) {
            homes.announce(worker, cache.keys.iter().map(|key| self.blocks.block(*key)))?;
            self.announced = Some((plan, cache.generation));
        }
        self.active = Some(plan);
        Ok(())
    }

    /// Whether what others have made is still to be found.
    pub(super) fn is_new(&self) -> bool {
        self.shared.as_ref().is_some_and(|(homes, carrier)| !homes.is_found() || !carrier.is_found())
    }

    /// Begins a pass of the loop that was announced, after a barrier.
    pub(super) fn enter(&mut self, worker: &mut Worker, consistency: Consistency) -> Result<()> {
        let (Some(plan), Some((homes, carrier))) = (self.active, &mut self.shared) else {
            return Err(Error::Invalid("a served array was not announced".into()));
        };
        homes.find(worker)?;
        carrier.find(worker, self.workers)?;
        carrier.begin(worker, self.workers)?;
        // Copies to which contributions came in different orders differ, and all begin with the same one.
        let are_copies_replaced = matches!(carrier, Carrier::Sent(_)) && consistency != Consistency::Bsp;
        self.passes += 1;
        let announced = homes.announced(worker)?;
        if self.mapped != Some(plan) {
            self.prepare();
        }
        let Some((homes, _)) = &self.shared else { return Ok(()) };
        self.cache = self.caches.remove(&plan).unwrap_or_else(Cache::empty);
        let cache = &mut self.cache;
        if self.mapped != Some(plan) {
            cache.keys.iter().zip(0..).for_each(|(key, slot)| self.table[*key as usize] = slot);
            self.mapped = Some(plan);
        }
        if cache.announced != announced {
            cache.find_homes(&homes.look(worker)?, &homes.versions(worker)?, &self.blocks);
            cache.announced = announced;
        }
        // A pass that was serial changes elements without telling their versions.
        if std::mem::take(&mut self.begun) > 1 || are_copies_replaced {
            self.cache.distrust();
            self.caches.values_mut().for_each(Cache::distrust);
        }
        let cache = &mut self.cache;
        let marks = cache.relocated.iter().map(|only| if *only { RELOCATED } else { 0 });
        cache.states.iter_mut().zip(marks).for_each(|(state, mark)| *state = mark);
        let standing = &cache.relocated[..cache.standing as usize];
        self.tally.relocated = cache.relocated.iter().filter(|only| **only).count() as u64;
        self.tally.replicated = standing.iter().filter(|only| !**only).count() as u64;
        self.tally.planned_keys = cache.listed();
        self.tally.listed_passes += u64::from(!cache.lists.is_empty());
        Ok(())
    }

    /// Ends a pass.
    pub(super) fn leave(&mut self) {
        let Some(plan) = self.active.take() else { return };
        self.intents.end_pass();
        let mut cache = std::mem::replace(&mut self.cache, Cache::empty());
        // Lists of an earlier pass that have much less than what the loop uses now, since a function changed, say.
        let missed = self.tally.write_misses + self.read_misses.get();
        if !std::mem::take(&mut cache.is_new) && !cache.lists.is_empty() && missed > cache.listed() / MISSES {
            cache.give_up();
        }
        self.keep(plan, cache);
    }

    /// After a pass that failed nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.table.fill(NONE);
        self.cache = Cache::empty();
        self.caches.clear();
        (self.active, self.mapped, self.announced) = (None, None, None);
        self.pending.clear();
        self.named.clear();
        self.lists.clear();
    }

    pub(super) fn versions<'w>(&self, worker: &'w Worker) -> Result<Versions<'w>> {
        match &self.shared {
            Some((homes, _)) => homes.versions(worker),
            None => Err(Error::Invalid("a served array was not announced".into())),
        }
    }
}
