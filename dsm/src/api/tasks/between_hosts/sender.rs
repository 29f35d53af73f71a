//! Elements that a worker of another host sends: they are put in place, and the words of the sender's seat here say how far it is.
use super::head::{Head, State};
use super::planned::Planned;
use super::rings::{Incoming, Rings};
use crate::api::tasks::part::{InPlace, incarnation, words};
use crate::api::worker::Worker;
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Rank, Result};
use crate::protocol::tasks::OpenInbox;
use crate::protocol::tasks::crossing::{Position, bytes_of};
use std::cell::RefCell;

/// The worker that puts in place, and its part in the run.
#[derive(Debug)]
pub(super) struct Here<'h> {
    pub(super) shared: &'h Shared,
    pub(super) rank: Rank,
    /// The number of the run on this host.
    pub(super) number: u64,
    pub(super) planned: &'h Planned,
    /// By array.
    pub(super) areas: &'h [InPlace],
    pub(super) rings: &'h RefCell<Rings>,
}

/// A worker of another host, as a sender in a run.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) rank: Rank,
    pub(super) run: u64,
    base: u64,
    position: Position,
    /// Bytes that come before its first task.
    initial: u64,
    /// The last head of its ring that was found; everything up to it is in place.
    seen: Option<Head>,
    /// It will do no more of its tasks, and all that it has sent is in place.
    pub(super) is_over: bool,
}

impl Sender {
    /// Worker `rank`, whose ring has this head when the run begins on host `here`.
    pub(super) fn new(rank: Rank, head: &Head, planned: &Planned, here: usize) -> Sender {
        let initial = match planned.passes {
            0 => 0,
            _ => bytes_of(&planned.crossing.route(rank, here).initial, &planned.unit_bytes),
        };
        let (run, base, position) = (head.run, head.base, Position::default());
        Sender { rank, run, base, position, initial, seen: None, is_over: false }
    }

    /// Puts in place what has come of it, and says how far it is, and who of its host is gone. Of one that is over, the latter alone.
    pub(super) fn take_in(&mut self, worker: &Worker, here: &Here<'_>) -> Result<()> {
        let rings = here.rings.borrow();
        let rank = self.rank;
        let Some(ring) = rings.incoming(rank) else { return Ok(()) };
        let looked = if ring.is_left() { None } else { Some(ring.look(worker)?) };
        // One that could not begin after all says why.
        let refused = looked.filter(|(head, _)| head.state == State::Refused);
        let Some((head, bytes)) = looked.filter(|(head, _)| head.run == self.run) else {
            if self.is_over {
                return Ok(());
            }
            // It has left the job, or has begun another run.
            let theirs = words(here.shared, rank);
            let Some(_inbox) = open_inbox(here.shared, here.rank, rank) else { return Ok(()) };
            theirs.leave_for(here.number, refused.and_then(|(head, _)| head.because_of()));
            self.is_over = true;
            return Ok(());
        };
        if self.seen == Some(head) {
            return Ok(());
        }
        if !self.is_over && !self.put_in_place(ring, (&head, bytes), here)? {
            return Ok(());
        }
        self.seen = Some(head);
        let gone = if head.gone > 0 { Some(ring.gone(bytes)) } else { None };
        for gone in gone.into_iter().flatten() {
            let Some(_inbox) = open_inbox(here.shared, here.rank, gone) else {
                // Later.
                self.seen = None;
                continue;
            };
            words(here.shared, gone).leave_for(here.number, None);
            futex_wake_all(low_half(words(here.shared, gone).futex()));
        }
        Ok(())
    }

    /// False if another worker has the inbox.
    fn put_in_place(
        &mut self,
        ring: &Incoming,
        (head, bytes): (&Head, &[u8]),
        here: &Here<'_>,
    ) -> Result<bool> {
        let rank = self.rank;
        let theirs = words(here.shared, rank);
        let Some(inbox) = open_inbox(here.shared, here.rank, rank) else { return Ok(false) };
        let host = here.shared.segment.config().here as usize;
        let route = here.planned.crossing.route(rank, host);
        let Some(mut placed) = inbox.placed(self.run, self.base) else {
            // It has begun another run, which this worker has not seen yet.
            theirs.leave_for(here.number, None);
            self.is_over = true;
            return Ok(true);
        };
        // Kept when all is in place: where something is not, the next look begins anew.
        let mut position = self.position;
        while self.base + position.bytes < head.sent {
            let came = self.base + position.bytes;
            let most = (if came < placed { placed } else { head.sent }) - came;
            let next = position.next(route, here.planned.passes, &here.planned.unit_bytes, most as usize);
            let Some(stretch) = next else { break };
            if came >= placed {
                let to = here.areas[stretch.array].start()?.wrapping_add(stretch.start);
                // SAFETY: bytes of the array's area on this host, which is open, of units that the plan has (`Position`). No task here
                // touches them before the words say that the sender has done its task, and those that did before are done, which the
                // sender has waited for (`crossing`). One worker at a time puts in place, and what it writes again if one died
                // meanwhile are the same bytes.
                unsafe { ring.copy(bytes, came, to, stretch.bytes) };
            }
        }
        self.position = position;
        placed = placed.max(self.base + self.position.bytes);
        inbox.set_placed(placed);
        let is_begun = self.position.bytes >= self.initial;
        let mut slept = is_begun && theirs.begin_for(here.number);
        match head.state {
            State::Begun | State::Finished if is_begun => {
                slept |= theirs.catch_up(here.number, head.done, head.state == State::Finished);
            }
            State::Begun | State::Finished => {}
            State::None | State::Left | State::Refused => {
                theirs.leave_for(here.number, head.because_of());
                slept = true;
            }
        }
        self.is_over = !matches!(head.state, State::Begun);
        drop(inbox);
        if slept {
            futex_wake_all(low_half(theirs.futex()));
        }
        Ok(true)
    }
}

/// The inbox of a worker of another host, unless another worker than `me` has it.
fn open_inbox(shared: &Shared, me: Rank, rank: Rank) -> Option<OpenInbox<'_>> {
    let is_gone = |rank, its| shared.is_gone(rank) || incarnation(shared, rank) != its;
    shared.segment.all_seats()[rank as usize].inbox.open((me, incarnation(shared, me)), is_gone)
}
