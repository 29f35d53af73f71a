//! Workers: joining and leaving, synchronization points, clocks.
use crate::argument::{put, timeout};
use crate::handle::{Kind, Pool, Shell, check_thread, this_thread};
use crate::job::{JobBody, ha_job};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use hectare_dsm::{Synced, Worker};
use std::cell::{Cell, RefCell, RefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// A worker: a thread that is registered with a job, owns areas, and takes part in publications.
///
/// The handle belongs to the thread that made it; every function with it, or with an area of it, refuses other
/// threads with `HA_WRONG_THREAD`.
#[derive(Debug)]
pub struct ha_worker {
    _opaque: [u8; 0],
}

/// The outcome of `ha_sync`. Set `size` to `sizeof(ha_synced)` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ha_synced {
    /// `sizeof(ha_synced)`.
    pub size: usize,
    /// The round that was completed.
    pub round: u64,
    /// How many rounds before it were abandoned because a worker did not arrive.
    pub given_up: u32,
    /// How many of the requested areas are published in a later round, because every reader copy is in use.
    pub put_off: u32,
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl crate::argument::Sized0 for ha_synced {
    const FIRST: usize = 24;
    const NAME: &'static str = "ha_synced";
}

impl ha_synced {
    pub(crate) fn of(synced: Synced) -> ha_synced {
        ha_synced { size: 0, round: synced.round, given_up: synced.abandoned, put_off: synced.postponed }
    }
}

/// Whose the worker is.
#[derive(Debug)]
enum Seat {
    Owned(Worker),
    /// That of a body of `ha_run`.
    Borrowed(NonNull<Worker>),
    /// It has left.
    None,
}

/// Closes a handle that belongs to a worker.
type Close = unsafe fn(*mut ());

/// The handles that belong to one worker.
#[derive(Debug)]
pub(crate) struct Home {
    thread: u64,
    seat: RefCell<Seat>,
    /// Open views.
    pub(crate) views: Cell<usize>,
    /// Rises with every synchronization point.
    pub(crate) syncs: Cell<u64>,
    /// Whether it is in a run of rows.
    pub(crate) in_rows: Cell<bool>,
    /// Open handles of areas and others.
    children: RefCell<Vec<(*mut (), Close)>>,
}

/// The body of an `ha_worker`.
pub(crate) struct WorkerBody(pub(crate) Rc<Home>);

impl Kind for WorkerBody {
    const MAGIC: u64 = 0x7265_6b72_6f77_6168;
    const NAME: &'static str = "worker";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl Home {
    fn new(seat: Seat) -> Rc<Home> {
        Rc::new(Home {
            thread: this_thread(),
            seat: RefCell::new(seat),
            views: Cell::new(0),
            syncs: Cell::new(0),
            in_rows: Cell::new(false),
            children: RefCell::default(),
        })
    }

    #[inline]
    pub(crate) fn check_thread(&self, name: &str) -> Outcome {
        check_thread(self.thread, name)
    }

    /// The worker, between two synchronization points.
    #[inline]
    pub(crate) fn worker(&self) -> Outcome<RefMut<'_, Worker>> {
        let seat = self.seat.try_borrow_mut().map_err(|_| busy())?;
        RefMut::filter_map(seat, |seat| match seat {
            Seat::Owned(worker) => Some(worker),
            // SAFETY: the body of `ha_run` that the worker belongs to is still running, since it closes this handle
            // when it ends; the cell sees to it that there is one reference at a time.
            Seat::Borrowed(worker) => Some(unsafe { worker.as_mut() }),
            Seat::None => None,
        })
        .map_err(|_| Failure::new(HA_BAD_HANDLE, "the worker has left its job"))
    }

    /// Refuses what is called while a call of this worker is under way: from the body of a loop.
    pub(crate) fn idle(&self) -> Outcome {
        self.seat.try_borrow_mut().map(drop).map_err(|_| busy())
    }

    /// Refuses another run while the worker is in one of rows: the others may wait for its rows and would not come to begin one.
    pub(crate) fn outside_runs(&self) -> Outcome {
        if self.in_rows.get() {
            let text = "this worker is in a run of rows: end that first (ha_rows_end)";
            return Err(Failure::new(HA_BUSY, text));
        }
        Ok(())
    }

    /// The worker, for a call that may be a synchronization point.
    #[inline]
    pub(crate) fn at_sync_point(&self) -> Outcome<RefMut<'_, Worker>> {
        if self.views.get() != 0 {
            let text =
                format!("{} views are open: close them before a synchronization point", self.views.get());
            return Err(Failure::new(HA_VIEW_OPEN, text));
        }
        let worker = self.worker()?;
        self.syncs.set(self.syncs.get() + 1);
        Ok(worker)
    }

    pub(crate) fn adopt<K: Kind>(&self, child: *mut Shell<K>) {
        unsafe fn close<K: Kind>(child: *mut ()) {
            // SAFETY: `adopt` was given an open handle of this kind, and `disown` takes it out before it is closed.
            drop(unsafe { Shell::close(child.cast::<Shell<K>>()) });
        }
        self.children.borrow_mut().push((child.cast(), close::<K>));
    }

    pub(crate) fn disown<K: Kind>(&self, child: *mut Shell<K>) {
        let mut children = self.children.borrow_mut();
        // The last are closed first, mostly.
        if let Some(place) = children.iter().rposition(|(other, _)| *other == child.cast()) {
            children.swap_remove(place);
        }
    }

    /// Ends everything that the worker has, and then the worker.
    fn leave(&self) {
        loop {
            // One by one, without holding the cell: closing a reducer may close others.
            let Some((child, close)) = self.children.borrow_mut().pop() else { break };
            // SAFETY: the handle is open, since closing it takes it out of the list, and belongs to this thread.
            unsafe { close(child) };
        }
        self.views.set(0);
        drop(self.seat.replace(Seat::None));
    }
}

