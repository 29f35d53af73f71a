//! Published versions that the agent pins while it sends them.
use super::Agent;
use super::desk::Desk;
use crate::engine::area_core::LOOKS;
use crate::engine::directory::AreaId;
use crate::error::{Error, Result};
use crate::memory::clock;
use crate::protocol::label;
use crate::protocol::publication::Version;
use crate::protocol::record::CopyRecord;
use crate::protocol::word::Phase;
use crate::segment::layout::LINE;
use crate::segment::parts::Parts;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// A published version that the agent holds still. Dropping it lets it go.
#[derive(Debug)]
pub struct Held {
    desk: Rc<Desk>,
    area: AreaId,
    copy: usize,
    published: Published,
    clock: u64,
    round: u64,
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
        let held = self.hold_state(areas, None)?;
        Ok(held.expect("there is a newest state"))
    }

    /// Holds the last state of some areas that has a label, as [`Agent::hold`] does the newest: that of the newest label, or of
    /// the one before. `None` if it is another label, or that state is not there any more.
    ///
    /// In a job on several hosts, the last state of the label before the newest stays until one of the label after the newest is
    /// published, if there are copies enough: workers of other hosts may not be shown a newer one.
    ///
    /// # Errors
    /// As [`Agent::hold`].
    pub fn hold_label(&self, areas: &[AreaId], label: u64) -> Result<Option<Vec<Held>>> {
        self.hold_state(areas, Some(label))
    }

    /// The last states of some areas that have the two newest labels, the older one first: those that can be held, if there are
    /// copies enough. What areas are created with is a state of label 0. None while rounds follow each other too fast: ask again.
    ///
    /// ```
    /// use hectare_dsm::{AreaSpec, Job};
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(3), 1)?;
    /// owned.write(&worker)?.fill(1);
    /// worker.sync()?;
    /// let area = agent.find("a").expect("it was created");
    /// let labels: Vec<u64> = agent.states(&[area])?.iter().map(|state| state.label).collect();
    /// assert_eq!(labels, [0, 1]);
    /// let created = agent.hold_label(&[area], 0)?.expect("it is kept");
    /// assert_eq!(created[0].bytes(), [0; 8]);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::NoReaderCopy`], [`Error::ForkedChild`].
    pub fn states(&self, areas: &[AreaId]) -> Result<Vec<State>> {
        self.desk.shared.check_process()?;
        let mut using = Vec::with_capacity(areas.len());
        for area in areas {
            using.push(self.use_copies(*area)?);
        }
        for _ in 0..LOOKS {
            let Some(before) = self.between_publications() else { continue };
            let newest = state(&using, None);
            let label = using
                .iter()
                .flat_map(|using| using.labels())
                .filter(|label| Some(*label) < newest.as_ref().map(|newest| newest.label))
                .max();
            let older = label.and_then(|label| state(&using, Some(label)));
            if self.is_still(before) {
                return Ok(older.into_iter().chain(newest).collect());
            }
        }
        Ok(Vec::new())
    }

    /// The round, unless one is publishing.
    fn between_publications(&self) -> Option<u64> {
        let word = self.desk.shared.segment.rounds().load_total();
        (word.phase() != Phase::Publish).then_some(word.round())
    }

    /// Whether no publication began since `before`.
    fn is_still(&self, before: u64) -> bool {
        // Acquire: pairs with the release fence in `CopyRecord::write`. What was read since comes before the look at the word,
        // and that fence after the shift to Publish.
        fence(Ordering::Acquire);
        self.between_publications() == Some(before)
    }

    fn use_copies(&self, area: AreaId) -> Result<Using<'_>> {
        self.desk.hold(area)?;
        let using = Using { desk: &self.desk, area, copy: None };
        if using.parts().layout.copies == 0 {
            let name = crate::engine::directory::find::name(&self.desk.shared.segment, area.index as usize);
            return Err(Error::NoReaderCopy { name });
        }
        Ok(using)
    }

    fn hold_state(&self, areas: &[AreaId], label: Option<u64>) -> Result<Option<Vec<Held>>> {
        self.desk.shared.check_process()?;
        for _ in 0..LOOKS {
            match self.try_hold(areas, label)? {
                Tried::Held(held) => return Ok(Some(held)),
                Tried::NotThere => return Ok(None),
                Tried::Again => std::hint::spin_loop(),
            }
        }
        Err(Error::TimedOut {
            what: format!("one state of {} areas", areas.len()),
            waited: Duration::ZERO,
            missing: "rounds are publishing them; try again".into(),
        })
    }

    fn try_hold(&self, areas: &[AreaId], label: Option<u64>) -> Result<Tried> {
        let Some(before) = self.between_publications() else { return Ok(Tried::Again) };
        let mut using = Vec::with_capacity(areas.len());
        for area in areas {
            let mut one = self.use_copies(*area)?;
            let Some(copy) = one.copy_of(label) else {
                // A look in the middle of a publication says nothing.
                return Ok(if self.is_still(before) { Tried::NotThere } else { Tried::Again });
            };
            let parts = one.parts();
            let copies = parts.reader_copies();
            // Acquire, twice: pairs with the release at the end of `CopyRecord::write`.
            let round = copies.records[copy].round.load(Ordering::Acquire);
            let is_it = || match label {
                None => copies.newest() == copy,
                Some(_) => copies.records[copy].round.load(Ordering::Acquire) == round && round != u64::MAX,
            };
            one.copy = self.desk.pin(*area, &parts, copy, is_it)?;
            if one.copy.is_none() {
                return Ok(Tried::Again);
            }
            using.push(one);
        }
        if (areas.len() > 1 || label.is_some()) && !self.is_still(before) {
            return Ok(Tried::Again);
        }
        let found = state(&using, label);
        if label.is_some() && found.is_none() {
            return Ok(Tried::NotThere);
        }
        let held = using.into_iter().map(|using| {
            let (area, copy) = (using.area, using.copy.expect("pinned"));
            let (published, clock) = {
                let parts = using.parts();
                let record = &parts.copies()[copy];
                // Relaxed: the pin acquired what published the copy, and keeps it.
                (Published::of(record), record.clock.load(Ordering::Relaxed))
            };
            std::mem::forget(using);
            let round = published.sequence.wrapping_sub(1);
            Held { desk: self.desk.clone(), area, copy, published, clock, round }
        });
        Ok(Tried::Held(held.collect()))
    }
}

