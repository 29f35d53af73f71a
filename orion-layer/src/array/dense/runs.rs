//! The elements of a dense array in order, for files.
use super::DistArray;
use crate::context::Context;
use crate::contract::Layout;
use crate::error::Result;
use crate::fabric::{Fabric, SharedMemory};
use crate::view::Window;
use crate::view::copy_box;
use hectare_dsm::Element;
use std::ops::Range;

/// Bytes of rows that are put together at a time.
const BLOCK: usize = 1 << 20;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// The rows that are stored by each host, in order: those that its workers hold or, if each has some of every row, as many as
    /// the others'.
    pub(crate) fn rows_by_host(&self, fabric: &SharedMemory<'_>) -> Vec<(usize, Range<usize>)> {
        let layout = match self.layout.dim {
            0 => &self.layout,
            _ => &Layout::even(0, self.shape[0], fabric.size()),
        };
        let mut rows: Vec<(usize, Range<usize>)> = Vec::new();
        for part in 0..layout.parts() {
            let (host, range) = (fabric.host_of(layout.owners[part] as usize), layout.range(part));
            match rows.last_mut() {
                Some((last, before)) if *last == host => before.end = range.end,
                _ => rows.push((host, range)),
            }
        }
        rows
    }

    /// Calls `visit` with all elements in row-major order, in runs of whole rows.
    pub(crate) fn for_each_run(
        &self,
        context: &Context<'_>,
        visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.for_each_run_of(context, &(0..self.shape.first().copied().unwrap_or(0)), visit)
    }

    /// The same with the elements of some rows; those of some parts if it is cut into rows.
    pub(crate) fn for_each_run_of(
        &self,
        context: &Context<'_>,
        rows: &Range<usize>,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        let by_rows = self.layout.dim == 0;
        let is_among = |part: &usize| {
            let of_it = self.layout.range(*part);
            !by_rows || rows.start <= of_it.start && of_it.end <= rows.end
        };
        let parts: Vec<usize> = (0..self.parts.len()).filter(is_among).collect();
        parts.iter().try_for_each(|part| self.parts[*part].ask(context.fabric.worker))?;
        if by_rows {
            return parts.iter().try_for_each(|part| {
                visit(&self.parts[*part].read(context.fabric.worker)?[..self.window(*part).len()])
            });
        }
        // Cut along another dimension: some rows at a time are put together.
        let row_bytes = self.shape[1..].iter().product::<usize>() * size_of::<T>();
        let at_once = (BLOCK / row_bytes.max(1)).max(1);
        for start in rows.clone().step_by(at_once) {
            let block = Window::new(&self.shape, 0, &(start..rows.end.min(start + at_once)));
            let mut together = vec![T::zeroed(); block.len()];
            for (part, partition) in self.parts.iter().enumerate() {
                copy_box(&self.window(part), partition.read(context.fabric.worker)?, &block, &mut together);
            }
            visit(&together)?;
        }
        Ok(())
    }
}
