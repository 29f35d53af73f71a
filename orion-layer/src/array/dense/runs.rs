//! The elements of a dense array in order, for files.
use super::DistArray;
use crate::context::Context;
use crate::error::Result;
use crate::view::Window;
use crate::view::copy_box;
use hectare_dsm::Element;

/// Bytes of rows that are put together at a time.
const BLOCK: usize = 1 << 20;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Calls `visit` with all elements in row-major order, in runs of whole rows.
    pub(crate) fn for_each_run(
        &self,
        context: &Context<'_>,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        self.parts.iter().try_for_each(|partition| partition.ask(context.fabric.worker))?;
        if self.layout.dim == 0 {
            return (0..self.parts.len()).try_for_each(|part| {
                visit(&self.parts[part].read(context.fabric.worker)?[..self.window(part).len()])
            });
        }
        // Cut along another dimension: some rows at a time are put together.
        let row_bytes = self.shape[1..].iter().product::<usize>() * size_of::<T>();
        let rows = (BLOCK / row_bytes.max(1)).max(1);
        for start in (0..self.shape[0]).step_by(rows) {
            let block = Window::new(&self.shape, 0, &(start..self.shape[0].min(start + rows)));
            let mut rows = vec![T::zeroed(); block.len()];
            for (part, partition) in self.parts.iter().enumerate() {
                copy_box(&self.window(part), partition.read(context.fabric.worker)?, &block, &mut rows);
            }
            visit(&rows)?;
        }
        Ok(())
    }
}
