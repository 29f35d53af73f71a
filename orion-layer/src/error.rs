//! Errors of the loop layer: what happened, in which loop, to which array, on which worker.
//!
//! `Display` is whole and says the cause, `Debug` is the same, and `Error::source` gives the cause, as in the runtime core.
use hectare_dsm::Rank;
use std::fmt;

/// An error of the loop layer.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime core refused an operation.
    #[error(transparent)]
    Core(#[from] hectare_dsm::Error),
    /// There is not enough memory for an array or a collection.
    #[error(
        "{array} needs {asked} bytes for {what}, {free} are free (limit {limit} bytes, set by {payer}): make it smaller, drop \
         others, or raise the limit"
    )]
    OutOfMemory {
        /// The array or the collection.
        array: String,
        /// The piece of it: a part, or memory that workers need for it in a loop.
        what: String,
        /// Bytes needed.
        asked: u64,
        /// Bytes that were free.
        free: u64,
        /// The limit that binds.
        limit: u64,
        /// The holder of the limit: the host, a cgroup, or the job's reserved range.
        payer: String,
    },
    /// The body named an element, a row or a slice outside of the array, or outside of what its worker holds.
    #[error(
        "loop {loop_name}, worker {worker}{}: index {} of {array} is {what}",
        at(iteration),
        shown_index(index)
    )]
    OutOfBounds {
        /// The loop.
        loop_name: String,
        /// The array.
        array: String,
        /// The index that was asked for: of an element, of a row (without the last dimension), or where a slice begins and
        /// ends.
        index: Vec<usize>,
        /// Whether that is outside of the array's shape, or of what the worker holds of it.
        what: Box<str>,
        /// The worker.
        worker: Rank,
        /// The loop's variables, as in `i = 3, j = 7`; empty for loops that are described by hand.
        iteration: String,
    },
    /// A key of a map, or an element of a vector, that must exist does not.
    #[error("{site}, worker {worker}{}: {collection:?} has no {what}", at(iteration))]
    MissingKey {
        /// The loop, or the call outside of loops.
        site: String,
        /// The map or the vector.
        collection: String,
        /// The key or the index, as in `key "two"` or `element 7`.
        what: String,
        /// The worker that asked.
        worker: Rank,
        /// The loop's variables, as in `i = 3, j = 7`; empty outside of loops, and for those that are described by hand.
        iteration: String,
    },
    /// A shape that is invalid or does not match.
    #[error("{}: {what}", named(array))]
    Shape {
        /// The array.
        array: String,
        /// The fault, in words.
        what: String,
    },
    /// An entry of an array or a collection that cannot be made, merged, sent or read.
    #[error("{array:?}, worker {worker}, at {key}: {what}")]
    Entry {
        /// The array or the collection.
        array: String,
        /// The worker that found it.
        worker: Rank,
        /// The key of the entry, or of the one that it is made of.
        key: String,
        /// The fault, in words.
        what: String,
    },
    /// The description of a loop contradicts itself or its arrays.
    #[error("loop {loop_name}: {what}")]
    InvalidLoop {
        /// The loop.
        loop_name: String,
        /// The fault, in words.
        what: String,
    },
    /// A schedule was refused.
    #[error("loop {loop_name}: schedule {schedule} is refused: {what}")]
    InvalidSchedule {
        /// The loop.
        loop_name: String,
        /// The schedule.
        schedule: String,
        /// The promise that it would break.
        what: String,
    },
    /// A [`Priority`](crate::priority::Priority) cannot draw by a setting, a weight, or a value that the dependency function
    /// returned.
    #[error("loop {loop_name}, {place}: {what}")]
    Priority {
        /// The call of [`Priority::draw`](crate::priority::Priority::draw).
        loop_name: String,
        /// The variable, the pair of variables, or the setting.
        place: String,
        /// The fault, in words.
        what: String,
    },
    /// A check found that a loop's body does not match its description or schedule
    /// ([`Context::check_loops`](crate::Context::check_loops)).
    #[error("loop {loop_name}: the check found:\n  {findings}")]
    Check {
        /// The loop.
        loop_name: String,
        /// The findings, one line each.
        findings: String,
    },
    /// Workers made different collective calls.
    #[error(
        "the workers' programs have diverged at collective call {sequence}: worker {here_rank} is at {here}, \
         worker {there_rank} at {there}; every worker must make the same collective calls with the same arguments, in the same order"
    )]
    Diverged {
        /// The number of the call.
        sequence: u64,
        /// This worker.
        here_rank: Rank,
        /// The call that this worker makes.
        here: String,
        /// The other worker.
        there_rank: Rank,
        /// The call that the other worker makes.
        there: String,
    },
    /// A value that should be the same everywhere is not.
    #[error("{site}: worker {rank} has another value than worker 0; the workers' programs have diverged")]
    ValueMismatch {
        /// The call.
        site: String,
        /// The worker with the other value.
        rank: Rank,
    },
    /// A worker died. (If its program has ended while others wait for it, they get [`Error::Diverged`], or
    /// [`Error::PeerFailed`] if it ended with an error.)
    #[error(
        "{site}: worker {rank}{} is gone, and what it owned with it: start again, from the last checkpoint",
        on(host)
    )]
    WorkerLost {
        /// The call in which the others noticed.
        site: String,
        /// The worker.
        rank: Rank,
        /// The name of its host, and where that is, if it is another one.
        host: Option<String>,
    },
    /// A worker's loop body panicked.
    #[error("loop {loop_name}: the body panicked on worker {worker}{}: {message}", at(iteration))]
    BodyPanicked {
        /// The loop.
        loop_name: String,
        /// The worker.
        worker: Rank,
        /// The panic's message.
        message: String,
        /// The loop's variables, as in `i = 3, j = 7`; empty if it was between iterations, and for loops that are
        /// described by hand.
        iteration: String,
    },
    /// The rule that merges contributions to an array or a collection panicked.
    #[error(
        "{site}: the rule {rule} of {array:?} panicked on worker {worker}{}: {message}; what was contributed to {array} was \
         not all applied",
        at(key)
    )]
    RulePanicked {
        /// The loop, or the call outside of loops.
        site: String,
        /// The array or the collection.
        array: String,
        /// The type of the rule.
        rule: String,
        /// The worker that merged.
        worker: Rank,
        /// The key of the entry, of a map; empty for arrays.
        key: Box<str>,
        /// The panic's message.
        message: String,
    },
    /// Another worker failed in the same loop or collective call.
    #[error("{site}: worker {rank} failed: {message}")]
    PeerFailed {
        /// The call.
        site: String,
        /// The worker that failed.
        rank: Rank,
        /// Its error.
        message: String,
    },
    /// An array was left half written by a pass that failed.
    #[error("{} was left half written: {cause}; restore a checkpoint or create it again", named(array))]
    Poisoned {
        /// The array.
        array: String,
        /// The failure.
        cause: String,
    },
    /// A line of a file could not be understood.
    #[error("{file}:{line}: {what}")]
    Parse {
        /// The file; on several hosts, behind the host's name if not all have this error.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The fault, and what was expected.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file; on several hosts, behind the host's name if not all have this error.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file does not hold what was requested.
    #[error("{file}: {what}")]
    Format {
        /// The file; on several hosts, behind the host's name if not all have this error.
        file: String,
        /// The fault in it, in words.
        what: String,
    },
    /// A message between workers could not be encoded or decoded.
    #[error("a message between workers could not be {0}")]
    Message(String),
    /// An argument is invalid.
    #[error("{0}")]
    Invalid(String),
}

