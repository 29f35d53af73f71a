//! The agent, which stands in for the workers of all other hosts in a job's memory on this host.
//!
//! It has no seat: no round waits for it, and it may die at any step. What it holds, pins of copies and areas in use, bears
//! its number and counts as long as it lives. All that it knows can be found again in the segment: the next agent begins by
//! looking at everything.
pub(crate) mod bell;
mod by_slot;
mod create;
mod dead;
mod departure;
pub(crate) mod describe;
mod desk;
pub(crate) mod expose;
pub(crate) mod force;
mod handover;
pub(crate) mod held;
pub(crate) mod lent;
pub(crate) mod news;
pub(crate) mod notes;
pub(crate) mod receive;
pub(crate) mod remote_clocks;

use self::bell::Bell;
use self::dead::Dead;
use self::desk::Desk;
use self::news::Known;
use crate::api::job::Job;
use crate::engine::directory::AreaId;
use crate::error::Result;
use crate::protocol::conflict::Conflict;
use crate::protocol::doorbell::RING;
use crate::protocol::word::{Phase, RoundWord};
use crate::segment::layout::Mark;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The stand-in for other hosts. There is one per job and host; it belongs to the thread that made it, which must not end
/// before it is dropped, as with a [`Worker`](crate::Worker).
///
/// It hears what changes here ([`Agent::look`], [`Agent::wait`]), holds published versions still to send them
/// ([`Agent::hold`]), and hands over what it receives from other hosts ([`Agent::create`], [`Agent::receive`]). Nobody ever
/// waits for it.
///
/// ```
/// use hectare_dsm::agent::Event;
/// use hectare_dsm::{AreaSpec, Job};
/// use std::time::Duration;
/// let job = Job::embedded()?;
/// let mut agent = job.agent()?;
/// let mut worker = job.worker()?;
/// let mut weights = worker.create::<u64>(AreaSpec::new("weights").copies(2), 100)?;
/// weights.write(&worker)?.fill(7);
/// worker.sync()?;
///
/// let mut events = Vec::new();
/// agent.wait(Duration::from_secs(1));
/// agent.look(&mut events);
/// let published = events.iter().find_map(|event| match event {
///     Event::Published { area, version, .. } if version.counter == 1 => Some((*area, *version)),
///     _ => None,
/// });
/// let (area, version) = published.expect("it was published");
/// let held = &agent.hold(&[area])?[0];
/// assert_eq!((held.version(), held.bytes().len()), (version, 800));
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Debug)]
pub struct Agent {
    desk: Rc<Desk>,
    /// Objections of other hosts to areas whose owners have not heard all earlier ones.
    untold: RefCell<Vec<(AreaId, Conflict)>>,
    /// The state of each slot that was reported last.
    known: Vec<Known>,
    /// Slots to look at again: what was found there is in the middle of a change.
    again: Vec<usize>,
    /// This host's part of the program has ended ([`Agent::leave_job`]).
    leaves: bool,
    /// The agent has cleaned up after dead workers: no worker of this host is left to do it.
    buried: bool,
    /// It has published what they had given to workers of other hosts.
    published_given: bool,
    /// The bell before the last look.
    heard: u32,
    /// The word of the rounds before the last look.
    round: RoundWord,
    /// The clocks that were told: those of this host, and of all.
    clocks: (u64, u64),
    /// The workers that were told to have failed, and to have left, 64 to a word, and the count of changes when they were.
    told_workers: Vec<(u64, u64)>,
    worker_changes: u32,
    told_deserted: bool,
    dead: Dead,
    /// Since when somebody stands still in a round that this agent began, and in which.
    stalled: Cell<Option<(u64, Instant)>>,
}

impl Job {
    /// Makes the calling thread the agent of the job on this host. What an agent before it held is given back; the first
    /// [`Agent::look`] tells of everything that is there.
    ///
    /// # Errors
    /// [`Error::AgentTaken`](crate::Error::AgentTaken) while there is another, [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn agent(&self) -> Result<Agent> {
        let desk = Rc::new(Desk::open(&self.shared)?);
        let heard = desk.doorbell().listen();
        let round = self.shared.segment.rounds().load();
        let untold = RefCell::default();
        let (known, again) = (Vec::new(), Vec::new());
        let (leaves, buried, published_given) = (false, false, false);
        let (clocks, told_workers, worker_changes) = ((0, 0), Vec::new(), 0);
        Ok(Agent {
            desk,
            untold,
            known,
            again,
            leaves,
            buried,
            published_given,
            heard,
            round,
            clocks,
            told_workers,
            worker_changes,
            told_deserted: false,
            dead: Dead::default(),
            stalled: Cell::new(None),
        })
    }
}

impl Agent {
    /// A bell on which another thread sleeps for this one, which waits for something else: as it was before the last look. The
    /// agent may wait for the end of a round which it found under way; with `in_round`, the caller found one, too.
    pub fn bell(&self, in_round: bool) -> Bell {
        let round = (in_round || !self.again.is_empty()).then_some(self.round.round());
        Bell { shared: self.desk.shared.clone(), heard: self.heard, round }
    }

    /// Whether a round is under way: workers have something to do.
    pub fn is_in_round(&self) -> bool {
        self.desk.shared.segment.rounds().load().phase() != Phase::Idle
    }

    /// How many agents the job has had on this host, with this one: higher than the number of any before it, whatever clocks do.
    pub fn number(&self) -> u64 {
        self.desk.number()
    }

    /// From now on, publications ring the bell only if they are of areas whose owners are on other hosts, or that are chosen
    /// ([`Agent::choose`]); clocks do in a job on several hosts. So a host whose areas nobody elsewhere wants does not wake its
    /// agent with every round. All else rings as before, and [`Agent::look`] tells of all that was published.
    pub fn ring_for_chosen(&self) {
        // Relaxed: who finds the old value rings in vain.
        self.desk.doorbell().chooses.store(1, Ordering::Relaxed);
    }

    /// Makes the bell ring when an area is published. What was published before is told by the next [`Agent::look`].
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// use std::time::Duration;
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (mut agent, mut worker) = (job.agent()?, job.worker()?);
    /// let mut owned = worker.create::<u64>("a", 9)?;
    /// agent.ring_for_chosen();
    /// agent.look(&mut Vec::new());
    /// owned.write(&worker)?.fill(1);
    /// worker.sync()?;
    /// assert!(!agent.bell(false).wait(Duration::ZERO));
    /// agent.choose(agent.find("a").expect("it was created"));
    /// agent.look(&mut Vec::new());
    /// owned.write(&worker)?.fill(2);
    /// worker.sync()?;
    /// assert!(agent.bell(false).wait(Duration::ZERO));
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    pub fn choose(&mut self, area: AreaId) {
        let (index, segment) = (area.index as usize, &self.desk.shared.segment);
        if index >= segment.used_areas() || Mark::new(&segment.marks()[index / 64].chosen, index).is_set() {
            return;
        }
        self.desk.doorbell().choose(&segment.marks()[index / 64].chosen, 1 << (index % 64));
        self.again.push(index);
        // As if it had rung: nobody sleeps before the next look.
        self.heard = self.heard.wrapping_sub(RING);
    }

    /// Gives back what agents before this one held. In a job on several hosts, their pins stay until then, so that this one can
    /// hold the same states again and go on sending them; in one on a single host, they ended when this one came.
    pub fn ready(&self) {
        self.desk.ready();
    }

    /// Sleeps until there may be news, at most `limit`. Returns at once if there were some since the last
    /// [`Agent::look`].
    pub fn wait(&mut self, limit: Duration) {
        self.bell(false).wait(limit);
    }
}
