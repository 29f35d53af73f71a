//! A worker's hand on the program: SPMD execution, collective calls, and where arrays and loops come from.
mod agree;
mod array_number;
mod collective;
mod divergence;
mod exit_notice;
mod extensions;
mod left_behind;
mod mailbox;
mod run;

pub(crate) use self::array_number::ArrayNumber;
pub use self::run::{run, run_on};

use self::array_number::DroppedArrays;
use self::extensions::Extensions;
pub(crate) use self::mailbox::Outcome;
use self::mailbox::{Mailbox, OnReply};
use crate::error::{Error, Result};
use crate::fabric::{Fabric, SharedMemory};
use crate::site::Site;
use hectare_data::random::{Permutation, Stream};
use hectare_dependence::hosts::PlanRequest;
use hectare_dsm::{Rank, Worker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// How long workers wait for each other when a program begins.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// One worker of an SPMD program: every worker runs the same program, and makes the same collective calls in the same
/// order. Each runs its share of a loop.
///
/// A call that is *collective* must be made by every worker. It carries its call site and number, so that
/// programs that diverge get [`Error::Diverged`] with both places.
#[derive(Debug)]
pub struct Context<'w> {
    pub(crate) fabric: SharedMemory<'w>,
    mailbox: Mailbox,
    made: u64,
    /// Arrays whose handles are gone.
    pub(crate) dropped_arrays: Arc<DroppedArrays>,
    /// State of the layers above.
    pub(crate) extensions: Extensions,
    seed: u64,
    follows_links: bool,
    /// The planner's request, as worker 0 got it.
    pub(crate) plan_request: Option<PlanRequest>,
    pub(crate) checking: bool,
    pub(crate) timeout: Duration,
    /// The error with which the program has ended.
    failed: Option<String>,
    /// Whether workers have to meet before the next loop, wherever its arrays are: a collective call has failed since they last did
    /// for one. The same on all workers.
    pub(crate) has_to_meet: bool,
    /// How many errors of its own this worker has told the others.
    pub(crate) told: u64,
}

impl<'w> Context<'w> {
    /// Makes `worker` one of the `size` workers of a program, with ranks `0..size`, in threads or processes of one job.
    /// Collective: waits until all have joined, for at most a minute. [`run`] does this for threads.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the worker's rank is not below `size`, [`Error::Core`] if the others do not come.
    pub fn join(worker: &'w mut Worker, size: usize) -> Result<Context<'w>> {
        if worker.rank() as usize >= size {
            return Err(Error::Invalid(format!(
                "worker {} cannot be one of {size}: a program's workers have ranks 0 to {}",
                worker.rank(),
                size.saturating_sub(1)
            )));
        }
        let hosts = worker.job().hosts();
        let ranks = hosts.last().map_or(size, |last| last.end as usize);
        if ranks != size && hosts.len() > 1 {
            return Err(Error::Invalid(format!(
                "a program of {size} workers in a job of {ranks} on {} hosts: on several hosts, all workers of the job run it",
                hosts.len()
            )));
        }
        let checking = std::env::var_os("HECTARE_CHECK").is_some_and(|value| value == "1");
        let fabric = SharedMemory::meet(worker, size, mailbox::FRAME_BYTES, TIME_LIMIT)?;
        let mut context = Context {
            fabric,
            mailbox: Mailbox::default(),
            made: 0,
            dropped_arrays: Arc::default(),
            extensions: Extensions::default(),
            seed: 0,
            follows_links: false,
            plan_request: None,
            checking,
            timeout: TIME_LIMIT,
            failed: None,
            has_to_meet: false,
            told: 0,
        };
        context.plan_request = context.asked_by_planner()?;
        context.mailbox.forget_last();
        Ok(context)
    }

    /// This worker's number.
    pub fn rank(&self) -> Rank {
        self.fabric.rank()
    }

    /// How many workers run the program.
    pub fn size(&self) -> usize {
        self.fabric.size()
    }

    /// The worker of the runtime core, to use areas directly.
    pub fn worker(&mut self) -> &mut Worker {
        self.fabric.worker
    }

    /// The seed that plans and random arrays derive theirs from; 0 unless [`Context::set_seed`] was called.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Sets the seed. Every worker must call it with the same value, before arrays are created.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Lets the measured links between hosts choose schedules even where that changes the bits of results; off by
    /// default. Every worker must call it with the same value. On one host nothing changes, and loops whose bits do not
    /// depend on their schedule follow the links anyway. [`Context::explain`] says which loops would be faster.
    pub fn allow_link_schedules(&mut self, follow: bool) {
        self.follows_links = follow;
    }

    /// The last setting of [`Context::allow_link_schedules`].
    pub(crate) fn follows_links(&self) -> bool {
        self.follows_links
    }

    /// The planner's request, if it started the program. Collective.
    #[track_caller]
    fn asked_by_planner(&mut self) -> Result<Option<PlanRequest>> {
        let asked = std::env::var("HECTARE_PLAN").unwrap_or_default();
        let mut first = Vec::new();
        self.exchange(Site::here(), Outcome::Value(asked.as_bytes()), |rank, bytes| {
            if rank == 0 {
                first = bytes.to_vec();
            }
            Ok(())
        })?;
        if first.is_empty() {
            return Ok(None);
        }
        let invalid = |error| Error::Invalid(format!("HECTARE_PLAN cannot be parsed: {error}"));
        serde_json::from_slice(&first).map(Some).map_err(invalid)
    }

    /// A random permutation of `0..len` that depends on `seed` and the program's seed only: the same on every
    /// worker, and on any number of them.
    ///
    /// # Panics
    /// If `len` is above 2^32.
    pub fn permutation(&self, len: usize, seed: u64) -> Permutation {
        Permutation::new(Stream::new(self.seed, "permutation").child(seed), len)
    }

    /// Waits until every worker has called it. Collective.
    ///
    /// # Errors
    /// [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn barrier(&mut self) -> Result<()> {
        self.exchange(Site::here(), Outcome::Value(&[]), |_, _| Ok(()))
    }

