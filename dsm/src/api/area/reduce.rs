//! Aggregation: one result out of the areas of many writers, each worker reducing a share of it.
use super::handle::Area;
use super::owned::Owned;
use crate::api::worker::Worker;
use crate::engine::directory::spec::AreaSpec;
use crate::error::{Error, Rank, Result};
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use std::ops::Range;
use std::time::Duration;

/// How long members wait for each other's shares to be created.
const CREATION: Duration = Duration::from_secs(30);

/// Numbers that can be summed, averaged and compared across areas.
///
/// Integers wrap on overflow. Floating-point numbers follow IEEE 754: a NaN in any input makes the result
/// NaN, in sums, means and maxima alike; infinities are kept, and a sum of infinities of both signs is NaN.
/// Inputs are combined in their order, whichever worker does it, so results are the same bits for any
/// number of workers.
pub trait Number: Element {
    /// The sum of two.
    fn plus(self, other: Self) -> Self;
    /// The larger of two; NaN if either is.
    fn larger(self, other: Self) -> Self;
    /// A sum divided by how many were summed; integers round toward zero.
    fn divided(self, count: usize) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn divided(self, count: usize) -> Self {
                // A count beyond the type's range divides everything to zero.
                <$type>::try_from(count).map_or(0, |count| self / count)
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn larger(self, other: Self) -> Self {
                if self.is_nan() || self >= other { self } else { other }
            }
            fn divided(self, count: usize) -> Self {
                self / count as $type
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128);
floats!(f32, f64);

/// Combines areas of equal length into one result, cooperatively.
///
/// The members, workers of the job, make it together and run it together; each reduces its share of the
/// elements into an area of its own, so that every area keeps its one writer. A run is two rounds
/// ([`Worker::barrier`]): one that publishes the inputs, one that publishes the shares.
///
/// ```
/// use hectare_dsm::{Job, Reducer};
/// let job = Job::embedded()?;
/// let totals = job.run(3, |worker| {
///     let rank = worker.rank();
///     let mut mine = worker.create::<f64>(format!("gradient/{rank}"), 1000)?;
///     worker.barrier()?; // all have created theirs
///     let inputs = (0..3).map(|rank| worker.attach::<f64>(&format!("gradient/{rank}"))).collect::<Result<_, _>>()?;
///     let mut gradient = Reducer::new(worker, "gradient/sum", &[0, 1, 2], inputs)?;
///     mine.write(worker)?.fill(f64::from(rank + 1));
///     gradient.sum(worker)?;
///     gradient.get(worker, 999)
/// })?;
/// assert_eq!(totals.into_iter().collect::<Result<Vec<_>, _>>()?, [6.0, 6.0, 6.0]);
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Debug)]
pub struct Reducer<T: Element> {
    name: String,
    members: Vec<Rank>,
    inputs: Vec<Area<T>>,
    /// The members' shares of the result, in order; each covers `range(member)`.
    shares: Vec<Area<T>>,
    mine: Owned<T>,
    me: usize,
    len: usize,
    /// For `last_writer`: the inputs' elements in this member's share, as of the last run.
    seen: Vec<Vec<T>>,
}

impl<T: Element> Reducer<T> {
    /// Makes a reducer named `name` of `members`, each of which calls this with the same arguments and is in
    /// the list. Creates the area `{name}/{rank}` for this member's share.
    ///
    /// # Errors
    /// [`Error::InvalidArea`] if there are no inputs, their lengths differ, or this worker is not among the
    /// members or twice; those of [`Worker::create`]; [`Error::TimedOut`] if a member does not come within
    /// thirty seconds.
    pub fn new(
        worker: &mut Worker,
        name: &str,
        members: &[Rank],
        inputs: Vec<Area<T>>,
    ) -> Result<Reducer<T>> {
        let bad =
            |what: String| Error::InvalidArea { name: name.into(), what: format!("as a reducer: {what}") };
        let len = inputs.first().ok_or_else(|| bad("it has no inputs".into()))?.len();
        if let Some(other) = inputs.iter().find(|input| input.len() != len) {
            return Err(bad(format!(
                "its inputs have different lengths: {:?} has {} elements, {:?} has {len}",
                other.name(),
                other.len(),
                inputs[0].name()
            )));
        }
        let places: Vec<usize> =
            (0..members.len()).filter(|place| members[*place] == worker.rank()).collect();
        let [me] = places[..] else {
            return Err(bad(format!("worker {} must be among its members {members:?} once", worker.rank())));
        };
        let share = range(len, members.len(), me).len();
        let mine = worker.create::<T>(AreaSpec::new(format!("{name}/{}", worker.rank())), share)?;
        let shares = members
            .iter()
            .map(|rank| worker.attach_within(&format!("{name}/{rank}"), CREATION))
            .collect::<Result<Vec<Area<T>>>>()?;
        let seen = Vec::new();
        Ok(Reducer { name: name.into(), members: members.into(), inputs, shares, mine, me, len, seen })
    }