/// How an attempt to hold a state went.
enum Tried {
    Held(Vec<Held>),
    /// There is no such state.
    NotThere,
    /// Something was published meanwhile.
    Again,
}

/// A published state of some areas: what rounds had published of each when the last of them did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Rises from state to state: the number of the round that published the last of them, plus one; 1 for what they were created
    /// with.
    pub sequence: u64,
    /// The label of that one.
    pub label: u64,
    /// The version of each area, in order.
    pub versions: Vec<Version>,
}

/// When and as what a copy was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) version: Version,
    pub(super) label: u64,
    /// As [`State::sequence`].
    pub(super) sequence: u64,
}

impl Published {
    /// For one who keeps the copy from being written, or looks afterwards whether it was.
    pub(super) fn of(record: &CopyRecord) -> Published {
        // Acquire: pairs with the release at the end of `CopyRecord::write`.
        let round = record.round.load(Ordering::Acquire);
        Published { version: record.version(), label: record.label(), sequence: round.wrapping_add(1) }
    }
}

/// The state of areas in use: the newest, or the last of a label, if that is there and of that very label.
fn state(using: &[Using<'_>], label: Option<u64>) -> Option<State> {
    let of_one = |using: &Using<'_>| {
        let copy = using.copy.or_else(|| using.copy_of(label))?;
        Some(Published::of(&using.parts().copies()[copy]))
    };
    let each: Vec<Published> = using.iter().map(of_one).collect::<Option<_>>()?;
    let last = each.iter().max_by_key(|published| published.sequence)?;
    if label.is_some_and(|label| label != last.label) {
        return None;
    }
    let versions = each.iter().map(|published| published.version).collect();
    Some(State { sequence: last.sequence, label: last.label, versions })
}

impl Using<'_> {
    fn parts(&self) -> Parts<'_> {
        Parts::of(&self.desk.shared.segment, self.area.index as usize)
    }

    /// The copy of the last state of the label before the newest, if it is there still.
    fn kept(&self) -> Option<usize> {
        let parts = self.parts();
        let round = parts.slot.round.kept.load(Ordering::Relaxed);
        // Acquire: pairs with the release at the end of `CopyRecord::write`.
        let is_kept =
            |record: &CopyRecord| round != label::NONE && record.round.load(Ordering::Acquire) == round;
        parts.copies().iter().position(is_kept)
    }

    /// The copy of the newest state, or of the last one up to a label.
    fn copy_of(&self, label: Option<u64>) -> Option<usize> {
        let parts = self.parts();
        let newest = parts.current();
        let is_up_to = |copy: &usize| label.is_none_or(|label| parts.copies()[*copy].label() <= label);
        Some(newest).filter(is_up_to).or_else(|| self.kept().filter(is_up_to))
    }

    /// The labels of the states that there are.
    fn labels(&self) -> impl Iterator<Item = u64> {
        let (parts, kept) = (self.parts(), self.kept());
        let labels: Vec<u64> =
            kept.into_iter().chain([parts.current()]).map(|copy| parts.copies()[copy].label()).collect();
        labels.into_iter()
    }
}

impl Held {
    fn parts(&self) -> Parts<'_> {
        Parts::of(&self.desk.shared.segment, self.area.index as usize)
    }

    /// The area that it is a copy of, and the number of the copy.
    pub(super) fn place(&self) -> (&Rc<Desk>, AreaId, usize) {
        (&self.desk, self.area, self.copy)
    }

    /// The area.
    pub fn area(&self) -> AreaId {
        self.area
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.published.version
    }

    /// Its label: the lowest clock of all before the round that published it, plus one; 0 outside of the clocks. Where it arrives,
    /// it is published when the lowest clock there is this less one.
    pub fn label(&self) -> u64 {
        self.published.label
    }

    /// The number of the round that published it, plus one, as [`State::sequence`].
    pub fn sequence(&self) -> u64 {
        self.published.sequence
    }

    /// The round that published it; 0 for an area as it was created.
    pub fn round(&self) -> u64 {
        self.round
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

    /// Has the log of changes divided soon, so that [`Held::changed_since`] of this version tells little of what was written
    /// before it: with the next publication at the latest. To be called of each version that is to be a base.
    pub fn seal(&self) {
        self.parts().slot.round.generations.seal_requested.store(1, Ordering::Relaxed);
    }

    /// The lines that may have changed after version `base` up to this one: exact to generations, possibly more, never
    /// fewer. All of them if there is no base, if it is of another term, or if the area has no log.
    pub fn changed_since(&self, base: Option<Version>) -> LineSet {
        let parts = self.parts();
        let lines = parts.layout.lines;
        let whole = LineSet { words: None, lines };
        let Some(base) = base.filter(|base| base.term == self.version().term) else { return whole };
        if base >= self.version() {
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
