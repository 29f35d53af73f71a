//! Runs over arrays of which each host has a copy: what tasks wrote goes to the hosts that touch it next, and to the arrays' homes in
//! the end.
//!
//! What goes where is known from the plan ([`Crossing`]). After a task a worker copies what others need into rings ([`rings`]), and has
//! them published with how many tasks it has done. Whoever waits on another host puts what has come in place and stores the count in the
//! words of the sender's seat here (`Inbox`, `TaskWords`): from then on it is as if that worker were one of this host. See `SYNC.md`,
//! "tasks on several hosts".
mod anew;
mod announce;
mod head;
mod replicas;
mod rings;

use self::announce::{Announced, announce, meet, places, refuse};
use self::head::{Head, State};
use self::rings::{Outgoing, Rings};
use super::part::{InPlace, Order, Part, incarnation, words};
use crate::api::worker::Worker;
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::crossing::{Crossing, Piece, Position};
use crate::protocol::tasks::{Done, OpenInbox, Places};
use crate::segment::mapping::Segment;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What a worker of another host sends here in a run.
#[derive(Debug)]
struct Sender {
    rank: Rank,
    run: u64,
    base: u64,
    position: Position,
    /// Bytes that come before its first task.
    initial: u64,
    /// What was found of it last, all of which is in place.
    seen: Option<Head>,
    /// It will do no more of its tasks.
    is_over: bool,
}

/// One worker's part in what goes between hosts in a run.
#[derive(Debug)]
pub(super) struct Between {
    shared: Arc<Shared>,
    rings: Rc<RefCell<Rings>>,
    rank: Rank,
    /// The number of the run on this host.
    number: u64,
    crossing: Arc<Crossing>,
    host_of: Vec<usize>,
    /// How often each worker goes through its tasks, and the tasks of this one in each pass.
    passes: usize,
    tasks: usize,
    /// By array: bytes of a unit, and the area on this host.
    unit_bytes: Vec<usize>,
    areas: Vec<InPlace>,
    senders: Vec<Sender>,
    /// The other workers of this host, and which of those who had each rank it was.
    neighbours: Vec<(Rank, u32)>,
    is_started: bool,
    is_finished: bool,
}

/// What of a plan a run between hosts needs.
struct Passes {
    crossing: Arc<Crossing>,
    passes: usize,
    tasks: usize,
    unit_bytes: Vec<usize>,
}

/// What is to run, as its plan has it.
pub(super) struct Described<'a> {
    pub(super) workers: usize,
    pub(super) arrays: usize,
    /// The same for the same tasks, whatever they are.
    pub(super) digest: u64,
    /// How often each worker goes through its tasks, and the tasks of this one in each pass.
    pub(super) passes: usize,
    pub(super) tasks: usize,
    /// What is wrong with the area of an array.
    pub(super) misfit: &'a dyn Fn(usize, &InPlace) -> Option<String>,
    /// The bytes of a unit of an array, in this area.
    pub(super) unit_bytes: &'a dyn Fn(usize, &InPlace) -> usize,
    /// What goes between hosts, or why nothing can.
    pub(super) crossing: &'a dyn Fn(&Places) -> std::result::Result<Arc<Crossing>, String>,
}

/// Begins a run: all workers of the job meet in it.
pub(super) fn begin(
    worker: &mut Worker,
    described: &Described<'_>,
    areas: &[InPlace],
) -> Result<(Part, RefCell<Between>)> {
    let announced = announce_described(worker, described, areas);
    let refused = if announced.is_err() { refuse(worker, None) } else { Ok(()) };
    worker.barrier()?;
    let (order, announced, crossing) = announced?;
    refused?;
    let passes = Passes {
        crossing,
        passes: described.passes,
        tasks: described.tasks,
        unit_bytes: areas.iter().enumerate().map(|(at, area)| (described.unit_bytes)(at, area)).collect(),
    };
    let begun = begin_announced(worker, &order, &announced, passes, areas);
    if begun.is_err() {
        refuse(worker, Some(&announced))?;
    }
    begun
}

/// Tells the others that this worker begins nothing, where they meet.
pub(super) fn decline(worker: &mut Worker) -> Result<()> {
    let refused = refuse(worker, None);
    worker.barrier()?;
    refused
}

