//! Statuses, and the text that says more.
use hectare_dsm::Error;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of a call. `HA_OK` is 0; every other value is a failure, after which nothing has changed unless
/// the function says so. `ha_last_error` has the details.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_status {
    /// Success.
    HA_OK = 0,
    /// A pointer that must not be null is null.
    HA_NULL = 1,
    /// A handle that is closed, of another kind, or no handle at all.
    HA_BAD_HANDLE = 2,
    /// An argument is not one of its values, or text is not UTF-8.
    HA_BAD_ARGUMENT = 3,
    /// The size field of a struct, or the size of a buffer, fits no version of this library.
    HA_BAD_SIZE = 4,
    /// The program was compiled with a header that does not match this library.
    HA_ABI_MISMATCH = 5,
    /// A range lies outside the area.
    HA_OUT_OF_RANGE = 6,
    /// The handle belongs to another thread.
    HA_WRONG_THREAD = 7,
    /// A synchronization point, while a view is open (`ha_view_close`).
    HA_VIEW_OPEN = 8,
    /// The worker is in the middle of another call, from whose callback this one came, or of another run; or an area is.
    HA_BUSY = 9,
    /// The area holds elements of another type.
    HA_WRONG_TYPE = 10,
    /// An area or group name is not a path of non-empty parts, or too long.
    HA_INVALID_NAME = 11,
    /// An area of this name exists.
    HA_NAME_TAKEN = 12,
    /// No area of this name exists.
    HA_NO_SUCH_AREA = 13,
    /// The area was deleted.
    HA_DELETED = 14,
    /// The area's options, or the arguments of a reducer or array, are invalid.
    HA_INVALID_AREA = 15,
    /// The job's settings are invalid.
    HA_INVALID_CONFIG = 16,
    /// There is not enough memory.
    HA_OUT_OF_MEMORY = 17,
    /// A limit of the job is reached: workers, observers, pins or areas.
    HA_LIMIT = 18,
    /// The worker does not own the area (any more).
    HA_NOT_OWNER = 19,
    /// The worker owns the area already.
    HA_ALREADY_OWNER = 20,
    /// The area cannot be claimed: its owner is alive, here or on another host.
    HA_OWNER_ALIVE = 21,
    /// The worker that could have given the area is dead or has dropped it: claim it.
    HA_OWNER_GONE = 22,
    /// The area has no reader copy.
    HA_NO_READER_COPY = 23,
    /// The area is not lent to its readers.
    HA_NOT_LENT = 24,
    /// There is no such worker, or it is dead, or on another host.
    HA_NO_SUCH_WORKER = 25,
    /// Another live worker has the rank.
    HA_RANK_TAKEN = 26,
    /// A handle was used with one of another job.
    HA_OTHER_JOB = 27,
    /// A wait timed out.
    HA_TIMED_OUT = 28,
    /// The descriptor does not belong to a job, or to one of another version of the library.
    HA_NOT_A_JOB = 29,
    /// The daemon refused, or could not be reached.
    HA_DAEMON = 30,
    /// A system call failed.
    HA_SYSTEM = 31,
    /// This process was forked after the job was opened: it must open the job itself.
    HA_FORKED = 32,
    /// A callback of the program reported a failure.
    HA_CALLBACK = 33,
    /// A bug in this library: please report it, with `ha_last_error`.
    HA_INTERNAL = 34,
    /// Under `HECTARE_CHECK=1`: this worker wrote to one of its areas without logging it. The synchronization point that
    /// returns this has completed.
    HA_UNLOGGED = 35,
    /// The job, which is on several hosts, has ended because one of them failed; `ha_last_error` names it.
    HA_PEER_FAILED = 36,
    /// Another host has the area and this one cannot get it, for instance because it has no reader copies, or cannot be
    /// stored here.
    HA_NOT_SHARED = 37,
    /// Lists of rows that are no plan: two workers touch a row in one batch and one writes it, a row that is not there. Or a loop that
    /// cannot be planned, or be added to.
    HA_BAD_PLAN = 38,
    /// A worker that others wait for has left their run of rows or of a loop, did not begin it, or has died.
    HA_WORKER_LEFT = 39,
}

