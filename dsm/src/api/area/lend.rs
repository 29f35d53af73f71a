//! Lending: an owner lets everybody read its writer copy in place, and takes it back.
//!
//! No copy, no round: lending is one store, reading a lent area is a load of the ownership word. To write
//! again the owner recalls the area; new readers are refused from then on, and those who hold a view of it
//! lose it at their next synchronization point, for a view borrows its worker. See `SYNC.md`, "lending".
use super::handle::Area;
use super::owned::{GiveError, Owned};
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::lock;
use crate::protocol::ownership;
use crate::segment::element::Element;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An area that its owner has lent to all workers for reading ([`Owned::lend`]).
///
/// Dropping it leaves the area lent, and makes it claimable ([`Worker::claim`]).
pub struct Lent<T: Element> {
    core: Arc<AreaCore>,
    rank: Rank,
    epoch: u64,
    element: PhantomData<(T, *const ())>,
}

/// An area that is being taken back from its readers ([`Lent::recall`]), or from all
/// ([`Opened::close`](crate::Opened::close)).
///
/// Dropping it makes the area claimable.
#[derive(Debug)]
pub struct Recalled<T: Element> {
    owned: Owned<T>,
    /// The round that was under way, or next, when the area was recalled.
    round: u64,
    /// Others may have written to it, of which its log knows nothing.
    is_of_others: bool,
}

impl<T: Element> std::fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lent")
            .field("name", &self.core.name)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<T: Element> Owned<T> {
    /// Lends the area to all workers for reading: [`Area::read_lent`] shows them what this worker wrote, in
    /// place, with or without reader copies. Costs one atomic operation.
    ///
    /// While it is lent, what was written before is published when another host asks for it ([`Area::ask`]), and not before: an area
    /// of which other hosts read little or nothing is not copied. If they asked for it since it was lent last, the next round publishes it.
    ///
    /// ```
    /// # use hectare_dsm::{AreaSpec, Job};
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let mut rows = worker.create::<f32>(AreaSpec::new("rows").copies(0), 4)?;
    /// rows.write(&worker)?.set(1, 2.0);
    /// let (area, lent) = (rows.area(), rows.lend(&worker)?);
    /// assert_eq!(area.read_lent(&worker)?, [0.0, 2.0, 0.0, 0.0]);
    /// let mut rows = lent.recall(&mut worker)?.finish(&mut worker)?;
    /// rows.write(&worker)?.set(1, 3.0);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Owned::write`]; the area comes back in the error.
    pub fn lend(self, worker: &Worker) -> Result<Lent<T>, GiveError<T>> {
        if let Err(error) = self.check(worker) {
            return Err(GiveError { error, owned: self });
        }
        self.scan();
        let core = self.core().clone();
        let (rank, epoch) = (worker.rank(), self.epoch());
        let own = &core.slot().own;
        if ownership::lend(&own.ownership, &own.lent, rank, epoch) {
            futex_wake_all(low_half(&own.ownership));
        }
        // Relaxed: whoever asks too late for this asks the agent, which publishes it then.
        let wanted = &core.slot().agent.wanted_lent;
        if wanted.load(Ordering::Relaxed) != 0 {
            wanted.store(0, Ordering::Relaxed);
            core.force();
        }
        self.end();
        self.forget();
        Ok(Lent { core, rank, epoch, element: PhantomData })
    }
}

impl<T: Element> Lent<T> {
    /// The area.
    pub fn area(&self) -> Area<T> {
        Area::around(self.core.clone())
    }

    /// Refuses readers from now on. The area can be written when those who read it have passed a
    /// synchronization point: see [`Recalled::finish`]. Waits while a round copies it for another host.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`]; the area stays
    /// lent then.
    pub fn recall(self, worker: &mut Worker) -> Result<Recalled<T>> {
        Recalled::take_back(&self.core, self.rank, self.epoch, worker, ownership::recall)
    }

    /// Deletes the area. See [`Job::delete`](crate::Job::delete).
    ///
    /// # Errors
    /// [`Error::OtherJob`], [`Error::Deleted`], [`Error::ForkedChild`].
    pub fn delete(self, worker: &mut Worker) -> Result<()> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        worker.delete(self.core.id)
    }
}

impl<T: Element> Drop for Lent<T> {
    fn drop(&mut self) {
        if self.core.is_there() {
            let word = &self.core.slot().own.ownership;
            if ownership::let_go_lent(word, self.rank, self.epoch) {
                futex_wake_all(low_half(word));
            }
        }
    }
}

