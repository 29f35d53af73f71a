//! Rings: areas by which a worker sends bytes to the workers of another host, and says how far it is.
//!
//! A ring is written by one worker, published when that says so, and read by all workers of one host. It begins with a head and with
//! how much of the streams of that host's workers is in place on this one; the rest has the last bytes of the stream. What has not
//! been put in place by the readers is not written over. A worker makes its rings once, for as long as it is in the job.
use super::anew;
use super::head::{Head, State, ack, head_bytes, place_of_ack, place_of_gone};
use crate::api::area::guard::WriteGuard;
use crate::api::area::handle::Area;
use crate::api::area::owned::Owned;
use crate::api::worker::Worker;
use crate::engine::directory::Directory;
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::memory::clock;
use crate::segment::mapping::Segment;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of the streams of a ring: the most and the least.
const MOST: usize = 1 << 20;
const LEAST: usize = 1 << 16;
/// Bytes of the streams of all rings that a host reads, as far as the least allows.
const OF_ALL: usize = 16 << 20;

/// Bytes of the stream of each ring, in a job of so many workers.
fn capacity(workers: usize) -> usize {
    (OF_ALL / workers.max(1)).clamp(LEAST, MOST).next_power_of_two()
}

fn name(rank: Rank, host: usize) -> String {
    format!("{PLACE}{rank}/{host}")
}

/// The prefix of the names of rings.
const PLACE: &str = "hectare/tasks/";

