//! One process's side of a job: its mapping of the segment, and its private state.
use super::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::memory::fork;
use crate::segment::mapping::Segment;
use crate::segment::tally::{Tally, count};
use hectare_wire::Member;
use std::fmt::Debug;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, OnceLock, Weak};

/// One process's side of a job.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) segment: Segment,
    pub(crate) canary: &'static AtomicU32,
    pub(crate) cores: usize,
    pub(crate) pin_cores: bool,
    /// Who wants to know of publications.
    pub(crate) subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
    /// Membership in a job of the daemon.
    pub(crate) link: Option<Link>,
}

/// Somebody who wants to know of publications.
pub(crate) trait Subscriber: Debug + Send + Sync {
    /// Something was published; false if nothing will be any more that it waits for.
    fn look(&self) -> bool;
}

/// This process's membership in a job of the daemon. As long as it exists, its ranks are handed to nobody
/// else; the daemon takes them back when the process ends, in whatever way.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) member: Member,
    /// The rank that the daemon handed out with it.
    pub(crate) first: Rank,
    /// Held while a thread looks for a rank of its own.
    pub(crate) choosing: Mutex<()>,
}

impl Shared {
    /// Refuses forked children.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if fork::is_child(self.canary) { Err(Error::ForkedChild) } else { Ok(()) }
    }

    /// Why nothing can be done here with a rank that is not of this host.
    #[cold]
    pub(crate) fn on_other_host(&self, rank: Rank) -> Error {
        match self.segment.host_of(rank) {
            Some(host) => Error::WorkerElsewhere { rank, host: self.segment.host_text(Some(host)) },
            None => Error::NoSuchWorker { rank },
        }
    }

    /// Refuses to wait in a job that has ended because a host failed.
    #[inline]
    pub(crate) fn check_ending(&self) -> Result<()> {
        let ending = &self.segment.header().ending;
        if ending.has_come() { Err(ending.error()) } else { Ok(()) }
    }

    /// Ends the job on this host: who sleeps hears it.
    pub(crate) fn end_job(&self, host: &str, cause: &str) {
        self.segment.header().ending.end(host, cause);
        futex_wake_all(low_half(&self.segment.header().sync.word));
    }

    /// The job, for messages.
    pub(crate) fn name(&self) -> String {
        self.link
            .as_ref()
            .map_or_else(|| "a job without a name".into(), |link| format!("job {:?}", link.member.job()))
    }

    /// The words that worker `rank`, or a reaper, counts in.
    pub(crate) fn tally(&self, rank: Rank) -> &Tally {
        &self.segment.tallies()[rank as usize]
    }

    /// Counts and logs that an area was to go from host to host.
    #[cold]
    pub(crate) fn refused_handover(&self, cause: Error) -> Error {
        count(&self.segment.header().counters.refused_handovers, 1);
        tracing::warn!(%cause, "refused");
        cause
    }

    /// Counts a refusal and logs its cause; everything else passes.
    pub(crate) fn counted<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(cause) = &result {
            let counters = &self.segment.header().counters;
            let word = match cause {
                Error::TooManyWorkers { .. }
                | Error::NoSuchRank { .. }
                | Error::RankTaken { .. }
                | Error::WorkerElsewhere { .. } => &counters.refused_workers,
                Error::TooManyObservers { .. } => &counters.refused_observers,
                Error::TooManyPins { .. } => &counters.refused_pins,
                Error::OutOfMemory { .. } | Error::AreaTooLong { .. } | Error::TooManyAreas { .. } => {
                    &counters.refused_areas
                }
                // Whoever waits for a death asks again and again: counted, and in the log for those who look.
                Error::OwnerAlive { .. } => {
                    count(&counters.refused_claims, 1);
                    tracing::debug!(%cause, "refused");
                    return result;
                }
                _ => return result,
            };
            count(word, 1);
            tracing::warn!(%cause, "refused");
        }
        result
    }
}

/// Whether `HECTARE_CHECK=1` asks for check mode in every job that this process is in, whoever made it. What is found
/// is then an error of the worker's next synchronization point, too.
pub(crate) fn check_is_asked_for() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("HECTARE_CHECK").is_some_and(|value| value == "1"))
}
