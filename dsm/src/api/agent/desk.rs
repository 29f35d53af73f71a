//! The areas in use by an agent, and the copies that it has pinned.
use super::by_slot::BySlot;
use crate::engine::directory::AreaId;
use crate::engine::runtime::{Local, Runtime};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::log::bitmap::Log;
use crate::memory::process;
use crate::memory::tenure::Tenure;
use crate::primitive::fault_point;
use crate::protocol::doorbell::Doorbell;
use crate::protocol::publication::Version;
use crate::protocol::record::CopyRecord;
use crate::protocol::{abandon, pin};
use crate::protocol::{arrival, ownership};
use crate::segment::layout::{AgentRecord, STALL_PIN};
use crate::segment::mapping::Segment;
use crate::segment::parts::Parts;
use crate::segment::pins::is_held;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a new agent looks, each a millisecond, for the place to be free: whoever asks whether a dead agent lives
/// (`pins::is_held`) has its mutex for a moment.
const LOOKS_FOR_PLACE: u32 = 100;

/// The longest wait for the end of an agent's process whose thread has ended.
const LONGEST_END: Duration = Duration::from_secs(2);

/// The source of the lines that are received of an area: lines of another source are no part of the same cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The term of the versions.
    pub term: u64,
    /// The sender, by a number that no other sender has.
    pub sender: u64,
}

/// The agent's use of one area.
#[derive(Debug, Default)]
struct Use {
    /// How often it is in use.
    count: usize,
    /// How often each copy that is pinned is.
    pins: HashMap<usize, usize>,
}

/// The agent as what it holds knows it: it is there as long as anything is held.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    number: u64,
    uses: RefCell<HashMap<AreaId, Use>>,
    /// The areas that are being received into.
    pub(super) receiving: RefCell<HashSet<AreaId>>,
    /// The areas whose writer copies devices may write.
    pub(super) exposed: RefCell<HashSet<AreaId>>,
    /// Of what source the lines are that are received of an area.
    pub(super) sources: RefCell<BySlot<Source>>,
    /// Areas that nobody reads in place, and nobody can, as nothing has arrived since that was found.
    unviewed: RefCell<BySlot<()>>,
    /// The labels of what was handed over and waits for the clocks here.
    pub(super) due_labels: RefCell<BTreeSet<u64>>,
    /// Room for what the agent does as whoever opens a round.
    pub(super) local: Local,
    /// Ends after all that the agent holds.
    _tenure: Tenure,
}

impl Desk {
    pub(super) fn open(shared: &Arc<Shared>) -> Result<Desk> {
        shared.check_process()?;
        let record = &shared.segment.header().agent;
        let tenure = Tenure::begin(shared.segment.canary)?;
        let mut looks = 0;
        while record.life.try_lock().is_none() {
            if looks == LOOKS_FOR_PLACE {
                return Err(Error::AgentTaken { pid: record.pid.load(Ordering::Relaxed) });
            }
            looks += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        if !is_ended(record) {
            let pid = record.pid.load(Ordering::Relaxed);
            record.life.unlock();
            return Err(Error::AgentTaken { pid });
        }
        let number = record.incarnations.load(Ordering::Relaxed) + 1;
        record.incarnations.store(number, Ordering::Relaxed);
        let pid = std::process::id();
        record.pid.store(pid, Ordering::Relaxed);
        record.namespace.store(process::namespace(), Ordering::Relaxed);
        record.started.store(process::start_time(pid), Ordering::Relaxed);
        fault_point();
        if !shared.segment.spans_hosts() {
            record.holding_from.store(number, Ordering::Relaxed);
        }
        shared.segment.doorbell().attach(number);
        let _tenure = tenure.is(format!("the agent of {}", shared.name()));
        let due_labels = RefCell::new(go_on(shared));
        let (uses, receiving, sources) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (unviewed, exposed) = (RefCell::default(), RefCell::default());
        let local = Local::new();
        Ok(Desk {
            shared: shared.clone(),
            number,
            uses,
            receiving,
            exposed,
            sources,
            unviewed,
            due_labels,
            local,
            _tenure,
        })
    }

    /// Of how many agents this is the last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The agent's hand on rounds: it opens them, and takes no part.
    pub(super) fn runtime(&self) -> Runtime<'_> {
        Runtime { shared: &self.shared, local: &self.local }
    }

