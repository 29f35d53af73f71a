//! Dense arrays: every element exists; partitions are areas without reader copies and without a log.
mod access;
mod change;
mod edges;
mod relax;
mod runs;
mod write;

use self::edges::Edges;
use super::partition::{Hold, Partition};
use crate::context::{ArrayNumber, Context, Outcome};
use crate::contract::Layout;
use crate::error::{Error, Result};
use crate::fabric::shown::{Shown, spans_hosts};
use crate::replica::Replica;
use crate::site::Site;
use crate::view::copy_box;
use crate::view::{Gathered, PartBounds, Recorder, View, ViewMut, Window};
use hectare_dsm::tasks::{Patches, RowBatch, RowMarks, RunningTask};
use hectare_dsm::{Area, Element, Owned, Worker};
use std::ops::Range;

/// An n-dimensional array of plain old data, cut along one dimension into partitions, one owner each.
///
/// Between loops every partition is lent: each worker reads all of it in place. A loop that writes the array
/// takes the partitions that its schedule needs, hands them from worker to worker, and lends them again.
///
/// Every worker holds a handle. What it costs is the elements, once per job, and a few hundred bytes per part; and a
/// copy for each worker that reads rows or slices which lie in several parts (see [`View`]).
#[derive(Debug)]
pub struct DistArray<T: Element, const N: usize> {
    name: String,
    number: ArrayNumber,
    generation: u64,
    shape: [usize; N],
    layout: Layout,
    parts: Vec<Partition<T>>,
    edges: Edges<T>,
    /// How often parts that were lent in place were published after all, for a loop that writes them while others read what was before.
    published_anew: u32,
    gathered: Gathered<T>,
    changes: u64,
    pub(crate) replica: Replica<T>,
    poisoned: Option<String>,
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Makes an array whose parts are filled by `fill`, which gets the number of the part's first element in
    /// row-major order. Collective.
    pub(crate) fn make(
        context: &mut Context<'_>,
        site: Site,
        shape: [usize; N],
        mut fill: impl FnMut(u64, &mut [T]) -> Result<()>,
    ) -> Result<DistArray<T, N>> {
        let layout = Layout::even(0, shape.first().copied().unwrap_or(0), context.size());
        DistArray::make_as(context, site, shape, layout, |_, window, data| {
            fill((window.range(0).start * shape[1..].iter().product::<usize>()) as u64, data)
        })
    }

