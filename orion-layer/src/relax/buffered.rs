//! A dense array to which loops contribute through buffers.
use super::beside::Place;
use super::buffer::Contributions;
use super::buffer_view::{BufferView, Sink};
use super::mirror::{Kept, Mirror, Places, Stamps, places_of};
use super::{Additive, Applied, Apply, Consistency, PassParams, Traffic, Treatment};
use crate::array::{DistArray, Layout};
use crate::context::Context;
use crate::contract::{
    ArrayArg, ArrayTrace, Extent, Family, KeyNotes, LoopArray, NoKeyView, NoKeyViewFamily, Rule,
};
use crate::error::Result;
use crate::fabric::watched::Reading;
use crate::panics::merging;
use crate::site::Site;
use hectare_dependence::loop_nest::NamedArray;
use hectare_dsm::{Rank, SlotRing, Worker};
use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// An array, the function that merges contributions into it, and that function's helper values, one for each element.
///
/// Loops contribute by `buffer w` ([`BufferView`]), and read it by `read w` as any other array. Every worker
/// keeps two copies of the array for itself (on several hosts a third, with the helper values), and room for four in shared memory
/// (of a small array, on several hosts, up to 16), as lists of elements with what is contributed to each (and what the function
/// remembers of it, if it does), from the first loop that contributes on.
///
/// ```
/// use hectare_orion::relax::{AdaGrad, Consistency};
/// use hectare_orion::{parallel_for, run};
///
/// run(2, |w| {
///     let samples = w.entries([1000], 1000, |k| ([k], (k % 10, (k % 10) as f64)))?;
///     let start = w.zeros::<f64, 1>([10])?;
///     let mut means = w.buffered(start, AdaGrad::new(0.5))?;
///     for _pass in 0..20 {
///         parallel_for!(w, unordered, buffer means, consistency = Consistency::Bounded(1);
///             for ((_number), sample) in samples {
///                 let (group, value) = *sample;
///                 means.add(group, means.get(group) - value);
///             })?;
///     }
///     assert!((means.array().get(w, [7])? - 7.0).abs() < 0.1);
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Debug)]
pub struct Buffered<T: Additive, const N: usize, A: Apply<T>> {
    pub(super) target: DistArray<T, N>,
    pub(super) state: Option<DistArray<A::State, N>>,
    pub(super) rule: A,
    pub(super) contributions: Contributions<T, A>,
    /// The elements that all workers had at the end of a pass under `Bsp`.
    pub(super) kept: Option<Kept<T, A::State>>,
}

impl<T: Additive, const N: usize, A: Apply<T>> Buffered<T, N, A> {
    /// The array.
    pub fn array(&self) -> &DistArray<T, N> {
        &self.target
    }

    /// The helper values, if there are any.
    pub fn state(&self) -> Option<&DistArray<A::State, N>> {
        self.state.as_ref()
    }

    /// The function that merges.
    pub fn rule(&self) -> &A {
        &self.rule
    }

    /// The stamps of the elements and the helper values, on several hosts.
    fn stamps(&self) -> Option<Stamps> {
        let state = self.state.as_ref().map(DistArray::stamp);
        let of_state = state.map_or(Some(None), |stamp| stamp.map(Some));
        self.target.stamp().zip(of_state)
    }

