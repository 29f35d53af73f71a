//! The agent: who stands in, in a job on this host, for everybody on other hosts.
//!
//! It has no seat: no round waits for it, and it may die at any step. What it holds, pins of copies and areas in use, bears
//! its number and counts as long as it lives. What it knows, it can find again in the segment: the next agent begins by
//! looking at everything.
pub(crate) mod bell;
mod create;
pub(crate) mod describe;
mod desk;
pub(crate) mod elsewhere;
pub(crate) mod held;
pub(crate) mod news;
pub(crate) mod notes;
pub(crate) mod receive;

use self::desk::Desk;
use self::news::Known;
use crate::api::job::Job;
use crate::engine::wait::{futex_wait, futex_wait_either, low_half};
use crate::error::Result;
use crate::protocol::word::{SLEEP, Word};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest sleep while a round is under way whose end the agent waits for.
const SHORT: Duration = Duration::from_millis(16);

/// Who stands in for other hosts. There is one per job and host; it belongs to the thread that made it, which must not end
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
    /// What was told of each slot.
    known: Vec<Known>,
    /// Slots to look at again: what was found there is in the middle of a change.
    again: Vec<usize>,
    /// The bell before the last look.
    heard: u32,
    /// The clocks that were told: those of this host, and of all.
    clocks: (u64, u64),
}

impl Job {
    /// Makes the calling thread the agent of the job on this host. What an agent before it held is given back; the first
    /// [`Agent::look`] tells of everything that is there.
    ///
    /// # Errors
    /// [`Error::AgentTaken`](crate::Error::AgentTaken) while there is another, [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn agent(&self) -> Result<Agent> {
        let desk = Rc::new(Desk::open(&self.shared)?);
        let heard = desk.outlet().listen();
        Ok(Agent { desk, known: Vec::new(), again: Vec::new(), heard, clocks: (0, 0) })
    }
}

impl Agent {
    /// What another thread sleeps on for this one, which waits for something else: the bell as it was before the last look.
    pub fn bell(&self) -> bell::Bell {
        bell::Bell { shared: self.desk.shared.clone(), heard: self.heard }
    }

    /// Whether to look again soon: a round is under way whose end the agent waits for, and that rings no bell.
    pub fn is_in_round(&self) -> bool {
        !self.again.is_empty()
    }

    /// Gives back what agents before this one held. In a job on several hosts, their pins stay until then, so that this one can
    /// hold the same states again and go on sending them; in one on a single host, they ended when this one came.
    pub fn ready(&self) {
        self.desk.ready();
    }

    /// Sleeps until there may be news, at most `limit`. Returns at once if there were some since the last
    /// [`Agent::look`].
    pub fn wait(&mut self, limit: Duration) {
        let outlet = self.desk.outlet();
        let Some(asleep) = outlet.fall_asleep(self.heard) else { return };
        match self.again.is_empty() {
            true => drop(futex_wait(outlet.bell, asleep, limit)),
            false => self.sleep_in_round(asleep, limit.min(SHORT)),
        }
        outlet.wake_up(asleep);
    }

    /// Sleeps on the bell and on the word of the round.
    fn sleep_in_round(&self, asleep: u32, limit: Duration) {
        let word = &*self.desk.shared.segment.header().sync.word;
        let seen = self.desk.shared.segment.rounds().load();
        let sleeping = Word(seen.0 | SLEEP);
        // Relaxed: the mark orders nothing, and the release sequence of the last shift goes on.
        let marked = word.compare_exchange(seen.0, sleeping.0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if marked {
            let words = [(low_half(word), sleeping.0 as u32), (self.desk.outlet().bell, asleep)];
            futex_wait_either(words, limit);
        }
    }
}
