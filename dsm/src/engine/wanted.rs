//! Reports of a process to the agent: changes, names that are waited for and that no area here has, and areas of other hosts to
//! which workers attached with another element type.
use super::area_core::AreaCore;
use super::directory::Directory;
use super::refusal::Refusal;
use super::shared::Shared;
use super::wait::futex_wake_all;
use crate::error::Error;
use crate::protocol::doorbell;
use crate::protocol::index::hash;
use crate::segment::element::ElementType;
use crate::segment::layout::MAX_WANTED;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a name is asked for that is still waited for: an agent may have died that had heard of it.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl Shared {
    /// Leaves the agent news of the area in slot `index`.
    pub(crate) fn tell_agent(&self, index: usize) {
        doorbell::leave_news(&self.segment.marks()[index / 64].news, 1 << (index % 64));
        self.ring_for_agent();
    }

    /// An area was dropped by its owner, or claimed: who waits for it on other hosts is to hear of that.
    #[inline]
    pub(crate) fn tell_of_owner(&self, index: usize) {
        if self.segment.spans_hosts() {
            self.tell_agent(index);
        }
    }

    /// Rings the agent's bell, after news were left.
    pub(crate) fn ring_for_agent(&self) {
        let doorbell = self.segment.doorbell();
        if doorbell.ring() {
            futex_wake_all(doorbell.bell);
        }
    }
}

impl Shared {
    /// Whether an area was given to a worker of another host; then it is to be published by the next round, and the agent is told.
    #[cold]
    pub(crate) fn tell_given(&self, core: &AreaCore, to: u32) -> bool {
        let is_away = self.segment.host_of(to).is_some();
        if is_away {
            let index = core.id.index as usize;
            self.segment.forced(index).set();
            self.segment.header().sync.request();
            self.tell_agent(index);
        }
        is_away
    }
}

/// How long to wait for the directory to tell of an area that was taken for something else.
const DIRECTORY: Duration = Duration::from_millis(10);

/// An entry of the list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Somebody took the area of another host for one of such elements; `None`: somebody waits for it.
    pub(crate) taken_for: Option<ElementType>,
}

impl Shared {
    /// Tells the agent that somebody took an area of another host for one of other elements, for its owner to hear of it.
    #[cold]
    pub(crate) fn tell_taken_for(&self, name: &str, element: ElementType) {
        if !self.segment.doorbell().is_attached() {
            return;
        }
        let since = Instant::now();
        while since.elapsed() < DIRECTORY {
            if let Some(directory) = Directory::try_lock(self) {
                directory.list(name, Some(element));
                drop(directory);
                return self.ring_for_agent();
            }
            std::thread::yield_now();
        }
    }
}

/// Somebody's waiting for a name.
#[derive(Debug, Default)]
pub(crate) struct Wanting {
    asked: Option<Instant>,
    /// How many answers there were when it began to wait, or last looked.
    heard: Option<u64>,
    /// How many of them were for this name.
    answers: u32,
}

impl Wanting {
    /// Why no worker of this host can have an area of the name, asking the agent for it: what others created before a barrier
    /// that is past counts. The agent may have asked before this wait began, and be answered in it; so the second answer is
    /// believed.
    pub(crate) fn refusal(&mut self, shared: &Shared, name: &str) -> Option<Error> {
        self.look(shared, name, |_| true)
    }

    /// The same, for one who waits until there is one: that there is none is no answer.
    pub(crate) fn lasting_refusal(&mut self, shared: &Shared, name: &str) -> Option<Error> {
        self.look(shared, name, |refusal| *refusal != Refusal::Unknown)
    }

    fn look(&mut self, shared: &Shared, name: &str, counts: impl Fn(&Refusal) -> bool) -> Option<Error> {
        let answers = &shared.segment.header().agent.answers;
        let (fresh, count) = answers.since(*self.heard.get_or_insert_with(|| answers.count()));
        let hash = hash(name);
        let of_it = fresh.filter(|words| words[0] == hash).map(|words| Refusal::of_words(&words));
        let last = of_it.filter(counts).last();
        self.heard = Some(count);
        if last.is_some() {
            self.answers += 1;
            self.asked = None;
        }
        if let Some(refusal) = last
            && self.answers >= 2
        {
            return Some(refusal.error(shared, name));
        }
        self.ask(shared, name);
        None
    }

    /// Asks the agent for the name, if there is an agent, and it was not asked a moment ago.
    fn ask(&mut self, shared: &Shared, name: &str) {
        let is_recent = self.asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN);
        if is_recent || !shared.segment.doorbell().is_attached() {
            return;
        }
        // If somebody else has the directory, the next look asks.
        if let Some(directory) = Directory::try_lock(shared) {
            directory.list(name, None);
            drop(directory);
            shared.ring_for_agent();
            self.asked = Some(Instant::now());
        }
    }
}

// Relaxed, all of it: under the directory mutex.
impl Directory<'_> {
    /// Asks the agent for those of the names that no area here has, as many as there is room for.
    pub(crate) fn ask_for<'n>(&self, names: impl Iterator<Item = &'n str>) {
        names.filter(|name| self.holder_of(name).is_none()).for_each(|name| self.list(name, None));
    }

    /// Puts a name on the list, if there is room and it is not there.
    fn list(&self, name: &str, taken_for: Option<ElementType>) {
        let (segment, count) = (self.segment(), &self.segment().header().wanted);
        let used = count.load(Ordering::Relaxed) as usize;
        let is_it = |listed: Listed| listed.name == name && listed.taken_for == taken_for;
        if used == MAX_WANTED || (0..used).any(|index| is_it(self.listed(index))) {
            return;
        }
        let (row, words) = segment.wanted_row(used);
        row.iter().zip(name.bytes()).for_each(|(place, byte)| place.store(byte, Ordering::Relaxed));
        words.len.store(name.len() as u32, Ordering::Relaxed);
        let parts = taken_for.map_or([0; 3], ElementType::to_parts);
        words.taken_for.iter().zip(parts).for_each(|(place, part)| place.store(part, Ordering::Relaxed));
        crate::primitive::fault_point();
        count.store(used as u32 + 1, Ordering::Relaxed);
    }

    fn listed(&self, index: usize) -> Listed {
        let (row, words) = self.segment().wanted_row(index);
        let len = (words.len.load(Ordering::Relaxed) as usize).min(row.len());
        let bytes: Vec<u8> = row[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        let parts = words.taken_for.each_ref().map(|part| part.load(Ordering::Relaxed));
        Listed {
            name: String::from_utf8_lossy(&bytes).into_owned(),
            taken_for: ElementType::from_parts(parts),
        }
    }

    /// Takes the names from the list.
    pub(crate) fn take_listed(&self) -> Vec<Listed> {
        let count = &self.segment().header().wanted;
        let names = (0..count.load(Ordering::Relaxed) as usize).map(|index| self.listed(index)).collect();
        count.store(0, Ordering::Relaxed);
        names
    }
}
