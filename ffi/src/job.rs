//! Jobs: opening, closing, settings.
use crate::argument::{Sized0, present, put, take_sized, text};
use crate::handle::{Kind, Pool, Shell};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use hectare_dsm::wire::Launch;
use hectare_dsm::{HugePages, Job, JobBuilder, StallPolicy};
use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// A job: workers and areas that synchronize together.
///
/// The handle may be used by all threads at once; only `ha_job_close` must not run beside another call with it. Workers
/// and areas that were created with it remain when it is closed.
#[derive(Debug)]
pub struct ha_job {
    _opaque: [u8; 0],
}

/// The body of an `ha_job`.
#[derive(Debug)]
pub(crate) struct JobBody(Job);

impl Kind for JobBody {
    const MAGIC: u64 = 0x2020_626f_6a20_6168;
    const NAME: &'static str = "job";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl JobBody {
    /// The job behind a handle.
    ///
    /// # Safety
    /// As for `Shell::body`.
    pub(crate) unsafe fn of<'h>(job: *mut ha_job) -> Outcome<&'h Job> {
        // SAFETY: by the contract above.
        Ok(unsafe { &Shell::<JobBody>::body(job.cast::<Shell<JobBody>>().cast_const())?.0 })
    }
}

/// The policy for a live worker that stalls in the middle of a publication, where it cannot be left behind.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_stall_policy {
    /// The others wait.
    HA_STALL_WAIT = 0,
    /// After `stall_after_ns`, its process is killed, unless it is the one that would have to send the signal.
    HA_STALL_KILL = 1,
    /// After `stall_after_ns`, the reader copy that it was writing is pinned and no longer used; for areas with three or
    /// more.
    HA_STALL_PIN = 2,
}

/// An `ha_stall_policy` as it comes from C.
pub type ha_stall_policy_in = u32;

/// Settings of a job. Zero in a field is the default; `ha_job_options_init` sets all to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ha_job_options {
    /// `sizeof(ha_job_options)`: tells which fields there are.
    pub size: usize,
    /// Address space for areas, in bytes; memory is taken only for areas that exist. Default: twice the host's memory.
    pub reserve_bytes: u64,
    /// How long a round waits for workers before it continues without them, in nanoseconds. Default: 100 ms.
    pub patience_ns: u64,
    /// Worker slots. Default: 256.
    pub max_workers: u32,
    /// Area slots. Default: 4096.
    pub max_areas: u32,
    /// Observer slots. Default: 64.
    pub max_observers: u32,
    /// The policy for a worker that stalls inside a round.
    pub stall_policy: ha_stall_policy_in,
    /// How long a stall may last, in nanoseconds; for policies other than `HA_STALL_WAIT`.
    pub stall_after_ns: u64,
    /// Not 0: `ha_run` binds each worker to its own core.
    pub pin_cores: u32,
    /// Not 0: check mode. Before every publication, areas are compared with the last published version, and unlogged
    /// writes are reported (`ha_unlogged_writes`). With `HECTARE_CHECK=1` in the environment that is so in every job, and
    /// the worker's next synchronization point returns `HA_UNLOGGED`.
    pub check: u32,
    /// Not 0: 4 KiB pages only. Default: areas of 2 MiB and more on huge pages where possible.
    pub no_huge_pages: u32,
    /// Generations of logs that an area keeps for `ha_area_changed_since`, at least 3. Default: 4.
    pub generations: u32,
    /// After how many publications a generation is sealed. Default: 16.
    pub seal_every: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_job_options {
    const FIRST: usize = 72;
    const NAME: &'static str = "ha_job_options";
}