/// Says to all workers which run this one is about to begin.
fn announce_described(
    worker: &mut Worker,
    described: &Described<'_>,
    areas: &[InPlace],
) -> Result<(Order, Announced, Arc<Crossing>)> {
    let rank = worker.rank();
    let refuse = |what: String| Err(Error::Tasks { rank, what });
    let Described { workers, arrays, digest, .. } = *described;
    if rank as usize >= workers {
        return refuse(format!("they are for workers 0 to {}", workers.saturating_sub(1)));
    }
    if areas.is_empty() || areas.len() != arrays {
        return refuse(format!("they have {arrays} arrays, and were given {} areas", areas.len()));
    }
    let places = places(worker, workers, areas)?;
    if let Some(what) = areas.iter().enumerate().find_map(|(at, area)| (described.misfit)(at, area)) {
        return refuse(what);
    }
    let crossing = (described.crossing)(&places).map_err(|what| Error::Tasks { rank, what })?;
    let here = worker.shared().segment.config().here as usize;
    let here = places.host_of.iter().filter(|host| **host == here).count();
    let tasks = (described.passes * described.tasks) as u64;
    let order = Order { workers, here, digest, tasks, arrays };
    let bytes: Vec<usize> = areas.iter().map(|area| area.len() * area.element_bytes()).collect();
    let announced = announce(worker, &order, places, areas, &bytes)?;
    Ok((order, announced, crossing))
}

/// Begins a run that all have announced.
fn begin_announced(
    worker: &mut Worker,
    order: &Order,
    announced: &Announced,
    passes: Passes,
    areas: &[InPlace],
) -> Result<(Part, RefCell<Between>)> {
    let here = meet(worker, announced, areas)?;
    let mut part = Part::begin(worker, order, &here, |_| None, |_, _| None)?;
    part.stand_for(areas);
    let between = Between::begin(worker, announced, passes, part.areas(), part.number())?;
    Ok((part, RefCell::new(between)))
}

impl Between {
    /// Begins, when the part of this worker has begun with `number` over `areas`, which are on this host.
    fn begin(
        worker: &mut Worker,
        announced: &Announced,
        passes: Passes,
        areas: &[InPlace],
        number: u64,
    ) -> Result<Between> {
        let rings = Rings::of(worker)?;
        let shared = worker.shared().clone();
        let here = shared.segment.config().here as usize;
        let Passes { crossing, passes, tasks, unit_bytes } = passes;
        let mut senders = Vec::new();
        for rank in 0..announced.places.host_of.len() as Rank {
            if announced.places.host_of[rank as usize] == here {
                continue;
            }
            let (head, _) =
                rings.borrow().incoming(rank).ok_or(Error::NoSuchWorker { rank })?.look(worker)?;
            let initial = match passes {
                0 => 0,
                _ => crossing.route(rank, here).initial_bytes(&unit_bytes),
            };
            let (run, base, position) = (head.run, head.base, Position::default());
            senders.push(Sender { rank, run, base, position, initial, seen: None, is_over: false });
        }
        let is_neighbour =
            |rank: &Rank| announced.places.host_of[*rank as usize] == here && *rank != worker.rank();
        let neighbours = (0..announced.places.host_of.len() as Rank).filter(is_neighbour);
        let neighbours = neighbours.map(|rank| (rank, incarnation(&shared, rank))).collect();
        Ok(Between {
            neighbours,
            rings,
            rank: worker.rank(),
            number,
            crossing,
            host_of: announced.places.host_of.clone(),
            passes,
            tasks,
            unit_bytes,
            areas: areas.to_vec(),
            senders,
            is_started: false,
            is_finished: false,
            shared,
        })
    }

    fn segment(&self) -> &Segment {
        &self.shared.segment
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (hosts, here) = (self.segment().config().hosts as usize, self.segment().config().here as usize);
        (0..hosts).filter(move |host| *host != here)
    }

    /// The bytes that hosts send each other in the run.
    pub(super) fn bytes(&self) -> Vec<Vec<u64>> {
        self.crossing.bytes(&self.host_of, self.passes, &self.unit_bytes)
    }