#[cold]
fn busy() -> Failure {
    Failure::new(HA_BUSY, "the worker is in the middle of another call: this one came from its callback")
}

/// The worker behind a handle.
///
/// # Safety
/// As for `Shell::body`.
#[inline]
pub(crate) unsafe fn home<'h>(worker: *mut ha_worker) -> Outcome<&'h Rc<Home>> {
    let shell = worker.cast::<Shell<WorkerBody>>().cast_const();
    // SAFETY: by the contract above.
    let body = unsafe { Shell::body(shell)? };
    // SAFETY: the handle is open. Its thread's number is written once, before anybody else can know it.
    check_thread(unsafe { *(*shell).hot.get() }, "worker")?;
    Ok(&body.0)
}

fn open(seat: Seat) -> Outcome<*mut ha_worker> {
    if this_thread() == 0 {
        let text = "the thread is ending: its destructors cannot make it a worker";
        return Err(Failure::new(HA_WRONG_THREAD, text));
    }
    let shell = Shell::open(WorkerBody(Home::new(seat)));
    // SAFETY: just opened; nobody else has it.
    unsafe { *(*shell).hot.get() = this_thread() };
    Ok(shell.cast())
}

/// Runs `body` with a handle for a worker that belongs to somebody else, and closes it afterwards.
pub(crate) fn with_borrowed<R>(worker: &mut Worker, body: impl FnOnce(*mut ha_worker) -> R) -> Outcome<R> {
    /// Closes the handle also when the body unwinds.
    struct Closing(*mut ha_worker);
    impl Drop for Closing {
        fn drop(&mut self) {
            // SAFETY: opened below, by this thread. Unless the body closed it.
            if let Ok(home) = unsafe { home(self.0) } {
                home.leave();
                // SAFETY: as above.
                drop(unsafe { Shell::close(self.0.cast::<Shell<WorkerBody>>()) });
            }
        }
    }
    let handle = Closing(open(Seat::Borrowed(NonNull::from(worker)))?);
    Ok(body(handle.0))
}

/// Makes the calling thread a worker, with the lowest free rank, or in a job of the daemon with the next rank that is
/// assigned to this process.
///
/// Pointers: `job` an open job; `worker` a place for the handle.
/// Thread: any; the handle belongs to the calling thread. A thread may be several workers, but then never waits for
/// itself.
/// Fails: `HA_LIMIT`, `HA_FORKED`, `HA_DAEMON`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_worker_join(job: *mut ha_job, worker: *mut *mut ha_worker) -> ha_status {
    enter(|| {
        crate::argument::present(worker, "the place for the worker")?;
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? };
        let joined = job.worker()?;
        // SAFETY: as above.
        unsafe { put(worker, open(Seat::Owned(joined))?) };
        Ok(())
    })
}