fn builder(options: &ha_job_options) -> Outcome<JobBuilder> {
    let mut builder = Job::builder();
    let after = Duration::from_nanos(options.stall_after_ns);
    let policy = match options.stall_policy {
        0 => StallPolicy::Wait,
        1 => StallPolicy::Kill { after },
        2 => StallPolicy::Pin { after },
        other => return Err(Failure::new(HA_BAD_ARGUMENT, format!("{other} is no ha_stall_policy"))),
    };
    if options.reserved != 0 {
        return Err(Failure::new(HA_BAD_ARGUMENT, "ha_job_options.reserved is not zero"));
    }
    builder = builder.stall_policy(policy).pin_cores(options.pin_cores != 0).check(options.check != 0);
    if options.no_huge_pages != 0 {
        builder = builder.huge_pages(HugePages::Never);
    }
    if options.reserve_bytes != 0 {
        builder = builder.reserve(options.reserve_bytes);
    }
    if options.patience_ns != 0 {
        builder = builder.round_timeout(Duration::from_nanos(options.patience_ns));
    }
    if options.max_workers != 0 {
        builder = builder.max_workers(options.max_workers);
    }
    if options.max_areas != 0 {
        builder = builder.max_areas(options.max_areas);
    }
    if options.max_observers != 0 {
        builder = builder.max_observers(options.max_observers);
    }
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    Ok(builder.generations(or(options.generations, 4), or(options.seal_every, 16)))
}

fn open(job: Job) -> *mut ha_job {
    Shell::open(JobBody(job)).cast()
}

/// Creates a job inside this program.
///
/// Pointers: `options` null for the defaults, or settings with their `size` set; `job` a place for the handle.
/// Thread: any.
/// Fails: `HA_INVALID_CONFIG`, `HA_BAD_SIZE`, `HA_BAD_ARGUMENT`, `HA_SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_embedded(options: *const ha_job_options, job: *mut *mut ha_job) -> ha_status {
    enter(|| {
        present(job, "the place for the job")?;
        // SAFETY: the header's contract.
        let options = unsafe { take_sized(options)? };
        let made = builder(&options)?.embedded()?;
        // SAFETY: the header's contract.
        unsafe { put(job, open(made)) };
        Ok(())
    })
}

/// Makes this process a member of the job of this name on this host, creating it if there is none. Needs the daemon,
/// `hectared`, and uses its settings. The job ends when its last member has left.
///
/// Pointers: `name` the job's name, or null for that in the environment (`HECTARE_JOB`, which `hectare run` sets);
/// `job` a place for the handle.
/// Thread: any.
/// Fails: `HA_DAEMON`, `HA_NOT_A_JOB`, `HA_SYSTEM`, `HA_BAD_ARGUMENT` if `name` is null and the environment names no job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_connect(name: *const c_char, job: *mut *mut ha_job) -> ha_status {
    enter(|| {
        present(job, "the place for the job")?;
        let connected = if name.is_null() {
            let name = job_of_environment()?.ok_or_else(|| {
                let text = "no name of a job, and HECTARE_JOB is not set: start the program by `hectare run`";
                Failure::new(HA_BAD_ARGUMENT, text)
            })?;
            Job::connect(&name)?
        } else {
            // SAFETY: the header's contract.
            Job::connect(unsafe { text(name, "the name of the job")? })?
        };
        // SAFETY: the header's contract.
        unsafe { put(job, open(connected)) };
        Ok(())
    })
}

/// Opens the job that the environment names: that of `HECTARE_JOB` if it is set (`ha_job_connect`), else one inside this
/// program (`ha_job_embedded`). So the same binary runs alone and under `hectare run`.
///
/// Pointers: `options` null for the defaults, or settings with their `size` set, for the second case; `job` a place
/// for the handle.
/// Thread: any.
/// Fails: as the two; `HA_BAD_ARGUMENT` if the environment has `HECTARE_RANK` or `HECTARE_SIZE` without `HECTARE_JOB`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_open(options: *const ha_job_options, job: *mut *mut ha_job) -> ha_status {
    enter(|| {
        present(job, "the place for the job")?;
        // SAFETY: the header's contract.
        let options = unsafe { take_sized(options)? };
        let opened = match job_of_environment()? {
            Some(name) => Job::connect(&name)?,
            None => builder(&options)?.embedded()?,
        };
        // SAFETY: the header's contract.
        unsafe { put(job, open(opened)) };
        Ok(())
    })
}

