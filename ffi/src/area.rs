//! Areas: creating, attaching, and what a handle of one is.
use crate::argument::{Sized0, present, put, take_sized, text, timeout};
use crate::element::{self, AnyArea, AnyLent, AnyOpened, AnyOwned, ha_type_in};
use crate::handle::{Kind, Pool, Shell};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::worker::{Home, ha_worker, home};
use hectare_dsm::{AreaSpec, Tracking, Worker};
use std::cell::{RefCell, RefMut};
use std::ffi::c_char;
use std::rc::Rc;
use std::time::Duration;

/// A worker's handle of an area: attached for reading, or owned, which is the right to write it.
///
/// The handle belongs to the worker, and so to its thread. It stays the same when ownership changes.
#[derive(Debug)]
pub struct ha_area {
    _opaque: [u8; 0],
}

/// The beginning of every `ha_area`, for the inline functions of the header. Not for programs: it is zero, but for the
/// first word, wherever a function has to look closer. The log has one bit for each 64 bytes, and this library
/// writes it only inside of calls.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_area_head {
    /// The kind of the handle.
    pub magic: u64,
    /// The log, while the worker owns the area and the area has one.
    pub log: *const u64,
    /// Elements whose lines the log has.
    pub log_len: usize,
    /// Rows of which one bit tells whether they are logged.
    pub probe_rows: usize,
    /// Bytes of such a row.
    pub row_bytes: usize,
    /// The byte of a row whose bit that is.
    pub probe: usize,
    /// Elements of a row.
    pub row_len: usize,
    /// The size of an element is 1 << shift.
    pub shift: usize,
}

/// `ha_area_head` without its first word, which every handle has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hot {
    log: *const u64,
    log_len: usize,
    probe_rows: usize,
    row_bytes: usize,
    probe: usize,
    row_len: usize,
    shift: usize,
}

const _: () = assert!(size_of::<ha_area_head>() == 8 + size_of::<Hot>());
const _: () = assert!(std::mem::offset_of!(Shell<AreaBody>, hot) == std::mem::offset_of!(ha_area_head, log));

impl Default for Hot {
    fn default() -> Hot {
        Hot { log: std::ptr::null(), log_len: 0, probe_rows: 0, row_bytes: 0, probe: 0, row_len: 0, shift: 0 }
    }
}

/// The worker's rights on the area.
pub(crate) enum Right {
    Read,
    Write(Box<dyn AnyOwned>),
    Lend(Box<dyn AnyLent>),
    /// To a run of rows.
    Open(Box<dyn AnyOpened>),
}

/// The body of an `ha_area`.
pub(crate) struct AreaBody {
    pub(crate) home: Rc<Home>,
    pub(crate) area: Box<dyn AnyArea>,
    right: RefCell<Right>,
}

impl Kind for AreaBody {
    const MAGIC: u64 = 0x2061_6572_6120_6168;
    const NAME: &'static str = "area";
    type Hot = Hot;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

/// An area handle of the calling thread.
#[derive(Clone, Copy)]
pub(crate) struct Held<'h> {
    shell: *const Shell<AreaBody>,
    pub(crate) body: &'h AreaBody,
}

impl std::ops::Deref for Held<'_> {
    type Target = AreaBody;
    fn deref(&self) -> &AreaBody {
        self.body
    }
}

/// The area behind a handle.
///
/// # Safety
/// As for `Shell::body`; and an open handle of another thread must not be closed meanwhile.
#[inline]
pub(crate) unsafe fn held<'h>(area: *const ha_area) -> Outcome<Held<'h>> {
    let shell = area.cast::<Shell<AreaBody>>();
    // SAFETY: by the contract above.
    let body = unsafe { Shell::body(shell)? };
    // The thread's number never changes while the handle is open.
    body.home.check_thread("area")?;
    Ok(Held { shell, body })
}

/// Opens a handle that belongs to the worker.
pub(crate) fn open(home: &Rc<Home>, worker: &Worker, right: Right, area: Box<dyn AnyArea>) -> *mut ha_area {
    let body = AreaBody { home: home.clone(), area, right: RefCell::new(Right::Read) };
    let shell = Shell::open(body);
    home.adopt(shell);
    // SAFETY: just opened, by this thread.
    let body = unsafe { Shell::body(shell.cast_const()) }.unwrap_or_else(|_| unreachable!("just opened"));
    Held { shell, body }.set(worker, right);
    shell.cast()
}

