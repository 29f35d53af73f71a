//! The side of a dense array that relaxed loops use.
use super::DistArray;
use crate::error::{Error, Result};
use crate::replica::{RelaxedView, Replica};
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

    /// The same, and this worker's copy.
    pub(crate) fn cells<'w>(&mut self, worker: &'w Worker) -> Result<(Cells<'w, T>, &mut Replica<T>)> {
        Ok((self.open_cells(worker)?, &mut self.replica))
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
