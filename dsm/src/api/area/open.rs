//! Opening: an owner lets all workers read and write its writer copy at once, by relaxed atomics or in tasks that were
//! checked, and closes it.
//!
//! The same protocol as lending: opening is one store, and after the owner has taken the area back it waits until
//! everybody has passed a synchronization point, where views end. See `SYNC.md`, "lending".
use super::cells::Cells;
use super::handle::Area;
use super::lend::Recalled;
use super::owned::{GiveError, Owned};
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::segment::element::Element;
use std::marker::PhantomData;
use std::sync::Arc;

/// An area that its owner has opened to all workers ([`Owned::open`]), or to their tasks ([`Owned::open_to_tasks`]).
///
/// Dropping it closes the area and makes it claimable ([`Worker::claim`]).
pub struct Opened<T: Element> {
    core: Arc<AreaCore>,
    rank: Rank,
    epoch: u64,
    to: OpenTo,
    element: PhantomData<(T, *const ())>,
}

/// Who may read and write an open area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenTo {
    /// Everybody, by atomics.
    All,
    /// Tasks that were checked.
    Tasks,
}

impl<T: Element> std::fmt::Debug for Opened<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.core.name)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<T: Element> Owned<T> {
    /// Opens the area to all workers: [`Area::cells`] lets each of them read and write its elements, all at once.
    /// For programs that do without order (HogWild!, Recht et al., 2011), and for words by which workers tell each
    /// other how far they are. Costs one atomic operation.
    ///
    /// ```
    /// # use hectare_dsm::{AreaSpec, Job};
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let weights = worker.create::<f32>(AreaSpec::new("weights").copies(0), 4)?;
    /// let (area, opened) = (weights.area(), weights.open(&worker)?);
    /// area.cells(&worker)?.set(2, 0.5);
    /// let weights = opened.close(&mut worker)?.finish(&mut worker)?;
    /// assert_eq!(weights.read(&worker)?, [0.0, 0.0, 0.5, 0.0]);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArea`] for an area that has reader copies: rounds would copy what others write. Those of
    /// [`Owned::write`]. The area comes back in the error.
    pub fn open(self, worker: &Worker) -> Result<Opened<T>, GiveError<T>> {
        self.open_to(worker, OpenTo::All)
    }

    /// Opens the area to the tasks of all workers ([`TaskRun`](crate::tasks::TaskRun)): each reads and writes, by plain loads
    /// and stores, the elements that its task names, and nobody anything else. For one run; then the area is closed, and
    /// opened again; or for several ([`TaskRun::begin_next`](crate::tasks::TaskRun::begin_next)).
    ///
    /// An area that is sent on demand ([`AreaSpec::on_demand`](crate::AreaSpec::on_demand)) may have reader copies, if all that was
    /// written to it is published ([`Worker::sync`], [`Owned::open_to_tasks_published`]): while it is open, these stay as they are, and
    /// what the tasks wrote is published after it was closed.
    ///
    /// # Errors
    /// Those of [`Owned::open`].
    pub fn open_to_tasks(self, worker: &Worker) -> Result<Opened<T>, GiveError<T>> {
        self.open_to(worker, OpenTo::Tasks)
    }

    /// The same, when all that was written to the area is published, which this has done: it waits for a reader copy that nobody has
    /// pinned.
    ///
    /// # Errors
    /// Those of [`Owned::open_to_tasks`] and of [`Worker::sync`]; [`Error::TimedOut`] if every reader copy is pinned for ten seconds. The
    /// area comes back in the error.
    pub fn open_to_tasks_published(self, worker: &mut Worker) -> Result<Opened<T>, GiveError<T>> {
        let checked = self.check(worker);
        let core = self.core();
        let is_written = core.layout.copies > 0 && core.log().dirty.is_set();
        let mut publish = || if is_written { worker.publish(core) } else { Ok(()) };
        if let Err(error) = checked.and_then(|()| publish()) {
            return Err(GiveError { error, owned: self });
        }
        self.open_to_tasks(worker)
    }