impl Held<'_> {
    /// The handle itself.
    pub(crate) fn handle(&self) -> *const ha_area {
        self.shell.cast()
    }

    pub(crate) fn right(&self) -> Outcome<RefMut<'_, Right>> {
        let text = "the area is in the middle of another call: this one came from its callback";
        self.body.right.try_borrow_mut().map_err(|_| Failure::new(HA_BUSY, text))
    }

    /// The area for writing.
    pub(crate) fn owned(&self) -> Outcome<RefMut<'_, Box<dyn AnyOwned>>> {
        RefMut::filter_map(self.right()?, |right| match right {
            Right::Write(owned) => Some(owned),
            Right::Read | Right::Lend(_) | Right::Open(_) => None,
        })
        .map_err(|_| self.not_owned())
    }

    #[cold]
    pub(crate) fn not_owned(&self) -> Failure {
        Failure::new(HA_NOT_OWNER, format!("this worker does not own area {:?}", self.area.name()))
    }

    /// Changes what the worker may do with the area, and what the header's inline functions see.
    pub(crate) fn set(&self, worker: &Worker, right: Right) {
        let mut hot = Hot::default();
        if let Right::Write(owned) = &right
            && let Ok(Some(log)) = owned.raw_log(worker)
        {
            let size = owned.element_size();
            hot.log = log.words;
            hot.log_len = self.area.len();
            hot.row_len = self.area.row_len();
            hot.shift = size.trailing_zeros() as usize;
            if let Some(probe) = log.row_probe {
                hot.probe = probe;
                hot.row_bytes = hot.row_len * size;
                hot.probe_rows = hot.log_len / hot.row_len;
            }
        }
        self.hide();
        self.body.right.replace(right);
        // SAFETY: as in `hide`.
        unsafe { *(*self.shell).hot.get() = hot };
    }

    /// Takes the right out, and leaves the right to read.
    pub(crate) fn take_right(&self) -> Outcome<Right> {
        let right = std::mem::replace(&mut *self.right()?, Right::Read);
        self.hide();
        Ok(right)
    }

    fn hide(&self) {
        // SAFETY: the handle is open and of this thread, the only one whose inline functions may read this.
        unsafe { *(*self.shell).hot.get() = Hot::default() };
    }
}

/// How the library learns what was written to an area.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_tracking {
    /// The program says so: `ha_log` and its relatives.
    HA_TRACK_LOGGED = 0,
    /// Not at all: whenever the program calls `ha_log_all`, the whole area is copied. For small areas that change as a
    /// whole.
    HA_TRACK_WHOLE = 1,
    /// By page protection (Linux 6.7), or on older kernels by comparing the area at every publication. For
    /// update loops that cannot be changed.
    HA_TRACK_AUTOMATIC = 2,
}

/// An `ha_tracking` as it comes from C.
pub type ha_tracking_in = u32;

/// Options of an area. Zero in a field is the default; `ha_area_options_init` sets all to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_area_options {
    /// `sizeof(ha_area_options)`: tells which fields there are.
    pub size: usize,
    /// Areas of the same group are published together, so that reading them gives one consistent state. Null: none.
    pub group: *const c_char,
    /// Elements per row, for `ha_log_row`. Rows of 128 bytes to 4 KiB, or of a multiple of 64, cost one test.
    /// Default: 1.
    pub row: usize,
    /// Publishes the area at this interval, in nanoseconds, if it changed. Default: on demand only.
    pub interval_ns: u64,
    /// Reader copies: 1 is enough if every worker takes part in every round; with 2 or more, late workers and observers
    /// can keep reading an old version. Default: 1.
    pub copies: u32,
    /// Not 0: no reader copy at all. The area is handed over and lent, never published.
    pub no_copies: u32,
    /// How the library learns what was written.
    pub tracking: ha_tracking_in,
    /// Zero.
    pub reserved: u32,
    /// Minimal time, in nanoseconds, between versions that are sent to another host; those before a clock or a barrier,
    /// and those that are requested, are sent at once. Default: as soon as the last one has arrived.
    pub external_interval_ns: u64,
    /// Not 0: versions go to another host only when a worker there requests one (`ha_area_sync`) or is given the area; until
    /// then readers there see an older version, zeros at first, and barriers do not wait for it. Needs a reader copy, and no
    /// group. Default: every version is sent.
    pub on_demand: u32,
    /// Zero.
    pub reserved_2: u32,
}

