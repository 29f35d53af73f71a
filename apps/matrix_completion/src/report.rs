//! What the user sees: a progress bar, a table, and the loss curve as CSV and SVG.

use super::data::DataSet;
use super::options::Options;
use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The result of one epoch.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The mean squared error over the training set.
    pub train_loss: f64,
    /// The root of the mean squared error over the test set; not a number if that is empty.
    pub test_rmse: f64,
    /// How long training took.
    pub time: Duration,
}

impl Epoch {
    /// The test error with so many digits, if there are test ratings.
    fn rmse(&self, digits: usize) -> Option<String> {
        (!self.test_rmse.is_nan()).then(|| format!("{:.digits$}", self.test_rmse))
    }

    /// The same in words.
    fn tested(&self, digits: usize) -> String {
        self.rmse(digits).map_or_else(|| "no test ratings".into(), |rmse| format!("test RMSE {rmse}"))
    }
}

/// An epoch and an error.
type Point = (f64, f64);

/// Collects and shows the results of a run.
#[derive(Debug)]
pub struct Report<'a> {
    options: &'a Options,
    ratings: usize,
    /// Epochs of an earlier run, from whose checkpoint this one goes on.
    begun: usize,
    epochs: Vec<Epoch>,
    bar: ProgressBar,
}

impl<'a> Report<'a> {
    /// A report without results, of a run that goes on after `begun` epochs. Creates the directory of `--out`, so that a wrong name is known before training.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn new(options: &'a Options, data: &DataSet, begun: usize) -> Result<Self> {
        if let Some(directory) = &options.out {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        let bar = if options.quiet { ProgressBar::hidden() } else { ProgressBar::new(options.epochs as u64) };
        bar.set_style(ProgressStyle::with_template("epoch {pos}/{len} {wide_bar} {msg}")?);
        bar.set_position(begun as u64);
        Ok(Self { options, ratings: data.train.len(), begun, epochs: Vec::new(), bar })
    }