    /// Whether what is kept is what they still are.
    fn is_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.stamps.is_some() && kept.stamps == self.stamps())
    }

    /// It is what they are by now.
    fn keep(&mut self) {
        let stamps = self.stamps();
        if let Some(kept) = &mut self.kept {
            kept.stamps = stamps;
        }
    }

    /// Replaces the function, for example to change the step size. Every worker must call it with the same one.
    pub fn set_rule(&mut self, rule: A) {
        self.rule = rule;
    }

    /// Sets every element to `value`, and the helper values to their initial values. Collective.
    ///
    /// # Errors
    /// Those of [`DistArray::fill`].
    #[track_caller]
    pub fn reset(&mut self, context: &mut Context<'_>, value: T) -> Result<()> {
        self.target.fill(context, value)?;
        let initial = self.rule.initial();
        self.state.as_mut().map_or(Ok(()), |state| state.fill(context, initial))
    }

    /// The array and the helper values, without buffers. Collective.
    ///
    /// # Errors
    /// Those of [`DistArray::delete`].
    #[allow(clippy::type_complexity)]
    #[track_caller]
    pub fn into_parts(
        self,
        context: &mut Context<'_>,
    ) -> Result<(DistArray<T, N>, Option<DistArray<A::State, N>>)> {
        context.barrier()?;
        let deleted = self.contributions.delete(context.fabric.worker);
        context.agree_on(Site::here(), deleted)?;
        Ok((self.target, self.state))
    }

    /// For [`Context::run_loop`]: the array as one that the loop contributes to.
    pub fn buffer(&mut self) -> BufferArg<'_, T, N, A> {
        BufferArg { all: self, params: None, mirror: None }
    }
}

/// A buffered array passed to a loop ([`Buffered::buffer`]).
#[derive(Debug)]
pub struct BufferArg<'d, T: Additive, const N: usize, A: Apply<T>> {
    all: &'d mut Buffered<T, N, A>,
    params: Option<PassParams>,
    /// In a pass on several hosts.
    mirror: Option<Mirror<T, A::State>>,
}

/// These, and the array.
pub(crate) type WithPlaces<'a, T, const N: usize, A> =
    (&'a Buffered<T, N, A>, Places<'a, T, <A as Apply<T>>::State>);

/// [`BufferView`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct BufferViewFamily<T, const N: usize, A>(PhantomData<(T, A)>);

impl<T: Additive, const N: usize, A: Apply<T> + 'static> Family for BufferViewFamily<T, N, A> {
    type Of<'a> = BufferView<'a, T, N, A>;
}

impl<T: Additive, const N: usize, A: Apply<T>> BufferArg<'_, T, N, A> {
    /// The name of the array.
    pub(crate) fn name(&self) -> &str {
        self.all.target.name()
    }

    /// The array with all that belongs to it.
    pub(crate) fn all(&self) -> &Buffered<T, N, A> {
        self.all
    }

    /// On several hosts, makes this worker's copy of the array as all find it.
    pub(crate) fn copy_from_others(&mut self, worker: &Worker) -> Result<()> {
        self.all.kept = None;
        let all = &*self.all;
        self.mirror = match all.target.in_one_piece(worker)? {
            Reading::Open(_) => None,
            Reading::Published(elements) => Some(Mirror {
                elements: elements.to_vec(),
                states: match &all.state {
                    Some(state) => state.in_one_piece(worker)?.to_vec(),
                    None => Vec::new(),
                },
            }),
        };
        Ok(())
    }

    /// The array, and where its elements and helper values are that contributions change.
    pub(crate) fn places<'a>(&'a mut self, worker: &'a Worker) -> Result<WithPlaces<'a, T, N, A>> {
        let all = &*self.all;
        Ok((all, places_of(&all.target, all.state.as_ref(), &mut self.mirror, worker)?))
    }

    /// Every operation on the array is done to the helper values, too.
    fn both(
        &mut self,
        act_target: impl FnOnce(&mut &mut DistArray<T, N>) -> Result<()>,
        act_state: impl FnOnce(&mut &mut DistArray<A::State, N>) -> Result<()>,
    ) -> Result<()> {
        act_target(&mut &mut self.all.target)?;
        self.all.state.as_mut().map_or(Ok(()), |mut state| act_state(&mut state))
    }
}