impl Default for ha_area_options {
    fn default() -> ha_area_options {
        ha_area_options {
            size: 0,
            group: std::ptr::null(),
            row: 0,
            interval_ns: 0,
            copies: 0,
            no_copies: 0,
            tracking: 0,
            reserved: 0,
            external_interval_ns: 0,
            on_demand: 0,
            reserved_2: 0,
        }
    }
}

// SAFETY: `repr(C)`, begins with its size; integers and a raw pointer.
unsafe impl Sized0 for ha_area_options {
    const FIRST: usize = 48;
    const NAME: &'static str = "ha_area_options";
}

/// The description that options make.
///
/// # Safety
/// As for `take_sized`; the group is null or text.
pub(crate) unsafe fn spec(name: &str, options: *const ha_area_options) -> Outcome<AreaSpec> {
    // SAFETY: by the contract above.
    let options = unsafe { take_sized(options)? };
    let mut spec = AreaSpec::new(name);
    if options.reserved != 0 || options.reserved_2 != 0 {
        return Err(Failure::new(HA_BAD_ARGUMENT, "a reserved field of ha_area_options is not zero"));
    }
    if !options.group.is_null() {
        // SAFETY: by the contract above.
        spec = spec.group(unsafe { text(options.group, "the group")? });
    }
    if options.row != 0 {
        spec = spec.row(options.row);
    }
    if options.interval_ns != 0 {
        spec = spec.interval(Duration::from_nanos(options.interval_ns));
    }
    if options.external_interval_ns != 0 {
        spec = spec.external_interval(Duration::from_nanos(options.external_interval_ns));
    }
    if options.on_demand != 0 {
        spec = spec.on_demand();
    }
    spec = match (options.no_copies != 0, options.copies) {
        (true, 0) => spec.copies(0),
        (true, copies) => {
            let text = format!("ha_area_options asks for {copies} copies and for none");
            return Err(Failure::new(HA_INVALID_AREA, text));
        }
        (false, 0) => spec,
        (false, copies) => spec.copies(copies),
    };
    Ok(spec.tracking(match options.tracking {
        0 => Tracking::Logged,
        1 => Tracking::Whole,
        2 => Tracking::Automatic,
        other => return Err(Failure::new(HA_BAD_ARGUMENT, format!("{other} is no ha_tracking"))),
    }))
}

/// Creates an area of `len` elements, all zero, owned by the worker. A synchronization point: it may take part in
/// publications while it waits for memory.
///
/// Names are `/`-separated paths of non-empty parts, such as "model/users".
///
/// Pointers: `worker` an open worker; `name` the area's name; `options` null for the defaults, or with their `size`
/// set; `area` a place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_NAME_TAKEN`, `HA_INVALID_NAME`, `HA_INVALID_AREA`, `HA_OUT_OF_MEMORY`, `HA_LIMIT`, `HA_BAD_ARGUMENT`,
/// `HA_BAD_SIZE`, `HA_VIEW_OPEN`, `HA_SYSTEM`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_create(
    worker: *mut ha_worker,
    name: *const c_char,
    element_type: ha_type_in,
    len: usize,
    options: *const ha_area_options,
    area: *mut *mut ha_area,
) -> ha_status {
    enter(|| {
        present(area, "the place for the area")?;
        // SAFETY: the header's contract.
        let (home, spec) = unsafe { (home(worker)?, spec(text(name, "the name of the area")?, options)?) };
        let mut worker = home.at_sync_point()?;
        let owned = element::create(&mut worker, element_type, spec, len)?;
        let reader = owned.area();
        let handle = open(home, &worker, Right::Write(owned), reader);
        // SAFETY: the header's contract.
        unsafe { put(area, handle) };
        Ok(())
    })
}

/// Attaches to an area: without a limit, and if it is on this host, that is no synchronization point.
fn attach(home: &Home, element_type: u32, name: &str, limit: Duration) -> Outcome<Box<dyn AnyArea>> {
    if limit.is_zero() {
        let worker = home.worker()?;
        let here = element::attach_here(&worker, element_type, name);
        let is_missing = here.as_ref().is_err_and(|failure| failure.status == HA_NO_SUCH_AREA);
        if !is_missing || worker.job().hosts().is_empty() {
            return here;
        }
    }
    element::attach(&mut *home.at_sync_point()?, element_type, name, limit)
}

