//! Reading a dense array outside of loops, on one worker alone.
use super::DistArray;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::view::Window;
use crate::view::copy_box;
use hectare_dsm::Element;
use std::ops::Range;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// One element. Not collective. [`DistArray::read`] gives a view, for more than a few.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let a = w.from_fn([4, 3], |[i, j]| (10 * i + j) as f32)?;
    ///     assert_eq!(a.get(w, [3, 2])?, 32.0);
    ///     assert!(a.get(w, [3, 3]).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] with the index if there is no such element, [`Error::Poisoned`], [`Error::Core`].
    pub fn get(&self, context: &Context<'_>, index: [usize; N]) -> Result<T> {
        self.check()?;
        for (part, partition) in self.parts.iter().enumerate() {
            if let Some(place) = self.window(part).place(index) {
                return Ok(partition.read(context.fabric.worker)?[place]);
            }
        }
        let what =
            format!("worker {} reads {index:?}, outside of the shape {:?}", context.rank(), self.shape);
        Err(Error::Shape { array: self.name.clone(), what })
    }

    /// The elements with these indices, in row-major order. Not collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let a = w.from_fn([4, 3], |[i, j]| 10 * i as u32 + j as u32)?;
    ///     assert_eq!(a.read_range(w, [1..3, 0..2])?, [10, 11, 20, 21]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] with the ranges if they are not in the shape, [`Error::Poisoned`], [`Error::Core`].
    pub fn read_range(&self, context: &Context<'_>, ranges: [Range<usize>; N]) -> Result<Vec<T>> {
        self.check()?;
        self.check_ranges(context, "reads", &ranges)?;
        let to = Window::of_box(&ranges);
        let mut elements = vec![T::zeroed(); to.len()];
        let meets = |(part, _): &(usize, _)| self.window(*part).meets(&to);
        let parts = || self.parts.iter().enumerate().filter(meets);
        parts().try_for_each(|(_, partition)| partition.ask(context.fabric.worker))?;
        for (part, partition) in parts() {
            copy_box(&self.window(part), partition.read(context.fabric.worker)?, &to, &mut elements);
        }
        Ok(elements)
    }

    /// All elements in row-major order. Not collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn to_vec(&self, context: &Context<'_>) -> Result<Vec<T>> {
        self.read_range(context, self.shape.map(|extent| 0..extent))
    }

    /// Calls `visit` with each element and its index, in row-major order. Not collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn for_each(&self, context: &Context<'_>, mut visit: impl FnMut([usize; N], T)) -> Result<()> {
        let mut indices = Window::of_box(&self.shape.map(|extent| 0..extent)).indices();
        self.for_each_run(context, |run| {
            run.iter().zip(&mut indices).for_each(|(element, index)| visit(index, *element));
            Ok(())
        })
    }

    /// Calls `visit` with each element that this worker owns at present, and its index. Not collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Core`].
    pub fn for_each_local(&self, context: &Context<'_>, mut visit: impl FnMut([usize; N], T)) -> Result<()> {
        self.check()?;
        for (part, partition) in self.parts.iter().enumerate() {
            if self.layout.owners[part] == context.rank() {
                let elements = partition.read(context.fabric.worker)?;
                let indices = self.window(part).indices();
                indices.zip(elements).for_each(|(index, element)| visit(index, *element));
            }
        }
        Ok(())
    }

    pub(super) fn check_ranges(
        &self,
        context: &Context<'_>,
        does: &str,
        ranges: &[Range<usize>; N],
    ) -> Result<()> {
        let inside = |dim: usize| ranges[dim].start <= ranges[dim].end && ranges[dim].end <= self.shape[dim];
        if (0..N).all(inside) {
            return Ok(());
        }
        let what =
            format!("worker {} {does} {ranges:?}, outside of the shape {:?}", context.rank(), self.shape);
        Err(Error::Shape { array: self.name.clone(), what })
    }
}
