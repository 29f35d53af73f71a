//! Areas of other hosts that are sent on demand: a worker asks, and reads what has come where it arrived, outside of rounds.
use super::handle::Area;
use super::observer::Observer;
use crate::api::worker::Worker;
use crate::engine::wait::{LOOKS, futex_wait, low_half};
use crate::error::{Error, Result};
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a worker waits for others that observe to end.
const OBSERVERS: Duration = Duration::from_secs(10);
/// The longest sleep before it is looked whether the job has ended.
const SLEEP: Duration = Duration::from_millis(16);

/// A question for what an area is on its owner's host ([`Area::ask`]).
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The number of the request; `None`: the owner is on this host.
    request: Option<u64>,
}

impl Asked {
    /// Whether the owner is on this host, so that nobody was asked. What it has lent is read in place then ([`Area::read_lent`]):
    /// it may be newer than what was published.
    pub fn is_here(&self) -> bool {
        self.request.is_none()
    }
}

impl<T: Element> Area<T> {
    /// Asks the owner's host for what it has published, if it is another one; what the owner has lent
    /// ([`Owned::lend`](crate::Owned::lend)) is published for that. Does not wait: [`Area::read_asked`] does. Several areas may be asked for
    /// before one is read.
    ///
    /// ```
    /// # use hectare_dsm::{AreaSpec, Job};
    /// # use std::time::Duration;
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let owned = worker.create::<u64>(AreaSpec::new("part").on_demand(), 8)?;
    /// let asked = owned.area().ask(&worker)?;
    /// assert_eq!(owned.area().read_asked(&worker, asked, Duration::from_secs(1))?[0], 0);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherJob`], [`Error::Deleted`], [`Error::ForkedChild`].
    pub fn ask(&self, worker: &Worker) -> Result<Asked> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        let request = self.core.ownership().is_remote().then(|| self.core.request());
        Ok(Asked { request })
    }

    /// The area as its owner's host had published it when `asked` came there, or later; waits for it. Takes part in no round, so
    /// that other views stay. The slice stays as it is until the worker's next synchronization point.
    ///
    /// Once a worker has read a state so, newer ones come only after its next synchronization point: if it asks again before that, and
    /// the owner has published since, it waits in vain until the limit.
    ///
    /// If a round has published that state without waiting for this worker, which was late, it is a copy of it.
    ///
    /// Of an area that is not sent on demand ([`AreaSpec::on_demand`](crate::AreaSpec::on_demand)), questions are answered by
    /// rounds, which this worker keeps waiting.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::PeerFailed`], those of [`Area::read`], and those of [`Observer::read`] where it is copied.
    pub fn read_asked<'w>(&self, worker: &'w Worker, asked: Asked, limit: Duration) -> Result<&'w [T]> {
        self.core.check_job(worker.shared())?;
        if let Some(request) = asked.request
            && self.core.answer_to(request).is_none()
        {
            self.await_answer(worker, request, limit)?;
        }
        let (seen, version) = (self.read(worker)?, self.version(worker)?);
        if let Some(arrived) = self.in_place_after(worker, version) {
            return Ok(arrived);
        }
        // After the look at what has arrived, which is taken back only when it is published: what was asked for is one or the other.
        // `None`: a round is publishing a version.
        let is_missed = || self.core.newest().is_none_or(|newest| newest > version);
        match asked.request.is_some() && is_missed() {
            true => self.copied(worker),
            false => Ok(seen),
        }
    }

    #[cold]
    fn await_answer(&self, worker: &Worker, request: u64, limit: Duration) -> Result<()> {
        let since = Instant::now();
        let answers = self.core.slot().agent.request.answers();
        loop {
            self.core.check_live()?;
            // Relaxed: a value to sleep on; what an answer stands for is ordered by `answer_to`.
            let seen = answers.load(Ordering::Relaxed);
            if self.core.answer_to(request).is_some() {
                break;
            }
            worker.shared().check_ending()?;
            if since.elapsed() >= limit {
                return Err(Error::TimedOut {
                    what: format!("the newest version of area {:?} on its owner's host", self.name()),
                    waited: since.elapsed(),
                    missing: format!(
                        "an answer; it is {}{}",
                        self.core.ownership(),
                        self.what_hinders(worker)
                    ),
                });
            }
            // The agent needs a processor.
            match since.elapsed() < LOOKS {
                true => std::thread::yield_now(),
                false => drop(futex_wait(low_half(answers), seen as u32, SLEEP)),
            }
        }
        Ok(())
    }

    /// For the time-out: that readers here keep a newer state from coming, if they do.
    fn what_hinders(&self, worker: &Worker) -> &'static str {
        match self.core.slot().agent.viewed.is_over(&worker.shared().segment.rounds()) {
            true => "",
            false => {
                "; what came last is read here: a newer state comes after the reader's next synchronization point"
            }
        }
    }

    /// The version that has arrived, in place, if it is newer than `seen`.
    fn in_place_after<'w>(&self, worker: &'w Worker, seen: Version) -> Option<&'w [T]> {
        let segment = &worker.shared().segment;
        let (line, cuts) = (&self.core.slot().agent, &segment.header().agent.cuts);
        line.viewed.begin(seen, &line.arrival, cuts, &segment.rounds())?;
        let data = self.core.parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`, of which any bytes are one. The version is complete (`complete` acquired
        // its lines), and rounds only read it. The agent writes it again, or hands it to an owner, when this worker has been at a
        // synchronization point since `begin` (`Desk::may_receive`), which needs `&mut Worker` and so ends the slice's lifetime, or is
        // gone, which its thread's end does not bring about before the process ends (`Tenure`). The mapping lives as long as
        // the worker, which keeps the job.
        Some(unsafe { std::slice::from_raw_parts(data, self.core.len) })
    }

    /// A copy of the newest version that is published here, by a round that did not wait for this worker: as that was not in the round,
    /// nothing keeps later rounds from writing there. It is copied while it is pinned, as an observer does.
    #[cold]
    fn copied<'w>(&self, worker: &'w Worker) -> Result<&'w [T]> {
        // While a round publishes one, no copy of before counts.
        let wanted = self.core.newest().unwrap_or(Version { term: u64::MAX, counter: u64::MAX });
        let place = worker.local().kept.find(self.core.id, wanted, || {
            let observer = self.observer(worker)?;
            let pinned = observer.read(self)?;
            Ok::<_, Error>((pinned.version(), Box::from(&pinned[..])))
        })?;
        // SAFETY: the worker lets go of its copies in `take_part`, which needs `&mut Worker` and so ends the slice's lifetime, or when
        // it is dropped.
        Ok(unsafe { &*place })
    }

    /// An observer, as soon as there is room for one.
    fn observer(&self, worker: &Worker) -> Result<Observer> {
        let since = Instant::now();
        loop {
            match Observer::register(worker.shared()) {
                Err(Error::TooManyObservers { .. }) if since.elapsed() < OBSERVERS => {
                    std::thread::sleep(SLEEP)
                }
                registered => return registered,
            }
        }
    }
}