    /// The epochs of this run with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (usize, &Epoch)> {
        (self.begun + 1..).zip(&self.epochs)
    }

    /// Adds the result of the next epoch.
    pub fn add(&mut self, epoch: Epoch) {
        self.bar.set_message(format!(
            "loss {:.4}, {}, {:.1} M updates/s",
            epoch.train_loss,
            epoch.tested(4),
            self.updates_per_s(&epoch) / 1e6
        ));
        self.bar.inc(1);
        self.epochs.push(epoch);
    }

    /// Ends the progress bar of a run that failed.
    pub fn abandon(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints the table and writes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(&self) -> Result<()> {
        self.bar.finish_and_clear();
        if !self.options.quiet {
            println!("epoch  train loss  test RMSE  seconds  M updates/s");
            for (number, epoch) in self.numbered() {
                println!(
                    "{number:5}  {:10.6}  {:>9}  {:7.4}  {:11.1}",
                    epoch.train_loss,
                    epoch.rmse(6).unwrap_or_else(|| "-".into()),
                    epoch.time.as_secs_f64(),
                    self.updates_per_s(epoch) / 1e6
                );
            }
        }
        if self.epochs.is_empty() {
            println!("nothing left to learn: the checkpoint is of epoch {}", self.begun);
        }
        let total: f64 = self.epochs.iter().map(|epoch| epoch.time.as_secs_f64()).sum();
        if let Some(last) = self.epochs.last() {
            println!(
                "{}, {} in {}: train loss {:.6}, {} after {} epochs in {:.3} s, {:.1} M updates/s",
                self.options.mode.name(),
                counted(self.options.workers(), "worker"),
                counted(self.options.processes(), "process"),
                last.train_loss,
                last.tested(6),
                self.epochs.len(),
                total,
                (self.ratings * self.epochs.len()) as f64 / total / 1e6
            );
        }
        if let Some(directory) = &self.options.out {
            let csv = directory.join("loss.csv");
            fs::write(&csv, self.csv()).with_context(|| format!("cannot write {}", csv.display()))?;
            let svg = directory.join("loss.svg");
            self.draw(&svg).with_context(|| format!("cannot write {}", svg.display()))?;
        }
        Ok(())
    }

    fn updates_per_s(&self, epoch: &Epoch) -> f64 {
        self.ratings as f64 / epoch.time.as_secs_f64()
    }

    /// One line per epoch. `seconds` adds up, and losses have all their digits.
    fn csv(&self) -> String {
        let options = self.options;
        let mut csv = String::from(
            "epoch,train_loss,test_rmse,seconds,updates_per_s,mode,workers,rank,lr,decay,reg,step,batch,seed\n",
        );
        let schedule = options.schedule();
        let mut seconds = 0.0;
        for (number, epoch) in self.numbered() {
            seconds += epoch.time.as_secs_f64();
            writeln!(
                csv,
                "{number},{},{},{seconds:.6},{:.0},{},{},{},{},{},{},{},{},{}",
                epoch.train_loss,
                if epoch.test_rmse.is_nan() { String::new() } else { epoch.test_rmse.to_string() },
                self.updates_per_s(epoch),
                options.mode.name(),
                options.workers(),
                options.rank,
                schedule.lr,
                schedule.decay,
                schedule.reg,
                options.step.name(),
                options.batch,
                options.seed
            )
            .expect("a string takes all that is written to it");
        }
        csv
    }

    /// Test RMSE and the root of the training loss over the epochs.
    fn draw(&self, file: &Path) -> Result<()> {
        let root = |loss: f64| loss.sqrt();
        let train: Vec<Point> =
            self.numbered().map(|(number, epoch)| (number as f64, root(epoch.train_loss))).collect();
        let test: Vec<Point> =
            self.numbered().map(|(number, epoch)| (number as f64, epoch.test_rmse)).collect();
        // A curve that is not a number (there is no test set) has no place in the picture.
        let curves: Vec<_> =
            [("training", RGBColor(120, 120, 120), train), ("test", RGBColor(0, 90, 180), test)]
                .into_iter()
                .filter(|(_, _, points): &(_, _, Vec<Point>)| {
                    points.iter().all(|(_, value)| value.is_finite())
                })
                .collect();
        let values = || curves.iter().flat_map(|(_, _, points)| points).map(|(_, value)| *value);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        let margin = (0.08 * (high - low)).max(1e-3);

        let first = self.begun as f64 + 1.0;
        let last = (first + 1.0).max((self.begun + self.epochs.len()) as f64);
        // The backend reports drawing errors with a type that borrows from it: keep the words.
        let words = |error: DrawingAreaErrorKind<std::io::Error>| anyhow!("{error}");
        let area = SVGBackend::new(file, (800, 480)).into_drawing_area();
        area.fill(&WHITE).map_err(words)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(16)
            .caption(self.title(), ("sans-serif", 18))
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(first..last, low - margin..high + margin)
            .map_err(words)?;
        chart
            .configure_mesh()
            .x_desc("epoch")
            .y_desc("RMSE")
            .x_labels(self.epochs.len().clamp(2, 16))
            .x_label_formatter(&|epoch| format!("{epoch:.0}"))
            .y_label_formatter(&|rmse| format!("{rmse:.3}"))
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(words)?;
        for (name, color, points) in curves {
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))
                .map_err(words)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE)
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 14))
            .draw()
            .map_err(words)?;
        area.present().map_err(words)
    }

    fn title(&self) -> String {
        let options = self.options;
        format!(
            "Matrix completion: rank {}, {}, {}",
            options.rank,
            options.mode.name(),
            counted(options.workers(), "worker")
        )
    }
}

/// `1 worker`, `2 workers`, `2 processes`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let end = if what.ends_with('s') { "es" } else { "s" };
    format!("{count} {what}{}", if count == 1 { "" } else { end })
}
