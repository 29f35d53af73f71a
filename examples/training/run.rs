//! The common options of the training examples: on how many workers, how consistent, and what is told.
use super::Curve;
use super::picture;
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use hectare::orion::relax::{Consistency, Every};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

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

    /// Trains as the command line says, once or in every way, says what was reached, and writes the curves.
    ///
    /// `kinds` are the consistencies that the program knows, its default first; none if it has but one way.
    pub(crate) fn train(
        &self,
        kinds: &[Consistency],
        serial: impl Fn() -> Result<Curve>,
        parallel: impl Fn(usize, Consistency) -> Result<Curve>,
    ) -> Result<()> {
        self.curve.as_deref().map_or(Ok(()), |path| try_to_write("--curve", path))?;
        let manner = self.manner.as_ref().map_or_else(String::new, |manner| format!(", {manner}"));
        let first = kinds.first().copied().unwrap_or_default();
        let mut runs = Vec::new();
        let mut add = |name: String, trained: Result<Curve>| -> Result<()> {
            let (curve, name) = (trained?, name + &manner);
            curve.say_end(&name);
            runs.push((name, curve));
            Ok(())
        };
        ensure!(self.workers.iter().all(|workers| *workers > 0), "--workers 0: at least 1");
        if self.serial || self.all {
            add("serial".into(), serial())?;
        }
        if self.all {
            for workers in &self.workers {
                for kind in std::iter::once(first).chain(kinds.iter().skip(1).copied()) {
                    add(describe(*workers, kinds, kind), parallel(*workers, kind))?;
                }
            }
        } else if !self.serial {
            let [workers] = self.workers[..] else { bail!("several numbers of --workers: only with --all") };
            let kind = self.consistency.unwrap_or(first);
            if self.consistency.is_some() && kinds.is_empty() {
                bail!(
                    "--consistency: run like this, the program has but one (`kmeans` has several with --batch)"
                );
            }
            add(describe(workers, kinds, kind), parallel(workers, kind))?;
        }
        match &self.curve {
            Some(path) => picture::write(path, &runs),
            None => Ok(()),
        }
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
    if is_new {
        // Training may fail yet.
        fs::remove_file(path)?;
    }
    Ok(())
}

fn describe(workers: usize, kinds: &[Consistency], kind: Consistency) -> String {
    match kinds {
        [] => counted(workers, "worker"),
        _ => format!("{}, {kind}", counted(workers, "worker")),
    }
}
