//! Writing a dense array outside of loops. All calls are collective: every worker writes what it owns.
use super::DistArray;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::site::Site;
use crate::view::Window;
use crate::view::copy_box;
use hectare_dsm::Element;
use std::ops::Range;

impl<T: Element, const N: usize> DistArray<T, N> {
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
        let mut ranges = self.shape.map(|extent| 0..extent);
        ranges[0] = range;
        self.write_at(context, Site::here(), ranges, values)
    }

    /// Writes `values` to the elements with these indices, in row-major order. Collective: every worker passes
    /// the same.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let mut a = w.zeros::<i32, 2>([4, 3])?;
    ///     a.write_range(w, [1..3, 2..3], &[7, 8])?;
    ///     assert_eq!(a.to_vec(w)?, [0, 0, 0, 0, 0, 7, 0, 0, 8, 0, 0, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`DistArray::write`].
    #[track_caller]
    pub fn write_range(
        &mut self,
        context: &mut Context<'_>,
        ranges: [Range<usize>; N],
        values: &[T],
    ) -> Result<()> {
        self.write_at(context, Site::here(), ranges, values)
    }

    /// Writes one element. Collective: every worker passes the same. Costs four barriers; loops are for more.
    ///
    /// # Errors
    /// Those of [`DistArray::write`].
    #[track_caller]
    pub fn set(&mut self, context: &mut Context<'_>, index: [usize; N], value: T) -> Result<()> {
        let ranges = index.map(|at| at..at.saturating_add(1));
        self.write_at(context, Site::here(), ranges, &[value])
    }

    /// Writes one value to all elements. Collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn fill(&mut self, context: &mut Context<'_>, value: T) -> Result<()> {
        self.rewrite(context, Site::here(), |_, elements| elements.fill(value))
    }

    /// Changes each element by a function of its index, in place. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let mut a = w.fill([4], 1.5f32)?;
    ///     a.for_each_mut(w, |[i], element| *element *= i as f32)?;
    ///     assert_eq!(a.to_vec(w)?, [0.0, 1.5, 3.0, 4.5]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`DistArray::fill`].
    #[track_caller]
    pub fn for_each_mut(
        &mut self,
        context: &mut Context<'_>,
        mut change: impl FnMut([usize; N], &mut T),
    ) -> Result<()> {
        self.rewrite(context, Site::here(), |window, elements| {
            window.indices().zip(elements).for_each(|(index, element)| change(index, element));
        })
    }

    fn write_at(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        ranges: [Range<usize>; N],
        values: &[T],
    ) -> Result<()> {
        self.check_ranges(context, "writes", &ranges)?;
        let from = Window::of_box(&ranges);
        if values.len() != from.len() {
            let what = format!("{} values for the {} elements of {ranges:?}", values.len(), from.len());
            return Err(Error::Shape { array: self.name.clone(), what });
        }
        self.rewrite(context, site, |to, elements| copy_box(&from, values, to, elements))
    }

    /// Lets every worker change the parts that it owns, while nobody reads them.
    fn rewrite(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        mut change: impl FnMut(&Window<N>, &mut [T]),
    ) -> Result<()> {
        self.check()?;
        self.begin_writing(context, site)?;
        let worker = &mut *context.fabric.worker;
        for part in 0..self.parts.len() {
            let window = self.window(part);
            if self.parts[part].is_held() {
                change(&window, &mut self.parts[part].write(worker)?[..window.len()]);
            }
        }
        self.parts.iter_mut().try_for_each(|partition| partition.lend(worker))?;
        context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))
    }

    /// Takes back what this worker lent, once nobody reads it. Collective.
    fn begin_writing(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        // Whoever is not here yet may still read.
        context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
        let mut recalled = Ok(());
        for partition in self.partitions() {
            recalled = recalled.and_then(|()| partition.recall(context.fabric.worker));
        }
        context.agree_on(site, recalled)?;
        self.parts.iter_mut().try_for_each(|partition| partition.finish_recall(context.fabric.worker))
    }
}
