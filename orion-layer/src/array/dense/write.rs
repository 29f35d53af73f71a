//! Writing a dense array outside of loops. All calls are collective: every worker writes what it owns.
use super::DistArray;
use crate::array::partition::Partition;
use crate::array::shown;
use crate::checksum::checksum;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::site::Site;
use crate::view::Window;
use crate::view::copy_box;
use hectare_dsm::{Element, bytemuck};
use std::ops::Range;

/// Values of at most this many bytes are always compared: that costs less than a barrier.
const COMPARED: usize = 4096;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Writes `values` to the elements whose index in dimension 0 lies in `range`, in row-major order.
    /// Collective: every worker passes the same. The range is compared, and the values if they have up to 4 KiB or loops are
    /// checked ([`Context::check_loops`]): of more, each worker reads only what it owns.
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
    /// [`Error::Diverged`] if workers pass different ranges or values, [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn write(&mut self, context: &mut Context<'_>, range: Range<usize>, values: &[T]) -> Result<()> {
        let mut ranges = self.shape.map(|extent| 0..extent);
        ranges[0] = range;
        self.write_range(context, ranges, values)
    }

    /// Writes `values` to the elements with these indices, in row-major order. Collective: every worker passes
    /// the same, which is compared as by [`DistArray::write`].
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
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut words = vec![format!("the range {ranges:?}"), format!("{} values", values.len())];
        if bytes.len() <= COMPARED || context.checking {
            words.push(format!("values of the checksum {:016x}", checksum(bytes)));
        }
        self.write_at(context, Site::here(), ranges, values, words)
    }

    /// Writes one element. Collective: every worker passes the same, which is compared. Costs four barriers; loops are for more.
    ///
    /// # Errors
    /// Those of [`DistArray::write`].
    #[track_caller]
    pub fn set(&mut self, context: &mut Context<'_>, index: [usize; N], value: T) -> Result<()> {
        let ranges = index.map(|at| at..at.saturating_add(1));
        let words = vec![format!("element {index:?} = {}", shown::element(&value))];
        self.write_at(context, Site::here(), ranges, &[value], words)
    }

    /// Writes one value to all elements. Collective: every worker passes the same, which is compared.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Diverged`] if workers pass different values, [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn fill(&mut self, context: &mut Context<'_>, value: T) -> Result<()> {
        let words = vec![format!("the value {}", shown::element(&value))];
        self.rewrite(context, Site::here(), words, |_, elements| elements.fill(value))
    }

    /// Changes each element by a function of its index, in place. Collective. Every worker calls the function for the
    /// elements that it owns, and nothing that the function does is compared.
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
        self.rewrite(context, Site::here(), Vec::new(), |window, elements| {
            window.indices().zip(elements).for_each(|(index, element)| change(index, element));
        })
    }

    fn write_at(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        ranges: [Range<usize>; N],
        values: &[T],
        words: Vec<String>,
    ) -> Result<()> {
        self.check_ranges(context, "writes", &ranges)?;
        let from = Window::of_box(&ranges);
        if values.len() != from.len() {
            let what = format!("{} values for the {} elements of {ranges:?}", values.len(), from.len());
            return Err(Error::Shape { array: self.name.clone(), what });
        }
        self.rewrite(context, site, words, |to, elements| copy_box(&from, values, to, elements))
    }

    /// Lets every worker change the parts that it owns, while nobody reads them. `words`: what all pass alike.
    fn rewrite(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        mut words: Vec<String>,
        mut change: impl FnMut(&Window<N>, &mut [T]),
    ) -> Result<()> {
        self.check()?;
        words.push(format!("array {}", self.number));
        context.with_arguments(site, words, |context| {
            self.begin_writing(context, site)?;
            let worker = &mut *context.fabric.worker;
            for part in 0..self.parts.len() {
                let window = self.window(part);
                if self.parts[part].is_held() {
                    change(&window, &mut self.parts[part].write(worker)?[..window.len()]);
                }
            }
            self.lend_all(worker)?;
            context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))
        })
    }

    /// Has parts published that were lent in place. Collective.
    pub(crate) fn publish_lent(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        if !self.rests_lent() {
            return Ok(());
        }
        self.published_anew += 1;
        self.begin_writing(context, site)?;
        self.lend_all(context.fabric.worker)?;
        context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))
    }

    /// Whether parts were lent in place on several hosts; the same on every worker.
    pub(crate) fn rests_lent(&self) -> bool {
        self.parts.iter().any(Partition::rests_lent)
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