/// Makes the calling thread the worker of this rank.
///
/// Pointers: `job` an open job; `worker` a place for the handle.
/// Thread: any; the handle belongs to the calling thread.
/// Fails: `HA_RANK_TAKEN`, `HA_LIMIT`, `HA_NO_SUCH_WORKER` if the rank is another host's, `HA_DAEMON` if the daemon refuses it, as it
/// does one beyond the job's, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_worker_join_at(
    job: *mut ha_job,
    rank: u32,
    worker: *mut *mut ha_worker,
) -> ha_status {
    enter(|| {
        crate::argument::present(worker, "the place for the worker")?;
        // SAFETY: the header's contract.
        let joined = unsafe { JobBody::of(job)? }.worker_at(rank)?;
        // SAFETY: as above.
        unsafe { put(worker, open(Seat::Owned(joined))?) };
        Ok(())
    })
}

/// Leaves the job, and closes the handle and those of its areas, reducers and arrays. Areas that it owns become
/// claimable. In a function of `ha_run`, a worker leaves by returning; this call fails with `HA_BUSY` there.
///
/// Pointers: `worker` an open worker, or null, which does nothing.
/// Thread: that of the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_worker_leave(worker: *mut ha_worker) -> ha_status {
    enter(|| {
        if worker.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let home = unsafe { home(worker)? }.clone();
        match &*home.seat.try_borrow().map_err(|_| busy())? {
            Seat::Borrowed(_) => {
                return Err(Failure::new(
                    HA_BUSY,
                    "a worker of ha_run leaves by returning from its function",
                ));
            }
            Seat::Owned(_) | Seat::None => {}
        }
        home.leave();
        // SAFETY: open, as `home` found, and used by this thread alone.
        drop(unsafe { Shell::close(worker.cast::<Shell<WorkerBody>>()) });
        Ok(())
    })
}

/// The worker's number in its job.
///
/// Pointers: `worker` an open worker; `rank` a place for the number.
/// Thread: that of the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_worker_rank(worker: *mut ha_worker, rank: *mut u32) -> ha_status {
    enter(|| {
        crate::argument::present(rank, "the place for the rank")?;
        // SAFETY: the header's contract.
        unsafe { put(rank, home(worker)?.worker()?.rank()) };
        Ok(())
    })
}

/// A synchronization point: takes part in a publication if one is in progress, and starts one if an area is due. Cheap
/// when there is nothing to do; call it once per batch, or per row. Pointers for reading (`ha_area_reader`) are no longer
/// valid afterwards.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_service(worker: *mut ha_worker) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| Ok(unsafe { home(worker)? }.at_sync_point()?.service()?))
}

/// Publishes what this worker wrote, now: forces a round of the areas that it owns, and waits for it. A
/// synchronization point. Workers that do not come within the job's patience are left out; `ha_barrier` waits for
/// everybody.
///
/// Pointers: `worker` an open worker; `synced` null, or a place for the outcome, its `size` set.
/// Thread: that of the worker.
/// Fails: `HA_VIEW_OPEN`, `HA_FORKED`, `HA_BAD_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_sync(worker: *mut ha_worker, synced: *mut ha_synced) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let home = unsafe { home(worker)? };
        // SAFETY: the header's contract. Before anything is done, so that a wrong size changes nothing.
        unsafe { check_place(synced)? };
        let done = home.at_sync_point()?.sync()?;
        // SAFETY: the header's contract.
        unsafe { store(synced, done) }
    })
}

/// # Safety
/// As for `take_sized`.
pub(crate) unsafe fn check_place(synced: *mut ha_synced) -> Outcome {
    // SAFETY: by the contract above. Only the size is looked at: the rest is overwritten.
    unsafe { crate::argument::check_place(synced) }
}

