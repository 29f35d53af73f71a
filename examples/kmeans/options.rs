//! The command line.
use super::training::Run;
use anyhow::ensure;
use clap::Parser;
use std::path::PathBuf;

/// Clusters points by k-means; `--serial` runs the loops that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Points: NumPy's .npy with integers or floats in rows, or lines of numbers (between commas in .csv, else spaces).
    /// Generated if left out.
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
    /// Begin with these centers, whatever `--clusters` says: a file as with `--points`. With `--passes 0`, points only find out
    /// which is the nearest.
    #[arg(long)]
    pub(crate) load: Option<PathBuf>,
    /// Save the centers here, as NumPy's .npy with f32 in rows, or as lines of numbers between spaces if the name ends in
    /// .txt.
    #[arg(long, conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Save the clusters of the points here, numbers from 0, as .npy with u32, or as lines if the name ends in .txt. Only
    /// with whole passes.
    #[arg(long, conflicts_with = "all")]
    pub(crate) labels: Option<PathBuf>,
}

impl Options {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in
            [("--clusters", self.clusters), ("--columns", self.columns), ("--count", self.count)]
        {
            ensure!(value > 0, "{name} 0: at least 1");
        }
        ensure!(self.labels.is_none() || self.batch == 0, "--labels: only with whole passes (--batch 0)");
        Ok(())
    }
}
