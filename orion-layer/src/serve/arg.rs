//! A served array as it is passed to a loop.
use super::keys::{KeyView, KeyViewFamily, key_window};
use super::state::{Home, State};
use super::view::ServedView;
use super::{PrefetchStats, Serves};
use crate::array::{DistArray, Layout};
use crate::context::Context;
use crate::contract::{ArrayArg, ArrayTrace, Family, KeyNotes, LoopArray, Rule};
use crate::error::Result;
use crate::panics::merging;
use crate::relax::{Additive, Apply, BufferArg, PassParams, Traffic, Treatment};
use crate::site::Site;
use hectare_dependence::loop_nest::NamedArray;
use hectare_dsm::{Rank, SlotRing, Worker};
use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// A served array passed to a loop ([`Served::serve`](super::Served::serve)).
#[derive(Debug)]
pub struct ServedArg<'d, T: Additive, const N: usize, A: Apply<T>> {
    pub(super) base: BufferArg<'d, T, N, A>,
    pub(super) state: &'d mut State<T, A>,
    /// In a pass that is not exact.
    pub(super) params: Option<PassParams>,
}

/// [`ServedView`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct ServedViewFamily<T, const N: usize, A>(PhantomData<(T, A)>);

impl<T: Additive, const N: usize, A: Apply<T> + 'static> Family for ServedViewFamily<T, N, A> {
    type Of<'a> = ServedView<'a, T, N, A>;
}

impl<T: Additive, const N: usize, A: Apply<T>> ServedArg<'_, T, N, A> {
    /// The array, and the served elements: open to all, or this worker's copy.
    fn home<'w>(
        base: &'w mut BufferArg<'_, T, N, A>,
        worker: &'w Worker,
    ) -> Result<(&'w DistArray<T, N>, Home<'w, T, A>)> {
        let (all, (target, state)) = base.places(worker)?;
        Ok((all.array(), Home { target, state, rule: all.rule() }))
    }
}

impl<T: Additive, const N: usize, A: Apply<T>> LoopArray for ServedArg<'_, T, N, A> {
    fn describe(&self, name: &str) -> NamedArray {
        self.base.describe(name)
    }

    fn number(&self) -> u64 {
        self.base.number()
    }

    fn is_written(&self) -> bool {
        true
    }

    fn treatment(&self) -> Treatment {
        Treatment::Served
    }

    fn rule(&self) -> Option<Rule<'_>> {
        self.base.rule()
    }

    fn check(&self) -> Result<()> {
        self.base.check()
    }

    fn layout(&self) -> &Layout {
        self.base.layout()
    }

    fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.base.rearrange(context, site, to)
    }

    fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.state.begun += 1;
        self.base.recall(worker)
    }

    fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.base.finish_recall(worker)
    }

    fn take(&mut self, worker: &mut Worker, part: usize) -> Result<()> {
        self.base.take(worker, part)
    }

    fn take_within(&mut self, worker: &mut Worker, part: usize, limit: Duration) -> Result<bool> {
        self.base.take_within(worker, part, limit)
    }

    fn give(&mut self, worker: &Worker, part: usize, to: Rank) -> Result<()> {
        self.base.give(worker, part, to)
    }

    fn lend(&mut self, worker: &Worker) -> Result<()> {
        self.base.lend(worker)
    }

    fn publish_lent(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.base.publish_lent(context, site)
    }

    fn set_owners(&mut self, owners: &[Rank]) {
        self.base.set_owners(owners);
    }

    fn poison(&mut self, cause: &str) {
        self.params = None;
        self.state.forget();
        self.base.poison(cause);
    }

    fn open(&mut self, worker: &Worker) -> Result<()> {
        self.base.open(worker)
    }

    fn close(&mut self, worker: &mut Worker) -> Result<()> {
        self.params = None;
        self.state.leave();
        self.base.close(worker)
    }

    fn make_shared(&mut self, _worker: &mut Worker, _params: &PassParams) -> Result<bool> {
        // What it is announced by was made with that.
        Ok(self.state.is_new())
    }

    fn enter(&mut self, worker: &mut Worker, params: &PassParams) -> Result<bool> {
        self.base.copy_from_others(worker)?;
        self.state.enter(worker, params.relax.consistency)?;
        self.params = Some(*params);
        Ok(true)
    }

    fn slots(&self) -> Option<SlotRing> {
        self.params.and_then(|_| self.state.slots())
    }

    fn is_crowded(&self) -> bool {
        self.state.is_crowded()
    }

    fn make_room(&mut self, worker: &mut Worker) -> Result<()> {
        self.state.make_room(worker)
    }

    fn publish(&mut self, worker: &Worker, clock: u64, _whole: bool) -> Result<Traffic> {
        let bytes = self.state.publish(worker, clock)?;
        Ok(Traffic { bytes, ..Traffic::default() })
    }

    fn apply(&mut self, worker: &Worker, from: usize, clock: u64) -> Result<()> {
        if self.params.is_none() {
            return Ok(());
        }
        let (array, home) = Self::home(&mut self.base, worker)?;
        merging(array.name(), type_name::<A>(), || self.state.apply(worker, &home, (from, clock)))
    }

    fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match (&self.params, &self.state.shared) {
            (Some(_), Some((_, carrier))) => carrier.clock_of(worker, rank),
            _ => Ok(u64::MAX),
        }
    }

    fn fold(&mut self, worker: &Worker, published: &[u64]) -> Result<()> {
        self.base.fold(worker, published)
    }

    fn serves(&mut self) -> Option<&mut dyn Serves> {
        Some(self)
    }
}