    /// A number that nothing else of the program has; the same on every worker.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The number of an array.
    pub(crate) fn number_array(&mut self) -> ArrayNumber {
        ArrayNumber::new(self.next_number(), self.dropped_arrays.clone())
    }

    /// Sets the fingerprint of the loop that this worker is in: 0 outside of loops. From now on exchanges find
    /// those that say something else. Returns the number before.
    pub(crate) fn set_fingerprint(&mut self, fingerprint: u64) -> u64 {
        self.mailbox.set_fingerprint(fingerprint)
    }

    /// The fingerprint of the loop that this worker is in.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.mailbox.fingerprint()
    }

    /// Whether an exchange has found such a worker.
    pub(crate) fn take_divergence(&mut self) -> bool {
        self.mailbox.take_divergence()
    }

    /// The number of the last collective call.
    pub(crate) fn sequence(&self) -> u64 {
        self.mailbox.sequence()
    }

    pub(crate) fn exchange(
        &mut self,
        site: Site,
        outcome: Outcome<'_>,
        mut on_reply: impl FnMut(Rank, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.exchange_replies(site, outcome, &mut on_reply)
    }

    fn exchange_replies(
        &mut self,
        site: Site,
        outcome: Outcome<'_>,
        on_reply: &mut OnReply<'_>,
    ) -> Result<()> {
        let fails = !matches!(outcome, Outcome::Value(_));
        let exchanged = self.mailbox.exchange(&mut self.fabric, site, outcome, on_reply);
        self.has_to_meet |= fails || exchanged.is_err();
        self.told += u64::from(fails);
        exchanged
    }

    /// [`Context::exchange`] of serde values. Collective.
    pub(crate) fn exchange_values<T: Serialize + DeserializeOwned>(
        &mut self,
        site: Site,
        value: &T,
        mut on_reply: impl FnMut(Rank, T) -> Result<()>,
    ) -> Result<()> {
        let bytes = collective::encode(value)?;
        self.exchange(site, Outcome::Value(&bytes), |rank, bytes| on_reply(rank, collective::decode(bytes)?))
    }

    /// Ends a step that may have failed on this worker: afterwards either all workers go on, or all have an
    /// error. Collective.
    pub(crate) fn agree_on<R>(&mut self, site: Site, result: Result<R>) -> Result<R> {
        match result {
            Ok(value) => self.exchange(site, Outcome::Value(&[]), |_, _| Ok(())).map(|()| value),
            Err(error) => Err(self.fail(site, error)),
        }
    }

    /// Tells the others of an error of this worker's; returns the error that says most about the cause.
    pub(crate) fn fail(&mut self, site: Site, error: Error) -> Error {
        let error = match error {
            // It has died since it was last met, and was to be given something.
            Error::Core(hectare_dsm::Error::NoSuchWorker { rank }) => Error::WorkerLost {
                site: site.to_string(),
                rank,
                host: self.fabric.other_host(rank as usize),
            },
            other => other,
        };
        let text = error.to_string();
        let follows = error.is_consequence();
        let outcome = if follows { Outcome::Consequence(&text) } else { Outcome::Failure(&text) };
        match self.exchange(site, outcome, |_, _| Ok(())) {
            Err(cause) if follows => cause,
            _ => error,
        }
    }
}