use ha_status::*;

/// A failure on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: ha_status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: ha_status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let text = match &error {
            Error::TaskLeft { rank } => format!(
                "worker {rank} has left a run of rows or of a loop before its end, or did not begin it: its own error says why"
            ),
            Error::Tasks { rank, what } => {
                let what = RUNS.iter().fold(what.clone(), |text, (tasks, run)| text.replace(tasks, run));
                format!("worker {rank} cannot run these rows, or this loop: {what}")
            }
            _ => error.to_string(),
        };
        Failure { status: status_of(&error), text: in_names_of_c(text) }
    }
}

/// Tasks in the core's errors, and what they are in C.
const RUNS: [(&str, &str); 3] = [
    (
        "is in a run of other tasks: all workers of a run describe the same tasks, and the area is closed and opened again for \
         others",
        "is in another run: all workers describe the same rows, or the same loop",
    ),
    ("other tasks, or other areas", "other rows or another loop, or has other areas"),
    ("other tasks", "other rows or another loop"),
];

/// Names in the advice of the core's errors, and their counterparts in C.
const NAMES: [(&str, &str); 17] = [
    ("`Job::descriptor`", "`ha_job_descriptor`"),
    ("`JobBuilder::reserve`", "`ha_job_options.reserve_bytes`"),
    ("`Worker::attach_within`", "a time limit of `ha_area_attach`"),
    ("`copies(0)`", "`ha_area_options.no_copies`"),
    ("`copies(1)` or more", "`ha_area_options.copies` of 1 or more"),
    (" (`Task::after`)", ""),
    ("`Task::after` is to name tasks", "it is to wait for tasks"),
    ("`Tracking::Logged`", "`HA_TRACK_LOGGED`"),
    ("`Tracking::Whole`", "`HA_TRACK_WHOLE`"),
    ("`Job::pass_to`", "the process that started this one"),
    ("`Observer::read`", "an observer"),
    ("`on_demand()`", "`ha_area_options.on_demand`"),
    ("`sync()`", "`ha_sync`"),
    ("`check` of the job", "`ha_job_options.check`"),
    ("opened to tasks,", "opened to rows or a loop,"),
    ("or, for tasks on several hosts, with", "or, on several hosts, with"),
    ("used by tasks on several hosts", "used by rows or a loop on several hosts"),
];

fn in_names_of_c(text: String) -> String {
    match text.contains('`') {
        true => NAMES.iter().fold(text, |text, (rust, c)| text.replace(rust, c)),
        false => text,
    }
}

