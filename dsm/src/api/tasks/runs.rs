//! Runs over an area that stays open to tasks, one after the other, and what can be read between them.
use super::part::{InPlace, Part, PastIn, incarnation};
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::protocol::tasks::Past;
use crate::segment::element::Element;

/// The runs over an area that one worker has begun since the area was opened to tasks
/// ([`Owned::open_to_tasks`](crate::Owned::open_to_tasks)): for [`TaskRun::begin_next`](super::run::TaskRun::begin_next) and
/// [`Area::read_between_runs`].
#[derive(Debug)]
pub struct Runs {
    area: InPlace,
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    past: PastIn,
    workers: u64,
    rank: Rank,
    /// That of the worker.
    incarnation: u32,
}

impl<T: Element> Area<T> {
    /// The runs over this area that this worker will begin.
    pub fn runs(&self) -> Runs {
        Runs { area: self.in_place(), last: None }
    }

    /// The elements of an area that is open to tasks, in place, when all workers have ended the last run of `runs`: what the tasks
    /// of that run and of those before it wrote. The area needs not be closed for that; whoever reads it begins no run meanwhile, and
    /// without this worker nobody does.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if it was closed or claimed since, [`Error::Tasks`] if this worker has begun no run, or a worker has not
    /// ended the last one; [`Error::Deleted`], [`Error::OtherJob`].
    #[inline]
    pub fn read_between_runs<'w>(&self, worker: &'w Worker, runs: &Runs) -> Result<&'w [T]> {
        let core = runs.area.core();
        // Handles of other jobs have the same numbers, and other elements.
        self.core.check_job(worker.shared())?;
        core.check_job(worker.shared())?;
        core.check_live()?;
        let slot = core.slot();
        let refuse = |what: &str| {
            let what = format!("area {:?} cannot be read between runs: {what}", self.name());
            Err(Error::Tasks { rank: worker.rank(), what })
        };
        let last = match runs.last {
            Some(last) if core.id == self.core.id => last,
            _ => return refuse("this worker has begun none over it"),
        };
        if last.rank != worker.rank() || last.incarnation != incarnation(worker.shared(), worker.rank()) {
            return refuse("another worker has begun them");
        }
        let (epoch, past) = last.past;
        // A holder that is gone, or has dropped it, leaves it in the same epoch; nobody writes it then before it is claimed.
        let word = ownership::load_to_read(&slot.own.ownership);
        if word.epoch() != epoch {
            return Err(Error::NotOpen { name: self.name().into(), owner: word.to_string() });
        }
        if !slot.own.runs.have_ended(epoch, past.runs, last.workers) {
            return refuse("a worker has not ended the last one");
        }
        let data = core.parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`. In the epoch of the runs it is written by their tasks only. All workers
        // have ended the last run that this worker has begun, which was acquired, and those before it; this worker is one of those
        // without which no task of the next one runs (`OpeningWords`, `TaskWords`), and it begins that by `&mut Worker`, which ends
        // the slice's lifetime. It cannot have begun it already: each time that it begins one goes into the only `Runs` that can
        // begin the next; with two of them it would have stood in the place of another worker, without which no task ran. Whoever
        // closes or claims the area has another epoch and waits (`wait_for_readers`) until this worker has been at a
        // synchronization point, as in `Area::read_lent`.
        Ok(unsafe { std::slice::from_raw_parts(data, core.len) })
    }
}

impl Runs {
    pub(super) fn area(&self) -> &InPlace {
        &self.area
    }

    /// Those that a worker has begun, if it is the one who did.
    pub(super) fn past(&self, worker: &Worker) -> Option<PastIn> {
        let (rank, incarnation) = (worker.rank(), incarnation(worker.shared(), worker.rank()));
        self.last.filter(|last| last.rank == rank && last.incarnation == incarnation).map(|last| last.past)
    }

    /// One more has begun, in which this is area number `at`.
    pub(super) fn add(&mut self, part: &Part, at: usize) {
        let epoch = part.areas()[at].epoch();
        let (workers, rank, incarnation) = (part.workers() as u64, part.rank(), part.incarnation());
        let is_before =
            |last: &Last| last.past.0 == epoch && last.rank == rank && last.incarnation == incarnation;
        let before = self.last.filter(is_before).map_or(0, |last| last.past.1.runs);
        let past = (epoch, Past { run: part.number(), runs: before + 1 });
        self.last = Some(Last { past, workers, rank, incarnation });
    }
}