impl<T: Element> Recalled<T> {
    /// Takes back the area that worker `rank` has lent or opened in `epoch`. `change` changes the word of the area, so
    /// that new views are refused; false if it says something else by now.
    pub(crate) fn take_back(
        core: &Arc<AreaCore>,
        rank: Rank,
        epoch: u64,
        worker: &Worker,
        change: fn(&AtomicU64, Rank, u64) -> bool,
    ) -> Result<Recalled<T>> {
        core.check_job(worker.shared())?;
        core.check_live()?;
        let (word, rounds) = (&core.slot().own.ownership, worker.shared().segment.rounds());
        let taken =
            if worker.rank() == rank { lock::take_back(word, &rounds, (rank, epoch), change) } else { None };
        let Some(round) = taken else {
            return Err(Error::NotOwner {
                name: core.name.clone(),
                rank: worker.rank(),
                owner: core.ownership().to_string(),
            });
        };
        if core.layout.copies > 0 {
            let runtime = worker.runtime();
            lock::wait_past(&core.slot().round.lock, &rounds, rank, &runtime);
        }
        Ok(Recalled { owned: Owned::begin(core, worker, epoch + 1), round, is_of_others: false })
    }

    /// The same, of an area that others have written.
    pub(super) fn of_others(self) -> Recalled<T> {
        Recalled { is_of_others: true, ..self }
    }

    /// The area, once every other worker has passed a synchronization point since the recall; until then
    /// this forces rounds. After a [`Worker::barrier`] it returns at once.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after ten seconds, naming those who did not come; [`Error::ForkedChild`]. The area
    /// is claimable then.
    pub fn finish(self, worker: &mut Worker) -> Result<Owned<T>> {
        worker.wait_for_readers(self.owned.core(), self.round)?;
        let core = self.owned.core();
        if self.is_of_others && core.layout.copies > 0 && core.len > 0 {
            core.log().mark(core.lines(0..core.len, size_of::<T>()));
        }
        Ok(self.owned)
    }

    /// The area, without waiting for its readers, and the round since which they have to pass a synchronization point
    /// ([`Worker::wait_for_readers`]).
    ///
    /// # Safety
    /// Nobody writes it before every other worker has passed one.
    pub(crate) unsafe fn without_waiting(self) -> (Owned<T>, u64) {
        (self.owned, self.round)
    }

    /// Deletes the area, without waiting for its readers: its memory is freed when they are gone.
    ///
    /// # Errors
    /// Those of [`Owned::delete`].
    pub fn delete(self, worker: &mut Worker) -> Result<()> {
        self.owned.delete(worker)
    }
}

impl<T: Element> Area<T> {
    /// The area as its owner wrote it before lending it ([`Owned::lend`]), in place.
    ///
    /// # Errors
    /// [`Error::NotLent`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn read_lent<'w>(&self, worker: &'w Worker) -> Result<&'w [T]> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        let word = ownership::load_to_read(&self.core.slot().own.ownership);
        if !word.is_lent() {
            return Err(Error::NotLent { name: self.name().into(), owner: word.to_string() });
        }
        let data = self.core.parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`. Nobody writes it while it is lent; after a recall
        // or a claim the new owner waits (`wait_for_readers`) until this worker has been at a synchronization
        // point, which needs `&mut Worker` and so ends the slice's lifetime, or is gone, which its thread's end does
        // not bring about before the process ends (`Tenure`). The mapping lives as long as the worker, which
        // keeps the job.
        Ok(unsafe { std::slice::from_raw_parts(data, self.core.len) })
    }
}

/// How long an owner waits for readers of an area that it recalled.
const TIME_LIMIT: Duration = Duration::from_secs(10);

impl Worker {
    /// Waits until every other worker has stood at a synchronization point in `round` or later: then none
    /// holds a view that it took before the caller saw `round`.
    pub(crate) fn wait_for_readers(&mut self, core: &AreaCore, round: u64) -> Result<()> {
        self.within(Some(TIME_LIMIT), |worker| worker.wait_for_late_readers(core, round))
    }

    fn wait_for_late_readers(&mut self, core: &AreaCore, round: u64) -> Result<()> {
        let since = Instant::now();
        loop {
            let late: Vec<Rank> = self.shared().segment.rounds().late_readers(self.rank(), round).collect();
            if late.is_empty() {
                return Ok(());
            }
            if since.elapsed() > TIME_LIMIT {
                return Err(Error::TimedOut {
                    what: format!("the readers of area {:?} to pass a synchronization point", core.name),
                    waited: since.elapsed(),
                    missing: format!("workers {late:?} have not"),
                });
            }
            core.check_live()?;
            self.sync()?;
        }
    }
}
