//! Dense arrays: every element exists; partitions are areas without reader copies and without a log.
use super::layout::Layout;
use super::partition::{Hold, Partition};
use super::transfer::copy_box;
use crate::context::{Context, Say, Site};
use crate::error::{Error, Result};
use crate::view::{Frame, PartBounds, View, ViewMut};
use hectare_dsm::{Element, Worker};
use std::ops::Range;

/// An n-dimensional array of plain old data, cut along one dimension into partitions, one owner each.
///
/// Between loops every partition is lent: each worker reads all of it in place. A loop that writes the array
/// takes the partitions that its schedule needs, hands them from worker to worker, and lends them again.
///
/// Every worker holds a handle. What it costs is the elements, once per job, and a few hundred bytes per part.
#[derive(Debug)]
pub struct DistArray<T: Element, const N: usize> {
    name: String,
    number: u64,
    generation: u64,
    shape: [usize; N],
    layout: Layout,
    parts: Vec<Partition<T>>,
    poisoned: Option<String>,
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Makes an array whose part `part` is filled by `fill`, which gets the number of the part's first element in
    /// row-major order. Collective.
    pub(crate) fn make(
        context: &mut Context<'_>,
        site: Site,
        shape: [usize; N],
        fill: impl FnOnce(u64, &mut [T]) -> Result<()>,
    ) -> Result<DistArray<T, N>> {
        let number = context.next_number();
        let name = format!("array {number} ({site})");
        if N == 0 || shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent)).is_none() {
            let what = format!("the shape {shape:?} has no dimension or too many elements");
            return Err(Error::Shape { array: name, what });
        }
        let layout = Layout::even(0, shape[0], context.size());
        let mut array =
            DistArray { name, number, generation: 0, shape, layout, parts: Vec::new(), poisoned: None };
        let mine = array.make_parts(context.worker, &array.layout.clone(), |frame, data| {
            fill((frame.range(0).start * shape[1..].iter().product::<usize>()) as u64, data)
        });
        let mine = context.agree_on(site, mine)?;
        array.parts =
            Partition::attach_all(context.worker, &array.layout, mine, |part| array.area_name(part))?;
        Ok(array)
    }

    fn area_name(&self, part: usize) -> String {
        format!("orion/{}/{}/{part}", self.number, self.generation)
    }

    /// Creates, fills and lends the parts of `layout` that this worker owns.
    fn make_parts(
        &self,
        worker: &mut Worker,
        layout: &Layout,
        fill: impl FnOnce(&Frame<N>, &mut [T]) -> Result<()>,
    ) -> Result<Vec<(usize, Hold<T>)>> {
        let mut fill = Some(fill);
        let (me, mut holds) = (worker.rank(), Vec::new());
        for part in (0..layout.parts()).filter(|part| layout.owners[*part] == me) {
            let frame = Frame::new(&self.shape, layout.dim, &layout.range(part));
            let mut owned = Partition::create(worker, &self.area_name(part), &frame)?;
            if let Some(fill) = fill.take() {
                fill(&frame, &mut owned.write_whole(worker)?[..frame.len()])?;
            }
            holds.push((part, Hold::Lent(owned.lend(worker).map_err(hectare_dsm::Error::from)?)));
        }
        Ok(holds)
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

    /// How the array is cut at present.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn check(&self) -> Result<()> {
        match &self.poisoned {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { array: self.name.clone(), cause: cause.clone() }),
        }
    }

    fn frame(&self, part: usize) -> Frame<N> {
        Frame::new(&self.shape, self.layout.dim, &self.layout.range(part))
    }

    fn bounds(&self) -> PartBounds<'_> {
        PartBounds { array: &self.name, dim: self.layout.dim }
    }

    /// A view of the whole array, in place: valid until the next collective call.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn read<'a>(&'a self, context: &'a Context<'_>) -> Result<View<'a, T, N>> {
        self.view_on(context.worker)
    }

    pub(crate) fn view_on<'a>(&'a self, worker: &'a Worker) -> Result<View<'a, T, N>> {
        self.check()?;
        let mut parts = Vec::with_capacity(self.parts.len());
        for (part, partition) in self.parts.iter().enumerate() {
            let frame = self.frame(part);
            if frame.len() != 0 {
                parts.push((frame, &partition.read(worker)?[..frame.len()]));
            }
        }
        Ok(View::new(self.bounds(), parts))
    }

    /// A view of the parts `parts`, which this worker holds.
    pub(crate) fn view_mut_on<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
    ) -> Result<ViewMut<'a, T, N>> {
        let bounds = PartBounds { array: &self.name, dim: self.layout.dim };
        let mut views = Vec::with_capacity(parts.len());
        for (part, partition) in parts.clone().zip(&mut self.parts[parts]) {
            let frame = Frame::new(&self.shape, self.layout.dim, &self.layout.range(part));
            if frame.len() != 0 {
                views.push((frame, &mut partition.write(worker)?[..frame.len()]));
            }
        }
        Ok(ViewMut::new(bounds, views))
    }

    /// Cuts the array as in `to`, if it is not cut so already: new owners copy what their parts need from the
    /// old parts, in place. Collective.
    pub(crate) fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.check()?;
        if self.layout.has_same_cuts(to) {
            return Ok(());
        }
        self.generation += 1;
        let made = self.make_rearranged(context.worker, to);
        let mine = context.agree_on(site, made)?;
        let fresh = Partition::attach_all(context.worker, to, mine, |part| self.area_name(part))?;
        for partition in std::mem::replace(&mut self.parts, fresh) {
            partition.delete(context.worker)?;
        }
        self.layout = to.clone();
        Ok(())
    }

    fn make_rearranged(&self, worker: &mut Worker, to: &Layout) -> Result<Vec<(usize, Hold<T>)>> {
        let (me, mut holds) = (worker.rank(), Vec::new());
        for part in (0..to.parts()).filter(|part| to.owners[*part] == me) {
            let frame = Frame::new(&self.shape, to.dim, &to.range(part));
            let mut owned = Partition::create(worker, &self.area_name(part), &frame)?;
            for (old, partition) in self.parts.iter().enumerate() {
                let from = self.frame(old);
                copy_box(&from, partition.read(worker)?, &frame, owned.write_whole(worker)?);
            }
            holds.push((part, Hold::Lent(owned.lend(worker).map_err(hectare_dsm::Error::from)?)));
        }
        Ok(holds)
    }

    pub(crate) fn partitions(&mut self) -> &mut [Partition<T>] {
        &mut self.parts
    }

    pub(crate) fn set_owners(&mut self, owners: &[hectare_dsm::Rank]) {
        self.layout.owners.copy_from_slice(owners);
    }

    pub(crate) fn poison(&mut self, cause: &str) {
        self.poisoned = Some(cause.to_owned());
    }

    /// Writes `values` to the elements whose index in dimension 0 lies in `range`, in row-major order.
    /// Collective: every worker passes the same.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let mut a = w.zeros::<f32, 2>([4, 2])?;
    ///     a.write(w, 1..3, &[1.0, 2.0, 3.0, 4.0])?;
    ///     assert_eq!(a.read(w)?.row(2), [3.0, 4.0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the range lies outside or `values` has another length, [`Error::Poisoned`],
    /// [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn write(&mut self, context: &mut Context<'_>, range: Range<usize>, values: &[T]) -> Result<()> {
        let site = Site::here();
        self.check()?;
        let row: usize = self.shape[1..].iter().product();
        let inside = range.start <= range.end && range.end <= self.shape[0];
        if !inside || values.len() != range.len() * row {
            let what = format!(
                "{} values for {range:?} of dimension 0, in the shape {:?}, {row} each",
                values.len(),
                self.shape
            );
            return Err(Error::Shape { array: self.name.clone(), what });
        }
        self.begin_writing(context, site)?;
        let from = Frame::new(&self.shape, 0, &range);
        let worker = &mut *context.worker;
        for part in 0..self.parts.len() {
            let to = self.frame(part);
            if self.parts[part].is_held() {
                copy_box(&from, values, &to, self.parts[part].write(worker)?);
            }
        }
        self.end_writing(worker)?;
        context.exchange(site, Say::Value(&[]), |_, _| Ok(()))
    }

    /// Takes back what this worker lent, once nobody reads it: whoever has not come yet may still do so. Collective.
    fn begin_writing(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        context.exchange(site, Say::Value(&[]), |_, _| Ok(()))?;
        let mut recalled = Ok(());
        for partition in &mut self.parts {
            recalled = recalled.and_then(|()| partition.recall(context.worker));
        }
        context.agree_on(site, recalled)?;
        self.parts.iter_mut().try_for_each(|partition| partition.finish_recall(context.worker))
    }

    fn end_writing(&mut self, worker: &Worker) -> Result<()> {
        self.parts.iter_mut().try_for_each(|partition| partition.lend(worker))
    }

    /// All elements in row-major order, as this worker sees them.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn to_vec(&self, context: &Context<'_>) -> Result<Vec<T>> {
        self.check()?;
        let whole = Frame::new(&self.shape, 0, &(0..self.shape[0]));
        let mut all = vec![T::zeroed(); self.len()];
        for (part, partition) in self.parts.iter().enumerate() {
            copy_box(&self.frame(part), partition.read(context.worker)?, &whole, &mut all);
        }
        Ok(all)
    }

    /// Calls `visit` with all elements in row-major order, in runs of whole rows.
    pub(crate) fn for_each_run(
        &self,
        context: &Context<'_>,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        if self.layout.dim == 0 {
            return (0..self.parts.len()).try_for_each(|part| {
                visit(&self.parts[part].read(context.worker)?[..self.frame(part).len()])
            });
        }
        // Cut along another dimension: a block of rows at a time is put together.
        const ROWS: usize = 1024;
        for start in (0..self.shape[0]).step_by(ROWS) {
            let block = Frame::new(&self.shape, 0, &(start..self.shape[0].min(start + ROWS)));
            let mut rows = vec![T::zeroed(); block.len()];
            for (part, partition) in self.parts.iter().enumerate() {
                copy_box(&self.frame(part), partition.read(context.worker)?, &block, &mut rows);
            }
            visit(&rows)?;
        }
        Ok(())
    }

    /// Gives the memory back. Collective. Dropping the handles does not: an array lives as long as its job.
    ///
    /// # Errors
    /// [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn delete(mut self, context: &mut Context<'_>) -> Result<()> {
        let site = Site::here();
        // Whoever is not here yet may still read it.
        context.exchange(site, Say::Value(&[]), |_, _| Ok(()))?;
        let deleted = self.parts.drain(..).try_for_each(|partition| partition.delete(context.worker));
        context.agree_on(site, deleted)
    }
}
