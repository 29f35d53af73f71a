//! Release: an owner leaves its area to whoever acquires it first. For work that goes to who is free, and not to somebody
//! who was chosen beforehand.
use super::handle::Area;
use super::owned::{GiveError, Owned};
use crate::api::worker::Worker;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Result};
use crate::protocol::ownership;
use crate::segment::element::Element;

impl<T: Element> Owned<T> {
    /// Leaves the area to whoever is the first to acquire it ([`Area::try_acquire`]): one atomic exchange, no copy. Until
    /// then nobody owns it, and it cannot be lost by a death. It can be claimed ([`Worker::claim`]), too.
    ///
    /// ```
    /// # use hectare_dsm::{AreaSpec, Job};
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let mut part = worker.create::<f32>(AreaSpec::new("part").copies(0), 4)?;
    /// part.write(&worker)?.set(1, 0.5);
    /// let area = part.area();
    /// part.release(&worker)?;
    /// let part = area.try_acquire(&worker)?.expect("nobody else is here");
    /// assert_eq!(part.read(&worker)?[1], 0.5);
    /// assert!(area.try_acquire(&worker)?.is_none());
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArea`] for an area that has reader copies, which rounds publish for its owner, and in a job on several
    /// hosts; those of [`Owned::write`]. The area comes back in the error.
    #[inline]
    pub fn release(self, worker: &Worker) -> Result<(), GiveError<T>> {
        if let Err(error) = self.check(worker).and_then(|()| self.check_leavable(worker)) {
            return Err(GiveError { error, owned: self });
        }
        let Some(asleep) = self.leave_hand(ownership::release) else {
            let error = self.stale(worker);
            return Err(GiveError { error, owned: self });
        };
        if asleep {
            futex_wake_all(low_half(&self.core().slot().own.ownership));
        }
        self.end();
        self.forget();
        Ok(())
    }

    #[inline]
    fn check_leavable(&self, worker: &Worker) -> Result<()> {
        let refused = |why: &str| {
            let what = format!("released, {why}");
            Err(Error::InvalidArea { name: self.name().into(), what })
        };
        match self.core().layout.copies {
            _ if worker.shared().segment.spans_hosts() => {
                refused("in a job on several hosts: give it to a worker")
            }
            0 => Ok(()),
            _ => refused("with reader copies: make it with `copies(0)`"),
        }
    }
}

impl<T: Element> Area<T> {
    /// Picks the area up, if its owner has laid it down ([`Owned::release`]) and nobody was faster. Does not wait.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn try_acquire(&self, worker: &Worker) -> Result<Option<Owned<T>>> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        let epoch = ownership::acquire(&self.core.slot().own.ownership, worker.rank());
        Ok(epoch.map(|epoch| Owned::begin(&self.core, worker, epoch)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{AreaSpec, Error, Job};
    use std::sync::atomic::{AtomicU64, Ordering};

    fn spec(name: &str) -> AreaSpec {
        AreaSpec::new(name).copies(0)
    }

    /// Workers that acquire one area again and again, and change it: no change is lost.
    #[test]
    fn one_worker_at_a_time_has_what_is_released() {
        const TURNS: u64 = 2000;
        let job = Job::builder().reserve(1 << 24).embedded().unwrap();
        let turns = AtomicU64::new(0);
        job.run(4, |worker| {
            if worker.rank() == 0 {
                worker.create::<u64>(spec("part"), 3).unwrap().release(worker).unwrap();
            }
            worker.barrier().unwrap();
            let area = worker.attach::<u64>("part").unwrap();
            while turns.load(Ordering::Relaxed) < TURNS {
                let Some(mut part) = area.try_acquire(worker).unwrap() else {
                    std::thread::yield_now();
                    continue;
                };
                for word in part.write_whole(worker).unwrap() {
                    *word += 1;
                }
                turns.fetch_add(1, Ordering::Relaxed);
                part.release(worker).unwrap();
            }
            worker.barrier().unwrap();
            if worker.rank() == 3 {
                let part = area.try_acquire(worker).unwrap().unwrap();
                assert_eq!(part.read(worker).unwrap(), [turns.load(Ordering::Relaxed); 3]);
                assert_eq!(part.epoch(), 2 * turns.load(Ordering::Relaxed) + 3);
            }
        })
        .unwrap();
    }

    #[test]
    fn what_is_released_belongs_to_nobody_and_may_be_claimed() {
        let job = Job::builder().reserve(1 << 24).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let mut part = worker.create::<u64>(spec("part"), 1).unwrap();
        part.write(&worker).unwrap().set(0, 7);
        let area = part.area();
        assert!(area.try_acquire(&worker).unwrap().is_none());
        part.release(&worker).unwrap();
        assert_eq!(job.areas().unwrap()[0].owner, None);
        assert!(matches!(area.take(&mut worker), Err(Error::OwnerGone { .. })));
        let claimed = worker.claim::<u64>("part").unwrap();
        assert_eq!(claimed.owned.read(&worker).unwrap(), [7]);
        assert!(!claimed.loss.lost_writers.contains(&0xf_ffff), "{:?}", claimed.loss);
        assert!(area.try_acquire(&worker).unwrap().is_none());
    }

    #[test]
    fn an_area_with_reader_copies_is_refused_and_comes_back() {
        let job = Job::builder().reserve(1 << 24).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let part = worker.create::<u64>("published", 1).unwrap();
        let refused = part.release(&worker).unwrap_err();
        assert!(refused.error.to_string().contains("with reader copies"), "{}", refused.error);
        refused.owned.read(&worker).unwrap();
    }
}
