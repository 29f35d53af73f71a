//! One worker's part in a run over areas in place, whatever each of its tasks may touch: who is in the run, how far each is,
//! and who waits for whom.
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::directory::AreaId;
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::protocol::tasks::{Done, Past, TaskWords};
use crate::segment::element::Element;
use fnv::FnvHasher;
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An area that is open to tasks, of whatever elements ([`Area::in_place`]).
#[derive(Clone, Debug)]
pub struct InPlace {
    core: Arc<AreaCore>,
    epoch: u64,
}

impl<T: Element> Area<T> {
    /// The area, for [`TaskRun::begin`](super::run::TaskRun::begin) and [`RowRun::begin`](super::rows::RowRun::begin).
    pub fn in_place(&self) -> InPlace {
        InPlace { core: self.core.clone(), epoch: 0 }
    }
}

impl InPlace {
    pub(super) fn core(&self) -> &Arc<AreaCore> {
        &self.core
    }

    /// The epoch in which a run uses it.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn name(&self) -> &str {
        &self.core.name
    }

    /// This worker has ended a run over it, unless it was closed since: what has its slot by then may be in the same epoch.
    fn end(&self) {
        let own = &self.core.slot().own;
        // No round in which this worker takes part comes between this and the count, as its caller borrows the worker: the slot is not
        // given to another area meanwhile.
        if self.core.check_live().is_ok() && ownership::load_to_read(&own.ownership).epoch() == self.epoch {
            own.runs.end(self.epoch);
        }
    }

    /// Where its elements begin, if it still is open in the epoch of the run: until this worker's next synchronization point, as its
    /// memory is not given to another area before.
    pub(super) fn start(&self) -> Result<*mut u8> {
        let core = &self.core;
        core.check_live()?;
        let word = ownership::load_to_read(&core.slot().own.ownership);
        if !word.is_open_to_tasks() || word.epoch() != self.epoch {
            return Err(Error::NotOpen { name: core.name.clone(), owner: word.to_string() });
        }
        Ok(core.parts().writer())
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        self.core.len
    }

    pub(super) fn element_bytes(&self) -> usize {
        self.core.slot().about.about().element.size as usize
    }
}

/// The order of a run of tasks, whatever the tasks do.
pub(super) struct Order {
    /// It is of workers `0..workers`.
    pub(super) workers: usize,
    /// How many of them are on this host.
    pub(super) here: usize,
    /// The same for the same tasks, whatever they are.
    pub(super) digest: u64,
    /// Tasks of this worker.
    pub(super) tasks: u64,
    /// How many areas they use.
    pub(super) arrays: usize,
}

/// Of an area: an epoch, and the runs in that epoch that this worker has begun.
pub(super) type PastIn = (u64, Past);

/// See the head of the file.
#[derive(Debug)]
pub(super) struct Part {
    areas: Vec<InPlace>,
    /// By what areas they are called.
    named: Vec<AreaId>,
    shared: Arc<Shared>,
    rank: Rank,
    /// That of the worker: another may take the rank after it.
    incarnation: u32,
    /// The number of the run, which no other has.
    number: u64,
    done: u64,
    tasks: u64,
    /// Which workers were seen in the run, and by how many tasks.
    seen: RefCell<Vec<Option<u64>>>,
    /// Who has left the run before it had done what this worker waited for.
    lost: Cell<Option<Rank>>,
    /// Of all workers, when this one began.
    incarnations: Vec<u32>,
    /// Workers do not go to other threads.
    of_thread: PhantomData<*const ()>,
}

/// The words of a worker.
pub(super) fn words(shared: &Shared, rank: Rank) -> &TaskWords {
    &shared.segment.all_seats()[rank as usize].tasks
}

/// The error for a worker that does not begin, or is not there when others do.
pub(super) fn not_there(shared: &Shared, rank: Rank) -> Error {
    match incarnation(shared, rank) {
        // Nobody has had the rank yet.
        0 => Error::NoSuchWorker { rank },
        _ => Error::TaskLeft { rank },
    }
}

/// Which of those who had the rank one after the other has it.
pub(super) fn incarnation(shared: &Shared, rank: Rank) -> u32 {
    // Relaxed: a worker's own does not change while it lives.
    shared.segment.all_seats()[rank as usize].incarnation.load(Ordering::Relaxed)
}

