//! Versions that arrive from other hosts: lines into the writer copy, then one word for all areas of a cut.
use super::Agent;
use super::desk::Desk;
pub use super::desk::Source;
use super::held::LineSet;
use crate::engine::directory::{AreaId, find};
use crate::error::{Error, Result};
use crate::log::bitmap::Log;
use crate::memory::clock;
use crate::primitive::fault_point;
use crate::protocol::arrival::{self, Arrived};
use crate::protocol::label;
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::segment::layout::LINE;
use crate::segment::parts::Parts;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Duration;

/// A version that is to arrive, whose lines were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The area.
    pub area: AreaId,
    /// The version, as its owner's host published it.
    pub version: Version,
    /// The owner's clock when it did.
    pub clock: u64,
    /// Its label on the owner's host ([`Held::label`](super::held::Held::label)); 0: none. It is published here when the lowest
    /// clock of all is this less one, and not before; the areas of a group go by the highest.
    pub label: u64,
    /// How long ago it was last known to be the newest: its age when it was sent, and the time on the way.
    pub age: Duration,
}

/// The agent's hand on areas that it receives into.
///
/// A cut that is abandoned needs no repair: what was written stays logged, and the next cut of the same source goes on. So a
/// cut has every line that changed since the version published here.
#[derive(Debug)]
pub struct Receiving {
    desk: Rc<Desk>,
    areas: Vec<AreaId>,
    /// The source of each.
    sources: Vec<Source>,
}

impl Agent {
    /// Begins to receive into areas: one, or some of one group. `None` while what has arrived before is not published in a
    /// round that is past, or while they are being received into: to be asked again when [`Event::Published`] tells of them.
    ///
    /// Lines of another source, and those that a dead agent had received, are taken back first.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::OwnerHere`], [`Error::InvalidArea`] if they are of several groups, or of none,
    /// [`Error::ForkedChild`].
    ///
    /// [`Event::Published`]: super::news::Event::Published
    pub fn receive(&self, areas: &[AreaId], source: Source) -> Result<Option<Receiving>> {
        self.receive_each(areas, &vec![source; areas.len()])
    }

    /// The same of areas with a source each: the terms of a group's areas may differ.
    ///
    /// # Errors
    /// Those of [`Agent::receive`].
    ///
    /// # Panics
    /// If there are not as many sources as areas.
    pub fn receive_each(&self, areas: &[AreaId], sources: &[Source]) -> Result<Option<Receiving>> {
        assert_eq!(areas.len(), sources.len(), "a source for each area");
        let desk = &self.desk;
        desk.shared.check_process()?;
        let segment = &desk.shared.segment;
        // Lets all go that it has, however this ends.
        let mut receiving = Receiving { desk: desk.clone(), areas: Vec::new(), sources: sources.to_vec() };
        for area in areas {
            desk.hold(*area)?;
            if !desk.receiving.borrow_mut().insert(*area) {
                desk.release(*area);
                return Ok(None);
            }
            receiving.areas.push(*area);
            let index = area.index as usize;
            let name = || find::name(segment, index);
            if !ownership::load(&segment.areas()[index].own.ownership).is_remote() {
                return Err(Error::OwnerHere { name: name() });
            }
            let group = segment.group_of(area.index);
            if areas.len() > 1 && (group == 0 || group != segment.group_of(areas[0].index)) {
                let what = "received together with one of another group, or of none".into();
                return Err(Error::InvalidArea { name: name(), what });
            }
            if !desk.may_receive(*area) {
                return Ok(None);
            }
        }
        for (area, source) in areas.iter().zip(sources) {
            let last = desk.sources.borrow_mut().insert(*area, *source);
            if last != Some(*source) {
                restore(&Parts::of(segment, area.index as usize), &desk.log(*area));
            }
        }
        Ok(Some(receiving))
    }

    /// Notes what the owner's host says of a version: that it was the newest `age` ago. Of no effect if another is published
    /// here by now.
    pub fn confirm(&self, area: AreaId, version: Version, age: Duration) {
        if self.desk.hold(area).is_err() {
            return;
        }
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        let is_remote = ownership::load(&parts.slot.own.ownership).is_remote();
        if is_remote && parts.reader_copies().version() == Some(version) {
            let as_of = clock::now_ns().saturating_sub(clock::nanos(age));
            parts.slot.round.confirmed_ns.fetch_max(as_of, Ordering::Relaxed);
        }
        self.desk.release(area);
    }
}

impl Receiving {
    /// The areas.
    pub fn areas(&self) -> &[AreaId] {
        &self.areas
    }

