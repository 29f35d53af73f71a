//! The output: a line of progress, a table, and the loss curve as CSV and SVG.

use super::chart::{Panel, Series, svg};
use super::data::DataSet;
use super::options::Options;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::io::{IsTerminal, Write as _, stderr};
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
    /// The test error with `digits` digits, if there are test ratings.
    fn rmse(&self, digits: usize) -> Option<String> {
        (!self.test_rmse.is_nan()).then(|| format!("{:.digits$}", self.test_rmse))
    }

    /// The same in words.
    fn tested(&self, digits: usize) -> String {
        self.rmse(digits).map_or_else(|| "no test ratings".into(), |rmse| format!("test RMSE {rmse}"))
    }
}

/// Collects and shows the results of a run.
#[derive(Debug)]
pub struct Report<'a> {
    options: &'a Options,
    ratings: usize,
    /// Epochs of an earlier run, from whose checkpoint this one goes on.
    begun: usize,
    epochs: Vec<Epoch>,
    /// Whether a line of the terminal shows how far training is.
    progress: bool,
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
        let progress = !options.quiet && stderr().is_terminal();
        Ok(Self { options, ratings: data.train.len(), begun, epochs: Vec::new(), progress })
    }

    /// The epochs of this run with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (usize, &Epoch)> {
        (self.begun + 1..).zip(&self.epochs)
    }

    /// Adds the result of the next epoch.
    pub fn add(&mut self, epoch: Epoch) {
        self.show(&format!(
            "epoch {}/{}  loss {:.4}, {}, {:.1} M updates/s",
            self.begun + self.epochs.len() + 1,
            self.options.epochs,
            epoch.train_loss,
            epoch.tested(4),
            self.updates_per_s(&epoch) / 1e6
        ));
        self.epochs.push(epoch);
    }

    /// Puts a text in place of the terminal's line. One that cannot be written is of no account.
    fn show(&self, text: &str) {
        if self.progress {
            let mut terminal = stderr();
            let _ = write!(terminal, "\r\x1b[2K{text}").and_then(|()| terminal.flush());
        }
    }

    /// Clears the line of a run that failed.
    pub fn abandon(&self) {
        self.show("");
    }

    /// Prints the table and writes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(&self) -> Result<()> {
        self.show("");
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
            let picture = directory.join("loss.svg");
            fs::write(&picture, self.draw())
                .with_context(|| format!("cannot write {}", picture.display()))?;
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
    fn draw(&self) -> String {
        let line = |name: &str, color, value: fn(&Epoch) -> f64| Series {
            name: name.into(),
            points: self.numbered().map(|(number, epoch)| (number as f64, value(epoch))).collect(),
            color,
        };
        let mut series = vec![line("training", 0, |epoch| epoch.train_loss.sqrt())];
        // A curve that is not a number (there is no test set) has no place in the picture.
        if self.epochs.iter().all(|epoch| epoch.test_rmse.is_finite()) {
            series.push(line("test", 1, |epoch| epoch.test_rmse));
        }
        let panel = Panel { title: String::new(), x: "epoch".into(), series };
        svg(&self.title(), "RMSE", &[panel], f64::MAX)
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
