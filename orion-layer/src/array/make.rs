//! Making dense arrays. All calls are collective.
use super::dense::DistArray;
use super::shown;
use super::{SparseArray, Value};
use crate::checksum::checksum;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_data::entries::Entries;
use hectare_data::random::{Real, Stream};
use hectare_dsm::{Element, bytemuck};
use std::ops::Range;

impl Context<'_> {
    /// An array of zeros. Collective.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Core`] when there is no memory, [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn zeros<T: Element, const N: usize>(&mut self, shape: [usize; N]) -> Result<DistArray<T, N>> {
        let site = Site::here();
        self.with_arguments(site, of::<T, N>(shape), |w| DistArray::make(w, site, shape, |_, _| Ok(())))
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
        let (site, mut words) = (Site::here(), of::<T, N>(shape));
        words.push(format!("the value {}", shown::element(&value)));
        self.with_arguments(site, words, |w| {
            DistArray::make(w, site, shape, |_, data| {
                data.fill(value);
                Ok(())
            })
        })
    }

    /// An array whose elements are a function of their index. Every worker computes its share; while loops are checked
    /// ([`Context::check_loops`]), every worker computes all, and they are compared. Collective.
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
        let site = Site::here();
        self.with_arguments(site, of::<T, N>(shape), |w| {
            // A shape that cannot be is refused below.
            let count = shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
            let sum = |number| checksum(bytemuck::bytes_of(&value(unflatten(&shape, number))));
            w.check_values(site, count.unwrap_or(0), sum, |number| {
                let index = unflatten(&shape, number);
                format!("element {index:?} = {}", shown::element(&value(index)))
            })?;
            DistArray::make(w, site, shape, |first, data| {
                for (number, element) in (first as usize..).zip(data) {
                    *element = value(unflatten(&shape, number));
                }
                Ok(())
            })
        })
    }

    /// An array of the numbers of a range. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     assert_eq!(w.range(-2..3)?.to_vec(w)?, [-2, -1, 0, 1, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::zeros`].
    #[track_caller]
    pub fn range(&mut self, range: Range<i64>) -> Result<DistArray<i64, 1>> {
        let site = Site::here();
        let len = range.end.saturating_sub(range.start).max(0) as usize;
        self.with_arguments(site, vec![format!("the range {range:?}")], |w| {
            DistArray::make(w, site, [len], |first, data| {
                let place =
                    |(k, element): (usize, &mut i64)| *element = range.start + (first as i64 + k as i64);
                data.iter_mut().enumerate().for_each(place);
                Ok(())
            })
        })
    }

    /// An array of normally distributed numbers with mean 0 and standard deviation `sd`. They depend on `seed`,
    /// the program's seed and the index only. Collective.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `sd` is negative or not a finite number, and those of [`Context::zeros`].
    #[track_caller]
    pub fn normal<T: Element + Real, const N: usize>(
        &mut self,
        shape: [usize; N],
        sd: f64,
        seed: u64,
    ) -> Result<DistArray<T, N>> {
        let stream = Stream::new(self.seed(), "normal").child(seed);
        if !(sd.is_finite() && sd >= 0.0) {
            return Err(Error::Invalid(format!("a standard deviation of {sd}")));
        }
        let (site, mut words) = (Site::here(), of::<T, N>(shape));
        words.extend([format!("sd {sd}"), format!("seed {seed}"), format!("set_seed({})", self.seed())]);
        self.with_arguments(site, words, |w| {
            DistArray::make(w, site, shape, |first, data| {
                stream.fill_normal(data, first, sd);
                Ok(())
            })
        })
    }

    /// An array of uniformly distributed numbers from `range`, which depend on `seed`, the program's seed and the
    /// index only. Collective.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the range is empty or not finite, and those of [`Context::zeros`].
    #[track_caller]
    pub fn uniform<T: Element + Real + PartialOrd + std::fmt::Debug, const N: usize>(
        &mut self,
        shape: [usize; N],
        range: Range<T>,
        seed: u64,
    ) -> Result<DistArray<T, N>> {
        let stream = Stream::new(self.seed(), "uniform").child(seed);
        if !T::is_range(range.start, range.end) {
            return Err(Error::Invalid(format!("uniform numbers from the range {range:?}")));
        }
        let (site, mut words) = (Site::here(), of::<T, N>(shape));
        words.extend([
            format!("the range {range:?}"),
            format!("seed {seed}"),
            format!("set_seed({})", self.seed()),
        ]);
        self.with_arguments(site, words, |w| {
            DistArray::make(w, site, shape, |first, data| {
                stream.fill_uniform(data, first, range.start..range.end);
                Ok(())
            })
        })
    }

    /// A sparse array of `count` entries, of which entry `k` is `entry(k)`: every worker computes its share. The shape
    /// must contain all keys. While loops are checked ([`Context::check_loops`]), every worker computes all, and they are
    /// compared. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let diagonal = w.entries([100, 100], 100, |k| ([k, k], 1.0f32))?;
    ///     assert_eq!(diagonal.len(), 100);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a key outside of the shape, [`Error::Diverged`], [`Error::WorkerLost`],
    /// [`Error::Core`].
    #[track_caller]
    pub fn entries<T: Value, const N: usize>(
        &mut self,
        shape: [usize; N],
        count: usize,
        entry: impl Fn(usize) -> ([usize; N], T),
    ) -> Result<SparseArray<T, N>> {
        let site = Site::here();
        let (me, all) = (self.rank() as usize, self.size());
        let share = count * me / all..count * (me + 1) / all;
        let words = vec![format!("shape {shape:?}"), format!("{count} entries")];
        self.with_arguments(site, words, |w| {
            let sum = |number| {
                let (key, value) = entry(number);
                checksum(&[shown::encoded(&key.as_slice()), shown::encoded(&value)].concat())
            };
            w.check_values(site, count, sum, |number| {
                let (key, value) = entry(number);
                format!("entry {number} = {} at {key:?}", shown::value(&value))
            })?;
            let mine = Entries::new(shape).and_then(|mut mine| {
                share.map(&entry).try_for_each(|(key, value)| mine.push(key, value)).map(|()| mine)
            });
            let mine =
                mine.map_err(|error| Error::Shape { array: site.to_string(), what: error.to_string() });
            let mine = w.agree_on_same(site, mine)?;
            SparseArray::make(w, site, mine)
        })
    }

    /// An array of the elements of `values` in row-major order. Every worker passes the same values and takes its part;
    /// while loops are checked ([`Context::check_loops`]), the values are compared. Collective.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are too few or too many, [`Error::ValueMismatch`] if a check finds that a worker passes
    /// others than worker 0, and those of [`Context::zeros`].
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
        if self.checking {
            self.agree(checksum(bytemuck::cast_slice(values)))?;
        }
        self.with_arguments(site, of::<T, N>(shape), |w| {
            DistArray::make(w, site, shape, |first, data| {
                data.copy_from_slice(&values[first as usize..][..data.len()]);
                Ok(())
            })
        })
    }
}

/// The arguments of an array, which are the same on all workers.
fn of<T, const N: usize>(shape: [usize; N]) -> Vec<String> {
    vec![format!("shape {shape:?} of {}", std::any::type_name::<T>())]
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
