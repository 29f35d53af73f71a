//! Settings of a job, its quotas and its name.
use crate::Refusal;
use serde::{Deserialize, Serialize};

/// The policy for a living worker that stands still in a round where it cannot be left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stall {
    /// The round waits.
    Wait,
    /// Its process is killed after this many milliseconds.
    KillAfterMs(u64),
    /// The reader copy that it was writing is pinned, so that nobody comes to it, after this many milliseconds;
    /// for areas with three reader copies or more.
    PinAfterMs(u64),
}

/// Settings and quotas of a job; what is `None` is the daemon's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSettings {
    /// Address space for areas, in bytes: the job's quota of memory.
    pub bytes: Option<u64>,
    /// How many areas there may be at a time.
    pub areas: Option<u32>,
    /// How many workers there may be at a time.
    pub workers: Option<u32>,
    /// How long a round waits for workers to arrive, in milliseconds.
    pub round_timeout_ms: Option<u64>,
    /// The stall policy.
    pub stall: Option<Stall>,
    /// Check mode: owners compare what they publish with what was logged.
    pub check: Option<bool>,
}

impl JobSettings {
    /// These settings, with those of `defaults` where there are none.
    pub fn or(self, defaults: &JobSettings) -> JobSettings {
        JobSettings {
            bytes: self.bytes.or(defaults.bytes),
            areas: self.areas.or(defaults.areas),
            workers: self.workers.or(defaults.workers),
            round_timeout_ms: self.round_timeout_ms.or(defaults.round_timeout_ms),
            stall: self.stall.or(defaults.stall),
            check: self.check.or(defaults.check),
        }
    }
}

/// The longest name of a job, in bytes, and how many characters of one that is refused are shown.
const MAX_NAME: usize = 128;
const MAX_SHOWN: usize = 64;

/// Checks the name of a job: 1 to 128 of letters, digits, `-`, `_` and `.`, not beginning with `-` or `.`.
///
/// ```
/// assert!(hectare_wire::check_job_name("mf-2.run_1").is_ok());
/// assert!(hectare_wire::check_job_name("../mf").is_err());
/// ```
///
/// # Errors
/// [`Refusal::InvalidName`] with the rule that the name breaks.
pub fn check_job_name(job: &str) -> Result<(), Refusal> {
    let refuse = |why: &str| {
        // It goes into messages, where each character may take ten.
        let job = job.chars().take(MAX_SHOWN).collect();
        Err(Refusal::InvalidName { job, why: why.into() })
    };
    if job.is_empty() || job.len() > MAX_NAME {
        return refuse("it must have 1 to 128 bytes");
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !job.chars().all(fits) {
        return refuse("only letters, digits, '-', '_' and '.' may be in it");
    }
    if job.starts_with(['-', '.']) {
        return refuse("it must not begin with '-' or '.'");
    }
    Ok(())
}
