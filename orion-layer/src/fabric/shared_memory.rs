//! Workers that share a job's memory: a frame is a published area of each worker, read in place after a barrier; parcels are an
//! area of their sender's for each host that has receivers.
use super::shown::{self, Shown, read_shown};
use super::{Fabric, Parcel, Parcels, Write};
use crate::error::{Error, Result};
use hectare_dsm::{Area, AreaSpec, Element, Owned, Rank, Version, Worker, WorkerInfo, WorkerState};
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a worker waits for the parcels that another has said to offer.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How long a worker waits for the exit notice of one of another host; and of one that is said to be gone, whose notice may
/// be on its way yet.
const NOTICE: Duration = Duration::from_secs(2);
const LAST_NOTICE: Duration = Duration::from_millis(300);
/// How long until it looks which of these it is, or whether a worker whose area it waits for lives.
const LOOK: Duration = Duration::from_millis(50);

/// One worker of a job, and its view of the others.
#[derive(Debug)]
pub(crate) struct SharedMemory<'w> {
    pub(crate) worker: &'w mut Worker,
    /// The ranks of each host.
    hosts: Vec<Range<Rank>>,
    /// Where this worker writes its frames; `None` when it has left its exit notice.
    mine: Option<Owned<u8>>,
    frames: Vec<Area<u8>>,
    offered: Vec<(String, Shown<u8>)>,
}

/// Whether a worker is dead, as far as one can tell here: on another host also if nobody there is in the clocks, which no worker of
/// a program leaves before its end.
pub(crate) fn is_gone(worker: &WorkerInfo) -> bool {
    worker.state == WorkerState::Dead || (worker.state == WorkerState::Remote && worker.clock == u64::MAX)
}

/// Whether a worker that was there lives, as far as one can tell.
fn is_alive(worker: &Worker, rank: usize) -> bool {
    let workers = worker.job().workers().unwrap_or_default();
    workers.iter().any(|other| other.rank as usize == rank && !is_gone(other))
}

/// The area of this name that worker `rank` makes, or has made; waits for it at most so long, and not for a worker that is gone.
///
/// # Errors
/// [`Error::WorkerLost`] at `site`, and those of [`Worker::attach_within`].
pub(crate) fn attach_to<T: Element>(
    worker: &mut Worker,
    site: &str,
    name: &str,
    rank: usize,
    limit: Duration,
) -> Result<Area<T>> {
    let since = Instant::now();
    let mut gone_since = None;
    loop {
        let left = limit.saturating_sub(since.elapsed());
        match worker.attach_within(name, left.min(LOOK)) {
            Err(hectare_dsm::Error::TimedOut { what, missing, .. }) => {
                let waited = since.elapsed();
                if waited >= limit {
                    return Err(hectare_dsm::Error::TimedOut { what, waited, missing }.into());
                }
            }
            attached => return Ok(attached?),
        }
        // The area of one that died may still be on its way from another host.
        if is_alive(worker, rank) {
            gone_since = None;
        } else if gone_since.get_or_insert_with(Instant::now).elapsed() >= LAST_NOTICE {
            let host = name_of_other(worker, rank);
            return Err(Error::WorkerLost { site: site.into(), rank: rank as Rank, host });
        }
    }
}

/// Attaches to areas, in the order of `names`: the name of each, and the rank of the worker that makes it. On several hosts they come at
/// the same time, not one after the other.
///
/// # Errors
/// Those of [`attach_to`].
pub(crate) fn attach_to_all<T: Element>(
    worker: &mut Worker,
    site: &str,
    names: &[(String, usize)],
    limit: Duration,
) -> Result<Vec<Area<T>>> {
    worker.ask_for(names.iter().map(|(name, _)| name.as_str()))?;
    names.iter().map(|(name, rank)| attach_to(worker, site, name, *rank, limit)).collect()
}

/// The name of the host of worker `rank`, if it is not this worker's host.
pub(crate) fn name_of_other(worker: &Worker, rank: usize) -> Option<String> {
    let job = worker.job();
    let host = job.hosts().iter().position(|ranks| ranks.contains(&(rank as Rank)))?;
    job.host_name(host).filter(|_| host != job.host())
}