/// # Safety
/// As for `fill_sized`.
pub(crate) unsafe fn store(place: *mut ha_synced, synced: Synced) -> Outcome {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: by the contract above.
    unsafe { crate::argument::fill_sized(place, &ha_synced::of(synced)) }
}

/// Ends a clock period: publishes what this worker wrote, and waits until every live worker has ended the same period;
/// then each sees all writes, but for what was given away unpublished to a worker of this host. While observers read every copy of an
/// area, it waits for them, too. The same as `ha_tick`
/// and `ha_wait_clocks` with staleness 0. Every live worker of the job must call it, or have called `ha_leave_clocks`.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none); the period has ended anyway, so continue
/// waiting with `ha_wait_clocks`. `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_barrier_within(worker: *mut ha_worker, timeout_ns: u64) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let mut worker = unsafe { home(worker)? }.at_sync_point()?;
        match timeout_ns {
            u64::MAX => worker.barrier()?,
            limit => worker.barrier_within(timeout(limit))?,
        }
        Ok(())
    })
}

/// `ha_barrier_within` without a timeout.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_barrier(worker: *mut ha_worker) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| Ok(unsafe { home(worker)? }.at_sync_point()?.barrier()?))
}

/// Ends a clock period without waiting: increments the worker's clock, and schedules its writes for publication in the
/// next round.
///
/// Pointers: `worker` an open worker; `clock` null, or a place for the new clock.
/// Thread: that of the worker.
/// Fails: `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_tick(worker: *mut ha_worker, clock: *mut u64) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| unsafe {
        let now = home(worker)?.worker()?.tick()?;
        put(clock, now);
        Ok(())
    })
}

/// The worker's clock: how often it ended a period (`ha_tick`, `ha_barrier`), counted from the lowest clock in the
/// job when it joined.
///
/// Pointers: `worker` an open worker; `clock` a place for the clock.
/// Thread: that of the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_clock(worker: *mut ha_worker, clock: *mut u64) -> ha_status {
    enter(|| {
        crate::argument::present(clock, "the place for the clock")?;
        // SAFETY: the header's contract.
        unsafe { put(clock, home(worker)?.worker()?.clock()) };
        Ok(())
    })
}

/// Waits until no worker's published work is more than `staleness` clocks behind this worker's (stale synchronous
/// parallel, Ho et al., 2013); takes part in publications meanwhile. A synchronization point.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none); the text names the workers that are
/// behind. `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_wait_clocks(
    worker: *mut ha_worker,
    staleness: u64,
    timeout_ns: u64,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let mut worker = unsafe { home(worker)? }.at_sync_point()?;
        match timeout_ns {
            u64::MAX => worker.wait_clocks(staleness)?,
            limit => worker.wait_clocks_within(staleness, timeout(limit))?,
        }
        Ok(())
    })
}

/// Takes this worker out of the clocks: barriers no longer wait for it. For workers that do something other than
/// training.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_leave_clocks(worker: *mut ha_worker) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        unsafe { home(worker)? }.worker()?.leave_clocks();
        Ok(())
    })
}

/// Puts this worker back into the clocks, at the lowest one. A synchronization point.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_VIEW_OPEN`; `HA_NO_SUCH_WORKER` in a job on several hosts, if no worker of this host was left in the
/// clocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rejoin_clocks(worker: *mut ha_worker) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        unsafe { home(worker)? }.at_sync_point()?.rejoin_clocks()?;
        Ok(())
    })
}

/// Waits until `count` workers are in the job, this one included; takes part in publications meanwhile. A
/// synchronization point. A worker of another host counts from when its host is connected until it is known to be dead,
/// also after it has left the job.
///
/// Pointers: `worker` an open worker.
/// Thread: that of the worker.
/// Fails: `HA_LIMIT` if the job has room for fewer; `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none),
/// `HA_NO_SUCH_WORKER` when the launcher (`hectare run`) says that one of the first `count` has failed, or has ended, before it
/// came; `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_wait_for_workers(
    worker: *mut ha_worker,
    count: usize,
    timeout_ns: u64,
) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| Ok(unsafe { home(worker)? }.at_sync_point()?.wait_for_workers(count, timeout(timeout_ns))?))
}
