//! What a process tells the agent: that something changed, and names that are waited for and that no area here has.
use super::directory::Directory;
use super::shared::Shared;
use super::wait::futex_wake_all;
use crate::protocol::index::hash;
use crate::protocol::outlet;
use crate::segment::layout::{MAX_WANTED, UnknownNames};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a name is asked for that is still waited for: an agent may have died that had heard of it.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl Shared {
    /// Leaves the agent news of the area in slot `index`.
    pub(crate) fn tell_agent(&self, index: usize) {
        outlet::leave_news(&self.segment.marks()[index / 64].news, 1 << (index % 64));
        self.ring_for_agent();
    }

    /// Rings the agent's bell, after news were left.
    pub(crate) fn ring_for_agent(&self) {
        let outlet = self.segment.outlet();
        if outlet.ring() {
            futex_wake_all(outlet.bell);
        }
    }
}

impl UnknownNames {
    /// The directory has said that no host has the name.
    pub(crate) fn tell(&self, name: &str) {
        let count = self.count.load(Ordering::Relaxed);
        self.hashes[count as usize % self.hashes.len()].store(hash(name), Ordering::Relaxed);
        // Release: pairs with the acquire in `tells`: who sees the count sees the hash, or a later one in its place.
        self.count.store(count + 1, Ordering::Release);
    }

    /// Whether it was said of the name since there were `since` of them; how many there are now.
    fn tells(&self, since: u64, name: &str) -> (bool, u64) {
        // Acquire: pairs with the release in `tell`.
        let (count, places) = (self.count.load(Ordering::Acquire), self.hashes.len() as u64);
        let mut fresh = since.max(count.saturating_sub(places))..count;
        let is_it = |of: u64| self.hashes[(of % places) as usize].load(Ordering::Relaxed) == hash(name);
        (fresh.any(is_it), count)
    }
}

/// Somebody's waiting for a name.
#[derive(Debug, Default)]
pub(crate) struct Wanting {
    asked: Option<Instant>,
    /// How many names were said to be unknown when it began to wait, or last looked.
    heard: Option<u64>,
    /// How often it was said of this one.
    refusals: u32,
}

impl Wanting {
    /// Whether no host of the job has the name, asking the agent for it: what others created before a barrier that is past
    /// counts. The agent may have asked before this wait began, and be answered in it; so the second answer is believed.
    pub(crate) fn is_in_vain(&mut self, shared: &Shared, name: &str) -> bool {
        let unknown = &shared.segment.header().agent.unknown;
        // Relaxed: only where the count begins; the hashes are read after the acquire in `tells`.
        let heard = self.heard.get_or_insert_with(|| unknown.count.load(Ordering::Relaxed));
        let (refused, count) = unknown.tells(*heard, name);
        *heard = count;
        if refused {
            self.refusals += 1;
            self.asked = None;
        }
        self.ask(shared, name);
        self.refusals >= 2
    }

    /// Asks the agent for the name, if there is an agent, and it was not asked a moment ago.
    pub(crate) fn ask(&mut self, shared: &Shared, name: &str) {
        let is_recent = self.asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN);
        if is_recent || !shared.segment.outlet().is_attached() {
            return;
        }
        // If somebody else has the directory, the next look asks.
        if let Some(directory) = Directory::try_lock(shared) {
            directory.want(name);
            drop(directory);
            shared.ring_for_agent();
            self.asked = Some(Instant::now());
        }
    }
}

// Relaxed, all of it: under the directory mutex.
impl Directory<'_> {
    /// Puts a name on the list, if there is room and it is not there.
    fn want(&self, name: &str) {
        let (segment, count) = (self.segment(), &self.segment().header().wanted);
        let used = count.load(Ordering::Relaxed) as usize;
        if used == MAX_WANTED || (0..used).any(|index| self.wanted(index) == name) {
            return;
        }
        let (row, len) = segment.wanted_row(used);
        row.iter().zip(name.bytes()).for_each(|(place, byte)| place.store(byte, Ordering::Relaxed));
        len.store(name.len() as u32, Ordering::Relaxed);
        crate::primitive::fault_point();
        count.store(used as u32 + 1, Ordering::Relaxed);
    }

    fn wanted(&self, index: usize) -> String {
        let (row, len) = self.segment().wanted_row(index);
        let len = (len.load(Ordering::Relaxed) as usize).min(row.len());
        let bytes: Vec<u8> = row[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Takes the names from the list.
    pub(crate) fn take_wanted(&self) -> Vec<String> {
        let count = &self.segment().header().wanted;
        let names = (0..count.load(Ordering::Relaxed) as usize).map(|index| self.wanted(index)).collect();
        count.store(0, Ordering::Relaxed);
        names
    }
}