impl Part {
    /// Begins; `past` says which runs of each area were begun before, and `misfit` what is wrong with the area of an array.
    pub(super) fn begin(
        worker: &Worker,
        order: &Order,
        areas: &[InPlace],
        past: impl Fn(usize) -> Option<PastIn>,
        misfit: impl Fn(usize, &InPlace) -> Option<String>,
    ) -> Result<Part> {
        Part::check_ended(worker, order, areas, &past)?;
        let begun = Part::begin_or_refuse(worker, order, areas, past, misfit);
        if begun.is_err() {
            // Those who have begun hear of it by `check_begun`.
            for area in areas {
                let core = &area.core;
                let own = &core.slot().own;
                if core.check_job(worker.shared()).is_ok()
                    && core.check_live().is_ok()
                    && ownership::load_to_read(&own.ownership).is_open_to_tasks()
                {
                    own.runs.refuse();
                }
            }
        }
        begun
    }

    /// Refuses a run before all workers have ended the last one. Nothing has changed then: it can be begun later.
    fn check_ended(
        worker: &Worker,
        order: &Order,
        areas: &[InPlace],
        past: &impl Fn(usize) -> Option<PastIn>,
    ) -> Result<()> {
        for (at, area) in areas.iter().enumerate() {
            let Some((epoch, past)) = past(at) else { continue };
            let core = &area.core;
            core.check_job(worker.shared())?;
            core.check_live()?;
            let own = &core.slot().own;
            let is_same = ownership::load_to_read(&own.ownership).epoch() == epoch;
            if is_same && !own.runs.have_ended(epoch, past.runs, order.here as u64) {
                let what = format!("a worker has not ended the last run over area {:?}", core.name);
                return Err(Error::Tasks { rank: worker.rank(), what });
            }
        }
        Ok(())
    }

