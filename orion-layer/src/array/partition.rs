//! One partition of an array on one worker: an area that it holds, shows to all, or only knows.
use crate::contract::Layout;
use crate::error::Result;
use crate::fabric::attach_to_all;
use crate::fabric::shown::{self, Shown, read_shown};
use crate::view::Window;
use hectare_dsm::tasks::Runs;
use hectare_dsm::{Area, Asked, Cells, Element, Error, Opened, Owned, Rank, Recalled, Tracking, Worker};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a worker waits for a partition that its owner has made, and for what is in it.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The last stamp of a partition of this process: no two are the same.
static LAST_STAMP: AtomicU64 = AtomicU64::new(0);

/// The state of a partition on this worker.
#[derive(Debug)]
pub(crate) enum Hold<T: Element> {
    /// Another worker is responsible for it.
    Elsewhere,
    /// This worker owns it and lets everybody read it.
    Shown(Shown<T>),
    /// This worker owns it and lets everybody read and write it.
    Open(Opened<T>),
    /// This worker takes it back.
    Recalled(Recalled<T>),
    /// This worker writes it.
    Held(Owned<T>),
}

/// A partition.
#[derive(Debug)]
pub(crate) struct Partition<T: Element> {
    area: Area<T>,
    hold: Hold<T>,
    /// The question for what its owner's host has of it, since it was written last.
    asked: Cell<Option<Asked>>,
    /// That of before the pass which writes it.
    asked_before: Option<Asked>,
    /// On several hosts, a new number whenever its elements may have changed. A worker that does not hold the partition knows that from
    /// the calls alone, which all workers make together.
    stamp: u64,
    /// Whether workers of other hosts have to reach it.
    spans_hosts: bool,
    /// The runs of tasks over it that this worker has begun.
    runs: Runs,
    /// Whether it stays open to tasks between two runs, and all read it.
    rests_open: bool,
    /// On several hosts, whether its owner has lent it: workers of its host read it in place, and others are sent it when they ask.
    rests_lent: bool,
    /// Whether this worker was responsible for it when a pass failed.
    was_abandoned: bool,
}

impl<T: Element> Partition<T> {
    /// The area of a partition: on one host, no log and no reader copy. To other hosts it goes when it is given or asked for, without
    /// lines that are as they were: that takes a log.
    pub(crate) fn create<const N: usize>(
        worker: &mut Worker,
        name: &str,
        window: &Window<N>,
    ) -> Result<Owned<T>> {
        let row = if N > 1 { window.row_len() } else { 1 };
        let spans_hosts = shown::spans_hosts(worker);
        let spec = shown::spec(name, spans_hosts).row(row.max(1));
        let spec = if spans_hosts { spec.on_demand().tracking(Tracking::Logged) } else { spec };
        Ok(worker.create(spec, window.len())?)
    }

    /// All partitions of `layout`, those in `mine` as this worker holds them.
    pub(crate) fn attach_all(
        worker: &mut Worker,
        layout: &Layout,
        mine: Vec<(usize, Hold<T>)>,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<Partition<T>>> {
        let spans_hosts = shown::spans_hosts(worker);
        let mut mine = mine.into_iter().peekable();
        let names: Vec<_> =
            (0..layout.parts()).map(|part| (name(part), layout.owners[part] as usize)).collect();
        let areas = match attach_to_all(worker, "an array", &names, TIME_LIMIT) {
            Ok(areas) => areas,
            Err(error) => {
                // Their memory would be kept until the job ends. The error that came first counts.
                mine.for_each(|(_, hold)| drop(hold.delete(worker)));
                return Err(error);
            }
        };
        let mut parts = Vec::with_capacity(layout.parts());
        for (part, area) in areas.into_iter().enumerate() {
            let hold = mine.next_if(|(number, _)| *number == part).map_or(Hold::Elsewhere, |(_, hold)| hold);
            let runs = area.runs();
            let asked = Cell::new(None);
            let mut made = Partition {
                area,
                hold,
                asked,
                asked_before: None,
                stamp: 0,
                spans_hosts,
                runs,
                rests_open: false,
                rests_lent: false,
                was_abandoned: false,
            };
            made.restamp();
            parts.push(made);
        }
        Ok(parts)
    }

    /// Its elements, wherever it is shown or held.
    #[inline]
    pub(crate) fn read<'w>(&'w self, worker: &'w Worker) -> Result<&'w [T]> {
        match &self.hold {
            Hold::Held(owned) | Hold::Shown(Shown::Published(owned)) => Ok(owned.read(worker)?),
            _ if self.rests_open => Ok(self.area.read_between_runs(worker, &self.runs)?),
            Hold::Shown(Shown::Lent(_)) => read_shown(&self.area, worker, false),
            _ if self.spans_hosts => {
                self.ask(worker)?;
                let asked = self.asked.get().expect("just asked");
                match self.rests_lent && asked.is_here() {
                    true => read_shown(&self.area, worker, false),
                    false => Ok(self.area.read_asked(worker, asked, TIME_LIMIT)?),
                }
            }
            _ => read_shown(&self.area, worker, false),
        }
    }

    /// Asks the owner's host for its elements, if they may be other ones than those that are here; [`Partition::read`] waits for
    /// them. Who is to read several parts asks for all first.
    pub(crate) fn ask(&self, worker: &Worker) -> Result<()> {
        let reads = !matches!(self.hold, Hold::Held(_) | Hold::Shown(_));
        if self.spans_hosts && reads && self.asked.get().is_none() {
            self.asked.set(Some(self.area.ask(worker)?));
        }
        Ok(())
    }

    /// Its elements as they were before it was recalled, or later ones, while another worker writes it: of one that was read before
    /// that. Nothing is asked for, since what the owner publishes meanwhile could not come while another worker of this host reads.
    pub(crate) fn read_before<'w>(&'w self, worker: &'w Worker) -> Result<&'w [T]> {
        match self.asked_before {
            Some(asked) => Ok(self.area.read_asked(worker, asked, TIME_LIMIT)?),
            None => Err(self.not_held(worker).into()),
        }
    }

    /// Its elements may have changed.
    fn restamp(&mut self) {
        if self.spans_hosts {
            // Relaxed: no two are the same, and nothing else is said.
            self.stamp = LAST_STAMP.fetch_add(1, Ordering::Relaxed) + 1;
        }
    }

    /// While this number stays the same, on several hosts, so do the elements, whichever worker holds them.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Its elements, for writing; this worker must hold it.
    #[inline]
    pub(crate) fn write<'w>(&'w mut self, worker: &'w Worker) -> Result<&'w mut [T]> {
        self.restamp();
        if !self.is_held() {
            return Err(self.not_held(worker).into());
        }
        match &mut self.hold {
            Hold::Held(owned) => Ok(owned.write_whole(worker)?),
            _ => Ok(&mut []),
        }
    }

    #[cold]
    fn not_held(&self, worker: &Worker) -> Error {
        let owner = "held by another worker of the schedule".into();
        Error::NotOwner { name: self.area.name().into(), rank: worker.rank(), owner }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Held(_))
    }

