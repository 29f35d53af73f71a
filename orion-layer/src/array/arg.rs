//! Dense arrays as loops read and write them.
use super::DistArray;
use super::noted::{NotedView, NotedViewFamily};
use crate::array::partition::Partition;
use crate::context::Context;
use crate::contract::{ArrayArg, ArrayTrace, Family, KeyNotes, Layout, LoopArray};
use crate::error::Result;
use crate::site::Site;
use crate::view::{View, ViewMut};
use hectare_dependence::loop_nest::NamedArray;
use hectare_dependence::reads::Reads;
use hectare_dsm::tasks::{InPlace, Runs};
use hectare_dsm::{Element, Rank, Worker};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// [`View`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct ViewFamily<T, const N: usize>(PhantomData<T>);
/// [`ViewMut`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct ViewMutFamily<T, const N: usize>(PhantomData<T>);

impl<T: Element, const N: usize> Family for ViewFamily<T, N> {
    type Of<'a> = View<'a, T, N>;
}

impl<T: Element, const N: usize> Family for ViewMutFamily<T, N> {
    type Of<'a> = ViewMut<'a, T, N>;
}

fn describe<T: Element, const N: usize>(array: &DistArray<T, N>, name: &str) -> NamedArray {
    NamedArray { name: name.into(), shape: array.shape().to_vec(), element_bytes: size_of::<T>() }
}

impl<T: Element, const N: usize> LoopArray for &DistArray<T, N> {
    fn describe(&self, name: &str) -> NamedArray {
        describe(self, name)
    }

    fn number(&self) -> u64 {
        DistArray::number(self)
    }

    fn is_written(&self) -> bool {
        false
    }

    fn version(&self) -> u64 {
        self.changes()
    }

    fn check(&self) -> Result<()> {
        DistArray::check(self)
    }

    fn layout(&self) -> &Layout {
        DistArray::layout(self)
    }

    fn poison(&mut self, _cause: &str) {}

    fn note_reads(&self, reads: &Reads, host_of: &[usize], note: &mut dyn FnMut(usize, usize, usize)) {
        DistArray::note_reads(self, reads, host_of, note);
    }

    fn expect_reads(&self, reads: &Reads, host_of: &[usize]) {
        DistArray::expect_reads(self, reads, host_of);
    }
}

impl<T: Element, const N: usize> ArrayArg for &DistArray<T, N> {
    type View = ViewFamily<T, N>;
    type Keys = ViewFamily<T, N>;

    fn keys<'a>(&'a mut self, worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<View<'a, T, N>> {
        self.view_on(worker, None)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<View<'a, T, N>> {
        match trace.reads() {
            Some(reads) => self.view_of(worker, reads),
            None => self.view_on(worker, trace.recorder()),
        }
    }
}

impl<T: Element, const N: usize> LoopArray for &mut DistArray<T, N> {
    fn version(&self) -> u64 {
        self.changes()
    }

    fn describe(&self, name: &str) -> NamedArray {
        describe(self, name)
    }

    fn number(&self) -> u64 {
        DistArray::number(self)
    }

    fn is_written(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        DistArray::check(self)
    }

    fn layout(&self) -> &Layout {
        DistArray::layout(self)
    }

    fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        DistArray::rearrange(self, context, site, to)
    }

    fn note_reads(&self, reads: &Reads, host_of: &[usize], note: &mut dyn FnMut(usize, usize, usize)) {
        DistArray::note_reads(self, reads, host_of, note);
    }

    fn expect_reads(&self, reads: &Reads, host_of: &[usize]) {
        DistArray::expect_reads(self, reads, host_of);
    }

    fn lie_as(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        DistArray::lie_as(self, context, site, to)
    }

    fn fetch_ghosts(&mut self, worker: &Worker, reads: &Reads) -> Result<()> {
        DistArray::fetch_ghosts(self, worker, reads)
    }

    fn meet_edges(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        DistArray::meet_edges(self, context, site)
    }

    fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.recall(worker))
    }

    fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.finish_recall(worker))
    }

    fn take(&mut self, worker: &mut Worker, part: usize) -> Result<()> {
        self.partitions()[part].take(worker)
    }

    fn take_within(&mut self, worker: &mut Worker, part: usize, limit: Duration) -> Result<bool> {
        self.partitions()[part].take_within(worker, limit)
    }

    fn give(&mut self, worker: &Worker, part: usize, to: Rank) -> Result<()> {
        self.partitions()[part].give(worker, to)
    }

    fn release(&mut self, worker: &Worker, part: usize) -> Result<()> {
        self.partitions()[part].release(worker)
    }

    fn acquire(&mut self, worker: &Worker, part: usize) -> Result<bool> {
        self.partitions()[part].acquire(worker)
    }

    fn open_to_tasks(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.open_to_tasks(worker))
    }

    fn in_place(&self) -> Option<InPlace> {
        self.only_area().map(|area| area.in_place())
    }

    fn runs(&mut self) -> Option<&mut Runs> {
        match self.partitions() {
            [only] => Some(only.runs()),
            _ => None,
        }
    }

    fn leave_open(&mut self) {
        self.partitions().iter_mut().for_each(Partition::leave_open);
    }

    fn rests_open(&self) -> bool {
        self.only_rests_open()
    }

    fn close(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.close(worker))
    }

    fn lend(&mut self, worker: &Worker) -> Result<()> {
        self.partitions();
        self.lend_all(worker)
    }

    fn lend_in_place(&mut self, worker: &Worker) -> Result<()> {
        self.partitions();
        self.lend_all_in_place(worker)
    }

    fn rests_lent(&self) -> bool {
        DistArray::rests_lent(self)
    }

    fn has_fresh_edges(&self, reads: &Reads) -> bool {
        DistArray::has_fresh_edges(self, reads)
    }

    fn will_have_edges(&self, reads: &Reads) -> bool {
        DistArray::will_have_edges(self, reads)
    }

    fn publish_lent(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        DistArray::publish_lent(self, context, site)
    }

    fn set_owners(&mut self, owners: &[Rank]) {
        DistArray::set_owners(self, owners);
    }

    fn poison(&mut self, cause: &str) {
        self.partitions().iter_mut().for_each(|partition| partition.abandon());
        DistArray::poison(self, cause);
    }
}

impl<T: Element, const N: usize> ArrayArg for &mut DistArray<T, N> {
    type View = ViewMutFamily<T, N>;
    type Keys = NotedViewFamily<N>;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, notes: KeyNotes<'a>) -> Result<NotedView<'a, N>> {
        Ok(NotedView::new(self.shape(), notes))
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<ViewMut<'a, T, N>> {
        match (trace.task(), trace.rows()) {
            (Some(task), _) => self.view_in_place(task),
            (None, Some(rows)) => self.view_rows(rows),
            (None, None) => match trace.reads() {
                Some(_) => self.view_with_ghosts(worker, parts),
                None => self.view_mut_on(worker, parts, trace.recorder()),
            },
        }
    }
}