    /// Writes lines of an area, from line `first` on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], in bytes: the area does not have the lines, or the last one is not whole and not the area's last.
    ///
    /// # Panics
    /// If the area is not one of those received into.
    pub fn write(&mut self, area: AreaId, first: u64, bytes: &[u8]) -> Result<()> {
        let start = self.mark_bytes(area, first, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        // SAFETY: the writer copy has `len` bytes, and stays mapped while the area is in use. The owner is on another host, so
        // nobody here has a view of this copy but of what had arrived, who was waited for; and no round reads it, since
        // nothing is handed over (`may_receive`, for both).
        unsafe { parts.writer().add(start).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        fault_point();
        Ok(())
    }

    /// Marks lines of an area that the owner's host writes itself into the writer copy, which is exposed to it
    /// ([`Agent::expose`](super::Agent::expose)). They are all to be there before [`Receiving::commit`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`], in bytes: the area does not have the lines.
    ///
    /// # Panics
    /// If the area is not one of those received into.
    pub fn mark(&mut self, area: AreaId, lines: Range<u64>) -> Result<()> {
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        let len = parts.slot.about.about().bytes();
        // The last line may be short.
        let end = lines.end.saturating_mul(LINE);
        let end = if end.saturating_sub(len) < LINE { end.min(len) } else { end };
        let bytes = end.saturating_sub(lines.start.saturating_mul(LINE));
        self.mark_bytes(area, lines.start, usize::try_from(bytes).unwrap_or(usize::MAX)).map(|_| ())
    }

    /// Marks lines before they are written; where they begin.
    fn mark_bytes(&mut self, area: AreaId, first: u64, bytes: usize) -> Result<usize> {
        assert!(self.areas.contains(&area), "{area:?} is not received into");
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        let len = parts.slot.about.about().bytes() as usize;
        let start = usize::try_from(first).unwrap_or(usize::MAX).saturating_mul(LINE as usize);
        let end = start.saturating_add(bytes);
        if end > len || !(bytes.is_multiple_of(LineSet::LINE_BYTES) || end == len) {
            let name = find::name(&self.desk.shared.segment, area.index as usize);
            return Err(Error::OutOfRange { name, start, end, len });
        }
        if bytes == 0 {
            return Ok(start);
        }
        self.desk.log(area).mark(start / LINE as usize..end.div_ceil(LINE as usize));
        // SeqCst, for the compiler: whoever dies from here on has marked what it may have written. It pairs with nothing: the
        // order between threads is made by `arrival::commit`, and by the kernel, which tells of the death.
        compiler_fence(Ordering::SeqCst);
        fault_point();
        Ok(start)
    }

    /// Hands the versions over, all at once, to be published together. Never taken back. With `now`, a round is asked for;
    /// else an area with an interval waits until it falls due, and others for the next round that there is.
    ///
    /// # Errors
    /// [`Error::StaleArrival`]: nothing was handed over.
    ///
    /// # Panics
    /// If an area is not one of those received into.
    pub fn commit(self, arrivals: &[Arrival], now: bool) -> Result<()> {
        let segment = &self.desk.shared.segment;
        for arrival in arrivals {
            let place = self.areas.iter().position(|area| *area == arrival.area);
            let place = place.unwrap_or_else(|| panic!("{:?} is not received into", arrival.area));
            let index = arrival.area.index as usize;
            let copies = Parts::of(segment, index).reader_copies();
            let newest = copies.records[copies.newest()].version();
            if arrival.version <= newest || arrival.version.term != self.sources[place].term {
                let name = find::name(segment, index);
                let (version, newest) = (arrival.version.to_string(), newest.to_string());
                return Err(Error::StaleArrival { name, version, newest });
            }
        }
        let cuts = &segment.header().agent.cuts;
        let cut = arrival::complete(cuts) + 1;
        let time = clock::now_ns();
        // Arrivals that are published together have one label.
        let label = arrivals.iter().map(|arrival| arrival.label).max().unwrap_or(0);
        for arrival in arrivals {
            self.desk.may_be_viewed(arrival.area);
            let as_of_ns = time.saturating_sub(clock::nanos(arrival.age));
            let arrived = Arrived { version: arrival.version, clock: arrival.clock, label, as_of_ns };
            segment.areas()[arrival.area.index as usize].agent.arrival.write(cut, &arrived);
        }
        arrival::commit(cuts, cut);
        for arrival in arrivals {
            self.desk.ask_for(arrival.area.index as usize, now);
        }
        if label::may_publish(label, segment.header().sync.acting.lowest_clock.load(Ordering::Relaxed)) {
            self.desk.ask_for_round(now);
        } else if now {
            self.desk.await_label(label);
        }
        Ok(())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        for area in &self.areas {
            self.desk.receiving.borrow_mut().remove(area);
            self.desk.release(*area);
        }
    }
}

/// Takes back what the log says was written into the writer copy since the last publication. Repeatable.
pub(super) fn restore(parts: &Parts<'_>, log: &Log<'_>) {
    let newest = parts.current();
    let lines = LineSet::of(
        parts.level0().iter().map(|word| word.load(Ordering::Relaxed)).collect(),
        parts.layout.lines,
    );
    for run in lines.runs() {
        let (start, end) = ((run.start * LINE) as usize, (run.end * LINE) as usize);
        // SAFETY: both copies have whole lines, of which the log has a bit each. Nobody writes either: as in
        // `Receiving::write`; the newest reader copy is written by rounds only, which publish nothing of the area.
        unsafe {
            parts.writer().add(start).copy_from_nonoverlapping(parts.reader(newest).add(start), end - start);
        }
        fault_point();
    }
    // SeqCst, for the compiler, as in `Receiving::write`: after all is restored. What is left of the log when this dies in the middle marks lines that are equal.
    compiler_fence(Ordering::SeqCst);
    for word in log.level0.iter().chain(log.level1) {
        word.store(0, Ordering::Relaxed);
    }
    log.dirty.clear();
}
