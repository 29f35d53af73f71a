//! Information about a job: counters, workers, areas, unlogged writes.
use crate::argument::{Sized0, field, fill_list, fill_sized, present, put};
use crate::job::{JobBody, ha_job};
use crate::owner::ha_version;
use crate::status::{enter, ha_status};
use crate::worker::{ha_worker, home};
use hectare_dsm::WorkerState;
use std::ffi::c_char;

/// Counters of a job since it was created. Set `size` to `sizeof(ha_stats)` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ha_stats {
    /// `sizeof(ha_stats)`.
    pub size: usize,
    /// Rounds that began.
    pub rounds: u64,
    /// Rounds abandoned because a worker did not arrive.
    pub given_up: u64,
    /// How often a worker was late, so that a round was abandoned.
    pub late: u64,
    /// Versions published.
    pub published: u64,
    /// Publications postponed because every reader copy was in use, or because a group was not complete.
    pub put_off: u64,
    /// Bytes copied into reader copies.
    pub copied_bytes: u64,
    /// Chunks of a copy taken over from dead workers.
    pub takeovers: u64,
    /// Workers seen dead.
    pub deaths: u64,
    /// Areas claimed.
    pub claims: u64,
    /// Processes killed by the stall policy.
    pub kills: u64,
    /// Reader copies pinned by the stall policy (`pinned_copies` of `hectare stat`).
    pub quarantines: u64,
    /// Unlogged 64-byte lines that check mode found written.
    pub unlogged_lines: u64,
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_stats {
    const FIRST: usize = 104;
    const NAME: &'static str = "ha_stats";
}

/// The job's counters.
///
/// Pointers: `job` an open job; `stats` a place for them, its `size` set.
/// Thread: any.
/// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_stats(job: *mut ha_job, stats: *mut ha_stats) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let now = unsafe { JobBody::of(job)? }.stats()?;
        let out = ha_stats {
            size: 0,
            rounds: now.rounds,
            given_up: now.abandoned,
            late: now.late,
            published: now.published,
            put_off: now.postponed,
            copied_bytes: now.copied_bytes,
            takeovers: now.takeovers,
            deaths: now.deaths,
            claims: now.claims,
            kills: now.kills,
            quarantines: now.pinned_copies,
            unlogged_lines: now.unlogged_lines,
        };
        // SAFETY: the header's contract.
        unsafe { fill_sized(stats, &out) }
    })
}

/// Bytes that are free in the job's reserved range, and bytes of memory that the job takes now.
///
/// Pointers: `job` an open job; `free_bytes`, `resident_bytes` null, or places for the numbers.
/// Thread: any.
/// Fails: `HA_SYSTEM`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_memory(
    job: *mut ha_job,
    free_bytes: *mut u64,
    resident_bytes: *mut u64,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? };
        let (free, resident) = (job.free_bytes()?, job.resident_bytes()?);
        // SAFETY: the header's contract.
        unsafe {
            put(free_bytes, free);
            put(resident_bytes, resident);
        }
        Ok(())
    })
}

/// The state of a worker, as seen from outside.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_worker_state {
    /// It joins or leaves.
    HA_WORKER_CHANGING = 0,
    /// It takes part in rounds.
    HA_WORKER_LIVE = 1,
    /// It missed a round's deadline; rounds do not wait for it until it is back.
    HA_WORKER_STRAGGLER = 2,
    /// Its thread is gone; its areas can be claimed.
    HA_WORKER_DEAD = 3,
}

/// One line of the list of workers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ha_worker_info {
    /// As many bytes of it as the caller asked for.
    pub size: usize,
    /// Its rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// An `ha_worker_state`.
    pub state: u32,
    /// The last round in which it took part.
    pub last_round: u64,
    /// Its clock.
    pub clock: u64,
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_worker_info {
    const FIRST: usize = 40;
    const NAME: &'static str = "ha_worker_info";
}

/// The workers of the job. `count` becomes their number, also where there is no room for all.
///
/// Pointers: `job` an open job; `workers` writable for `room` entries of `item_size` bytes, which is
/// `sizeof(ha_worker_info)`, or null if `room` is 0; `count` a place for the number.
/// Thread: any.
/// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_workers(
    job: *mut ha_job,
    workers: *mut ha_worker_info,
    item_size: usize,
    room: usize,
    count: *mut usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? };
        let list: Vec<ha_worker_info> = job
            .workers()?
            .into_iter()
            .map(|worker| ha_worker_info {
                size: 0,
                rank: worker.rank,
                pid: worker.pid,
                tid: worker.tid,
                state: state_of(worker.state) as u32,
                last_round: worker.last_round,
                clock: worker.clock,
            })
            .collect();
        // SAFETY: the header's contract.
        unsafe { fill_list(workers, item_size, room, count, &list) }
    })
}

