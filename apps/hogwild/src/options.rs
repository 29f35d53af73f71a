//! The command line.
use clap::Parser;
use clap::builder::TypedValueParser;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Logistic regression by workers that learn from their own examples and combine their models in areas.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// Threads. A launcher that starts several processes says itself how many workers there are.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..).map(|n| n as usize))]
    pub(crate) workers: usize,
    /// When workers see each other's steps: bsp, bounded:S or async.
    #[arg(long, default_value = "bsp")]
    pub(crate) consistency: Consistency,
    /// How often each worker looks at all its examples.
    #[arg(long, default_value_t = 5)]
    pub(crate) epochs: usize,
    /// Examples of a worker between two exchanges.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..).map(|n| n as usize))]
    pub(crate) every: usize,
    /// The length of a step, in the first epoch.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) rate: f64,
    /// Factor of the step size from one epoch to the next.
    #[arg(long, default_value_t = 0.9)]
    pub(crate) decay: f64,
    /// A LIBSVM file with labels of two values, of which the larger one is positive. Default: generated examples.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// A LIBSVM file to test with. Default: the examples themselves, or generated ones.
    #[arg(long, requires = "data")]
    pub(crate) test: Option<PathBuf>,
    /// Generated examples.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..).map(|n| n as usize))]
    pub(crate) rows: usize,
    /// Features of the generated examples.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(16..).map(|n| n as usize))]
    pub(crate) features: usize,
}

/// When workers see each other's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consistency {
    /// At a barrier after each period.
    Bsp,
    /// At most this many periods later.
    Bounded(u64),
    /// As soon as they are there; nobody waits.
    Async,
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consistency::Bsp => f.write_str("bsp"),
            Consistency::Bounded(periods) => write!(f, "bounded:{periods}"),
            Consistency::Async => f.write_str("async"),
        }
    }
}

impl FromStr for Consistency {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Consistency> {
        match text {
            "bsp" => Ok(Consistency::Bsp),
            "async" => Ok(Consistency::Async),
            _ => match text.strip_prefix("bounded:").map(str::parse) {
                Some(Ok(periods)) => Ok(Consistency::Bounded(periods)),
                _ => anyhow::bail!("bsp, bounded:S with a number of periods, or async is wanted"),
            },
        }
    }
}