    /// Elements of the result.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the result has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Runs the reduction with a function of one's own: it fills `out`, this member's share of the result
    /// (which still holds the last run's), from the same elements of all inputs, in their order.
    ///
    /// Every member calls the same method the same number of times.
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] if a member died before it published its share; those of [`Worker::barrier`]
    /// and [`Area::read`].
    pub fn with(&mut self, worker: &mut Worker, mut fill: impl FnMut(&mut [T], &[&[T]])) -> Result<()> {
        worker.barrier()?;
        let range = self.range();
        {
            let views = self.views(worker, &range)?;
            let mut guard = self.mine.write(worker)?;
            fill(guard.as_mut_slice(), &views);
        }
        let before = self.versions(worker)?;
        worker.barrier()?;
        // A share that was not published is that of a member that died on the way. (One that has left the job
        // meanwhile published before it left.)
        let after = self.versions(worker)?;
        let missing = (0..self.shares.len())
            .find(|&place| after[place] == before[place] && !self.shares[place].is_empty());
        missing.map_or(Ok(()), |place| Err(Error::NoSuchWorker { rank: self.members[place] }))
    }

    fn versions(&self, worker: &Worker) -> Result<Vec<Version>> {
        self.shares.iter().map(|share| share.version(worker)).collect()
    }

    fn views<'w>(&self, worker: &'w Worker, range: &Range<usize>) -> Result<Vec<&'w [T]>> {
        self.inputs.iter().map(|input| Ok(&input.read(worker)?[range.clone()])).collect()
    }

    /// The elements of this member's share.
    pub fn range(&self) -> Range<usize> {
        range(self.len, self.members.len(), self.me)
    }

    /// For every element, the value of the input that changed it since the last run (since it was zero, in
    /// the first); of several, the one that comes last in the order of inputs. What nobody changed stays as
    /// the last run left it. A change is a difference in bytes.
    ///
    /// # Errors
    /// Those of [`Reducer::with`].
    pub fn last_writer(&mut self, worker: &mut Worker) -> Result<()> {
        let len = self.range().len();
        let mut seen = std::mem::take(&mut self.seen);
        if seen.is_empty() {
            seen = vec![vec![T::zeroed(); len]; self.inputs.len()];
        }
        let result = self.with(worker, |out, inputs| {
            for (input, seen) in inputs.iter().zip(&mut seen) {
                for ((out, now), before) in out.iter_mut().zip(*input).zip(seen) {
                    if bytemuck::bytes_of(now) != bytemuck::bytes_of(before) {
                        *out = *now;
                        *before = *now;
                    }
                }
            }
        });
        self.seen = seen;
        result
    }

    /// The result as slices, in order, with the index of each slice's first element. Borrowed from the
    /// worker, as every view.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn slices<'w>(&self, worker: &'w Worker) -> Result<Vec<(usize, &'w [T])>> {
        let count = self.members.len();
        let parts = self.shares.iter().enumerate();
        parts.map(|(place, share)| Ok((range(self.len, count, place).start, share.read(worker)?))).collect()
    }

    /// One element of the result.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], and those of [`Area::read`].
    pub fn get(&self, worker: &Worker, index: usize) -> Result<T> {
        for (start, slice) in self.slices(worker)? {
            if (start..start + slice.len()).contains(&index) {
                return Ok(slice[index - start]);
            }
        }
        Err(Error::OutOfRange { name: self.name.clone(), start: index, end: index + 1, len: self.len })
    }

    /// Copies the whole result to `out`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `out` is not as long as the result, and those of [`Area::read`].
    pub fn copy_to(&self, worker: &Worker, out: &mut [T]) -> Result<()> {
        if out.len() != self.len {
            return Err(Error::OutOfRange {
                name: self.name.clone(),
                start: 0,
                end: out.len(),
                len: self.len,
            });
        }
        for (start, slice) in self.slices(worker)? {
            out[start..start + slice.len()].copy_from_slice(slice);
        }
        Ok(())
    }
}

impl<T: Number> Reducer<T> {
    fn fold(
        &mut self,
        worker: &mut Worker,
        combine: impl Fn(T, T) -> T,
        finish: impl Fn(T) -> T,
    ) -> Result<()> {
        self.with(worker, |out, inputs| {
            out.copy_from_slice(inputs[0]);
            for input in &inputs[1..] {
                for (out, value) in out.iter_mut().zip(*input) {
                    *out = combine(*out, *value);
                }
            }
            out.iter_mut().for_each(|out| *out = finish(*out));
        })
    }

    /// The sum of the inputs.
    ///
    /// # Errors
    /// Those of [`Reducer::with`].
    pub fn sum(&mut self, worker: &mut Worker) -> Result<()> {
        self.fold(worker, T::plus, |sum| sum)
    }

    /// The mean of the inputs.
    ///
    /// # Errors
    /// Those of [`Reducer::with`].
    pub fn mean(&mut self, worker: &mut Worker) -> Result<()> {
        let count = self.inputs.len();
        self.fold(worker, T::plus, |sum| sum.divided(count))
    }

    /// The largest of the inputs; NaN where any of them is NaN.
    ///
    /// # Errors
    /// Those of [`Reducer::with`].
    pub fn max(&mut self, worker: &mut Worker) -> Result<()> {
        self.fold(worker, T::larger, |largest| largest)
    }
}

/// The elements of member `place` of `count`: as equal as can be.
fn range(len: usize, count: usize, place: usize) -> Range<usize> {
    let at = |place: usize| (len as u128 * place as u128 / count as u128) as usize;
    at(place)..at(place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for len in [0, 1, 7, 64, 1000] {
            for count in [1, 2, 3, 8, 13] {
                let mut next = 0;
                for place in 0..count {
                    let share = range(len, count, place);
                    assert_eq!(share.start, next);
                    next = share.end;
                }
                assert_eq!(next, len);
            }
        }
    }

    #[test]
    fn nan_and_infinities() {
        assert!(f32::NAN.larger(1.0).is_nan() && 1f32.larger(f32::NAN).is_nan());
        assert_eq!(f64::INFINITY.larger(3.0), f64::INFINITY);
        assert_eq!(3f64.larger(f64::NEG_INFINITY), 3.0);
        assert!(f64::INFINITY.plus(f64::NEG_INFINITY).is_nan());
        assert_eq!(200u8.plus(100), 44);
        assert_eq!((-7i32).divided(2), -3);
        assert_eq!(100i8.divided(1000), 0);
    }
}