impl<T: Additive, const N: usize, A: Apply<T>> LoopArray for BufferArg<'_, T, N, A> {
    fn describe(&self, name: &str) -> NamedArray {
        (&self.all.target).describe(name)
    }

    fn number(&self) -> u64 {
        self.all.target.number()
    }

    fn is_written(&self) -> bool {
        true
    }

    fn treatment(&self) -> Treatment {
        Treatment::Buffered
    }

    fn rule(&self) -> Option<Rule<'_>> {
        Some(Rule { type_name: type_name::<A>(), shown: Some(&self.all.rule) })
    }

    fn check(&self) -> Result<()> {
        self.all.target.check()?;
        self.all.state.as_ref().map_or(Ok(()), DistArray::check)
    }

    fn layout(&self) -> &Layout {
        self.all.target.layout()
    }

    fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.all.target.rearrange(context, site, to)?;
        self.all.state.as_mut().map_or(Ok(()), |state| state.rearrange(context, site, to))
    }

    fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        let is_kept = self.all.is_kept();
        self.all.target.partitions().iter_mut().try_for_each(|part| part.recall(worker))?;
        let state = self.all.state.iter_mut().flat_map(DistArray::partitions);
        state.into_iter().try_for_each(|part| part.recall(worker))?;
        if is_kept {
            // Nobody has written since.
            self.all.keep();
        }
        Ok(())
    }

    fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.all.target.partitions().iter_mut().try_for_each(|part| part.finish_recall(worker))?;
        let state = self.all.state.iter_mut().flat_map(DistArray::partitions);
        state.into_iter().try_for_each(|part| part.finish_recall(worker))
    }

    fn take(&mut self, worker: &mut Worker, part: usize) -> Result<()> {
        self.all.target.partitions()[part].take(worker)?;
        self.all.state.as_mut().map_or(Ok(()), |state| state.partitions()[part].take(worker))
    }

    fn take_within(&mut self, worker: &mut Worker, part: usize, limit: Duration) -> Result<bool> {
        // A part that is here already is taken at once.
        Ok(self.all.target.partitions()[part].take_within(worker, limit)?
            && match &mut self.all.state {
                Some(state) => state.partitions()[part].take_within(worker, limit)?,
                None => true,
            })
    }

    fn give(&mut self, worker: &Worker, part: usize, to: Rank) -> Result<()> {
        self.both(|array| array.give(worker, part, to), |array| array.give(worker, part, to))
    }

    fn lend(&mut self, worker: &Worker) -> Result<()> {
        self.both(|array| array.lend(worker), |array| array.lend(worker))?;
        if self.all.kept.as_ref().is_some_and(|kept| kept.stamps.is_none()) {
            self.all.keep();
        }
        Ok(())
    }

    fn publish_lent(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.all.target.publish_lent(context, site)?;
        self.all.state.as_mut().map_or(Ok(()), |state| state.publish_lent(context, site))
    }

    fn set_owners(&mut self, owners: &[Rank]) {
        self.all.target.set_owners(owners);
        if let Some(state) = &mut self.all.state {
            state.set_owners(owners);
        }
    }

    fn poison(&mut self, cause: &str) {
        (self.params, self.mirror, self.all.kept) = (None, None, None);
        LoopArray::poison(&mut &mut self.all.target, cause);
        if let Some(mut state) = self.all.state.as_mut() {
            LoopArray::poison(&mut state, cause);
        }
    }

    fn open(&mut self, worker: &Worker) -> Result<()> {
        self.all.target.partitions().iter_mut().try_for_each(|part| part.open(worker))?;
        let state = self.all.state.iter_mut().flat_map(DistArray::partitions);
        state.into_iter().try_for_each(|part| part.open(worker))
    }

    fn close(&mut self, worker: &mut Worker) -> Result<()> {
        (self.params, self.mirror) = (None, None);
        self.all.target.partitions().iter_mut().try_for_each(|part| part.close(worker))?;
        let state = self.all.state.iter_mut().flat_map(DistArray::partitions);
        state.into_iter().try_for_each(|part| part.close(worker))
    }

    fn ask(&self, worker: &Worker) -> Result<()> {
        if self.all.is_kept() {
            return Ok(());
        }
        self.all.target.ask(worker)?;
        self.all.state.as_ref().map_or(Ok(()), |state| state.ask(worker))
    }

    fn make_shared(&mut self, worker: &mut Worker, _params: &PassParams) -> Result<bool> {
        let Buffered { target, contributions, .. } = &mut *self.all;
        let made = contributions.make(worker, target.number(), target.len());
        made.map_err(|error| error.of_array(target.name(), "what a worker contributes to it"))
    }

    fn enter(&mut self, worker: &mut Worker, params: &PassParams) -> Result<bool> {
        self.params = Some(*params);
        let all = &mut *self.all;
        let extent = Extent { head: params.relax.tail.head(&all.target.shape()), len: all.target.len() };
        all.contributions.prepare(worker, (extent, N > 1), params)?;
        match self.all.is_kept() {
            true => self.mirror = self.all.kept.take().map(|kept| kept.mirror),
            false => self.copy_from_others(worker)?,
        }
        let Buffered { target, state, rule, contributions, .. } = &mut *self.all;
        let (elements, states) = places_of(target, state.as_ref(), &mut self.mirror, worker)?;
        merging(target.name(), type_name::<A>(), || {
            contributions.load(rule, elements, states);
        });
        Ok(true)
    }

    fn slots(&self) -> Option<SlotRing> {
        self.params.and_then(|_| self.all.contributions.slots())
    }

    fn publish(&mut self, worker: &Worker, clock: u64, whole: bool) -> Result<Traffic> {
        match self.params {
            Some(_) => self.all.contributions.publish(worker, clock, whole),
            None => Ok(Traffic::default()),
        }
    }

    fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match self.params {
            Some(_) => self.all.contributions.clock_of(worker, rank),
            None => Ok(u64::MAX),
        }
    }

    fn apply(&mut self, worker: &Worker, from: usize, clock: u64) -> Result<()> {
        let Some(params) = self.params else { return Ok(()) };
        let Buffered { target, state, rule, contributions, .. } = &mut *self.all;
        let len = target.len();
        // Who has a mirror applies all to it.
        let mirrored = self.mirror.is_some();
        let shares = (0..params.workers).map(move |rank| match (mirrored, rank == params.me) {
            (true, true) => 0..len,
            (true, false) => 0..0,
            (false, _) => params.share_of(rank, len),
        });
        let (elements, states) = places_of(target, state.as_ref(), &mut self.mirror, worker)?;
        merging(target.name(), type_name::<A>(), || {
            contributions.apply(worker, rule, (from, clock), elements, states, shares)
        })
    }

    fn refresh(
        &mut self,
        worker: &Worker,
        _published: &[u64],
        applied: Applied<'_>,
        whole: bool,
    ) -> Result<Traffic> {
        let Buffered { target, state, rule, contributions, .. } = &mut *self.all;
        let (elements, states) = places_of(target, state.as_ref(), &mut self.mirror, worker)?;
        merging(target.name(), type_name::<A>(), || {
            Ok(contributions.refresh(rule, elements, states, (applied, whole)))
        })
    }

    fn fold(&mut self, worker: &Worker, _published: &[u64]) -> Result<()> {
        let Some(mirror) = self.mirror.take() else { return Ok(()) };
        self.all.target.replace(worker, &mirror.elements)?;
        if let Some(state) = &mut self.all.state {
            state.replace(worker, &mirror.states)?;
        }
        // Under `Bsp` all workers have the same bits.
        let is_same = self.params.is_some_and(|params| params.relax.consistency == Consistency::Bsp);
        self.all.kept = is_same.then_some(Kept { mirror, stamps: None });
        Ok(())
    }
}

impl<T: Additive, const N: usize, A: Apply<T> + 'static> ArrayArg for BufferArg<'_, T, N, A> {
    type View = BufferViewFamily<T, N, A>;
    type Keys = NoKeyViewFamily;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<NoKeyView> {
        Ok(NoKeyView)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<BufferView<'a, T, N, A>> {
        let Buffered { target, state, rule, contributions, .. } = &mut *self.all;
        let whole = target.whole();
        if self.params.is_some() {
            let Contributions { beside, touched, .. } = contributions;
            return Ok(BufferView::new(
                target.bounds(),
                whole,
                beside.parts(),
                Sink::Later(touched),
                trace.recorder(),
            ));
        }
        let states = match state {
            Some(state) => state.all_of_it(worker)?.1,
            None => &mut [],
        };
        let (bounds, values) = target.all_of_it(worker)?;
        let values = (values, Place::rows(0));
        Ok(BufferView::new(bounds, whole, values, Sink::Now(rule, states), trace.recorder()))
    }
}