    /// Takes it back from its readers, if this worker shows it, or from the tasks that it is open to.
    pub(crate) fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.asked_before = self.asked.take();
        self.rests_lent = false;
        self.restamp();
        if std::mem::take(&mut self.rests_open) {
            return self.close(worker);
        }
        if matches!(self.hold, Hold::Shown(_))
            && let Hold::Shown(shown) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = match shown {
                Shown::Lent(lent) => Hold::Recalled(lent.recall(worker)?),
                // Others read copies.
                Shown::Published(owned) => Hold::Held(owned),
            };
        }
        Ok(())
    }

    /// Ends a recall, after all workers have passed a synchronization point.
    pub(crate) fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        if matches!(self.hold, Hold::Recalled(_))
            && let Hold::Recalled(recalled) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = Hold::Held(recalled.finish(worker)?);
        }
        Ok(())
    }

    /// Lets everybody read it, if this worker holds it. Who does not asks for what it is by then, when it reads it.
    pub(crate) fn lend(&mut self, worker: &Worker) -> Result<()> {
        self.show(worker, self.spans_hosts)
    }

    /// The same. On several hosts, what others read is copied when they ask for it, and not before; so who takes it back waits for
    /// readers of its own host.
    pub(crate) fn lend_in_place(&mut self, worker: &Worker) -> Result<()> {
        self.rests_lent = self.spans_hosts;
        self.show(worker, false)
    }

    /// Whether it was lent so.
    pub(crate) fn rests_lent(&self) -> bool {
        self.rests_lent
    }

    fn show(&mut self, worker: &Worker, is_published: bool) -> Result<()> {
        self.asked.set(None);
        self.restamp();
        if matches!(self.hold, Hold::Held(_))
            && let Hold::Held(owned) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = Hold::Shown(Shown::new(owned, worker, is_published)?);
        }
        Ok(())
    }

    /// Changes its elements, if this worker owns it, on several hosts, where others read copies: who does asks for them when it reads
    /// it next.
    pub(crate) fn rewrite(&mut self, worker: &Worker, change: impl FnOnce(&mut [T])) -> Result<()> {
        self.asked.set(None);
        self.restamp();
        if let Hold::Shown(Shown::Published(owned)) = &mut self.hold {
            change(owned.write_whole(worker)?);
        }
        Ok(())
    }

    /// Whether others read copies of it: then it is not opened.
    pub(crate) fn is_published(&self) -> bool {
        self.spans_hosts
    }

    /// Lets everybody read and write it, if this worker holds it.
    pub(crate) fn open(&mut self, worker: &Worker) -> Result<()> {
        if matches!(self.hold, Hold::Held(_))
            && !self.is_published()
            && let Hold::Held(owned) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = Hold::Open(owned.open(worker).map_err(Error::from)?);
        }
        Ok(())
    }

    /// Lets the tasks of all workers read and write it, if this worker holds it.
    pub(crate) fn open_to_tasks(&mut self, worker: &mut Worker) -> Result<()> {
        if self.is_held() && self.spans_hosts {
            // Who reads it meanwhile reads what it was before.
            worker.sync_area(&self.area)?;
        }
        if matches!(self.hold, Hold::Held(_))
            && let Hold::Held(owned) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = Hold::Open(owned.open_to_tasks_published(worker).map_err(Error::from)?);
        }
        Ok(())
    }

    /// The runs of tasks over it that this worker has begun.
    pub(crate) fn runs(&mut self) -> &mut Runs {
        &mut self.runs
    }

    /// Leaves it open to tasks after a run that all have ended, on all workers: until it is recalled, all read it between two runs.
    pub(crate) fn leave_open(&mut self) {
        self.rests_open = true;
    }

    pub(crate) fn rests_open(&self) -> bool {
        self.rests_open
    }

    /// The area that it lies in.
    pub(crate) fn area(&self) -> &Area<T> {
        &self.area
    }

    /// Takes it back from all, if this worker opened it; to be ended by [`Partition::finish_recall`].
    pub(crate) fn close(&mut self, worker: &mut Worker) -> Result<()> {
        if matches!(self.hold, Hold::Open(_))
            && let Hold::Open(opened) = std::mem::replace(&mut self.hold, Hold::Elsewhere)
        {
            self.hold = Hold::Recalled(opened.close(worker)?);
        }
        Ok(())
    }

    /// Its elements, while it is open.
    pub(crate) fn cells<'w>(&self, worker: &'w Worker) -> Result<Cells<'w, T>> {
        Ok(self.area.cells(worker)?)
    }

    /// Waits until it is given to this worker, unless it holds it.
    #[inline]
    pub(crate) fn take(&mut self, worker: &mut Worker) -> Result<()> {
        if !self.is_held() {
            self.hold = Hold::Held(self.area.take(worker)?);
        }
        Ok(())
    }

    /// The same with a limit; false if it has not come by then.
    pub(crate) fn take_within(&mut self, worker: &mut Worker, limit: Duration) -> Result<bool> {
        if !self.is_held() {
            match self.area.take_within(worker, limit) {
                Ok(owned) => self.hold = Hold::Held(owned),
                Err(hectare_dsm::Error::TimedOut { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Leaves it to whoever acquires it first.
    #[inline]
    pub(crate) fn release(&mut self, worker: &Worker) -> Result<()> {
        match std::mem::replace(&mut self.hold, Hold::Elsewhere) {
            Hold::Held(owned) => Ok(owned.release(worker).map_err(Error::from)?),
            other => {
                self.hold = other;
                Err(self.not_held(worker).into())
            }
        }
    }

    /// Acquires it, unless this worker holds it; false if another has it.
    #[inline]
    pub(crate) fn acquire(&mut self, worker: &Worker) -> Result<bool> {
        if !self.is_held() {
            let Some(owned) = self.area.try_acquire(worker)? else { return Ok(false) };
            self.hold = Hold::Held(owned);
        }
        Ok(true)
    }

    /// Hands it to another worker.
    #[inline]
    pub(crate) fn give(&mut self, worker: &Worker, to: Rank) -> Result<()> {
        match std::mem::replace(&mut self.hold, Hold::Elsewhere) {
            Hold::Held(owned) => Ok(owned.give(worker, to).map_err(Error::from)?),
            other => {
                self.hold = other;
                Err(self.not_held(worker).into())
            }
        }
    }

    /// Lets go of it without showing it: whoever waits for it learns that it will not come.
    pub(crate) fn abandon(&mut self) {
        self.restamp();
        (self.rests_open, self.rests_lent) = (false, false);
        let hold = std::mem::replace(&mut self.hold, Hold::Elsewhere);
        self.was_abandoned |= !matches!(hold, Hold::Elsewhere);
    }

    /// Gives its memory back, if this worker is responsible for it.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.hold.delete(worker)
    }

    /// Gives the memory back of one that a failed pass has left behind: who let go of it takes it over again, or who was given it and has
    /// not taken it, or who comes first where it was left to that one.
    pub(crate) fn delete_left(self, worker: &mut Worker) -> Result<()> {
        let owned = match self.was_abandoned {
            true => worker.claim::<T>(self.area.name()).map(|claimed| Some(claimed.owned)),
            false => match self.area.try_take(worker) {
                Ok(None) => self.area.try_acquire(worker),
                taken => taken,
            },
        };
        match owned {
            Ok(Some(owned)) => Ok(owned.delete(worker)?),
            // Another worker has it, or was first.
            Ok(None) | Err(Error::Deleted { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<T: Element> Hold<T> {
    /// Gives the memory back, if this worker is responsible for it.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self {
            Hold::Held(owned) => owned.delete(worker)?,
            Hold::Shown(shown) => return shown.delete(worker),
            Hold::Open(opened) => opened.delete(worker)?,
            Hold::Recalled(recalled) => recalled.delete(worker)?,
            Hold::Elsewhere => {}
        }
        Ok(())
    }
}