/// An array by its name, as far as that does not say itself that it is one.
pub(crate) fn named(array: &str) -> String {
    if array.starts_with("array ") { array.to_owned() } else { format!("array {array:?}") }
}

/// An index as the program computed it: one that went below zero has wrapped around.
fn shown_index(index: &[usize]) -> String {
    let signed: Vec<isize> = index.iter().map(|at| at.cast_signed()).collect();
    format!("{signed:?}")
}

/// The iteration or the key, if it is known.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(", at {place}") }
}

/// The host, if it is another one.
fn on(host: &Option<String>) -> String {
    host.as_ref().map_or_else(String::new, |host| format!(" on host {host}"))
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The same for lack of memory as an error of the array: areas inside of one have names of their own, which its user does
    /// not know.
    pub(crate) fn of_array(self, array: &str, what: impl fmt::Display) -> Error {
        match self {
            Error::Core(hectare_dsm::Error::OutOfMemory { asked, free, limit, payer, .. }) => {
                Error::OutOfMemory { array: array.into(), what: what.to_string(), asked, free, limit, payer }
            }
            Error::Core(hectare_dsm::Error::AreaTooLong { len, size, most, .. }) => {
                let what = format!(
                    "{what} has {len} elements of {size} bytes each, and may have {most} bytes: make it smaller, or divide it"
                );
                Error::Shape { array: array.into(), what }
            }
            other => other,
        }
    }

    /// The same as that of a file of a host, if it is about a file and there is one.
    pub(crate) fn of_host(mut self, host: Option<String>) -> Error {
        if let (Some(host), Error::Parse { file, .. } | Error::Io { file, .. } | Error::Format { file, .. }) =
            (host, &mut self)
        {
            *file = format!("host {host}: {file}");
        }
        self
    }

    /// Whether this tells of another worker's failure.
    pub(crate) fn is_consequence(&self) -> bool {
        use hectare_dsm::Error as Core;
        matches!(
            self,
            Error::PeerFailed { .. }
                | Error::WorkerLost { .. }
                | Error::Poisoned { .. }
                | Error::Core(
                    Core::OwnerGone { .. }
                        | Core::NoSuchWorker { .. }
                        | Core::TaskLeft { .. }
                        | Core::NotLent { .. }
                        | Core::NotOpen { .. }
                )
        )
    }
}

/// The result of most calls of the loop layer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// Each variant that holds another error says so, once, and gives it.
    #[test]
    fn a_cause_is_said_once_and_can_be_had() {
        let io = || std::io::Error::from_raw_os_error(13);
        let core = Error::Core(hectare_dsm::Error::Os { call: "mmap", source: io() });
        let file = Error::Io { file: "a".into(), source: io() };
        for error in [core, file] {
            assert_eq!(error.to_string().matches(&io().to_string()).count(), 1, "{error}");
            let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
            assert_eq!(source.unwrap().raw_os_error(), Some(13), "{error}");
        }
    }

    #[test]
    fn main_prints_what_display_says() {
        let core = hectare_dsm::Error::InvalidArea { name: "x".into(), what: "no elements".into() };
        assert_eq!(format!("Error: {:?}", Error::Core(core)), "Error: area \"x\": no elements");
        let shape = Error::Shape { array: "v".into(), what: "two".into() };
        assert_eq!(format!("Error: {shape:?}"), "Error: array \"v\": two");
    }
}