/// Whether an area with this name is a ring, by which a worker tells others of its tasks.
pub(crate) fn is_ring(area: &str) -> bool {
    area.strip_prefix(PLACE).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// A ring that this worker writes.
#[derive(Debug)]
pub(super) struct Outgoing {
    owned: Owned<u8>,
    pub(super) head: Head,
    /// Where the stream begins.
    start: usize,
    capacity: usize,
    /// How much of the stream is in place there, as far as this worker has heard.
    acked: u64,
    /// By rank of the host: how much of its stream is in place here, as was said last.
    said: Vec<u64>,
    /// Where it stands who is gone.
    gone: Range<usize>,
}

impl Outgoing {
    /// How many bytes there is room for.
    pub(super) fn room(&self) -> usize {
        self.capacity - (self.head.sent - self.acked.max(self.head.base)) as usize
    }

    /// A reader says that so many bytes of the stream are in place.
    pub(super) fn hear(&mut self, placed: u64) {
        self.acked = self.acked.max(placed);
    }

    /// Adds bytes to the stream, for which there is room.
    pub(super) fn push(&mut self, worker: &Worker, mut bytes: &[u8]) -> Result<()> {
        let mut ring = self.owned.write(worker)?;
        while !bytes.is_empty() {
            let at = (self.head.sent % self.capacity as u64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(self.capacity - at));
            ring.range_mut(self.start + at..self.start + at + now.len()).copy_from_slice(now);
            self.head.sent += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Has the head published, with what the stream has by now and how much is in place here of the streams from there, in the next round,
    /// which is soon.
    pub(super) fn publish(&mut self, worker: &Worker, placed: impl Iterator<Item = u64>) -> Result<()> {
        let head = self.head.bytes();
        let mut ring = self.owned.write(worker)?;
        ring.range_mut(0..head.len()).copy_from_slice(&head);
        for (number, placed) in placed.enumerate() {
            if std::mem::replace(&mut self.said[number], placed) != placed {
                ring.range_mut(place_of_ack(number)).copy_from_slice(&placed.to_ne_bytes());
            }
        }
        self.owned.area().request_sync();
        worker.look_soon();
        Ok(())
    }

    /// Says, with what is published next, that the worker with the `number`-th rank of this host is gone.
    pub(super) fn note_gone(&mut self, worker: &Worker, number: usize) -> Result<()> {
        let place = self.gone.start + number;
        self.owned.write(worker)?.range_mut(place..place + 1).fill(1);
        self.head.gone += 1;
        Ok(())
    }

    /// Says of another run of this worker what there is to say at its begin.
    fn begin(&mut self, worker: &Worker, head: Head) -> Result<()> {
        if self.head.gone > 0 {
            self.owned.write(worker)?.range_mut(self.gone.clone()).fill(0);
        }
        let base = self.head.sent;
        self.head = Head { base, sent: base, ..head };
        self.publish(worker, std::iter::empty())
    }

    /// Whether the `number`-th rank of the host may wait to hear that `placed` bytes of its stream are in place.
    pub(super) fn owes(&self, number: usize, placed: u64) -> bool {
        placed - self.said[number] >= self.capacity as u64 / 4
    }

    /// Says that this worker has left the run, perhaps because of another.
    pub(super) fn leave(&mut self, because_of: Option<Rank>) {
        self.head.state = State::Left;
        self.head.blamed = because_of.map_or(0, |rank| rank + 1);
        let head = self.head.bytes();
        let area = self.owned.area();
        if area.core.is_there() {
            // SAFETY: the worker that owns the ring is in the job, as its rings go with it (`Kept`), and is of this thread; its type is `u8`,
            // and as `self` is borrowed mutably, nobody else reads or writes the writer copy.
            let mut ring = unsafe { WriteGuard::<u8>::new(&area.core) };
            ring.range_mut(0..head.len()).copy_from_slice(&head);
            area.request_sync();
        }
    }
}

/// A ring that another worker writes, and this one reads.
#[derive(Debug)]
pub(super) struct Incoming {
    area: Area<u8>,
    start: usize,
    /// The first rank of its writer's host, and where it stands which of them are gone.
    gone: (Rank, Range<usize>),
    /// The run of its writer that this worker knew of when all met last.
    met: u64,
}

impl Incoming {
    /// The head, and what is in the ring, as it was published last.
    pub(super) fn look<'w>(&self, worker: &'w Worker) -> Result<(Head, &'w [u8])> {
        let bytes = self.area.read(worker)?;
        Ok((Head::of(bytes), bytes))
    }

    /// Whether a run of its writer is another one than when all met last.
    pub(super) fn meet(&mut self, run: u64) -> bool {
        std::mem::replace(&mut self.met, run) != run
    }

    /// Whether this head is of the run in which all met last.
    pub(super) fn is_as_met(&self, head: &Head) -> bool {
        head.run == self.met
    }

    /// Whether its writer has said that it has done all tasks of the run in which all met last.
    pub(super) fn has_finished(&self, worker: &Worker) -> bool {
        let looked = if self.is_left() { None } else { self.look(worker).ok() };
        looked.is_some_and(|(head, _)| self.is_as_met(&head) && head.state == State::Finished)
    }

    /// Whether its writer has left the job, as far as it is known here.
    pub(super) fn is_left(&self) -> bool {
        !self.area.core.is_there() || self.area.core.ownership().is_dropped_elsewhere()
    }

    /// The workers of its writer's host that are gone and had not done all their tasks, as it says.
    pub(super) fn gone<'r>(&self, ring: &'r [u8]) -> impl Iterator<Item = Rank> + use<'r> {
        let (first, marks) = (self.gone.0, &ring[self.gone.1.clone()]);
        (first..).zip(marks).filter(|(_, mark)| **mark != 0).map(|(rank, _)| rank)
    }

    /// How much of the stream of the `number`-th rank of this host is in place there.
    pub(super) fn ack(&self, worker: &Worker, number: usize) -> Result<u64> {
        Ok(ack(self.area.read(worker)?, number))
    }

    /// Copies bytes of the stream, from its `at`-th on, out of the ring.
    ///
    /// # Safety
    /// `to` may be written for `len` bytes, which nobody else accesses meanwhile.
    pub(super) unsafe fn copy(&self, ring: &[u8], at: u64, to: *mut u8, len: usize) {
        let stream = &ring[self.start..];
        let first = (at % stream.len() as u64) as usize;
        let parts = [(first, len.min(stream.len() - first)), (0, len.saturating_sub(stream.len() - first))];
        let mut to = to;
        for (from, len) in parts {
            let from = &stream[from..from + len];
            // SAFETY: by the contract; the ring is not where it is copied to, which is an area of its own.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, len) };
            to = to.wrapping_add(len);
        }
    }
}

/// The rings of a worker, and the copies of arrays that it has made for its host. After it has left, there are none.
#[derive(Debug)]
pub(crate) struct Rings {
    shared: Arc<Shared>,
    /// By host; none to this one.
    pub(super) out: Vec<Option<Outgoing>>,
    /// By rank: those that come here, and of workers of this host one that does not.
    from: Vec<Option<Incoming>>,
    /// Copies of arrays, which this worker has made for its host.
    pub(super) replicas: Vec<super::replicas::Replica>,
    /// The run of this worker.
    run: u64,
}

impl Rings {
    /// Those of a worker; makes them, if it has none.
    pub(super) fn of(worker: &mut Worker) -> Result<Rc<RefCell<Rings>>> {
        let kept = worker.local().extension.borrow().clone();
        if let Some(kept) = kept.and_then(|kept| kept.downcast::<Kept>().ok()) {
            return Ok(kept.0.clone());
        }
        let shared = worker.shared().clone();
        let (hosts, here) = (shared.segment.config().hosts as usize, shared.segment.config().here as usize);
        // Whatever worker had the rank before.
        let (run, mut out) = (clock::now_ns(), Vec::with_capacity(hosts));
        for host in 0..hosts {
            out.push(if host == here { None } else { Some(Rings::make(worker, host)?) });
        }
        let (from, replicas) = ((0..shared.segment.hosts_end()).map(|_| None).collect(), Vec::new());
        let rings = Rc::new(RefCell::new(Rings { shared, out, from, replicas, run }));
        *worker.local().extension.borrow_mut() = Some(Rc::new(Kept(rings.clone())));
        Ok(rings)
    }