    /// Makes an array cut as in `layout`, whose parts are filled by `fill`. Collective.
    pub(crate) fn make_as(
        context: &mut Context<'_>,
        site: Site,
        shape: [usize; N],
        layout: Layout,
        fill: impl FnMut(&Worker, &Window<N>, &mut [T]) -> Result<()>,
    ) -> Result<DistArray<T, N>> {
        let number = context.number_array();
        let name = format!("array {number} ({site})");
        // Places of elements are computed also where another extent is zero.
        let elements = shape.iter().try_fold(1usize, |product, extent| product.checked_mul((*extent).max(1)));
        let bytes = elements.and_then(|elements| elements.checked_mul(size_of::<T>()));
        if N == 0 || bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let what = match N {
                0 => "an array needs a dimension".to_owned(),
                _ => format!("the shape {shape:?} has more bytes than this machine can address"),
            };
            return Err(Error::Shape { array: name, what });
        }
        let mut array = DistArray {
            name,
            number,
            generation: 0,
            shape,
            layout,
            parts: Vec::new(),
            edges: Edges::new(),
            published_anew: 0,
            gathered: Gathered::new(),
            changes: 0,
            replica: Replica::new(),
            poisoned: None,
        };
        let mut mine = Vec::new();
        let made = array.make_parts(context.fabric.worker, &mut mine, fill);
        if let Err(error) = context.agree_on_same(site, made) {
            // Memory of an array whose creation fails is given back.
            mine.into_iter().try_for_each(|(_, hold)| hold.delete(context.fabric.worker))?;
            return Err(error);
        }
        array.parts = array.attach_parts(context, site, &array.layout, mine)?;
        Ok(array)
    }

    /// All parts of a layout, of which these are this worker's. On several hosts a worker may find that its host has no place for those
    /// of others: then none has the array. Collective.
    fn attach_parts(
        &self,
        context: &mut Context<'_>,
        site: Site,
        layout: &Layout,
        mine: Vec<(usize, Hold<T>)>,
    ) -> Result<Vec<Partition<T>>> {
        let attached =
            Partition::attach_all(context.fabric.worker, layout, mine, |part| self.area_name(part));
        if !context.fabric.spans_hosts() {
            return attached;
        }
        let (told, parts) = match attached {
            Ok(parts) => (Ok(()), parts),
            Err(error) => (Err(error), Vec::new()),
        };
        let agreed = context.agree_on(site, told);
        if agreed.is_err() {
            parts.into_iter().try_for_each(|partition| partition.delete(context.fabric.worker))?;
            return agreed.map(|()| Vec::new());
        }
        Ok(parts)
    }

    fn area_name(&self, part: usize) -> String {
        format!("orion/{}/{}/{part}", self.number, self.generation)
    }

    /// Creates one of the parts.
    fn create_part(
        &self,
        worker: &mut Worker,
        (part, parts): (usize, usize),
        window: &Window<N>,
    ) -> Result<Owned<T>> {
        let made = Partition::create(worker, &self.area_name(part), window);
        made.map_err(|error| error.of_array(&self.name, format_args!("part {} of {parts}", part + 1)))
    }

    /// Creates, fills and lends the parts that this worker owns, and adds them to `holds`.
    fn make_parts(
        &self,
        worker: &mut Worker,
        holds: &mut Vec<(usize, Hold<T>)>,
        mut fill: impl FnMut(&Worker, &Window<N>, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let (me, spans_hosts) = (worker.rank(), spans_hosts(worker));
        for part in (0..self.layout.parts()).filter(|part| self.layout.owners[*part] == me) {
            let window = self.window(part);
            let mut owned = self.create_part(worker, (part, self.layout.parts()), &window)?;
            let filled = owned.write_whole(worker).map_err(Error::from);
            let filled = filled.and_then(|data| fill(worker, &window, &mut data[..window.len()]));
            if let Err(error) = filled {
                owned.delete(worker)?;
                return Err(error);
            }
            holds.push((part, Hold::Shown(Shown::new(owned, worker, spans_hosts)?)));
        }
        Ok(())
    }

    /// The name in errors and explanations.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the array a name for errors and explanations.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// The extent of each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.shape
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The current partitioning of the array.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Goes up whenever elements may change: what was computed from them holds while this stays.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn check(&self) -> Result<()> {
        match &self.poisoned {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { array: self.name.clone(), cause: cause.clone() }),
        }
    }

    fn window(&self, part: usize) -> Window<N> {
        Window::new(&self.shape, self.layout.dim, &self.layout.range(part))
    }

    pub(crate) fn bounds(&self) -> PartBounds<'_> {
        PartBounds { array: &self.name, shape: &self.shape, dim: self.layout.dim }
    }

    /// A view of the whole array, in place: valid until the next collective call.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn read<'a>(&'a self, context: &'a Context<'_>) -> Result<View<'a, T, N>> {
        self.view_on(context.fabric.worker, None)
    }

    /// Asks other hosts for what they have of it, all at once, so that who reads it then waits once.
    pub(crate) fn ask(&self, worker: &Worker) -> Result<()> {
        self.parts.iter().try_for_each(|partition| partition.ask(worker))
    }

    pub(crate) fn view_on<'a>(
        &'a self,
        worker: &'a Worker,
        recorder: Option<Recorder<'a>>,
    ) -> Result<View<'a, T, N>> {
        self.check()?;
        let whole = Window::new(&self.shape, 0, &(0..self.shape[0]));
        let mut parts = Vec::with_capacity(self.parts.len());
        self.ask(worker)?;
        for (part, partition) in self.parts.iter().enumerate() {
            let window = self.window(part);
            if window.len() != 0 {
                parts.push((window, &partition.read(worker)?[..window.len()]));
            }
        }
        Ok(match recorder {
            None => View::new(self.bounds(), whole, parts, &self.gathered),
            Some(recorder) => View::recorded(self.bounds(), whole, parts, &self.gathered, recorder),
        })
    }

    /// A view of the parts `parts`, which this worker holds.
    pub(crate) fn view_mut_on<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        recorder: Option<Recorder<'a>>,
    ) -> Result<ViewMut<'a, T, N>> {
        let bounds = PartBounds { array: &self.name, shape: &self.shape, dim: self.layout.dim };
        let mut held = Vec::with_capacity(parts.len());
        for (part, partition) in parts.clone().zip(&mut self.parts[parts]) {
            let mut ranges = self.shape.map(|extent| 0..extent);
            ranges[self.layout.dim] = self.layout.range(part);
            if ranges.iter().all(|range| !range.is_empty()) {
                held.push((ranges, partition.write(worker)?));
            }
        }
        let patches = Patches::of_parts(&self.shape, held);
        Ok(match recorder {
            Some(recorder) => ViewMut::recorded(bounds, patches, recorder),
            None => ViewMut::new(bounds, patches),
        })
    }

    /// Whether it lies in one piece that stays open to tasks.
    pub(crate) fn only_rests_open(&self) -> bool {
        matches!(&self.parts[..], [only] if only.rests_open())
    }

    /// The area of an array that lies in one piece.
    pub(crate) fn only_area(&self) -> Option<&Area<T>> {
        match &self.parts[..] {
            [only] => Some(only.area()),
            _ => None,
        }
    }

    /// The only area, of an array that is to lie in place.
    fn area_in_place(&self) -> Result<&Area<T>> {
        let what = || format!("it lies in {} parts, and not in place", self.parts.len());
        self.only_area().ok_or_else(|| Error::Shape { array: self.name.clone(), what: what() })
    }

    /// The rows of an array that lies in place which a batch lends, as array number `array` of the batch.
    pub(crate) fn view_rows<'a>(
        &'a self,
        (batch, array, marks): (&'a RowBatch<'a>, usize, &'a RowMarks),
    ) -> Result<ViewMut<'a, T, N>> {
        let rows = batch.rows(self.area_in_place()?, array)?;
        Ok(ViewMut::new(self.bounds(), Patches::of_rows(&self.shape, rows, marks)))
    }

    /// A view of what a task may touch of an array in place, which is number `array` of the task.
    pub(crate) fn view_in_place<'a>(
        &'a self,
        (task, array): (&'a RunningTask<'a>, usize),
    ) -> Result<ViewMut<'a, T, N>> {
        Ok(ViewMut::new(self.bounds(), task.patches(self.area_in_place()?, array)?))
    }

    /// Cuts the array as in `to`, if it is not cut so already: new owners copy what their parts need from the
    /// old parts, in place. Collective.
    pub(crate) fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.check()?;
        match self.layout.has_same_cuts(to) {
            true => Ok(()),
            false => self.lay_out(context, site, to),
        }
    }

    /// Cuts the array as in `to`, and gives each part to whoever owns it there, if it does not lie so already. Collective.
    pub(crate) fn lie_as(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.check()?;
        match self.layout == *to {
            true => Ok(()),
            false => self.lay_out(context, site, to),
        }
    }

    fn lay_out(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.generation += 1;
        let made = self.make_rearranged(context.fabric.worker, to);
        let mine = context.agree_on(site, made)?;
        let fresh = self.attach_parts(context, site, to, mine)?;
        for partition in std::mem::replace(&mut self.parts, fresh) {
            partition.delete(context.fabric.worker)?;
        }
        self.edges.delete(context.fabric.worker)?;
        self.layout = to.clone();
        Ok(())
    }

    fn make_rearranged(&self, worker: &mut Worker, to: &Layout) -> Result<Vec<(usize, Hold<T>)>> {
        let (me, spans_hosts, mut holds) = (worker.rank(), spans_hosts(worker), Vec::new());
        for part in (0..to.parts()).filter(|part| to.owners[*part] == me) {
            let window = Window::new(&self.shape, to.dim, &to.range(part));
            let mut owned = self.create_part(worker, (part, to.parts()), &window)?;
            let meets = |(old, _): &(usize, _)| self.window(*old).meets(&window);
            let parts = || self.parts.iter().enumerate().filter(meets);
            parts().try_for_each(|(_, partition)| partition.ask(worker))?;
            for (old, partition) in parts() {
                let from = self.window(old);
                copy_box(&from, partition.read(worker)?, &window, owned.write_whole(worker)?);
            }
            holds.push((part, Hold::Shown(Shown::new(owned, worker, spans_hosts)?)));
        }
        Ok(holds)
    }

    /// The partitions, to be written or handed on.
    pub(crate) fn partitions(&mut self) -> &mut [Partition<T>] {
        self.gathered.forget();
        self.changes += 1;
        &mut self.parts
    }

    pub(crate) fn set_owners(&mut self, owners: &[hectare_dsm::Rank]) {
        self.layout.owners.copy_from_slice(owners);
    }

    pub(crate) fn poison(&mut self, cause: &str) {
        self.poisoned = Some(cause.to_owned());
    }

    /// Frees the memory. Collective. Dropping the handles does not: an array lives as long as its job.
    ///
    /// # Errors
    /// [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn delete(mut self, context: &mut Context<'_>) -> Result<()> {
        let site = Site::here();
        // Whoever is not here yet may still read.
        context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
        let is_left = self.poisoned.is_some();
        let mut deleted = self.parts.drain(..).try_for_each(|partition| match is_left {
            true => partition.delete_left(context.fabric.worker),
            false => partition.delete(context.fabric.worker),
        });
        deleted = deleted.and(self.edges.delete(context.fabric.worker));
        deleted = deleted.and(self.replica.delete(context.fabric.worker));
        context.agree_on(site, deleted)
    }
}

#[cfg(test)]
mod tests;
mod undeclared;