fn status_of(error: &Error) -> ha_status {
    match error {
        Error::InvalidConfig { .. } | Error::Launch(_) => HA_INVALID_CONFIG,
        Error::NotASegment { .. } | Error::LayoutVersion { .. } => HA_NOT_A_JOB,
        Error::Daemon { .. } => HA_DAEMON,
        Error::Os { .. } | Error::Spawn { .. } | Error::ProcessLimit { .. } => HA_SYSTEM,
        Error::ForkedChild => HA_FORKED,
        Error::TooManyWorkers { .. }
        | Error::NoSuchRank { .. }
        | Error::TooManyObservers { .. }
        | Error::TooManyPins { .. }
        | Error::TooManyAreas { .. } => HA_LIMIT,
        Error::RankTaken { .. } => HA_RANK_TAKEN,
        Error::InvalidName { .. } => HA_INVALID_NAME,
        Error::NameTaken { .. } | Error::NameClash { .. } => HA_NAME_TAKEN,
        Error::NoSuchArea { .. } => HA_NO_SUCH_AREA,
        Error::Deleted { .. } => HA_DELETED,
        Error::OutOfMemory { .. } | Error::AreaTooLong { .. } => HA_OUT_OF_MEMORY,
        Error::WrongType { .. } | Error::TypeClash { .. } => HA_WRONG_TYPE,
        Error::InvalidArea { .. }
        | Error::GroupClash { .. }
        | Error::CannotLeave { .. }
        | Error::NotOpen { .. } => HA_INVALID_AREA,
        Error::Tasks { .. } => HA_BAD_ARGUMENT,
        Error::TaskLeft { .. } => HA_WORKER_LEFT,
        Error::NotShared { .. } | Error::NotReceived { .. } => HA_NOT_SHARED,
        Error::OtherJob { .. } => HA_OTHER_JOB,
        Error::NoReaderCopy { .. } => HA_NO_READER_COPY,
        Error::NotLent { .. } => HA_NOT_LENT,
        Error::NotOwner { .. } => HA_NOT_OWNER,
        Error::AlreadyOwner { .. } => HA_ALREADY_OWNER,
        // An owner on another host is alive: the job ends with its host.
        Error::OwnerAlive { .. } | Error::OwnerElsewhere { .. } => HA_OWNER_ALIVE,
        Error::OwnerGone { .. } => HA_OWNER_GONE,
        Error::NoSuchWorker { .. }
        | Error::WorkerFailed { .. }
        | Error::WorkerElsewhere { .. }
        | Error::HostLeft { .. } => HA_NO_SUCH_WORKER,
        Error::OutOfRange { .. } => HA_OUT_OF_RANGE,
        Error::TimedOut { .. } => HA_TIMED_OUT,
        Error::Unlogged { .. } => HA_UNLOGGED,
        Error::PeerFailed { .. } => HA_PEER_FAILED,
        _ => HA_INTERNAL,
    }
}

/// The text of a status, without details. Never null, even for unknown numbers; static text.
///
/// Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn ha_status_message(status: i32) -> *const c_char {
    MESSAGES.get(status as usize).map_or(c"unknown status", |text| *text).as_ptr()
}

const MESSAGES: [&CStr; 40] = [
    c"success",
    c"a pointer that must not be null is null",
    c"not an open handle of this kind",
    c"an argument has a value that is not allowed",
    c"the size of a struct is that of no version of this library, or the bytes are not those of the elements",
    c"header and library have different versions",
    c"a range outside the area",
    c"a handle of another thread",
    c"a synchronization point while a view is open",
    c"the worker is in the middle of another call or run",
    c"the area holds elements of another type",
    c"an invalid area or group name",
    c"an area of this name exists",
    c"there is no area of this name",
    c"the area was deleted",
    c"invalid options of an area, reducer or array",
    c"invalid settings of a job",
    c"not enough memory",
    c"a limit of the job is reached",
    c"the worker does not own the area",
    c"the worker owns the area already",
    c"the owner of the area is alive",
    c"the owner of the area is gone",
    c"the area has no reader copy",
    c"the area is not lent",
    c"no such worker, or it is dead",
    c"another worker has the rank",
    c"handles of different jobs",
    c"timed out",
    c"not a job of this version of the library",
    c"the daemon refused or could not be reached",
    c"a system call failed",
    c"this process was forked after the job was opened",
    c"a callback reported a failure",
    c"a defect of the library",
    c"something was written and not logged",
    c"the job has ended: a host has failed",
    c"the area is of another host alone",
    c"no plan of rows, or of a loop",
    c"a worker has left a run of rows or of a loop",
];

/// The longest text of a failure, its zero byte included.
const TEXT: usize = 1024;

thread_local! {
    /// In place, so that it has no destructor and its address never changes. It ends in a zero byte.
    static LAST: UnsafeCell<[u8; TEXT]> = const { UnsafeCell::new([0; TEXT]) };
}

/// The message of the last call that failed on this thread, in one line: which area or worker, what happened and what to
/// do. Empty if none failed; at most 1023 bytes. The buffer is reused by later failures of the thread, and valid until
/// the thread ends.
///
/// Thread: any; each has its own text.
#[unsafe(no_mangle)]
pub extern "C" fn ha_last_error() -> *const c_char {
    LAST.with(|last| last.get().cast_const().cast())
}