    fn make(worker: &mut Worker, host: usize) -> Result<Outgoing> {
        let segment = &worker.shared().segment;
        let (from, ranks) = (segment.ranks_here().len(), segment.ranks_of(host).len());
        let (start, gone) = (head_bytes(from, ranks), place_of_gone(from, ranks));
        let capacity = capacity(segment.hosts_end() as usize);
        let spec = crate::AreaSpec::new(name(worker.rank(), host));
        let owned = anew::make::<u8>(worker, spec, start + capacity)?;
        // Behind all that workers had sent who had the rank before, if they did not send 16 bytes in each nanosecond: what is said to be in
        // place of theirs is not taken for what is of this one's.
        let sent = clock::now_ns() << 4;
        let head = Head { base: sent, sent, ..Head::default() };
        Ok(Outgoing { owned, head, start, capacity, acked: 0, said: vec![0; ranks], gone })
    }

    /// Another run of this worker, or an attempt: what it says of itself from now on.
    pub(super) fn begin(&mut self, worker: &Worker, head: Head) -> Result<()> {
        self.run += 1;
        let head = Head { run: self.run, ..head };
        self.out.iter_mut().flatten().try_for_each(|out| out.begin(worker, head))
    }

    /// The ring of a worker that comes here, or of one of this host any that it has; once all have made theirs.
    pub(super) fn attach(&mut self, worker: &mut Worker, rank: Rank) -> Result<()> {
        let place = &mut self.from[rank as usize];
        if place.as_ref().is_some_and(|ring| !ring.is_left()) {
            return Ok(());
        }
        let segment = &worker.shared().segment;
        let here = segment.config().here as usize;
        let (from, to) = match segment.host_of(rank) {
            Some(host) => (host, here),
            // To the host that is told last.
            None => (here, (0..segment.config().hosts as usize).rfind(|host| *host != here).unwrap_or(here)),
        };
        let (its, ranks) = (segment.ranks_of(from), segment.ranks_of(to).len());
        let start = head_bytes(its.len(), ranks);
        let gone = (its.start, place_of_gone(its.len(), ranks));
        let len = start + capacity(segment.hosts_end() as usize);
        let attached = worker.attach::<u8>(&name(rank, to));
        let area = attached.map_err(|error| match error {
            Error::NoSuchArea { .. } => Error::NoSuchWorker { rank },
            other => other,
        })?;
        if area.len() != len {
            let what = format!(
                "of {} bytes, not of {len}: runs of tasks on several hosts need the name for worker {rank}; give the area another",
                area.len()
            );
            return Err(Error::InvalidArea { name: name(rank, to), what });
        }
        *place = Some(Incoming { area, start, gone, met: 0 });
        Ok(())
    }

    /// The run of this worker, or its attempt at one, by the number that it has.
    pub(super) fn run(&self) -> u64 {
        self.run
    }

    pub(super) fn incoming_mut(&mut self, rank: Rank) -> Option<&mut Incoming> {
        self.from.get_mut(rank as usize)?.as_mut()
    }

    pub(super) fn incoming(&self, rank: Rank) -> Option<&Incoming> {
        self.from.get(rank as usize)?.as_ref()
    }

    /// How much of the streams of each of a host's workers is in place here.
    pub(super) fn placed(segment: &Segment, host: usize) -> impl Iterator<Item = u64> + '_ {
        segment.ranks_of(host).map(|rank| segment.all_seats()[rank as usize].inbox.placed())
    }
}

/// The rings of a worker: they go with it, whoever else knows of them.
#[derive(Debug)]
struct Kept(Rc<RefCell<Rings>>);

impl Drop for Kept {
    fn drop(&mut self) {
        let Ok(mut rings) = self.0.try_borrow_mut() else { return };
        let (out, replicas) = (std::mem::take(&mut rings.out), std::mem::take(&mut rings.replicas));
        if rings.shared.check_process().is_err() {
            return;
        }
        let ids = out.iter().flatten().map(|out| out.owned.area().core.id);
        for id in ids.chain(replicas.iter().map(|replica| replica.id())) {
            // If the directory cannot be had, they go with the job.
            if let Ok(directory) = Directory::lock_outside(&rings.shared) {
                directory.delete(id);
            }
        }
    }
}