    /// Why it cannot be opened: rounds would copy what others write.
    fn why_not(&self, to: OpenTo) -> Option<String> {
        let core = self.core();
        let copies = core.layout.copies;
        let about = &core.slot().about;
        let is_on_demand = about.about().on_demand && core.layout.is_logged() && !about.is_automatic();
        match to {
            _ if copies == 0 => None,
            OpenTo::All => {
                Some(format!("opened to all writers, with {copies} reader copies: make it with `copies(0)`"))
            }
            OpenTo::Tasks if !is_on_demand => Some(format!(
                "opened to tasks, with {copies} reader copies: make it with `copies(0)`, or, for tasks on several hosts, with \
                 `on_demand()` and a log"
            )),
            // A round that looks it through would take for unlogged what tasks have written.
            OpenTo::Tasks if core.looked_through => Some(
                "opened to tasks, with reader copies, in a job whose writes are checked (`HECTARE_CHECK=1`, or `check` of the \
                 job): run it without that, or, on one host, make the area with `copies(0)`"
                    .into(),
            ),
            OpenTo::Tasks if core.log().dirty.is_set() => {
                Some("opened to tasks, with writes that are not published: `sync()` first".into())
            }
            OpenTo::Tasks => None,
        }
    }

    fn open_to(self, worker: &Worker, to: OpenTo) -> Result<Opened<T>, GiveError<T>> {
        let checked = self.check(worker).and_then(|()| match self.why_not(to) {
            None => Ok(()),
            Some(what) => Err(Error::InvalidArea { name: self.name().into(), what }),
        });
        if let Err(error) = checked {
            return Err(GiveError { error, owned: self });
        }
        self.scan();
        let core = self.core().clone();
        let (rank, epoch) = (worker.rank(), self.epoch());
        let own = &core.slot().own;
        let slept = match to {
            OpenTo::All => ownership::open(&own.ownership, &own.lent, rank, epoch),
            OpenTo::Tasks => {
                own.runs.reset(epoch);
                ownership::open_to_tasks(&own.ownership, &own.lent, rank, epoch)
            }
        };
        if slept {
            futex_wake_all(low_half(&own.ownership));
        }
        self.end();
        self.forget();
        Ok(Opened { core, rank, epoch, to, element: PhantomData })
    }
}

impl<T: Element> Opened<T> {
    /// The area.
    pub fn area(&self) -> Area<T> {
        Area::around(self.core.clone())
    }

    /// Refuses everybody from now on. The area is the owner's alone when those who had cells of it have passed a
    /// synchronization point: see [`Recalled::finish`].
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`]; the area stays open then.
    pub fn close(self, worker: &mut Worker) -> Result<Recalled<T>> {
        let change = match self.to {
            OpenTo::All => ownership::close,
            OpenTo::Tasks => ownership::close_to_tasks,
        };
        let recalled = Recalled::take_back(&self.core, self.rank, self.epoch, worker, change)?;
        Ok(recalled.of_others())
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

impl<T: Element> Drop for Opened<T> {
    fn drop(&mut self) {
        if self.core.is_there() {
            let word = &self.core.slot().own.ownership;
            let let_go = match self.to {
                OpenTo::All => ownership::let_go_open,
                OpenTo::Tasks => ownership::let_go_of_tasks,
            };
            if let_go(word, self.rank, self.epoch) {
                futex_wake_all(low_half(word));
            }
        }
    }
}

impl<T: Element> Area<T> {
    /// The elements of an area that its owner has opened ([`Owned::open`]), in place, for reading and writing while
    /// others do the same.
    ///
    /// # Errors
    /// [`Error::NotOpen`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn cells<'w>(&self, worker: &'w Worker) -> Result<Cells<'w, T>> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        let word = ownership::load_to_read(&self.core.slot().own.ownership);
        if !word.is_open() {
            return Err(Error::NotOpen { name: self.name().into(), owner: word.to_string() });
        }
        let start = self.core.parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`, as of every handle, for types are checked when areas are
        // attached. While it is open all access is through `Cells`; after it was closed or claimed the new owner
        // waits (`wait_for_readers`) until this worker has been at a synchronization point, which needs `&mut Worker`
        // and so ends the cells' lifetime, or is gone, see `Area::read_lent`. The mapping lives as long as the worker, which keeps the job.
        Ok(unsafe { Cells::new(start, self.core.len) })
    }
}