fn state_of(state: WorkerState) -> ha_worker_state {
    match state {
        WorkerState::Live => ha_worker_state::HA_WORKER_LIVE,
        WorkerState::Straggler => ha_worker_state::HA_WORKER_STRAGGLER,
        WorkerState::Dead => ha_worker_state::HA_WORKER_DEAD,
        _ => ha_worker_state::HA_WORKER_CHANGING,
    }
}

/// One line of the list of areas. Text that is too long for its field is cut.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_area_info {
    /// As many bytes of it as the caller asked for.
    pub size: usize,
    /// Its name.
    pub name: [c_char; 256],
    /// Its group; empty if it has none.
    pub group: [c_char; 256],
    /// The element type, for people.
    pub element: [c_char; 48],
    /// Elements.
    pub len: usize,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Bytes of memory that it takes, with all copies and logs.
    pub footprint: u64,
    /// Its interval in nanoseconds; 0 if it has none.
    pub interval_ns: u64,
    /// The epoch of its ownership.
    pub epoch: u64,
    /// The newest published version; 0.0 without reader copies.
    pub version: ha_version,
    /// Publications postponed because every reader copy was in use.
    pub put_off: u64,
    /// Reader copies.
    pub copies: u32,
    /// The rank that owns it, or to which it is being given; -1 if it can be claimed.
    pub owner: i32,
}

impl Default for ha_area_info {
    fn default() -> ha_area_info {
        ha_area_info {
            size: 0,
            name: [0; 256],
            group: [0; 256],
            element: [0; 48],
            len: 0,
            bytes: 0,
            footprint: 0,
            interval_ns: 0,
            epoch: 0,
            version: ha_version::default(),
            put_off: 0,
            copies: 0,
            owner: 0,
        }
    }
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_area_info {
    const FIRST: usize = 640;
    const NAME: &'static str = "ha_area_info";
}

/// The areas of the job. `count` becomes their number, also where there is no room for all.
///
/// Pointers: `job` an open job; `areas` writable for `room` entries of `item_size` bytes, which is
/// `sizeof(ha_area_info)`, or null if `room` is 0; `count` a place for the number.
/// Thread: any.
/// Fails: `HA_BAD_SIZE`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_areas(
    job: *mut ha_job,
    areas: *mut ha_area_info,
    item_size: usize,
    room: usize,
    count: *mut usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? };
        let list: Vec<ha_area_info> = job
            .areas()?
            .into_iter()
            .map(|area| ha_area_info {
                size: 0,
                name: field(&area.name),
                group: field(area.group.as_deref().unwrap_or("")),
                element: field(&area.element),
                len: area.len,
                bytes: area.bytes,
                footprint: area.footprint,
                interval_ns: area.interval.map_or(0, |interval| interval.as_nanos() as u64),
                epoch: area.epoch,
                version: area.version.unwrap_or_default().into(),
                put_off: area.postponed,
                copies: area.copies,
                owner: area.owner.map_or(-1, |rank| rank as i32),
            })
            .collect();
        // SAFETY: the header's contract.
        unsafe { fill_list(areas, item_size, room, count, &list) }
    })
}

/// An unlogged write, found in check mode. It is published anyway.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_unlogged {
    /// As many bytes of it as the caller asked for.
    pub size: usize,
    /// The area; a name that is too long is cut.
    pub area: [c_char; 256],
    /// The first byte, exact to lines of 64.
    pub first_byte: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl Default for ha_unlogged {
    fn default() -> ha_unlogged {
        ha_unlogged { size: 0, area: [0; 256], first_byte: 0, bytes: 0 }
    }
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_unlogged {
    const FIRST: usize = 280;
    const NAME: &'static str = "ha_unlogged";
}

/// The unlogged writes that check mode (`ha_job_options.check`) has found in this worker's areas since the last call.
/// Writes that do not fit into `room` are lost; `count` becomes the total number.
///
/// Pointers: `worker` an open worker; `writes` writable for `room` entries of `item_size` bytes, which is
/// `sizeof(ha_unlogged)`, or null if `room` is 0; `count` a place for the number.
/// Thread: that of the worker.
/// Fails: `HA_BAD_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_unlogged_writes(
    worker: *mut ha_worker,
    writes: *mut ha_unlogged,
    item_size: usize,
    room: usize,
    count: *mut usize,
) -> ha_status {
    enter(|| {
        present(count, "the place for the count")?;
        // SAFETY: the header's contract. With nothing to fill in: a wrong size must not lose what was found.
        unsafe { fill_list::<ha_unlogged>(writes, item_size, room, count, &[])? };
        // SAFETY: the header's contract.
        let found = unsafe { home(worker)? }.worker()?.unlogged_writes();
        let list: Vec<ha_unlogged> = found
            .into_iter()
            .map(|write| ha_unlogged {
                size: 0,
                area: field(&write.area),
                first_byte: write.bytes.start,
                bytes: write.bytes.len(),
            })
            .collect();
        // SAFETY: the header's contract.
        unsafe { fill_list(writes, item_size, room, count, &list) }
    })
}