    fn begin_or_refuse(
        worker: &Worker,
        order: &Order,
        areas: &[InPlace],
        past: impl Fn(usize) -> Option<PastIn>,
        misfit: impl Fn(usize, &InPlace) -> Option<String>,
    ) -> Result<Part> {
        let rank = worker.rank();
        let refuse = |what: String| Err(Error::Tasks { rank, what });
        let workers = order.workers;
        let shared = worker.shared();
        let seats = shared.segment.all_seats().len();
        if rank as usize >= workers || workers > seats {
            return refuse(format!("they are for workers 0 to {}", workers.saturating_sub(1)));
        }
        if areas.is_empty() || areas.len() != order.arrays {
            return refuse(format!(
                "they have {} arrays, and were given {} areas",
                order.arrays,
                areas.len()
            ));
        }
        let mut hash = FnvHasher::default();
        order.digest.hash(&mut hash);
        let mut areas = areas.to_vec();
        let mut pasts = Vec::with_capacity(areas.len());
        for (at, area) in areas.iter_mut().enumerate() {
            let core = &area.core;
            core.check_job(worker.shared())?;
            core.check_live()?;
            let word = ownership::load_to_read(&core.slot().own.ownership);
            if !word.is_open_to_tasks() {
                return Err(Error::NotOpen { name: core.name.clone(), owner: word.to_string() });
            }
            if let Some(what) = misfit(at, area) {
                return refuse(what);
            }
            area.epoch = word.epoch();
            let known =
                past(at).filter(|(epoch, _)| *epoch == area.epoch).map_or(Past::NONE, |(_, past)| past);
            (at, core.id.index, core.id.generation, area.epoch, known).hash(&mut hash);
            pasts.push(known);
        }
        if let Some(twice) =
            (1..areas.len()).find(|at| areas[..*at].iter().any(|a| a.core.id == areas[*at].core.id))
        {
            return refuse(format!("area {:?} stands for two arrays", areas[twice].core.name));
        }
        // Not 0, which is no run.
        let number = hash.finish().max(1);
        for (area, past) in areas.iter().zip(&pasts) {
            if !area.core.slot().own.runs.begin(area.epoch, *past, number, order.here as u64) {
                return refuse(format!(
                    "area {:?} is in a run of other tasks: all workers of a run describe the same tasks, and the area is closed and \
                     opened again for others",
                    area.core.name
                ));
            }
        }
        let own = words(shared, rank);
        if own.begin(number) {
            futex_wake_all(low_half(own.futex()));
        }
        if order.tasks == 0 {
            own.finish();
            areas.iter().for_each(InPlace::end);
        }
        let incarnations: Vec<u32> = (0..workers as Rank).map(|rank| incarnation(shared, rank)).collect();
        let (shared, incarnation) = (shared.clone(), incarnations[rank as usize]);
        let seen = RefCell::new(vec![None; workers]);
        let (tasks, of_thread) = (order.tasks, PhantomData);
        Ok(Part {
            named: areas.iter().map(|area| area.core.id).collect(),
            areas,
            shared,
            rank,
            incarnation,
            number,
            done: 0,
            tasks,
            seen,
            lost: Cell::new(None),
            incarnations,
            of_thread,
        })
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The number of the run.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// How many workers are in it.
    pub(super) fn workers(&self) -> usize {
        self.incarnations.len()
    }

    /// The areas, with their epochs.
    pub(super) fn areas(&self) -> &[InPlace] {
        &self.areas
    }

    /// The worker that has left the run before it had done what this one waited for.
    pub(super) fn lost(&self) -> Option<Rank> {
        self.lost.get()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How many tasks this worker has done.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// How many tasks this worker has in all.
    pub(super) fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Refuses a worker that did not begin the run, or that has begun another since.
    #[inline]
    pub(super) fn check(&self, worker: &Worker) -> Result<()> {
        if self.is_of(worker.shared(), worker.rank()) && words(&self.shared, self.rank).is_in(self.number) {
            return Ok(());
        }
        let what = "another worker has begun their run, or this one has begun another run since".into();
        Err(Error::Tasks { rank: worker.rank(), what })
    }

    #[inline]
    fn is_of(&self, shared: &Arc<Shared>, rank: Rank) -> bool {
        Arc::ptr_eq(&self.shared, shared)
            && rank == self.rank
            && incarnation(&self.shared, rank) == self.incarnation
    }

    /// Whether a worker has begun the run; it may have left it since.
    pub(super) fn has_begun(&self, rank: Rank) -> bool {
        words(&self.shared, rank).done_in(self.number) != Done::NotBegun
    }

    /// Refuses a run that not all have begun, or that somebody was refused, when all have met since they should have begun.
    pub(super) fn check_begun(&self, worker: &Worker) -> Result<()> {
        self.check(worker)?;
        let is_refused = |area: &&InPlace| area.core.slot().own.runs.is_refused();
        if let Some(area) = self.areas.iter().find(is_refused) {
            let what = format!("another worker has described other tasks over area {:?}", area.core.name);
            return Err(Error::Tasks { rank: worker.rank(), what });
        }
        // Those of other hosts have said so themselves.
        let is_missing = |rank: &Rank| self.shared.segment.host_of(*rank).is_none() && !self.has_begun(*rank);
        let missing = (0..self.incarnations.len() as Rank).find(is_missing);
        missing.map_or(Ok(()), |rank| Err(not_there(&self.shared, rank)))
    }

    /// The error for what a worker has not done.
    fn lose(&self, rank: Rank) -> Error {
        self.lost.set(Some(rank));
        Error::TaskLeft { rank }
    }

    /// Refuses to wait for a worker that is gone, or whose rank another has taken since this one began.
    pub(super) fn check_present(
        &self,
        worker: &Worker,
        rank: Rank,
        after: impl Iterator<Item = (Rank, u64)>,
    ) -> Result<()> {
        let shared = &self.shared;
        let is_gone = shared.is_gone(rank) || incarnation(shared, rank) != self.incarnations[rank as usize];
        // Who is gone may have done what is waited for before it left.
        match is_gone && self.behind(worker, after)? == Some(rank) {
            true => Err(self.lose(rank)),
            false => Ok(()),
        }
    }

    /// A worker that has tasks left to do before the next one here; `after` names workers, and how many tasks each must have
    /// done.
    #[inline]
    pub(super) fn behind(
        &self,
        worker: &Worker,
        after: impl Iterator<Item = (Rank, u64)>,
    ) -> Result<Option<Rank>> {
        self.check(worker)?;
        if self.done >= self.tasks {
            return Ok(None);
        }
        let mut seen = self.seen.borrow_mut();
        if self.done == 0 {
            // A run that not all have begun may be refused by one of them.
            for rank in 0..seen.len() {
                if !self.has_done(rank, 0, &mut seen)? {
                    return Ok(Some(rank as Rank));
                }
            }
        }
        for (rank, count) in after {
            if !self.has_done(rank as usize, count, &mut seen)? {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Waits until nobody is behind, and serves rounds meanwhile: spins, if there is a core for every worker, then sleeps.
    /// `look` is called every few milliseconds with whom is waited for, and `take_in` before each look at the others.
    pub(super) fn wait<E: From<Error>>(
        &self,
        worker: &mut Worker,
        after: impl Iterator<Item = (Rank, u64)> + Clone,
        mut look: impl FnMut(&Worker, Rank) -> Result<(), E>,
        mut take_in: impl FnMut(&mut Worker) -> Result<(), E>,
    ) -> Result<(), E> {
        for look in 0..worker.looks() {
            take_in(worker)?;
            if self.behind(worker, after.clone())?.is_none() {
                if look > 0 {
                    worker.spins().paid();
                }
                return Ok(());
            }
            worker.service()?;
            std::hint::spin_loop();
        }
        worker.forget_waiting();
        loop {
            take_in(worker)?;
            let Some(rank) = self.behind(worker, after.clone())? else { return Ok(()) };
            let theirs = words(&self.shared, rank);
            let word = theirs.expect_sleep();
            let waited = match self.behind(worker, after.clone()) {
                Ok(Some(other)) if other == rank => worker.wait_step(Some(word)).map(drop),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            theirs.end_sleep();
            waited?;
            look(worker, rank)?;
        }
    }

    #[inline]
    fn has_done(&self, rank: usize, count: u64, seen: &mut [Option<u64>]) -> Result<bool> {
        if seen[rank].is_some_and(|done| done >= count) {
            return Ok(true);
        }
        let done = match words(&self.shared, rank as Rank).done_in(self.number) {
            Done::Some(done) => done,
            Done::All => u64::MAX,
            // It leaves when it has nothing more to do, as far as this worker is concerned.
            Done::Left { done, .. } if done >= count => done,
            Done::NotBegun if seen[rank].is_none() => return Ok(false),
            Done::NotBegun => return Err(self.lose(rank as Rank)),
            Done::Left { because_of, .. } => return Err(self.lose(because_of.unwrap_or(rank as Rank))),
        };
        seen[rank] = Some(done);
        Ok(done >= count)
    }

    /// The task is done: others that come after it may begin. Not by a worker that has begun another run since, and so has
    /// left this one.
    pub(super) fn end_task(&mut self, worker: &Worker) -> Result<()> {
        self.check(worker)?;
        self.done += 1;
        let own = words(&self.shared, self.rank);
        let is_last = self.done == self.tasks;
        if own.advance(is_last) {
            futex_wake_all(low_half(own.futex()));
        }
        if is_last {
            self.areas.iter().for_each(InPlace::end);
        }
        Ok(())
    }

    /// The areas that the run was begun with, if some of them lie elsewhere than in these.
    pub(super) fn stand_for(&mut self, named: &[InPlace]) {
        self.named = named.iter().map(|area| area.core.id).collect();
    }

    /// Where the elements of the area that stands for an array begin, if it still is open in the epoch of the run.
    pub(super) fn start<T: Element>(&self, area: &Area<T>, array: usize) -> Result<*mut T> {
        // Handles of other jobs have the same numbers, and other elements.
        area.core.check_job(&self.shared)?;
        area.core.check_live()?;
        let is_named = self.named.get(array) == Some(&area.core.id);
        let Some(held) = self.areas.get(array).filter(|_| is_named) else {
            let what = format!("area {:?} is not array {array} of the run", area.name());
            return Err(Error::Tasks { rank: self.rank, what });
        };
        held.core.check_job(&self.shared)?;
        Ok(held.start()?.cast::<T>())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Whoever waits for tasks that were not done learns that they will not be. Not if the worker is gone, whose rank another
        // may have, nor in a forked child.
        if self.shared.check_process().is_ok() && incarnation(&self.shared, self.rank) == self.incarnation {
            words(&self.shared, self.rank).leave(self.number, self.lost.get());
        }
    }
}
