//! The side of a dense array that relaxed loops use.
use super::{DistArray, Partition};
use crate::contract::PassParams;
use crate::error::{Error, Result};
use crate::fabric::watched::Reading;
use crate::replica::{Additive, RelaxedView, Replica};
use crate::view::{PartBounds, Recorder, Window};
use hectare_dsm::{Cells, Element, OwnOrShared, Worker};
use std::ops::Range;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// The window of the array in one piece.
    pub(crate) fn whole(&self) -> Window<N> {
        Window::new(&self.shape, 0, &(0..self.shape[0]))
    }

    /// The elements of an array in one piece that is open to all.
    pub(crate) fn open_cells<'w>(&self, worker: &'w Worker) -> Result<Cells<'w, T>> {
        match &self.parts[..] {
            [part] => Ok(part.cells(worker)?.part(0, self.len())),
            parts => Err(Error::Invalid(format!("{} is relaxed, and in {} parts", self.name, parts.len()))),
        }
    }

    /// The elements of an array in one piece that loops relax: open to all, or on several hosts as they are published.
    pub(crate) fn in_one_piece<'a>(&'a self, worker: &'a Worker) -> Result<Reading<'a, T>> {
        Ok(match &self.parts[..] {
            [part] if part.is_published() => Reading::Published(&part.read(worker)?[..self.len()]),
            _ => Reading::Open(self.open_cells(worker)?),
        })
    }

    /// The stamp of an array in one piece on several hosts: while it stays the same, so do the elements.
    pub(crate) fn stamp(&self) -> Option<u64> {
        match &self.parts[..] {
            [part] if part.is_published() => Some(part.stamp()),
            _ => None,
        }
    }

    /// Whether the copy of this worker still has the elements of the array, since the pass before.
    pub(crate) fn is_copied(&self) -> bool {
        self.replica.copied.is_some() && self.replica.copied == self.stamp()
    }

    /// The copy of this worker has them.
    pub(crate) fn note_copied(&mut self) {
        self.replica.copied = self.stamp();
    }

    /// Writes the elements of an array in one piece that others read copies of, if this worker holds it.
    pub(crate) fn replace(&mut self, worker: &Worker, elements: &[T]) -> Result<()> {
        match &mut self.parts[..] {
            [part] if part.is_held() => part.write(worker)?[..elements.len()].copy_from_slice(elements),
            _ => {}
        }
        Ok(())
    }

    /// Makes what this worker shows of its copy, if it has not yet; whether others have still to be found.
    pub(crate) fn make_copy(&mut self, worker: &mut Worker) -> Result<bool>
    where
        T: Additive,
    {
        let (number, len) = (self.number(), self.len());
        let made = self.replica.make(worker, number, len);
        made.map_err(|error| error.of_array(&self.name, "the copy of a worker"))
    }

    /// Begins a pass in which this worker works on a copy, of the array as it is.
    pub(crate) fn enter_copy(&mut self, worker: &mut Worker, params: &PassParams) -> Result<()>
    where
        T: Additive,
    {
        let head = params.relax.tail.head(&self.shape);
        let is_copied = self.is_copied();
        let mut replica = std::mem::take(&mut self.replica);
        let entered = replica.find(worker, params).and_then(|()| {
            if !is_copied {
                replica.load(self.in_one_piece(worker)?);
            }
            replica.enter(worker, head, params)
        });
        self.replica = replica;
        entered
    }

    /// Makes the array what the copies of all workers have become: of one that is open, each writes its share.
    pub(crate) fn fold_copy(&mut self, worker: &Worker, published: &[u64], params: &PassParams) -> Result<()>
    where
        T: Additive,
    {
        let mut replica = std::mem::take(&mut self.replica);
        let is_published = self.parts.iter().any(Partition::is_published);
        let share = if is_published { 0..self.len() } else { params.share(self.len()) };
        let folded = replica.fold(worker, published, share.clone(), params).and_then(|values| {
            if is_published {
                return self.replace(worker, values);
            }
            self.open_cells(worker)?.part(share.start, share.len()).store(values);
            Ok(())
        });
        self.replica = replica;
        folded
    }

    pub(crate) fn bounds_and_replica(&mut self) -> (PartBounds<'_>, &mut Replica<T>) {
        (PartBounds { array: &self.name, shape: &self.shape, dim: 0 }, &mut self.replica)
    }

    /// All elements of an array in one piece, which this worker holds.
    pub(crate) fn all_of_it<'a>(&'a mut self, worker: &'a Worker) -> Result<(PartBounds<'a>, &'a mut [T])> {
        let (len, bounds) = (
            self.shape.iter().product::<usize>(),
            PartBounds { array: &self.name, shape: &self.shape, dim: 0 },
        );
        match &mut self.parts[..] {
            [part] => Ok((bounds, &mut part.write(worker)?[..len])),
            parts => Err(Error::Invalid(format!("{} is buffered, and in {} parts", self.name, parts.len()))),
        }
    }

    /// A relaxed view of parts that this worker alone holds.
    pub(crate) fn exclusive_view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        recorder: Option<Recorder<'a>>,
    ) -> Result<RelaxedView<'a, T, N>> {
        let bounds = PartBounds { array: &self.name, shape: &self.shape, dim: self.layout.dim };
        let mut views = Vec::with_capacity(parts.len());
        for (part, partition) in parts.clone().zip(&mut self.parts[parts]) {
            let window = Window::new(&self.shape, self.layout.dim, &self.layout.range(part));
            if window.len() != 0 {
                views.push((window, OwnOrShared::own(&mut partition.write(worker)?[..window.len()])));
            }
        }
        Ok(RelaxedView::new(bounds, views, recorder))
    }
}
