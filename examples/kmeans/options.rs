//! The command line, and the points.
use super::training::Run;
use anyhow::ensure;
use clap::Parser;
use hectare::DistArray;
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::Separator;
use hectare::orion::{Context, Result};
use std::path::PathBuf;

/// Clusters points by k-means; `--serial` runs the loops that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Points: NumPy's .npy with f32 in rows, or lines of numbers (between commas in .csv, else spaces). Generated if left
    /// out.
    #[arg(long)]
    pub(crate) points: Option<PathBuf>,
    /// Generated points.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) count: usize,
    /// Of generated points: dimensions.
    #[arg(long, default_value_t = 16)]
    pub(crate) columns: usize,
    /// Clusters that are looked for; generated points have as many.
    #[arg(long, default_value_t = 50)]
    pub(crate) clusters: usize,
    /// Points between two changes of the centers, all workers' together; 0: all points, and totals begin anew (Lloyd).
    #[arg(long, default_value_t = 0)]
    pub(crate) batch: usize,
    /// Passes over the points.
    #[arg(long, default_value_t = 12)]
    pub(crate) passes: usize,
    /// Which points are the first centers depends on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Options {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in
            [("--clusters", self.clusters), ("--columns", self.columns), ("--count", self.count)]
        {
            ensure!(value > 0, "{name} 0: at least 1");
        }
        Ok(())
    }
}

/// Coordinate `k` of generated point `number`: normal around one of the planted centers, which are uniform in a cube.
fn planted(o: &Options, number: usize, k: usize) -> f32 {
    let stream = Stream::new(13, "points");
    let cluster = stream.below(number as u64, o.clusters as u64);
    let center = 8.0 * stream.child(1).uniform(cluster * o.columns as u64 + k as u64);
    (center + stream.child(2).normal((number * o.columns + k) as u64)) as f32
}

/// The points, one a row. Collective.
pub(crate) fn points(w: &mut Context<'_>, o: &Options) -> Result<DistArray<f32, 2>> {
    let points = match &o.points {
        None => w.from_fn([o.count, o.columns], |[number, k]| planted(o, number, k))?,
        Some(path) => match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => w.npy_file(path)?,
            Some("csv") => w.text_array(path, Separator::Text(","))?,
            _ => w.text_array(path, Separator::Whitespace)?,
        },
    };
    Ok(points.named("points"))
}
