//! Looking at a job without being part of it: what `hectare top` and the daemon's metrics show.
mod snapshot;

pub use self::snapshot::{AreaSnapshot, Snapshot, WorkerSnapshot};

use super::info::{Stats, WorkerState};
use crate::engine::directory;
use crate::error::{Error, Rank, Result};
use crate::memory::clock::now_ns;
use crate::memory::process;
use crate::protocol::ownership;
use crate::protocol::record::CopyRecord;
use crate::protocol::remote_clocks::HostRecord;
use crate::protocol::round::{Seat, slot_state};
use crate::protocol::word::{Phase, RoundWord};
use crate::segment::layout::{AreaSlot, Header, HostName, Marks, WorkerRecord};
use crate::segment::table_reader::TableReader;
use crate::segment::tally::Tally;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Area slots that are read at a time.
const SLOTS: usize = 256;

/// A job to look at. Takes no lock, waits for nobody and writes nothing: it copies the tables of the job's
/// memory through the descriptor and never maps it. So a process that writes rubbish into them, or truncates
/// what it can, makes the numbers wrong and nothing else.
///
/// ```
/// use hectare_dsm::{Job, Monitor};
/// let job = Job::embedded()?;
/// let mut worker = job.worker()?;
/// let mut area = worker.create::<u64>("counts", 100)?;
/// area.write(&mut worker)?.fill(1);
/// worker.sync()?;
/// let monitor = job.monitor()?;
/// let snapshot = monitor.snapshot(16)?;
/// assert_eq!((snapshot.stats.rounds, snapshot.stats.published), (1, 1));
/// assert_eq!((snapshot.workers[0].rounds, snapshot.areas[0].name.as_str()), (1, "counts"));
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Debug)]
pub struct Monitor {
    tables: TableReader,
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn get32(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

impl Monitor {
    /// Looks at the job behind a descriptor that came from [`Job::descriptor`](crate::Job::descriptor); at one that
    /// this process is in, by [`Job::monitor`](crate::Job::monitor).
    ///
    /// # Errors
    /// [`Error::NotASegment`], [`Error::LayoutVersion`], [`Error::Os`].
    pub fn open(descriptor: OwnedFd) -> Result<Monitor> {
        Ok(Monitor { tables: TableReader::open(descriptor)? })
    }

    /// Everything at once, with the first `max_areas` areas.
    ///
    /// # Errors
    /// [`Error::Os`], [`Error::NotASegment`] if the header is gone.
    pub fn snapshot(&self, max_areas: usize) -> Result<Snapshot> {
        let (tables, map, config) = (&self.tables, &self.tables.map, &self.tables.config);
        let no_header = || Error::NotASegment { what: "it has no header any more".into() };
        let header: Header = tables.one(0)?.ok_or_else(no_header)?;
        let sync = &header.sync;
        let hosts: Vec<HostRecord> = tables.table(map.hosts, config.hosts as usize)?;
        let ranks = |host: &HostRecord| get32(&host.first).saturating_add(get32(&host.ranks));
        let ranks = hosts.iter().map(ranks).max().unwrap_or(0);
        let high = get32(&sync.workers_high).max(ranks).min(config.max_workers) as usize;
        let seats: Vec<Seat> = tables.table(map.seats, high)?;
        let records: Vec<WorkerRecord> = tables.table(map.workers, high)?;
        let mut tallies: Vec<Tally> = tables.table(map.tallies, high)?;
        let word = RoundWord(get(&sync.word));
        let waits = word.phase() == Phase::Open;
        let workers = (0..).zip(&seats).zip(&records).zip(&tallies);
        let names: Vec<HostName> = tables.table(map.host_names, config.hosts as usize)?;
        let elsewhere = |rank: Rank| {
            let is_its = |host: &HostRecord| rank.wrapping_sub(get32(&host.first)) < get32(&host.ranks);
            let host = hosts.iter().position(is_its).filter(|host| *host != config.here as usize)?;
            let name = names.get(host).map_or_else(|| host.to_string(), |name| name.text(host));
            Some((get(&hosts[host].clock), name))
        };
        let workers = workers
            .filter_map(|(((rank, seat), record), tally)| {
                worker(rank, seat, record, tally, waits.then_some(word))
            })
            .map(|worker| match elsewhere(worker.rank) {
                Some((clock, host)) => {
                    WorkerSnapshot { clock, waited_for: false, host: Some(host), ..worker }
                }
                None => worker,
            })
            .collect();
        let last = map.tallies + u64::from(config.max_workers) * size_of::<Tally>() as u64;
        tallies.extend(tables.one::<Tally>(last)?);
        let stats = Stats::of(get(&sync.acting.rounds), &header.counters, tallies.iter(), &seats);
        let (areas, areas_omitted) = self.areas(&header, max_areas)?;
        Ok(Snapshot {
            stats,
            round: word.round(),
            waits,
            resident_bytes: crate::segment::mapping::resident_bytes(tables.fd())?,
            reserve_bytes: config.reserve_bytes,
            workers,
            areas,
            areas_omitted,
        })
    }

    /// The ranks that a round waits for at this moment: those in it whose workers have not arrived. Costs two
    /// reads, so that it can be asked often.
    ///
    /// # Errors
    /// [`Error::Os`], [`Error::NotASegment`] if the header is gone.
    pub fn waited_for(&self) -> Result<Vec<Rank>> {
        let no_header = || Error::NotASegment { what: "it has no header any more".into() };
        let header: Header = self.tables.one(0)?.ok_or_else(no_header)?;
        let word = RoundWord(get(&header.sync.word));
        if word.phase() != Phase::Open {
            return Ok(Vec::new());
        }
        let high = get32(&header.sync.workers_high).min(self.tables.config.max_workers) as usize;
        let seats: Vec<Seat> = self.tables.table(self.tables.map.seats, high)?;
        let missing = |seat: &Seat| get32(&seat.state) == slot_state::LIVE && is_missing(seat, word);
        Ok((0..).zip(&seats).filter(|(_, seat)| missing(seat)).map(|(rank, _)| rank).collect())
    }

    fn areas(&self, header: &Header, most: usize) -> Result<(Vec<AreaSnapshot>, usize)> {
        let (tables, map) = (&self.tables, &self.tables.map);
        let used = get32(&header.sync.areas_high).min(self.tables.config.max_areas) as usize;
        let marks: Vec<Marks> = tables.table(map.marks, used.div_ceil(64))?;
        let (now, mut areas, mut left_out) = (now_ns(), Vec::new(), 0);
        for first in (0..used).step_by(SLOTS) {
            let at = map.areas + (first * size_of::<AreaSlot>()) as u64;
            let slots: Vec<AreaSlot> = tables.table(at, SLOTS.min(used - first))?;
            let live = |slot: &&AreaSlot| directory::is_live(get(&slot.read.state));
            for (index, slot) in (first..).zip(&slots).filter(|(_, slot)| live(slot)) {
                if areas.len() == most {
                    left_out += 1;
                    continue;
                }
                let dirty =
                    marks.get(index / 64).is_some_and(|marks| get(&marks.dirty) >> (index % 64) & 1 != 0);
                areas.push(self.area(index, slot, dirty, now)?);
            }
        }
        Ok((areas, left_out))
    }

    fn area(&self, index: usize, slot: &AreaSlot, dirty: bool, now: u64) -> Result<AreaSnapshot> {
        let row = u64::from(self.tables.config.max_name_bytes);
        let name_len = row.min(get32(&slot.about.name_len).into()) as usize;
        let name: Vec<u8> = self.tables.table(self.tables.map.names + index as u64 * row, name_len)?;
        let about = slot.about.about();
        let current = get32(&slot.read.current);
        // Where the records are, a client can change: whatever is read there is only shown.
        let record = u64::from(current) * size_of::<CopyRecord>() as u64;
        let record = match get(&slot.about.extent_offset).checked_add(record) {
            Some(at) if current < about.copies => self.tables.one::<CopyRecord>(at)?,
            _ => None,
        };
        let confirmed = get(&slot.round.confirmed_ns);
        Ok(AreaSnapshot {
            name: String::from_utf8_lossy(&name).into_owned(),
            element: about.element.to_string(),
            len: about.len as u64,
            bytes: about.bytes(),
            copies: about.copies,
            owner: ownership::OwnershipWord(get(&slot.own.ownership)).holder(),
            version: record.map(|record| record.version()),
            age: (confirmed != 0 && about.copies > 0)
                .then(|| Duration::from_nanos(now.saturating_sub(confirmed))),
            interval: about.interval,
            dirty,
            postponed: get(&slot.round.postponed),
        })
    }
}

/// Whether the open round `word` waits for the worker of this seat.
fn is_missing(seat: &Seat, word: RoundWord) -> bool {
    let arrived = get(&seat.arrived);
    arrived < word.round() && (get(&seat.missed) <= arrived || word.waits_for_all())
}

fn worker(
    rank: Rank,
    seat: &Seat,
    record: &WorkerRecord,
    tally: &Tally,
    open: Option<RoundWord>,
) -> Option<WorkerSnapshot> {
    let (pid, tid) = (get32(&record.pid), get32(&record.tid));
    let arrived = get(&seat.arrived);
    let straggler = get(&seat.missed) > arrived;
    // Ids of another PID namespace mean somebody else here, or nobody: what the job itself has noticed counts.
    let namespace = get(&record.namespace);
    let foreign = namespace != 0 && namespace != process::namespace();
    let there = || foreign || process::is_there(pid, tid, get(&record.started));
    let state = match get32(&seat.state) {
        // Its launcher has said so (`Shared::has_failed`).
        slot_state::FREE | slot_state::REMOTE | slot_state::LEFT if get32(&record.absent) != 0 => {
            WorkerState::Dead
        }
        slot_state::FREE | slot_state::ABSENT => return None,
        slot_state::REMOTE | slot_state::LEFT => WorkerState::Remote,
        slot_state::DEAD | slot_state::LOST => WorkerState::Dead,
        _ if !there() => WorkerState::Dead,
        slot_state::LIVE if straggler => WorkerState::Straggler,
        slot_state::LIVE => WorkerState::Live,
        _ => WorkerState::Changing,
    };
    let is_here = matches!(state, WorkerState::Live | WorkerState::Straggler | WorkerState::Changing);
    Some(WorkerSnapshot {
        rank,
        pid,
        tid,
        state,
        stopped: is_here && !foreign && process::is_stopped(pid, tid),
        waited_for: state != WorkerState::Changing && open.is_some_and(|word| is_missing(seat, word)),
        waits: get32(&seat.waits) != 0,
        last_round: arrived,
        clock: get(&seat.clock),
        host: None,
        late: get(&seat.late),
        rounds: get(&tally.rounds),
        abandoned: get(&tally.abandoned),
        planned: get(&tally.planned),
        published: get(&tally.published),
        chunks: get(&tally.chunks),
        copied_bytes: get(&tally.copied_bytes),
    })
}

#[cfg(test)]
mod tests;