/// Notes a failure for `ha_last_error`, and returns its status.
pub(crate) fn report(failure: Failure) -> ha_status {
    let mut end = failure.text.len().min(TEXT - 1);
    while !failure.text.is_char_boundary(end) {
        end -= 1;
    }
    LAST.with(|last| {
        // SAFETY: this thread's own, and nobody holds a reference: others have the address as C has it.
        let last = unsafe { &mut *last.get() };
        for (place, byte) in last.iter_mut().zip(&failure.text.as_bytes()[..end]) {
            // A zero byte in the text would end it.
            *place = if *byte == 0 { b'?' } else { *byte };
        }
        last[end] = 0;
    });
    failure.status
}

/// Runs the body of an entry: failures become a status and a text, panics too.
#[inline]
pub(crate) fn enter(body: impl FnOnce() -> Outcome) -> ha_status {
    match protect(body) {
        Ok(()) => HA_OK,
        Err(failure) => report(failure),
    }
}

/// Runs a body that may panic.
#[inline]
pub(crate) fn protect<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // Unwind safety: what a panic leaves behind is as the safe core leaves it, and cells that were borrowed are
    // given back by their guards.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        // A payload that panics when it is dropped would get out.
        std::mem::forget(payload);
        Err(Failure::new(HA_INTERNAL, format!("panic: {}", text.unwrap_or_else(|| "no message".into()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_message() {
        assert_eq!(MESSAGES.len(), HA_WORKER_LEFT as usize + 1);
        let text = |status| {
            // SAFETY: static text that ends in a zero byte.
            unsafe { CStr::from_ptr(ha_status_message(status)) }.to_str().unwrap()
        };
        assert_eq!(text(HA_TIMED_OUT as i32), "timed out");
        assert_eq!(text(HA_WRONG_THREAD as i32), "a handle of another thread");
        assert_eq!(text(-1), "unknown status");
        assert_eq!(text(40), "unknown status");
    }

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(enter(|| panic!("{} went wrong", "this")), HA_INTERNAL);
        assert_eq!(last(), "panic: this went wrong");
    }

    fn last() -> String {
        // SAFETY: this thread's text, which ends in a zero byte, and is copied before the next failure.
        unsafe { CStr::from_ptr(ha_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn texts_have_one_place_and_are_cut_at_a_character() {
        let place = ha_last_error();
        report(Failure::new(HA_NULL, "first"));
        assert_eq!((ha_last_error(), last()), (place, "first".to_owned()));
        report(Failure::new(HA_NULL, "a\0b"));
        assert_eq!(last(), "a?b");
        report(Failure::new(HA_NULL, "ä".repeat(TEXT)));
        assert_eq!((ha_last_error(), last()), (place, "ä".repeat(511)));
        report(Failure::new(HA_NULL, ""));
        assert_eq!(last(), "");
    }

    /// All Rust files in a folder, but tests.
    fn add_sources(folder: &std::path::Path, sources: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                add_sources(&path, sources);
            } else if name.ends_with(".rs") && !name.contains("tests") {
                sources.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// Errors of the core name its items in back quotes.
    #[test]
    fn errors_have_the_names_of_c() {
        let (mut sources, mut found) = (Vec::new(), 0);
        add_sources(concat!(env!("CARGO_MANIFEST_DIR"), "/../dsm/src").as_ref(), &mut sources);
        let lines = sources.iter().flat_map(|source| source.lines());
        for line in lines.filter(|line| !line.trim_start().starts_with("//")) {
            let quoted = line.split('`').skip(1).step_by(2);
            for name in quoted.filter(|name| name.contains("::") || name.contains('(')) {
                assert!(!in_names_of_c(line.into()).contains(name), "{name} is no name of C: {line}");
                found += 1;
            }
        }
        assert!(found >= 11, "{found}");
        let missing = Failure::from(Error::NoSuchArea { name: "a".into() }).text;
        assert_eq!(
            missing,
            "there is no area \"a\": create it first, or wait for it with a time limit of `ha_area_attach`"
        );
    }
}
