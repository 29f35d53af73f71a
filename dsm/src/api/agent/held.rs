//! Published versions that the agent holds still, to send them.
use super::Agent;
use super::desk::Desk;
use crate::engine::area_core::LOOKS;
use crate::engine::directory::AreaId;
use crate::error::{Error, Result};
use crate::memory::clock;
use crate::protocol::publication::Version;
use crate::protocol::word::Phase;
use crate::segment::layout::LINE;
use crate::segment::parts::Parts;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A published version that the agent holds still. Dropping it lets it go.
#[derive(Debug)]
pub struct Held {
    desk: Rc<Desk>,
    area: AreaId,
    copy: usize,
    version: Version,
    clock: u64,
}

/// An area in use, which is let go again unless it is kept.
struct Using<'d> {
    desk: &'d Desk,
    area: AreaId,
    copy: Option<usize>,
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        let_go(self.desk, self.area, self.copy);
    }
}

fn let_go(desk: &Desk, area: AreaId, copy: Option<usize>) {
    if desk.shared.check_process().is_ok() {
        if let Some(copy) = copy {
            desk.unpin(area, copy);
        }
        desk.release(area);
    }
}

impl Agent {
    /// Holds the newest versions of some areas, all of which are one state: no round published one of them and not yet
    /// another. So the areas of a group are held together.
    ///
    /// An area needs two reader copies at least, and one more for every version of it that is to be held beside the newest:
    /// rounds are never left without a copy to publish into.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::NoReaderCopy`], [`Error::NoSpareCopy`]; [`Error::TimedOut`] if a round stands still while
    /// it publishes, or one follows the other too fast.
    pub fn hold(&self, areas: &[AreaId]) -> Result<Vec<Held>> {
        self.desk.shared.check_process()?;
        for _ in 0..LOOKS {
            if let Some(held) = self.try_hold(areas)? {
                return Ok(held);
            }
            std::hint::spin_loop();
        }
        Err(Error::TimedOut {
            what: format!("one state of {} areas", areas.len()),
            waited: Duration::ZERO,
            missing: "rounds are publishing them; try again".into(),
        })
    }

    fn try_hold(&self, areas: &[AreaId]) -> Result<Option<Vec<Held>>> {
        let segment = &self.desk.shared.segment;
        let before = segment.rounds().load_total();
        if before.phase() == Phase::Publish {
            return Ok(None);
        }
        let mut using = Vec::with_capacity(areas.len());
        for area in areas {
            self.desk.hold(*area)?;
            let last = Using { desk: &self.desk, area: *area, copy: None };
            using.push(last);
            let parts = Parts::of(segment, area.index as usize);
            if parts.layout.copies == 0 {
                let name = crate::engine::directory::find::name(segment, area.index as usize);
                return Err(Error::NoReaderCopy { name });
            }
            let Some(copy) = self.desk.pin(*area, &parts)? else { return Ok(None) };
            using.last_mut().expect("just pushed").copy = Some(copy);
        }
        // No publication began meanwhile: the word was at the same round before, and has not come to Publish.
        let after = segment.rounds().load_total();
        if areas.len() > 1 && (after.round() != before.round() || after.phase() == Phase::Publish) {
            return Ok(None);
        }
        let held = using.into_iter().map(|using| {
            let (area, copy) = (using.area, using.copy.expect("pinned"));
            std::mem::forget(using);
            let record = &Parts::of(segment, area.index as usize).copies()[copy];
            // Relaxed: the pin acquired what published the copy, and keeps it.
            let clock = record.clock.load(Ordering::Relaxed);
            Held { desk: self.desk.clone(), area, copy, version: record.version(), clock }
        });
        Ok(Some(held.collect()))
    }
}

impl Held {
    fn parts(&self) -> Parts<'_> {
        Parts::of(&self.desk.shared.segment, self.area.index as usize)
    }

    /// The area.
    pub fn area(&self) -> AreaId {
        self.area
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The owner's clock when it was published.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// How long ago it was last known to be what the owner had written: for the newest version, when a round last found
    /// nothing newer.
    pub fn age(&self) -> Duration {
        let parts = self.parts();
        // Relaxed, as in `Area::age`: the pin acquired what published the copy.
        let since = if parts.current() == self.copy {
            parts.slot.round.confirmed_ns.load(Ordering::Relaxed)
        } else {
            parts.copies()[self.copy].timestamp_ns.load(Ordering::Relaxed)
        };
        Duration::from_nanos(clock::now_ns().saturating_sub(since))
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> &[u8] {
        let parts = self.parts();
        let len = parts.slot.about.about().bytes() as usize;
        // SAFETY: the copy has `len` bytes, and the area is in use, so that it is not freed. The pin keeps rounds from
        // writing the copy, for as long as this value is there; a thread that ends with it ends the process (`Tenure`).
        unsafe { std::slice::from_raw_parts(parts.reader(self.copy), len) }
    }

    /// The lines that may have changed after version `base` up to this one: exact to generations, possibly more, never
    /// fewer. All of them if there is no base, if it is of another term, or if the area has no log.
    pub fn changed_since(&self, base: Option<Version>) -> LineSet {
        let parts = self.parts();
        let lines = parts.layout.lines;
        let whole = LineSet { words: None, lines };
        let Some(base) = base.filter(|base| base.term == self.version.term) else { return whole };
        if base >= self.version {
            return LineSet { words: Some(Vec::new()), lines };
        }
        if !parts.layout.is_logged() {
            return whole;
        }
        for _ in 0..LOOKS {
            if let Some(words) = parts.generations().changed_since(base.counter) {
                return LineSet { words: Some(words), lines };
            }
            std::hint::spin_loop();
        }
        // Whoever publishes stands still or is dead.
        whole
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let_go(&self.desk, self.area, Some(self.copy));
    }
}

/// A set of lines of an area, 64 bytes each; the last may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSet {
    /// A bit per line; `None`: all of them.
    words: Option<Vec<u64>>,
    lines: u64,
}

impl LineSet {
    pub(super) fn of(words: Vec<u64>, lines: u64) -> LineSet {
        LineSet { words: Some(words), lines }
    }

    /// Bytes of a line.
    pub const LINE_BYTES: usize = LINE as usize;

    /// The lines as ascending runs, no two of which touch.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = self.find(next, true);
            next = self.find(start, false);
            (start < next).then_some(start..next)
        })
    }

    /// How many lines.
    pub fn len(&self) -> u64 {
        self.runs().map(|run| run.end - run.start).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs().next().is_none()
    }

    /// The first line from `from` on that is in the set, or is not; the number of all lines if there is none.
    fn find(&self, from: u64, is_in: bool) -> u64 {
        let Some(words) = &self.words else { return if is_in { from } else { self.lines } };
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in words.iter().enumerate().skip((from / 64) as usize) {
            let bits = if is_in { *word } else { !*word } & mask;
            if bits != 0 {
                return (index as u64 * 64 + u64::from(bits.trailing_zeros())).min(self.lines);
            }
            mask = u64::MAX;
        }
        self.lines
    }
}

#[cfg(test)]
mod tests;