    pub(super) fn doorbell(&self) -> Doorbell<'_> {
        self.shared.segment.doorbell()
    }

    /// Uses an area: it stays in memory until [`Desk::release`], though it may be deleted.
    ///
    /// # Errors
    /// [`Error::Deleted`].
    pub(super) fn hold(&self, area: AreaId) -> Result<()> {
        let gone = || Error::Deleted { name: format!("{area:?}") };
        let slot = self.shared.segment.areas().get(area.index as usize).ok_or_else(gone)?;
        let mut uses = self.uses.borrow_mut();
        let of_it = uses.entry(area).or_default();
        if of_it.count == 0 {
            // SeqCst: comes before the look at the state; pairs with `is_held` of whoever frees the area, after it was
            // deleted.
            slot.agent.used.store(self.number, Ordering::SeqCst);
            fault_point();
        }
        if !area.is_live(slot) {
            if of_it.count == 0 {
                uses.remove(&area);
                // Nothing was read. It may be used under another generation.
                if !uses.keys().any(|other| other.index == area.index) {
                    slot.agent.used.store(0, Ordering::Relaxed);
                }
            }
            return Err(gone());
        }
        of_it.count += 1;
        Ok(())
    }

    /// The agent's hand on the log of an area in use, whose owner is on another host.
    pub(super) fn log(&self, area: AreaId) -> Log<'_> {
        let (segment, index) = (&self.shared.segment, area.index as usize);
        let parts = Parts::of(segment, index);
        Log { level0: parts.level0(), level1: parts.level1(), dirty: segment.dirty(index) }
    }

    /// Whether a version of a received area is handed over to the rounds, and none that is past has published it.
    pub(super) fn awaits_round(&self, index: usize) -> bool {
        let segment = &self.shared.segment;
        let Some(arrived) = segment.areas()[index].agent.arrival.handed_over() else { return false };
        let round = Parts::of(segment, index).reader_copies().published(arrived.version);
        round.is_none_or(|round| !segment.rounds().load_total().is_past(round))
    }

    /// Whether nothing is handed over of an area in use that rounds may still be at: what was is published, and the round
    /// that did is past. Publication is repeatable, and clears the log. If so, it is taken back; then it is waited for those who
    /// read it in place.
    pub(super) fn may_receive(&self, area: AreaId) -> bool {
        let segment = &self.shared.segment;
        let line = &segment.areas()[area.index as usize].agent;
        if self.awaits_round(area.index as usize) {
            return false;
        }
        if line.arrival.handed_over().is_some() {
            line.arrival.reopen();
        }
        let mut unviewed = self.unviewed.borrow_mut();
        let is_over = unviewed.has(area) || line.viewed.is_over(&segment.rounds());
        if is_over {
            unviewed.insert(area, ());
        }
        is_over
    }

    /// Something arrives in an area, which workers may read in place from now on.
    pub(super) fn may_be_viewed(&self, area: AreaId) {
        self.unviewed.borrow_mut().remove(area);
    }

    /// Whether an area in use, whose newest version is `version`, is not one whose round has still to end before the agent may
    /// go on with it.
    pub(super) fn is_free_of(&self, area: AreaId, version: Option<Version>) -> bool {
        let handed_over = self.shared.segment.areas()[area.index as usize].agent.arrival.handed_over();
        handed_over.is_none_or(|arrived| version != Some(arrived.version)) || self.may_receive(area)
    }

    /// Has an arrival published: `now`, or when the area falls due, if it does.
    pub(super) fn ask_for(&self, index: usize, now: bool) {
        ask_for(&self.shared.segment, index, now);
    }

    /// Ends one use of an area.
    pub(super) fn release(&self, area: AreaId) {
        let mut uses = self.uses.borrow_mut();
        let Some(of_it) = uses.get_mut(&area) else { return };
        of_it.count -= 1;
        if of_it.count == 0 {
            uses.remove(&area);
            // Release: whoever finds this (`is_held`) gives the memory back after the agent has read it.
            self.shared.segment.areas()[area.index as usize].agent.used.store(0, Ordering::Release);
        }
    }

    /// Pins a copy of an area in use, if `is_current` says that it is what is looked for. `None` if a round is writing it.
    ///
    /// # Errors
    /// [`Error::NoSpareCopy`]: it would be the last copy that rounds can publish into.
    pub(super) fn pin(
        &self,
        area: AreaId,
        parts: &Parts<'_>,
        copy: usize,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Option<usize>> {
        let copies = parts.reader_copies();
        let mut uses = self.uses.borrow_mut();
        let pins = &mut uses.entry(area).or_default().pins;
        if let Some(count) = pins.get_mut(&copy) {
            *count += 1;
            return Ok(Some(copy));
        }
        // The holdings of a dead agent that this one has not let go yet.
        let is_left = |(index, record): &(usize, &CopyRecord)| {
            let holder = record.held.load(Ordering::Relaxed);
            *index != copy
                && holder != 0
                && holder != self.number
                && is_held(&self.shared.segment, &record.held)
        };
        let left = copies.records.iter().enumerate().filter(is_left).count();
        let present = copies.present();
        if pins.len() + left >= self.most_pins(present) {
            let name = crate::engine::directory::find::name(&self.shared.segment, area.index as usize);
            return Err(Error::NoSpareCopy { name, pinned: pins.len(), copies: present });
        }
        let record = &copies.records[copy];
        fault_point();
        if !pin::pin(&record.held, self.number, &record.state, is_current) {
            return Ok(None);
        }
        pins.insert(copy, 1);
        Ok(Some(copy))
    }

    /// Makes the holdings of earlier agents count no more.
    pub(super) fn ready(&self) {
        // Release: pairs with the acquire in `is_held`.
        self.shared.segment.header().agent.holding_from.store(self.number, Ordering::Release);
    }

    /// Asks for a round if `now`, and opens it if a worker of this host waits.
    pub(super) fn ask_for_round(&self, now: bool) {
        if now {
            self.shared.segment.header().sync.request();
            let runtime = self.runtime();
            self.shared.segment.remote_clocks().call(&runtime.rounds(), &runtime);
        }
    }

    /// Notes that an arrival of this label waits for the clocks here.
    pub(super) fn await_label(&self, label: u64) {
        self.due_labels.borrow_mut().insert(label);
    }

    /// How many of the `copies` of an area the agent may pin: rounds need one to publish into, and under `StallPolicy::Pin` one that
    /// is not the newest.
    fn most_pins(&self, copies: usize) -> usize {
        let spares_newest =
            copies >= abandon::COPIES && self.shared.segment.config().stall_policy == STALL_PIN;
        copies - 1 - usize::from(spares_newest)
    }

    /// Ends one pin of a copy.
    pub(super) fn unpin(&self, area: AreaId, copy: usize) {
        let mut uses = self.uses.borrow_mut();
        let Some(pins) = uses.get_mut(&area).map(|of_it| &mut of_it.pins) else { return };
        let Some(count) = pins.get_mut(&copy) else { return };
        *count -= 1;
        if *count == 0 {
            pins.remove(&copy);
            pin::unpin(&Parts::of(&self.shared.segment, area.index as usize).copies()[copy].held);
        }
    }
}

