//! What a process tells the agent: that something changed, and names that are waited for and that no area here has.
use super::directory::Directory;
use super::shared::Shared;
use super::wait::futex_wake_all;
use crate::protocol::outlet;
use crate::segment::layout::MAX_WANTED;
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

/// Somebody's waiting for a name.
#[derive(Debug, Default)]
pub(crate) struct Wanting {
    asked: Option<Instant>,
}

impl Wanting {
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