    /// What this worker's task waits for besides what it says.
    pub(super) fn needs(&self, task: u64) -> Vec<(Rank, u64)> {
        self.crossing.needs(self.rank, task as usize).collect()
    }

    /// Sends what others need before the first tasks; once.
    pub(super) fn start(&mut self, worker: &mut Worker) -> Result<()> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        let crossing = self.crossing.clone();
        for host in self.others() {
            let pieces = if self.passes == 0 { &[] } else { crossing.route(self.rank, host).initial() };
            if !pieces.is_empty() {
                pieces.iter().try_for_each(|piece| self.push(worker, host, *piece))?;
                self.publish(worker, host)?;
            }
        }
        Ok(())
    }

    /// Copies what this worker's task number `task` wrote for other hosts; before it is said to be done.
    pub(super) fn send(&mut self, worker: &mut Worker, task: u64) -> Result<()> {
        let crossing = self.crossing.clone();
        let (pass, task) = (task as usize / self.tasks, task as usize % self.tasks);
        for host in self.others() {
            for piece in crossing.route(self.rank, host).after(task, pass + 1 == self.passes) {
                self.push(worker, host, piece)?;
            }
        }
        Ok(())
    }

    /// Tells the hosts where others wait for it that this worker has done `done` tasks, perhaps its last.
    pub(super) fn tell(&mut self, worker: &Worker, done: u64, is_last: bool) -> Result<()> {
        let task = (done - 1) as usize % self.tasks;
        for host in self.others() {
            if is_last || self.crossing.route(self.rank, host).tells(task) {
                self.out(host, |out| out.head.done = done);
                self.publish(worker, host)?;
            }
        }
        Ok(())
    }

    /// Does something with the ring to another host.
    fn out<R>(&self, host: usize, act: impl FnOnce(&mut Outgoing) -> R) -> Option<R> {
        self.rings.borrow_mut().out.get_mut(host)?.as_mut().map(act)
    }

    fn publish(&self, worker: &Worker, host: usize) -> Result<()> {
        let placed = Rings::placed(self.segment(), host);
        self.out(host, |out| out.publish(worker, placed)).unwrap_or(Ok(()))
    }

    /// Adds a piece of an array to the stream to a host, and waits for room there.
    fn push(&mut self, worker: &mut Worker, host: usize, piece: Piece) -> Result<()> {
        let unit = self.unit_bytes[piece.array as usize];
        let (mut start, mut left) = (piece.first as usize * unit, piece.count as usize * unit);
        while left > 0 {
            let room = self.room(worker, host)?.min(left);
            if room == 0 {
                self.publish(worker, host)?;
                self.wait_for_room(worker, host)?;
                continue;
            }
            // Waiting for room, this worker has passed synchronization points.
            let from = self.areas[piece.array as usize].start()?.wrapping_add(start);
            // SAFETY: bytes of the array's area on this host, which is open, as the plan's units are. This worker's task wrote them, or they are as the
            // owner left them, and nobody writes them before those have them who touch them next (`crossing`): those who do so wait for
            // this worker's task, which is not said to be done yet.
            let bytes = unsafe { std::slice::from_raw_parts(from, room) };
            self.out(host, |out| out.push(worker, bytes)).unwrap_or(Ok(()))?;
            (start, left) = (start + room, left - room);
        }
        Ok(())
    }

    fn room(&self, worker: &Worker, host: usize) -> Result<usize> {
        let number = (self.rank - self.segment().ranks_here().start) as usize;
        let mut placed = 0;
        for rank in self.segment().ranks_of(host) {
            if let Some(ring) = self.rings.borrow().incoming(rank).filter(|ring| !ring.is_left()) {
                placed = ring.ack(worker, number)?.max(placed);
            }
        }
        Ok(self.out(host, |out| out.room(placed)).unwrap_or(usize::MAX))
    }

    fn wait_for_room(&mut self, worker: &mut Worker, host: usize) -> Result<()> {
        worker.forget_waiting();
        worker.within(None, |worker| {
            loop {
                self.take_in(worker)?;
                if self.room(worker, host)? > 0 {
                    return Ok(());
                }
                self.note_gone(worker)?;
                if let Some(rank) = self.nobody_takes_in(host) {
                    self.leave(Some(rank));
                    return Err(Error::TaskLeft { rank });
                }
                worker.shared().check_ending()?;
                worker.wait_step(None)?;
            }
        })
    }

    /// If no worker of a host puts in place what comes there any more: the one because of which that is so.
    fn nobody_takes_in(&self, host: usize) -> Option<Rank> {
        let ranks = self.segment().ranks_of(host);
        let mut there = self.senders.iter().filter(|one| ranks.contains(&one.rank)).map(|one| one.rank);
        let first = there.clone().next()?;
        // One that has done all stays until this worker has, too.
        let is_out = |rank: Rank| {
            let left = matches!(words(&self.shared, rank).done_in(self.number), Done::Left { .. });
            left || self.shared.is_gone(rank)
        };
        there.all(is_out).then(|| match words(&self.shared, first).done_in(self.number) {
            Done::Left { because_of: Some(other), .. } => other,
            _ => first,
        })
    }

    /// Tells other hosts of a worker of this one that is gone and had not done all its tasks: of those who wait for it there, some may
    /// have no other way to know.
    pub(super) fn note_gone(&mut self, worker: &Worker) -> Result<()> {
        let is_gone = |rank: Rank, its: u32| {
            let is_gone = self.shared.is_gone(rank) || incarnation(&self.shared, rank) != its;
            is_gone && !words(&self.shared, rank).has_finished(self.number)
        };
        let Some((rank, _)) = self.neighbours.iter().find(|(rank, its)| is_gone(*rank, *its)) else {
            return Ok(());
        };
        let gone = u64::from(*rank) + 1;
        for host in self.others() {
            if self.out(host, |out| std::mem::replace(&mut out.head.gone, gone) != gone).unwrap_or(false) {
                self.publish(worker, host)?;
            }
        }
        Ok(())
    }

    /// Puts in place what has come from other hosts.
    pub(super) fn take_in(&mut self, worker: &mut Worker) -> Result<()> {
        for at in 0..self.senders.len() {
            self.take_from(worker, at)?;
            let rank = self.senders[at].rank;
            let placed = self.segment().all_seats()[rank as usize].inbox.placed();
            let Some(host) = self.segment().host_of(rank) else { continue };
            let number = (rank - self.segment().ranks_of(host).start) as usize;
            if self.out(host, |out| out.owes(number, placed)).unwrap_or(false) {
                self.publish(worker, host)?;
            }
        }
        Ok(())
    }

    fn take_from(&mut self, worker: &Worker, at: usize) -> Result<()> {
        let rings = self.rings.borrow();
        let sender = &mut self.senders[at];
        if sender.is_over {
            return Ok(());
        }
        let rank = sender.rank;
        let Some(ring) = rings.incoming(rank) else { return Ok(()) };
        let looked = if ring.is_left() { None } else { Some(ring.look(worker)?) };
        let theirs = words(&self.shared, rank);
        let Some((head, bytes)) = looked.filter(|(head, _)| head.run == sender.run) else {
            // It has left the job, or has begun another run.
            let Some(_inbox) = open_inbox(&self.shared, self.rank, rank) else { return Ok(()) };
            theirs.leave_for(self.number, None);
            sender.is_over = true;
            return Ok(());
        };
        if sender.seen == Some(head) {
            return Ok(());
        }
        let Some(inbox) = open_inbox(&self.shared, self.rank, rank) else { return Ok(()) };
        let here = self.shared.segment.config().here as usize;
        let route = self.crossing.route(rank, here);
        let mut placed = inbox.placed(sender.run, sender.base);
        while sender.base + sender.position.bytes < head.sent {
            let came = sender.base + sender.position.bytes;
            let most = (if came < placed { placed } else { head.sent }) - came;
            let next = sender.position.next(route, self.passes, &self.unit_bytes, most as usize);
            let Some(stretch) = next else { break };
            if came >= placed {
                let to = self.areas[stretch.array].start()?.wrapping_add(stretch.start);
                // SAFETY: bytes of the array's area on this host, which is open, of units that the plan has (`Position`). No task here touches them
                // before the words say that the sender has done its task, and those that did before are done, which the sender has
                // waited for (`crossing`). One worker at a time puts in place, and what it writes again if one died meanwhile are the
                // same bytes.
                unsafe { ring.copy(bytes, came, to, stretch.bytes) };
            }
        }
        placed = placed.max(sender.base + sender.position.bytes);
        inbox.set_placed(placed);
        let is_begun = sender.position.bytes >= sender.initial;
        let mut slept = is_begun && theirs.begin_for(self.number);
        match head.state {
            State::Begun | State::Finished if is_begun => {
                slept |= theirs.catch_up(self.number, head.done, head.state == State::Finished);
            }
            State::Begun | State::Finished => {}
            State::None | State::Left | State::Refused => {
                theirs.leave_for(self.number, head.blamed.checked_sub(1));
                slept = true;
            }
        }
        sender.is_over = !matches!(head.state, State::Begun);
        sender.seen = Some(head);
        drop(inbox);
        if let Some(gone) = head.gone.checked_sub(1) {
            let gone = gone as Rank;
            if let Some(_inbox) = open_inbox(&self.shared, self.rank, gone) {
                words(&self.shared, gone).leave_for(self.number, None);
                futex_wake_all(low_half(words(&self.shared, gone).futex()));
            } else {
                sender.seen = None;
            }
        }
        if slept {
            futex_wake_all(low_half(theirs.futex()));
        }
        Ok(())
    }

    /// Waits until all that other hosts send here is in place, if their workers do all their tasks. This one has done its own.
    pub(super) fn finish(&mut self, worker: &mut Worker) -> Result<()> {
        self.start(worker)?;
        let crossing = self.crossing.clone();
        for host in self.others() {
            if self.passes > 0 {
                crossing
                    .route(self.rank, host)
                    .home()
                    .try_for_each(|piece| self.push(worker, host, piece))?;
            }
            self.out(host, |out| out.head.state = State::Finished);
            self.publish(worker, host)?;
        }
        self.is_finished = true;
        worker.forget_waiting();
        worker.within(None, |worker| {
            loop {
                self.take_in(worker)?;
                self.note_gone(worker)?;
                let is_left = |rank| {
                    let done = words(&self.shared, rank).done_in(self.number);
                    matches!(done, Done::Left { .. }) || self.shared.is_gone(rank)
                };
                let is_open = |one: &&Sender| !one.is_over && !is_left(one.rank);
                if self.senders.iter().find(is_open).is_none() {
                    return Ok(());
                }
                worker.shared().check_ending()?;
                worker.wait_step(None)?;
            }
        })
    }

    /// Finds out whether another host's worker could not begin after all, when all have met since they should have.
    pub(super) fn check_begun(&self, worker: &Worker) -> Result<()> {
        for sender in &self.senders {
            let rings = self.rings.borrow();
            let Some(ring) = rings.incoming(sender.rank).filter(|ring| !ring.is_left()) else {
                return Err(Error::TaskLeft { rank: sender.rank });
            };
            let (head, _) = ring.look(worker)?;
            if head.run != sender.run || matches!(head.state, State::Left | State::Refused) {
                return Err(Error::TaskLeft { rank: sender.rank });
            }
        }
        Ok(())
    }

    /// This worker leaves before it has done all its tasks, perhaps because another has.
    pub(super) fn leave(&mut self, because_of: Option<Rank>) {
        if std::mem::replace(&mut self.is_finished, true) || self.shared.check_process().is_err() {
            return;
        }
        let Ok(mut rings) = self.rings.try_borrow_mut() else { return };
        for out in rings.out.iter_mut().flatten() {
            out.leave(because_of);
        }
    }
}

/// The inbox of a worker of another host, unless another worker than `me` has it.
fn open_inbox(shared: &Shared, me: Rank, rank: Rank) -> Option<OpenInbox<'_>> {
    let is_gone = |rank, its| shared.is_gone(rank) || incarnation(shared, rank) != its;
    shared.segment.all_seats()[rank as usize].inbox.open((me, incarnation(shared, me)), is_gone)
}

impl Drop for Between {
    fn drop(&mut self) {
        self.leave(None);
    }
}
