//! A dense array as a loop relaxes it.
use super::{Additive, Applied, PassParams, RelaxedView, Traffic, Treatment};
use crate::array::{DistArray, Layout};
use crate::context::Context;
use crate::contract::{ArrayArg, ArrayTrace, Family, KeyNotes, LoopArray, NoKeyView, NoKeyViewFamily};
use crate::error::Result;
use crate::site::Site;
use hectare_dependence::loop_nest::NamedArray;
use hectare_dsm::{Element, OwnOrShared, Rank, Worker};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// An array passed to a loop that relaxes it ([`DistArray::relaxed`]).
#[derive(Debug)]
pub struct Relaxed<'d, T: Element, const N: usize> {
    array: &'d mut DistArray<T, N>,
    /// In a pass that is not exact.
    params: Option<PassParams>,
    /// Whether the copy of this worker has what the array becomes when it is lent.
    folded: bool,
}

/// [`RelaxedView`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct RelaxedViewFamily<T, const N: usize>(PhantomData<T>);

impl<T: Element, const N: usize> Family for RelaxedViewFamily<T, N> {
    type Of<'a> = RelaxedView<'a, T, N>;
}

impl<T: Additive, const N: usize> DistArray<T, N> {
    /// The array, for [`Context::run_loop`] to relax: `relax a` in `parallel_for!`. What that means says the loop's
    /// [`Consistency`](super::Consistency); under [`Consistency::Serializable`](super::Consistency::Serializable) it
    /// is the same as `&mut a`, but for the view.
    ///
    /// Under `Bsp` and `Bounded`, on more than one worker, each worker keeps two copies of the array for itself and two
    /// in shared memory, from the first such loop on: meant for arrays that fit the cache, or nearly.
    pub fn relaxed(&mut self) -> Relaxed<'_, T, N> {
        Relaxed { array: self, params: None, folded: false }
    }
}

impl<T: Element, const N: usize> Relaxed<'_, T, N> {
    /// The parameters of a pass in which this worker works on a copy.
    fn copying(&self) -> Option<PassParams> {
        self.params.filter(|params| params.in_copies)
    }
}

impl<T: Additive, const N: usize> LoopArray for Relaxed<'_, T, N> {
    fn describe(&self, name: &str) -> NamedArray {
        NamedArray { name: name.into(), shape: self.array.shape().to_vec(), element_bytes: size_of::<T>() }
    }

    fn number(&self) -> u64 {
        self.array.number()
    }

    fn is_written(&self) -> bool {
        true
    }

    fn treatment(&self) -> Treatment {
        Treatment::Relaxed
    }

    fn check(&self) -> Result<()> {
        self.array.check()
    }

    fn layout(&self) -> &Layout {
        self.array.layout()
    }

    fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.array.rearrange(context, site, to)
    }

    fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        let is_copied = self.array.is_copied();
        (&mut *self.array).recall(worker)?;
        if is_copied {
            // Nobody has written since.
            self.array.note_copied();
        }
        Ok(())
    }

    fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        (&mut *self.array).finish_recall(worker)
    }

    fn take(&mut self, worker: &mut Worker, part: usize) -> Result<()> {
        (&mut *self.array).take(worker, part)
    }

    fn take_within(&mut self, worker: &mut Worker, part: usize, limit: Duration) -> Result<bool> {
        (&mut *self.array).take_within(worker, part, limit)
    }

    fn give(&mut self, worker: &Worker, part: usize, to: Rank) -> Result<()> {
        (&mut *self.array).give(worker, part, to)
    }

    fn lend(&mut self, worker: &Worker) -> Result<()> {
        (&mut *self.array).lend(worker)?;
        if std::mem::take(&mut self.folded) {
            self.array.note_copied();
        }
        Ok(())
    }

    fn publish_lent(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.array.publish_lent(context, site)
    }

    fn set_owners(&mut self, owners: &[Rank]) {
        self.array.set_owners(owners);
    }

    fn poison(&mut self, cause: &str) {
        (self.params, self.folded) = (None, false);
        LoopArray::poison(&mut &mut *self.array, cause);
    }

    fn open(&mut self, worker: &Worker) -> Result<()> {
        self.array.partitions().iter_mut().try_for_each(|partition| partition.open(worker))
    }

    fn close(&mut self, worker: &mut Worker) -> Result<()> {
        self.params = None;
        self.array.partitions().iter_mut().try_for_each(|partition| partition.close(worker))
    }

    fn ask(&self, worker: &Worker) -> Result<()> {
        match self.array.is_copied() {
            true => Ok(()),
            false => self.array.ask(worker),
        }
    }

    fn make_shared(&mut self, worker: &mut Worker, params: &PassParams) -> Result<bool> {
        match params.in_copies {
            true => self.array.make_copy(worker),
            false => Ok(false),
        }
    }

    fn enter(&mut self, worker: &mut Worker, params: &PassParams) -> Result<bool> {
        if params.workers == 1 {
            // Nobody else is there to read or write it: it is as exact as it would be under `&mut`.
            self.close(worker)?;
            self.finish_recall(worker)?;
        }
        self.params = Some(*params);
        if self.copying().is_none() {
            return Ok(false);
        }
        self.array.enter_copy(worker, params)?;
        Ok(true)
    }

    fn publish(&mut self, worker: &Worker, clock: u64, whole: bool) -> Result<Traffic> {
        match self.copying() {
            Some(params) => self.array.replica.publish(worker, clock, whole, &params),
            None => Ok(Traffic::default()),
        }
    }

    fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match self.copying() {
            Some(_) => self.array.replica.clock_of(worker, rank),
            None => Ok(u64::MAX),
        }
    }

    fn refresh(
        &mut self,
        worker: &Worker,
        published: &[u64],
        _applied: Applied<'_>,
        whole: bool,
    ) -> Result<Traffic> {
        match self.copying() {
            Some(params) => self.array.replica.refresh(worker, published, whole, &params),
            None => Ok(Traffic::default()),
        }
    }

    fn fold(&mut self, worker: &Worker, published: &[u64]) -> Result<()> {
        let Some(params) = self.copying() else { return Ok(()) };
        self.array.fold_copy(worker, published, &params)?;
        self.folded = true;
        Ok(())
    }
}

impl<T: Additive, const N: usize> ArrayArg for Relaxed<'_, T, N> {
    type View = RelaxedViewFamily<T, N>;
    type Keys = NoKeyViewFamily;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<NoKeyView> {
        Ok(NoKeyView)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<RelaxedView<'a, T, N>> {
        let parts = match self.params {
            None => Some(parts),
            // The plan has it in nobody's hands: it is all this worker's.
            Some(params) if params.workers == 1 => Some(0..self.array.partitions().len()),
            Some(_) => None,
        };
        if let Some(parts) = parts {
            return self.array.exclusive_view(worker, parts, trace.recorder());
        }
        let (mut list, window) = (Vec::new(), self.array.whole());
        if self.copying().is_some() {
            let (bounds, replica) = self.array.bounds_and_replica();
            list.push((window, OwnOrShared::own(&mut replica.values[..])));
            return Ok(RelaxedView::new(bounds, list, trace.recorder()));
        }
        if window.len() != 0 {
            list.push((window, OwnOrShared::shared(self.array.open_cells(worker)?)));
        }
        Ok(RelaxedView::new(self.array.bounds(), list, trace.recorder()))
    }
}