/// Whether nothing of the last agent is left. The kernel gives up the mutex of a process that is killed before the process is gone,
/// with the devices that it had open: until then, these may write memory that they were let write.
fn is_ended(record: &AgentRecord) -> bool {
    let (pid, started) = (record.pid.load(Ordering::Relaxed), record.started.load(Ordering::Relaxed));
    let is_known = started != 0 && record.namespace.load(Ordering::Relaxed) == process::namespace();
    !is_known || pid == std::process::id() || process::wait_for_end(pid, started, LONGEST_END)
}

fn ask_for(segment: &Segment, index: usize, now: bool) {
    if now || segment.areas()[index].about.interval_ns.load(Ordering::Relaxed) == 0 {
        arrival::ask(&segment.marks()[index / 64].forced, 1 << (index % 64));
    }
    fault_point();
}

/// Goes on where an agent may have died: takes back what it had not handed over whole, and asks for what it had. The labels of
/// that.
fn go_on(shared: &Shared) -> BTreeSet<u64> {
    let mut due = BTreeSet::new();
    let segment = &shared.segment;
    let complete = arrival::complete(&segment.header().agent.cuts);
    for (index, slot) in segment.areas()[..segment.used_areas()].iter().enumerate() {
        let is_live = AreaId::of(index, &slot.read.state).is_some();
        if is_live && slot.agent.conflicts.are_any() {
            // The agent may have died before it counted what it had told. Release: pairs with the acquire in `Heard::begin`.
            segment.header().agent.conflicts.fetch_add(1, Ordering::Release);
        }
        if !is_live || !ownership::load(&slot.own.ownership).is_remote() {
            continue;
        }
        slot.agent.arrival.forget_incomplete(complete);
        if let Some(arrived) = slot.agent.arrival.handed_over() {
            ask_for(segment, index, false);
            due.insert(arrived.label);
        }
    }
    due
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.shared.check_process().is_ok() {
            let record = &self.shared.segment.header().agent;
            self.doorbell().detach();
            record.started.store(0, Ordering::Relaxed);
            record.life.unlock();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Job;
    use std::process::Command;
    use std::time::Instant;

    /// As it is between the end of an agent's threads and that of its process, whose devices may write until then.
    #[test]
    fn an_agent_does_not_begin_before_the_process_of_the_last_has_ended() {
        let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
        drop(job.agent().unwrap());
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, started) = (child.id(), process::start_time(child.id()));
        let record = &job.shared.segment.header().agent;
        record.pid.store(pid, Ordering::Relaxed);
        record.started.store(started, Ordering::Relaxed);
        let refused = job.agent().map(drop);
        assert!(matches!(refused, Err(Error::AgentTaken { pid: of }) if of == pid), "{refused:?}");
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            child.kill().unwrap();
            // A zombie has no device open any more.
            (Instant::now(), child)
        });
        let agent = job.agent().unwrap();
        let (killed, mut child) = ends.join().unwrap();
        assert!(Instant::now() > killed);
        child.wait().unwrap();
        drop(agent);
        // Another process with that id is none of an agent.
        record.pid.store(1, Ordering::Relaxed);
        record.started.store(started, Ordering::Relaxed);
        assert!(process::start_time(1) != started);
        drop(job.agent().unwrap());
    }
}
