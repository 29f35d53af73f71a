//! Making dense arrays. All calls are collective.
use super::dense::DistArray;
use crate::context::{Context, Site};
use crate::error::{Error, Result};
use hectare_dsm::Element;

impl Context<'_> {
    /// An array of zeros. Collective.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Core`] when there is no memory, [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn zeros<T: Element, const N: usize>(&mut self, shape: [usize; N]) -> Result<DistArray<T, N>> {
        DistArray::make(self, Site::here(), shape, |_, _| Ok(()))
    }

    /// An array of one value. Collective.
    ///
    /// # Errors
    /// Those of [`Context::zeros`].
    #[track_caller]
    pub fn fill<T: Element, const N: usize>(
        &mut self,
        shape: [usize; N],
        value: T,
    ) -> Result<DistArray<T, N>> {
        DistArray::make(self, Site::here(), shape, |_, data| {
            data.fill(value);
            Ok(())
        })
    }

    /// An array whose elements are a function of their index. Collective.
    ///
    /// ```
    /// hectare_orion::run(3, |w| {
    ///     let a = w.from_fn([7, 2], |[i, j]| (10 * i + j) as u32)?;
    ///     assert_eq!(a.read(w)?[[6, 1]], 61);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::zeros`].
    #[track_caller]
    pub fn from_fn<T: Element, const N: usize>(
        &mut self,
        shape: [usize; N],
        value: impl Fn([usize; N]) -> T,
    ) -> Result<DistArray<T, N>> {
        DistArray::make(self, Site::here(), shape, |first, data| {
            for (number, element) in (first as usize..).zip(data) {
                *element = value(unflatten(&shape, number));
            }
            Ok(())
        })
    }

    /// An array of the elements of `values` in row-major order; every worker passes the same. Collective.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are too few or too many, and those of [`Context::zeros`].
    #[track_caller]
    pub fn from_slice<T: Element, const N: usize>(
        &mut self,
        shape: [usize; N],
        values: &[T],
    ) -> Result<DistArray<T, N>> {
        let site = Site::here();
        let asked = shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
        if asked != Some(values.len()) {
            let what = format!("{} values for the shape {shape:?}", values.len());
            return Err(Error::Shape { array: site.to_string(), what });
        }
        DistArray::make(self, site, shape, |first, data| {
            data.copy_from_slice(&values[first as usize..][..data.len()]);
            Ok(())
        })
    }
}

/// The index of element `number` in row-major order.
fn unflatten<const N: usize>(shape: &[usize; N], mut number: usize) -> [usize; N] {
    let mut index = [0; N];
    for dim in (0..N).rev() {
        index[dim] = number % shape[dim];
        number /= shape[dim];
    }
    index
}