/// Attaches to an area for reading. If `timeout_ns` is not 0, waits for it to be created, up to that time. With a
/// timeout, and in a job on several hosts, it is a synchronization point: there, it waits for an area of another host to
/// arrive, or until the hosts have confirmed that there is none.
///
/// Pointers: `worker` an open worker; `name` the area's name; `area` a place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_NO_SUCH_AREA` without a timeout, `HA_TIMED_OUT` with one; `HA_WRONG_TYPE`, `HA_INVALID_NAME`,
/// `HA_BAD_ARGUMENT`, `HA_FORKED`; in a job on several hosts also `HA_NOT_SHARED` and `HA_OUT_OF_MEMORY`, at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_attach(
    worker: *mut ha_worker,
    name: *const c_char,
    element_type: ha_type_in,
    timeout_ns: u64,
    area: *mut *mut ha_area,
) -> ha_status {
    enter(|| {
        present(area, "the place for the area")?;
        // SAFETY: the header's contract.
        let (home, name) = unsafe { (home(worker)?, text(name, "the name of the area")?) };
        let found = attach(home, element_type, name, timeout(timeout_ns))?;
        let handle = open(home, &*home.worker()?, Right::Read, found);
        // SAFETY: the header's contract.
        unsafe { put(area, handle) };
        Ok(())
    })
}

/// Closes the handle. If the worker owns the area, the area becomes claimable (`ha_area_claim`); to end it, delete it.
///
/// Pointers: `area` an open area, or null, which does nothing.
/// Thread: that of its worker.
/// Fails: `HA_VIEW_OPEN` while views of any area of this worker are open; `HA_BUSY` in the body of a loop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_detach(area: *mut ha_area) -> ha_status {
    enter(|| {
        if area.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        if held.home.views.get() != 0 {
            return Err(Failure::new(HA_VIEW_OPEN, "a view is open: close it before the area is detached"));
        }
        // Within the body of a loop, the areas of the loop are in use.
        held.home.idle()?;
        drop(held.right()?);
        close(held);
        Ok(())
    })
}

/// Deletes an area that the worker owns or has lent, and closes the handle. Its name is free at once, its memory
/// later; other handles of it get `HA_DELETED`. A synchronization point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`, `HA_BUSY` for an area that is open to a run of rows; the
/// handle stays open then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_delete(area: *mut ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let mut worker = held.home.at_sync_point()?;
        match held.take_right()? {
            Right::Read => return Err(held.not_owned()),
            Right::Write(owned) => owned.delete(&mut worker)?,
            Right::Lend(lent) => lent.delete(&mut worker)?,
            Right::Open(opened) => {
                held.set(&worker, Right::Open(opened));
                let text = format!("area {:?} is in a run of rows: end that first", held.area.name());
                return Err(Failure::new(HA_BUSY, text));
            }
        }
        drop(worker);
        close(held);
        Ok(())
    })
}

pub(crate) fn close(held: Held<'_>) {
    let (shell, home) = (held.shell.cast_mut(), held.home.clone());
    home.disown(shell);
    // SAFETY: open, of this thread, and not borrowed: the callers made sure.
    drop(unsafe { Shell::close(shell) });
}

/// Elements in the area; 0 if `area` is not a handle of this thread.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_len(area: *const ha_area) -> usize {
    let mut len = 0;
    enter(|| {
        // SAFETY: the header's contract.
        len = unsafe { held(area)? }.area.len();
        Ok(())
    });
    len
}

/// Elements per row; 0 if `area` is not a handle of this thread.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_row_len(area: *const ha_area) -> usize {
    let mut len = 0;
    enter(|| {
        // SAFETY: the header's contract.
        len = unsafe { held(area)? }.area.row_len();
        Ok(())
    });
    len
}

/// Whether the worker owns the area: 1 or 0; also 0 if `area` is not a handle of this thread.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_is_owned(area: *const ha_area) -> i32 {
    let mut owned = 0;
    enter(|| {
        // SAFETY: the header's contract.
        owned = i32::from(matches!(*unsafe { held(area)? }.right()?, Right::Write(_)));
        Ok(())
    });
    owned
}
