//! A worker in a round: its private state, and its access to the job. `../work.rs` has what it does there.
pub(crate) mod kept;
pub(crate) mod owned_set;
pub(crate) mod scan;
mod scratch;

use self::kept::Kept;
use self::owned_set::OwnedSet;
use self::scan::Scanned;
pub(crate) use self::scratch::{BLOCK_WORDS, CopyScratch, Scratch, Stuck};
use crate::engine::shared::Shared;
use crate::engine::wait::Waiter;
use crate::protocol::conflict::Heard;
use crate::protocol::round::Rounds;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// State that belongs to one worker alone.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) copy_scratch: RefCell<CopyScratch>,
    pub(crate) waiter: Waiter,
    /// Copies of areas that it reads.
    pub(crate) kept: Kept,
    /// The areas that this worker owns.
    pub(crate) owned: OwnedSet,
    /// Owned areas that are looked through before every arrival.
    pub(crate) scanned: RefCell<Vec<Scanned>>,
    pub(crate) unlogged: RefCell<Vec<crate::UnloggedWrite>>,
    /// The error that the worker's next synchronization point returns (`HECTARE_CHECK=1`).
    pub(crate) complaint: RefCell<Option<crate::Error>>,
    /// It has given areas to workers of other hosts, whose publication may still be asked for.
    pub(crate) gave_away: Cell<bool>,
    /// The objections of other hosts to its areas that it has heard.
    pub(crate) heard: Heard,
    pub(crate) stalled_since: Cell<Option<(u64, Instant)>>,
    /// A value that modules above keep for as long as the worker is in the job.
    pub(crate) extension: RefCell<Option<Rc<dyn Any>>>,
}

impl Local {
    pub(crate) fn new() -> Local {
        Local {
            scratch: RefCell::default(),
            copy_scratch: RefCell::new(CopyScratch::new()),
            waiter: Waiter::default(),
            kept: Kept::default(),
            owned: OwnedSet::default(),
            scanned: RefCell::default(),
            unlogged: RefCell::default(),
            complaint: RefCell::default(),
            gave_away: Cell::default(),
            heard: Heard::default(),
            stalled_since: Cell::new(None),
            extension: RefCell::default(),
        }
    }
}

/// A worker's hand in a round.
#[derive(Debug)]
pub(crate) struct Runtime<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) local: &'a Local,
}

impl Runtime<'_> {
    pub(crate) fn rounds(&self) -> Rounds<'_> {
        self.shared.segment.rounds()
    }
}