fn mailbox(rank: usize) -> String {
    format!("orion/mail/{rank}")
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(std::array::from_fn(|k| bytes[at * 8 + k])) as usize
}

impl<'w> SharedMemory<'w> {
    /// Meets workers `0..size` of the job, all of whom call this, with room for frames of `longest` bytes.
    pub(crate) fn meet(
        worker: &'w mut Worker,
        size: usize,
        longest: usize,
        timeout: Duration,
    ) -> Result<SharedMemory<'w>> {
        worker.wait_for_workers(size, timeout)?;
        let mine = worker.create::<u8>(AreaSpec::new(mailbox(worker.rank() as usize)), longest)?;
        let names: Vec<_> = (0..size).map(|rank| (mailbox(rank), rank)).collect();
        let frames = attach_to_all(worker, "the start of the program", &names, timeout)?;
        let mut hosts = worker.job().hosts();
        if hosts.is_empty() {
            hosts.push(0..Rank::MAX);
        }
        Ok(SharedMemory { worker, hosts, mine: Some(mine), frames, offered: Vec::new() })
    }

    /// Whether workers are on several hosts.
    pub(crate) fn spans_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// On how many.
    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The first worker of a host.
    pub(crate) fn first_of(&self, host: usize) -> usize {
        self.hosts.get(host).map_or(0, |ranks| ranks.start as usize)
    }

    /// The name of a worker's host, in a job on several.
    pub(crate) fn name_of_host(&self, rank: usize) -> Option<String> {
        let host = self.host_of(rank);
        self.worker.job().host_name(host)
    }

    /// The host of a worker, counted from 0.
    pub(crate) fn host_of(&self, rank: usize) -> usize {
        self.hosts.iter().position(|ranks| ranks.contains(&(rank as Rank))).unwrap_or_default()
    }

    /// Gives the memory back of this worker's parcels whose names begin so.
    pub(crate) fn withdraw_all(&mut self, begin: &str) -> Result<()> {
        while let Some(at) = self.offered.iter().position(|(offered, _)| offered.starts_with(begin)) {
            self.offered.swap_remove(at).1.delete(self.worker)?;
        }
        Ok(())
    }

    /// Shows parcels of these lengths to one host or, if that is `None`, to all. The area begins with a table of where the parcels
    /// do, and where the last ends.
    fn offer_to(
        &mut self,
        name: &str,
        host: Option<usize>,
        lengths: &[usize],
        write: Write<'_>,
    ) -> Result<()> {
        let here = self.host_of(self.rank() as usize);
        let leaves = self.spans_hosts() && host != Some(here);
        let head = (lengths.len() + 1) * 8;
        let spec = shown::spec(area_name(name, self.rank() as usize, host), leaves);
        let mut owned = self.worker.create::<u8>(spec, head + lengths.iter().sum::<usize>())?;
        let (table, parcels) = owned.write_whole(self.worker)?.split_at_mut(head);
        let mut end = head;
        for (place, len) in table.chunks_exact_mut(8).zip(std::iter::once(&0).chain(lengths)) {
            end += len;
            place.copy_from_slice(&(end as u64).to_le_bytes());
        }
        write(parcels);
        self.offered.push((name.into(), Shown::new(owned, self.worker, leaves)?));
        Ok(())
    }
}

/// The frames of all workers, for one who waits for something else than a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames<'f>(&'f [Area<u8>]);

impl Frames<'_> {
    pub(crate) fn size(self) -> usize {
        self.0.len()
    }

    /// [`Fabric::frame`].
    pub(crate) fn frame(self, worker: &Worker, rank: usize) -> Result<&[u8]> {
        Ok(self.0[rank].read(worker)?)
    }

    /// [`Fabric::left_by`], on one host.
    pub(crate) fn left_by(self, worker: &Worker, rank: usize) -> Option<&[u8]> {
        self.0[rank].read_lent(worker).ok()
    }
}

impl SharedMemory<'_> {
    /// The worker, and the frames that it may look at meanwhile.
    pub(crate) fn split(&mut self) -> (&mut Worker, Frames<'_>) {
        (self.worker, Frames(&self.frames))
    }
}