impl<T: Additive, const N: usize, A: Apply<T>> Serves for ServedArg<'_, T, N, A> {
    fn knows(&self, plan: u64, basis: Option<u64>) -> bool {
        self.state.knows(plan, basis)
    }

    fn end_list(&mut self, named: bool) {
        self.state.end_list(named);
    }

    fn end_lists(&mut self, plan: u64, basis: Option<u64>) {
        self.state.end_lists(plan, basis);
    }

    fn announce(&mut self, worker: &mut Worker, plan: u64, workers: usize) -> Result<()> {
        let announced = self.state.announce(worker, plan, workers);
        announced.map_err(|error| error.of_array(self.base.name(), "what workers send to each other"))
    }

    fn prefetch(&mut self, worker: &Worker, interval: usize) -> Result<()> {
        let (_, home) = Self::home(&mut self.base, worker)?;
        self.state.prefetch(worker, &home, interval)
    }

    fn take_tally(&mut self) -> PrefetchStats {
        let tally = std::mem::take(&mut self.state.tally);
        PrefetchStats { read_misses: self.state.read_misses.take(), ..tally }
    }

    fn take_keys(&mut self) -> Vec<u32> {
        self.state.end_list(true);
        self.state.lists.pop().unwrap_or_default()
    }
}

impl<T: Additive, const N: usize, A: Apply<T> + 'static> ArrayArg for ServedArg<'_, T, N, A> {
    type View = ServedViewFamily<T, N, A>;
    type Keys = KeyViewFamily<N>;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<KeyView<'a, N>> {
        self.state.prepare();
        let window = key_window(&self.base.all().array().shape());
        let State { table, named, .. } = &mut *self.state;
        Ok(KeyView { window, table, named })
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<ServedView<'a, T, N, A>> {
        let ServedArg { base, state, params } = self;
        if params.is_none() {
            return Ok(ServedView::exact(base.view(worker, parts, trace)?, &mut state.cache.touched));
        }
        let (array, home) = Self::home(base, worker)?;
        let (whole, bounds) = (array.whole(), array.bounds());
        ServedView::new((bounds, whole), key_window(&array.shape()), state, home, worker)
    }
}
