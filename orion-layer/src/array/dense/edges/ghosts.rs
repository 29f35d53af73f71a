//! Ghost regions: what a worker reads beyond its own parts of an array that the loop writes.
use super::super::DistArray;
use super::reads::Source;
use crate::error::Result;
use crate::view::{PartBounds, ViewMut};
use hectare_dependence::reads::Reads;
use hectare_dsm::tasks::Patches;
use hectare_dsm::{Element, Worker};
use std::ops::Range;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Fetches what this worker reads beyond its own parts, in a loop that is about to write the array: before anybody writes.
    pub(crate) fn fetch_ghosts(&mut self, worker: &Worker, reads: &Reads) -> Result<()> {
        let me = worker.rank();
        let is_other = |source: &Source| self.layout.owners[source.part] != me;
        let ghosts: Vec<_> = self.sources(me, reads).filter(is_other).collect();
        ghosts.iter().try_for_each(|ghost| self.partition(ghost).ask(worker))?;
        ghosts.iter().try_for_each(|ghost| self.partition(ghost).read(worker).map(drop))?;
        self.edges.ghosts = ghosts;
        Ok(())
    }

    /// A view of the parts `own`, which this worker holds, and of what it fetched of others before the pass.
    pub(crate) fn view_with_ghosts<'a>(
        &'a mut self,
        worker: &'a Worker,
        own: Range<usize>,
    ) -> Result<ViewMut<'a, T, N>> {
        let DistArray { layout, shape, parts, edges, name, .. } = self;
        let dim = layout.dim;
        let box_of = |range: Range<usize>| {
            let mut ranges = shape.map(|extent| 0..extent);
            ranges[dim] = range;
            ranges
        };
        let (before, rest) = parts.split_at_mut(own.start);
        let (held, after) = rest.split_at_mut(own.len());
        let mut ghosts = Vec::with_capacity(edges.ghosts.len());
        for Source { part, edge, range, .. } in &edges.ghosts {
            let elements = match *edge {
                Some(edge) => edges.list[edge].copy.read(worker)?,
                None if *part < own.start => before[*part].read_before(worker)?,
                None => after[part - own.end].read_before(worker)?,
            };
            ghosts.push((box_of(range.clone()), elements));
        }
        let mut mine = Vec::with_capacity(held.len());
        for (part, partition) in own.zip(held) {
            mine.push((box_of(layout.range(part)), partition.write(worker)?));
        }
        let patches = Patches::of_parts(shape, mine).with_ghosts(shape, ghosts);
        Ok(ViewMut::new(PartBounds { array: name, shape, dim }, patches))
    }
}
