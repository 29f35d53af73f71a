//! Scanning an area for writes that are not in the log: automatic tracking and check mode.
use crate::engine::area_core::AreaCore;
use crate::engine::runtime::Local;
use crate::engine::shared::{Shared, check_is_asked_for};
use crate::engine::unchanged::changed_lines;
use crate::error::Error;
use crate::log::track::Tracker;
use crate::segment::layout::LINE;
use crate::segment::parts::Parts;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes that were not logged, found in check mode. They are published all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnloggedWrite {
    /// The area.
    pub area: String,
    /// Its owner, who wrote.
    pub rank: crate::Rank,
    /// The bytes, exact to lines of 64.
    pub bytes: Range<usize>,
}

/// How an owned area is looked through.
#[derive(Debug)]
enum Means {
    /// The kernel knows which pages were written.
    Pages(Tracker),
    /// By comparing all of it.
    Compare,
}

/// An owned area that is looked through before each arrival.
#[derive(Debug)]
pub(crate) struct Scanned {
    core: Arc<AreaCore>,
    means: Means,
    automatic: bool,
}

/// Whether the owner of an area looks it through before it arrives in a round that may publish it.
pub(crate) fn is_scanned(parts: &Parts<'_>, check: bool) -> bool {
    let automatic = parts.slot.about.is_automatic();
    (automatic || check) && parts.layout.is_logged() && parts.layout.lines > 0
}

impl Scanned {
    /// `None` for an area that needs no looking through.
    #[inline]
    pub(crate) fn of(core: &Arc<AreaCore>) -> Option<Scanned> {
        if core.looked_through { Scanned::begin(core) } else { None }
    }

    fn begin(core: &Arc<AreaCore>) -> Option<Scanned> {
        let automatic = core.slot().about.is_automatic();
        // Without a reader copy there is nothing to be published, and nothing to compare with.
        if core.layout.copies == 0 || core.len == 0 {
            return None;
        }
        let automatic = automatic && core.layout.is_logged();
        let means = if automatic { track(core) } else { Means::Compare };
        let scanned = Scanned { core: core.clone(), means, automatic };
        if automatic {
            // Lines written before the pages were watched are found by comparing once.
            scanned.compare(0..scanned.bytes(), |core, lines| core.log().mark(lines));
        }
        Some(scanned)
    }

    pub(crate) fn is_of(&self, core: &Arc<AreaCore>) -> bool {
        Arc::ptr_eq(&self.core, core) || self.core.id == core.id
    }

    /// Whether there is still an area to look through.
    pub(crate) fn is_there(&self) -> bool {
        self.core.is_there()
    }

    fn bytes(&self) -> usize {
        self.core.layout.lines as usize * LINE as usize
    }

    /// Whether the area is to be published in the next round, as far as one can tell.
    pub(crate) fn is_due(&self, shared: &Shared, now: impl Fn() -> u64) -> bool {
        let slot = self.core.slot();
        shared.segment.forced(self.core.id.index as usize).is_set()
            || slot.about.group.load(Ordering::Relaxed) != 0
            || (slot.about.interval_ns.load(Ordering::Relaxed) != 0
                && slot.round.next_due_ns.load(Ordering::Relaxed) <= now())
    }

    /// Notes that the area was looked through for `round`.
    pub(crate) fn note(&self, round: u64) {
        // Relaxed: the arrival that follows orders it before the plan.
        self.core.slot().own.scanned.store(round, Ordering::Relaxed);
    }

    /// Logs what was written without being logged; in check mode, reports it.
    pub(crate) fn scan(&mut self, shared: &Shared, local: &Local, rank: crate::Rank) {
        let mut found: Vec<Range<usize>> = Vec::new();
        let log = self.core.log();
        let logged = self.core.layout.is_logged();
        if !logged && log.dirty.is_set() {
            // All of it is to be published.
            return;
        }
        let mut collect = |core: &AreaCore, lines: Range<usize>| {
            let log = core.log();
            for line in lines {
                if !logged || !log.is_marked(line) {
                    log.mark(line..line + 1);
                    match found.last_mut() {
                        Some(last) if last.end == line => last.end += 1,
                        _ => found.push(line..line + 1),
                    }
                }
            }
        };
        let mut pages: Vec<Range<usize>> = Vec::new();
        let all = 0..self.bytes();
        match &mut self.means {
            Means::Compare => pages.push(all),
            Means::Pages(tracker) => {
                if let Err(error) = tracker.collect(|range| pages.push(range)) {
                    tracing::warn!(%error, area = self.core.name, "page tracking failed; comparing the area");
                    self.means = Means::Compare;
                    pages = vec![all];
                }
            }
        }
        for range in pages {
            self.compare(range, &mut collect);
        }
        if !self.automatic && !found.is_empty() {
            self.report(shared, local, rank, &found);
        }
    }

    /// Calls `visit` with the lines in `bytes` in which the writer copy differs from the newest reader copy.
    fn compare(&self, bytes: Range<usize>, mut visit: impl FnMut(&AreaCore, Range<usize>)) {
        // Pages, or all of it: whole lines.
        let lines = bytes.start / LINE as usize..bytes.end.div_ceil(LINE as usize);
        changed_lines(&self.core, lines, |lines| visit(&self.core, lines));
    }

    fn report(&self, shared: &Shared, local: &Local, rank: crate::Rank, found: &[Range<usize>]) {
        let line = LINE as usize;
        for lines in found {
            let bytes = lines.start * line..lines.end * line;
            tracing::warn!(area = self.core.name, rank, ?bytes, "written without being logged");
            local.unlogged.borrow_mut().push(UnloggedWrite { area: self.core.name.clone(), rank, bytes });
        }
        let lines: usize = found.iter().map(|lines| lines.len()).sum();
        if check_is_asked_for() {
            let size = self.core.slot().about.about().element.size.max(1) as usize;
            let bytes = found[0].start * line..found[0].end * line;
            let error = Error::Unlogged {
                area: self.core.name.clone(),
                rank,
                elements: bytes.start / size..bytes.end.div_ceil(size).min(self.core.len),
                bytes,
                lines,
            };
            // Also for programs that do not look at what calls return.
            eprintln!("hectare: HECTARE_CHECK=1: {error}");
            local.complaint.borrow_mut().get_or_insert(error);
        }
        crate::segment::tally::count(&shared.segment.header().counters.unlogged_lines, lines as u64);
    }
}

fn track(core: &AreaCore) -> Means {
    let parts = core.parts();
    let len = parts.layout.data_bytes() as usize;
    match Tracker::new(parts.writer(), len) {
        Ok(tracker) => Means::Pages(tracker),
        Err(error) => {
            tracing::info!(%error, area = core.name, "no page tracking; the whole area is compared at every sync");
            Means::Compare
        }
    }
}
