//! The common options of the training examples: on how many workers, how consistent, and what is told.
use super::{Curve, interrupt, picture};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use hectare::orion::relax::{Consistency, Every};
use hectare::wire::{Launch, LeftAlone};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Training was ended by Ctrl-C.
#[derive(Debug)]
pub(crate) struct Interrupted {
    name: String,
    passes: usize,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: training ({}) ended after {} passes", self.name, self.passes)
    }
}

impl std::error::Error for Interrupted {}

/// How a program is run, and what it tells.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// Workers: threads of this process, or processes under `hectare run`. Several numbers, as 1,2,4, with `--all`.
    #[arg(long, value_delimiter = ',', default_values_t = [cores()])]
    pub(crate) workers: Vec<usize>,
    /// Run the serial twin: the loop that one would write without Hectare.
    #[arg(long)]
    pub(crate) serial: bool,
    /// serializable, bsp, bounded:S, unbounded or async; which of them make sense, and the default, depends on the program.
    #[arg(long)]
    pub(crate) consistency: Option<Consistency>,
    /// How often workers tell each other in relaxed loops: per-pass:TIMES in a pass, iterations:COUNT, seconds:TIME,
    /// staleness:ITERATIONS.
    #[arg(long)]
    pub(crate) every: Option<Every>,
    /// Train serially, and under every consistency on each number of workers, for one picture of all.
    #[arg(long, conflicts_with_all = ["serial", "consistency"])]
    pub(crate) all: bool,
    /// Stop at this loss, and say how long it took.
    #[arg(long)]
    pub(crate) target: Option<f64>,
    /// Write the loss over passes and seconds: a picture if the file's name ends in .svg, else CSV.
    #[arg(long)]
    pub(crate) curve: Option<PathBuf>,
    /// Say how each loop runs and why, and where the time of relaxed loops went.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Say nothing but the last lines.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The rest of the name of a run, in messages and in the legends of charts.
    #[arg(skip)]
    pub(crate) manner: Option<String>,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

impl Run {
    /// A run whose name says what the program was told besides: which rule or steps, if not the usual.
    pub(crate) fn by(&self, manner: Option<&str>) -> Run {
        Run { manner: manner.map(str::to_owned), ..self.clone() }
    }

    /// Trains as the command line says, once or in every way, says what was reached, and writes the curves: also when Ctrl-C
    /// ends training early.
    ///
    /// `kinds` are the consistencies that the program knows, its default first; none if it has but one way.
    ///
    /// # Errors
    /// [`Interrupted`], and those of training.
    pub(crate) fn train(
        &self,
        kinds: &[Consistency],
        serial: impl Fn() -> Result<Curve>,
        parallel: impl Fn(usize, Consistency) -> Result<Curve>,
    ) -> Result<()> {
        // Of several processes the first one speaks.
        let speaks = Launch::from_environment()?.is_none_or(|launch| launch.rank == 0);
        if let Some(alone) = LeftAlone::from_environment() {
            eprintln!("note: {alone}");
        }
        let to = self.curve.as_deref().filter(|_| speaks);
        to.map_or(Ok(()), |path| try_to_write("--curve", path))?;
        interrupt::notice()?;
        let manner = self.manner.as_ref().map_or_else(String::new, |manner| format!(", {manner}"));
        let mut runs: Vec<(String, Curve)> = Vec::new();
        for way in self.ways(kinds)? {
            let (name, trained) = match way {
                None => ("serial".into(), serial()),
                Some((workers, kind)) => (describe(workers, kinds, kind), parallel(workers, kind)),
            };
            let (curve, name) = (trained?, name + &manner);
            if speaks {
                curve.say_end(&name);
            }
            let is_interrupted = curve.is_interrupted();
            runs.push((name, curve));
            if is_interrupted {
                break;
            }
        }
        to.map_or(Ok(()), |path| picture::write(path, &runs))?;
        match runs.pop() {
            Some((name, curve)) if curve.is_interrupted() => {
                Err(Interrupted { name, passes: curve.passes() }.into())
            }
            _ => Ok(()),
        }
    }

    /// The ways to train that the command line asks for: `None` for the serial twin, else on how many workers and how.
    fn ways(&self, kinds: &[Consistency]) -> Result<Vec<Option<(usize, Consistency)>>> {
        ensure!(self.workers.iter().all(|workers| *workers > 0), "--workers 0: at least 1");
        let first = kinds.first().copied().unwrap_or_default();
        if self.all {
            let kinds = std::iter::once(first).chain(kinds.iter().skip(1).copied());
            let parallel =
                self.workers.iter().flat_map(|workers| kinds.clone().map(|kind| Some((*workers, kind))));
            return Ok(std::iter::once(None).chain(parallel).collect());
        }
        if self.serial {
            return Ok(vec![None]);
        }
        let [workers] = self.workers[..] else { bail!("several numbers of --workers: only with --all") };
        // Of several processes, each is a worker.
        let workers = Launch::from_environment()?.map_or(workers, |launch| launch.size as usize);
        if self.consistency.is_some() && kinds.is_empty() {
            bail!(
                "--consistency: run like this, the program has but one (`kmeans` has several with --batch, `lda` with --sampler gibbs)"
            );
        }
        Ok(vec![Some((workers, self.consistency.unwrap_or(first)))])
    }

    /// How often workers tell each other, if the command line does not say.
    pub(crate) fn every(&self, times: usize) -> Every {
        self.every.unwrap_or(Every::PerPass(times))
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Whether the file of an option can be written, so that this is known before training.
pub(crate) fn try_to_write(option: &str, path: &Path) -> Result<()> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.with_context(|| format!("{option} {}", path.display()))?;
    if !is_new {
        return Ok(());
    }
    // Training may fail yet. Of several processes, one removes it.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{option} {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn describe(workers: usize, kinds: &[Consistency], kind: Consistency) -> String {
    match kinds {
        [] => counted(workers, "worker"),
        _ => format!("{}, {kind}", counted(workers, "worker")),
    }
}