fn job_of_environment() -> Outcome<Option<String>> {
    match std::env::var("HECTARE_JOB") {
        Ok(name) => Ok(Some(name)),
        // Not if the environment says which process of a job this is.
        Err(std::env::VarError::NotPresent) => launch().map(|_| None),
        Err(error) => Err(Failure::new(HA_BAD_ARGUMENT, format!("HECTARE_JOB: {error}"))),
    }
}

fn launch() -> Outcome<Option<Launch>> {
    Launch::from_environment().map_err(|error| Failure::new(HA_BAD_ARGUMENT, error.to_string()))
}

/// The rank of this process according to its launcher: `hectare run`, Open MPI, PMI, torchrun or SLURM.
///
/// Pointers: `rank` and `size` null, or places for this process's number and how many there are; 0 and 1 where no
/// launcher set `HECTARE_JOB`.
/// Thread: any.
/// Fails: `HA_BAD_ARGUMENT` for variables that are missing or contradict each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_launch(rank: *mut u32, size: *mut u32) -> ha_status {
    enter(|| {
        let (this, all) = launch()?.map_or((0, 1), |launch| (launch.rank, launch.size));
        // SAFETY: the header's contract.
        unsafe {
            put(rank, this);
            put(size, all);
        }
        Ok(())
    })
}

/// Opens the job behind a descriptor that came from `ha_job_descriptor` of another process, by inheritance or over a
/// Unix socket. The descriptor remains the caller's.
///
/// Pointers: `job` a place for the handle.
/// Thread: any.
/// Fails: `HA_NOT_A_JOB`, `HA_SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_from_descriptor(descriptor: c_int, job: *mut *mut ha_job) -> ha_status {
    enter(|| {
        present(job, "the place for the job")?;
        if descriptor < 0 {
            return Err(Failure::new(HA_BAD_ARGUMENT, format!("{descriptor} is no descriptor")));
        }
        // SAFETY: not -1; a number that is no descriptor makes the call below fail, nothing else.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let own = borrowed.try_clone_to_owned().map_err(|error| {
            Failure::new(HA_SYSTEM, format!("duplicating descriptor {descriptor} failed: {error}"))
        })?;
        let opened = Job::from_descriptor(own)?;
        // SAFETY: the header's contract.
        unsafe { put(job, open(opened)) };
        Ok(())
    })
}

/// The descriptor of the job's memory, close-on-exec: a process that has it can join the job. Valid as long as the handle
/// is open; do not close it. Use it only to pass it on: writes and mappings through it bypass the library, and change
/// memory that pointers for reading refer to.
///
/// Pointers: `job` an open job; `descriptor` a place for the descriptor.
/// Thread: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_descriptor(job: *mut ha_job, descriptor: *mut c_int) -> ha_status {
    enter(|| {
        present(descriptor, "the place for the descriptor")?;
        // SAFETY: the header's contract.
        unsafe { put(descriptor, JobBody::of(job)?.descriptor().as_raw_fd()) };
        Ok(())
    })
}

/// Closes the handle. Workers and areas that were created with it remain.
///
/// Pointers: `job` an open job that no other call uses, or null, which does nothing.
/// Thread: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_close(job: *mut ha_job) -> ha_status {
    enter(|| {
        if job.is_null() {
            return Ok(());
        }
        let shell = job.cast::<Shell<JobBody>>();
        // SAFETY: the header's contract; open, as `check` finds.
        unsafe {
            Shell::check(shell.cast_const())?;
            drop(Shell::close(shell));
        }
        Ok(())
    })
}

/// Deletes an area, whichever worker of this host owns it. Its name is free at once, its memory later; handles that are attached get
/// `HA_DELETED`.
///
/// Pointers: `job` an open job; `name` the area's name.
/// Thread: any.
/// Fails: `HA_NO_SUCH_AREA`, `HA_OWNER_ALIVE` if its owner is on another host, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_job_delete_area(job: *mut ha_job, name: *const c_char) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| Ok(unsafe { JobBody::of(job)? }.delete(unsafe { text(name, "the name of the area")? })?))
}