fn area_name(name: &str, rank: usize, host: Option<usize>) -> String {
    match host {
        Some(host) => format!("{name}/{rank}/{host}"),
        None => format!("{name}/{rank}"),
    }
}

impl Fabric for SharedMemory<'_> {
    fn rank(&self) -> Rank {
        self.worker.rank()
    }

    fn size(&self) -> usize {
        self.frames.len()
    }

    fn post(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        if let Some(mine) = &mut self.mine {
            write(mine.write(self.worker)?.range_mut(0..len));
        }
        Ok(self.worker.barrier()?)
    }

    fn frame(&self, rank: usize) -> Result<&[u8]> {
        Frames(&self.frames).frame(self.worker, rank)
    }

    fn leave(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        let Some(mut mine) = self.mine.take() else { return Ok(()) };
        write(mine.write(self.worker)?.range_mut(0..len));
        match self.spans_hosts() {
            true => drop(self.worker.sync()?),
            // A lent area needs no round to be read, and stays when its worker has left.
            false => drop(mine.lend(self.worker).map_err(hectare_dsm::Error::from)?),
        }
        Ok(())
    }

    /// On several hosts a notice is one more frame, which comes when it can.
    fn await_notice(&mut self, rank: usize) -> Result<()> {
        if self.host_of(rank) != self.host_of(self.rank() as usize) {
            let seen = self.frames[rank].version(self.worker)?;
            let next = Version { counter: seen.counter + 1, ..seen };
            let since = Instant::now();
            loop {
                match self.worker.wait_for(&self.frames[rank], next, LOOK) {
                    Ok(_) => break,
                    Err(hectare_dsm::Error::TimedOut { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                let longest = if self.is_alive(rank) { NOTICE } else { LAST_NOTICE };
                if since.elapsed() >= longest {
                    break;
                }
            }
        }
        Ok(())
    }

    fn left_by(&self, rank: usize) -> Option<&[u8]> {
        match self.spans_hosts() {
            true => self.frames[rank].read(self.worker).ok(),
            false => Frames(&self.frames).left_by(self.worker, rank),
        }
    }

    fn is_alive(&self, rank: usize) -> bool {
        is_alive(self.worker, rank)
    }

    fn other_host(&self, rank: usize) -> Option<String> {
        name_of_other(self.worker, rank)
    }

    fn offer(&mut self, name: &str, parcels: Parcels<'_>, write: Write<'_>) -> Result<()> {
        let lengths = match parcels {
            Parcels::OneForAll(len) => return self.offer_to(name, None, &[len], write),
            Parcels::OneForEach(lengths) if !self.spans_hosts() => {
                return self.offer_to(name, Some(0), lengths, write);
            }
            Parcels::OneForEach(lengths) => lengths,
        };
        let mut all = vec![0; lengths.iter().sum()];
        write(&mut all);
        let mut rest = all.as_slice();
        for (host, ranks) in self.hosts.clone().iter().enumerate() {
            let clamp = |rank: Rank| (rank as usize).min(lengths.len());
            let lengths = &lengths[clamp(ranks.start)..clamp(ranks.end)];
            let (mine, after) = rest.split_at(lengths.iter().sum());
            rest = after;
            if !lengths.is_empty() {
                self.offer_to(name, Some(host), lengths, &mut |place| place.copy_from_slice(mine))?;
            }
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        name: &str,
        rank: usize,
        which: Parcel,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let me = self.rank() as usize;
        let here = self.host_of(me);
        let (host, number, comes) = match which {
            Parcel::ForAll => (None, 0, self.spans_hosts()),
            Parcel::Mine => (Some(here), me - self.hosts[here].start as usize, self.host_of(rank) != here),
        };
        let area = area_name(name, rank, host);
        let area = attach_to::<u8>(self.worker, "an exchange", &area, rank, TIME_LIMIT)?;
        let bytes = read_shown(&area, self.worker, comes)?;
        visit(&bytes[word(bytes, number)..word(bytes, number + 1)])
    }

    fn withdraw(&mut self, name: &str) -> Result<()> {
        while let Some(at) = self.offered.iter().position(|(offered, _)| offered == name) {
            self.offered.swap_remove(at).1.delete(self.worker)?;
        }
        Ok(())
    }
}
