//! One worker's part in what goes between hosts in a run: what it sends, what it puts in place, and whom it tells of what.
use super::announce::Announced;
use super::head::State;
use super::planned::Planned;
use super::rings::{Outgoing, Rings};
use super::sender::{Here, Sender};
use crate::api::tasks::part::{InPlace, Part, incarnation, words};
use crate::api::worker::Worker;
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::Done;
use crate::protocol::tasks::crossing::Piece;
use crate::segment::mapping::Segment;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// One worker's part in what goes between hosts in a run.
#[derive(Debug)]
pub(in crate::api::tasks) struct Between {
    shared: Arc<Shared>,
    rings: Rc<RefCell<Rings>>,
    rank: Rank,
    /// The number of the run on this host.
    number: u64,
    /// The run as this worker's rings have it.
    run: u64,
    planned: Planned,
    /// By worker.
    host_of: Vec<usize>,
    /// By array, on this host.
    areas: Vec<InPlace>,
    senders: Vec<Sender>,
    /// The other workers of this host, and which of those who had each rank it was; but those that other hosts were told are gone.
    neighbours: Vec<(Rank, u32)>,
    is_started: bool,
    /// Whether this worker has said that it has done all, or that it has left.
    is_finished: bool,
}

impl Between {
    /// Begins, when the part of this worker has begun with `number` over `areas`, which are on this host.
    pub(super) fn begin(
        worker: &mut Worker,
        announced: &Announced,
        planned: Planned,
        areas: &[InPlace],
        number: u64,
    ) -> Result<Between> {
        let rings = Rings::of(worker)?;
        let shared = worker.shared().clone();
        let here = shared.segment.config().here as usize;
        let mut senders = Vec::new();
        for rank in 0..announced.places.host_of.len() as Rank {
            if announced.places.host_of[rank as usize] == here {
                continue;
            }
            let rings = rings.borrow();
            let ring = rings.incoming(rank).ok_or(Error::NoSuchWorker { rank })?;
            let (head, _) = ring.look(worker)?;
            if !ring.is_as_met(&head) {
                return Err(Error::TaskLeft { rank: head.cause(rank) });
            }
            senders.push(Sender::new(rank, &head, &planned, here));
        }
        let is_neighbour =
            |rank: &Rank| announced.places.host_of[*rank as usize] == here && *rank != worker.rank();
        let neighbours = (0..announced.places.host_of.len() as Rank).filter(is_neighbour);
        let neighbours = neighbours.map(|rank| (rank, incarnation(&shared, rank))).collect();
        let run = rings.borrow().run();
        Ok(Between {
            neighbours,
            rings,
            rank: worker.rank(),
            number,
            run,
            planned,
            host_of: announced.places.host_of.clone(),
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
    pub(in crate::api::tasks) fn bytes(&self) -> Vec<Vec<u64>> {
        self.planned.crossing.bytes(&self.host_of, self.planned.passes, &self.planned.unit_bytes)
    }

    /// The workers that this worker's task waits for besides those that the plan names, and how many tasks of each must be done.
    pub(in crate::api::tasks) fn needs(&self, task: u64) -> Vec<(Rank, u64)> {
        self.planned.crossing.needs(self.rank, task as usize).collect()
    }

    /// Whether what others need before the first tasks is sent.
    pub(in crate::api::tasks) fn is_started(&self) -> bool {
        self.is_started
    }

    /// Whether what the rings say is said of this run: one that the worker has begun since, or tried to, has them.
    fn has_rings(&self) -> bool {
        self.rings.try_borrow().is_ok_and(|rings| rings.run() == self.run)
    }

    /// Refuses a worker that has begun another run since, or has left this one: what others take for the run's is sent no more.
    fn check(&self, worker: &Worker, part: &Part) -> Result<()> {
        part.check(worker)?;
        if self.has_rings() && !self.is_finished {
            return Ok(());
        }
        let what = "this worker has left their run, or has tried to begin another since".into();
        Err(Error::Tasks { rank: self.rank, what })
    }

    /// Sends what others need before the first tasks; once.
    fn start(&mut self, worker: &mut Worker) -> Result<()> {
        if std::mem::replace(&mut self.is_started, true) || self.planned.passes == 0 {
            return Ok(());
        }
        let sent = self.send_initial(worker);
        self.or_leave(sent)
    }

    /// After an error in the middle of what others are to be sent or told, they do not get the rest: the worker leaves.
    fn or_leave(&mut self, told: Result<()>) -> Result<()> {
        if told.is_err() {
            self.leave(None);
        }
        told
    }

    fn send_initial(&mut self, worker: &mut Worker) -> Result<()> {
        let crossing = self.planned.crossing.clone();
        for host in self.others() {
            let pieces = &crossing.route(self.rank, host).initial;
            if !pieces.is_empty() {
                pieces.iter().try_for_each(|piece| self.push(worker, host, *piece))?;
                self.publish(worker, host)?;
            }
        }
        Ok(())
    }

    /// Waits as [`Part::wait`] does, and puts in place meanwhile what comes.
    pub(in crate::api::tasks) fn wait<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        part: &Part,
        after: impl Iterator<Item = (Rank, u64)> + Clone,
        look: impl FnMut(&Worker, Rank) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check(worker, part)?;
        self.start(worker)?;
        let waited = worker.within(None, |worker| {
            part.wait(worker, after, look, |worker: &mut Worker| Ok(self.take_in(worker)?))
        });
        // For whom it waits in vain, it does no more tasks. After other errors, of `look` for instance, it can wait again.
        if part.lost().is_some() {
            self.leave(part.lost());
        }
        waited
    }

    /// Ends this worker's task: what it wrote for other hosts is on its way when it is said to be done.
    pub(in crate::api::tasks) fn end_task(&mut self, worker: &mut Worker, part: &mut Part) -> Result<()> {
        self.check(worker, part)?;
        self.start(worker)?;
        self.send(worker, part.done())?;
        let ended = part.end_task(worker);
        let told = ended.and_then(|()| self.tell(worker, part.done(), part.done() == part.tasks()));
        self.or_leave(told)
    }

    /// Copies what this worker's task number `task` wrote for other hosts; before it is said to be done.
    fn send(&mut self, worker: &mut Worker, task: u64) -> Result<()> {
        let crossing = self.planned.crossing.clone();
        let (pass, task) = (task as usize / self.planned.tasks, task as usize % self.planned.tasks);
        for host in self.others() {
            let route = crossing.route(self.rank, host);
            route
                .after(task, pass + 1 == self.planned.passes)
                .try_for_each(|piece| self.push(worker, host, piece))?;
        }
        Ok(())
    }

    /// Tells the hosts where others wait for it that this worker has done `done` tasks, perhaps its last.
    fn tell(&mut self, worker: &Worker, done: u64, is_last: bool) -> Result<()> {
        let task = (done - 1) as usize % self.planned.tasks;
        for host in self.others() {
            if is_last || self.planned.crossing.route(self.rank, host).tells(task) {
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

    /// Adds a piece of an array to the stream to a host, and waits for room there. After an error the stream is not whole: the worker
    /// leaves.
    fn push(&mut self, worker: &mut Worker, host: usize, piece: Piece) -> Result<()> {
        let pushed = self.push_whole(worker, host, piece);
        self.or_leave(pushed)
    }

    fn push_whole(&mut self, worker: &mut Worker, host: usize, piece: Piece) -> Result<()> {
        let unit = self.planned.unit_bytes[piece.array as usize];
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
            // SAFETY: bytes of the array's area on this host, which is open, as the plan's units are. This worker's task wrote them, or they
            // are as the owner left them, and nobody writes them before those have them who touch them next (`crossing`): those who do
            // so wait for this worker's task, which is not said to be done yet.
            let bytes = unsafe { std::slice::from_raw_parts(from, room) };
            self.out(host, |out| out.push(worker, bytes)).unwrap_or(Ok(()))?;
            (start, left) = (start + room, left - room);
        }
        Ok(())
    }

    /// The bytes that there is room for in the ring to a host, as far as its workers have said by now.
    fn room(&self, worker: &Worker, host: usize) -> Result<usize> {
        let known = self.out(host, |out| out.room()).unwrap_or(usize::MAX);
        if known > 0 {
            return Ok(known);
        }
        let number = (self.rank - self.segment().ranks_here().start) as usize;
        for rank in self.segment().ranks_of(host) {
            let rings = self.rings.borrow();
            let Some(ring) = rings.incoming(rank).filter(|ring| !ring.is_left()) else { continue };
            let placed = ring.ack(worker, number)?;
            drop(rings);
            self.out(host, |out| out.hear(placed));
        }
        Ok(self.out(host, |out| out.room()).unwrap_or(usize::MAX))
    }

    fn wait_for_room(&mut self, worker: &mut Worker, host: usize) -> Result<()> {
        worker.forget_waiting();
        worker.within(None, |worker| {
            loop {
                self.take_in(worker)?;
                if self.room(worker, host)? > 0 {
                    return Ok(());
                }
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
    fn note_gone(&mut self, worker: &Worker) -> Result<()> {
        let is_gone = |rank: Rank, its: u32| {
            let is_gone = self.shared.is_gone(rank) || incarnation(&self.shared, rank) != its;
            // Of what it had done last, others may have nothing.
            let has_told =
                || self.rings.borrow().incoming(rank).is_some_and(|ring| ring.has_finished(worker));
            is_gone && !(words(&self.shared, rank).has_finished(self.number) && has_told())
        };
        let found = self.neighbours.iter().position(|(rank, its)| is_gone(*rank, *its));
        let Some((rank, _)) = found.map(|at| self.neighbours.swap_remove(at)) else { return Ok(()) };
        let number = (rank - self.segment().ranks_here().start) as usize;
        for host in self.others() {
            self.out(host, |out| out.note_gone(worker, number)).unwrap_or(Ok(()))?;
            self.publish(worker, host)?;
        }
        Ok(())
    }

    /// Puts in place what has come from other hosts, and tells them of a worker here that is gone.
    fn take_in(&mut self, worker: &mut Worker) -> Result<()> {
        for at in 0..self.senders.len() {
            let here = Here {
                shared: &self.shared,
                rank: self.rank,
                number: self.number,
                planned: &self.planned,
                areas: &self.areas,
                rings: &self.rings,
            };
            let sender = &mut self.senders[at];
            sender.take_in(worker, &here)?;
            let rank = sender.rank;
            let placed = self.segment().all_seats()[rank as usize].inbox.placed();
            let Some(host) = self.segment().host_of(rank) else { continue };
            let number = (rank - self.segment().ranks_of(host).start) as usize;
            if self.out(host, |out| out.owes(number, placed)).unwrap_or(false) {
                self.publish(worker, host)?;
            }
        }
        self.note_gone(worker)
    }

    /// Ends the run: if this worker has done all its tasks, sends what goes home, and waits until all that other hosts send here is in place,
    /// or one of their workers has left.
    pub(in crate::api::tasks) fn end(&mut self, worker: &mut Worker, part: &Part) -> Result<()> {
        if part.done() < part.tasks() {
            return Ok(());
        }
        self.check(worker, part)?;
        self.start(worker)?;
        let crossing = self.planned.crossing.clone();
        for host in self.others() {
            if self.planned.passes > 0 {
                let home = &crossing.route(self.rank, host).home;
                home.iter().try_for_each(|piece| self.push(worker, host, *piece))?;
            }
            self.out(host, |out| out.head.state = State::Finished);
            self.publish(worker, host)?;
        }
        self.is_finished = true;
        worker.forget_waiting();
        worker.within(None, |worker| {
            loop {
                self.take_in(worker)?;
                let is_left = |rank| {
                    let done = words(&self.shared, rank).done_in(self.number);
                    matches!(done, Done::Left { .. }) || self.shared.is_gone(rank)
                };
                let is_open = |one: &&Sender| !one.is_over && !is_left(one.rank);
                if !self.senders.iter().any(|one| is_open(&one)) {
                    return Ok(());
                }
                worker.shared().check_ending()?;
                worker.wait_step(None)?;
            }
        })
    }

    /// Finds out whether another worker could not begin after all, when all have met since they should have.
    pub(in crate::api::tasks) fn check_begun(&self, worker: &Worker) -> Result<()> {
        for rank in (0..self.host_of.len() as Rank).filter(|rank| *rank != self.rank) {
            let rings = self.rings.borrow();
            let Some(ring) = rings.incoming(rank).filter(|ring| !ring.is_left()) else {
                return Err(Error::TaskLeft { rank });
            };
            let (head, _) = ring.look(worker)?;
            if matches!(head.state, State::Left | State::Refused) {
                return Err(Error::TaskLeft { rank: head.cause(rank) });
            }
            if !ring.is_as_met(&head) {
                return Err(Error::TaskLeft { rank });
            }
        }
        Ok(())
    }

    /// This worker leaves before it has done all its tasks, perhaps because another has.
    pub(in crate::api::tasks) fn leave(&mut self, because_of: Option<Rank>) {
        let is_said = std::mem::replace(&mut self.is_finished, true) || !self.has_rings();
        if is_said || self.shared.check_process().is_err() {
            return;
        }
        let Ok(mut rings) = self.rings.try_borrow_mut() else { return };
        for out in rings.out.iter_mut().flatten() {
            out.leave(because_of);
        }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.leave(None);
    }
}
