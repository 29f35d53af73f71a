//! Loss over passes and seconds of one run.
use super::Run;
use std::time::{Duration, Instant};

/// What was reached after each pass.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// Passes of an earlier run, from whose checkpoint this one goes on.
    pub(super) begun: usize,
    pub(super) measure: &'static str,
    pub(super) points: Vec<Point>,
    time: Duration,
    began: Option<Instant>,
}

/// After a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) seconds: f64,
    /// The same of what was learned from, if that is another; else not a number.
    pub(super) train: f64,
    /// What the curve is of.
    pub(super) loss: f64,
}

impl Curve {
    /// The curve of a measure.
    pub(crate) fn of(measure: &'static str) -> Curve {
        Curve { begun: 0, measure, points: Vec::new(), time: Duration::ZERO, began: None }
    }

    /// The same, of a run that goes on after `begun` passes.
    pub(crate) fn after(self, begun: usize) -> Curve {
        Curve { begun, ..self }
    }

    /// Times a pass: what is not between `begin` and `end` (reading, testing) does not count.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Ends the pass.
    pub(crate) fn end(&mut self) {
        self.time += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Adds the roots of the means of squared errors, given their sums; false when training may stop.
    pub(crate) fn add(&mut self, run: &Run, train: (f64, usize), test: (f64, usize), speaks: bool) -> bool {
        let root = |(squares, count): (f64, usize)| (squares / count.max(1) as f64).sqrt();
        self.push(run, root(train), root(test), speaks)
    }

    /// Adds what was reached in whatever the curve is of; `train` is not a number if it is not measured. False when
    /// training may stop.
    pub(crate) fn push(&mut self, run: &Run, train: f64, loss: f64, speaks: bool) -> bool {
        let seconds = self.time.as_secs_f64();
        self.points.push(Point { seconds, train, loss });
        if speaks && !run.quiet {
            let training = if train.is_nan() { String::new() } else { format!("  training {train:.4}") };
            let (pass, measure) = (self.begun + self.points.len(), self.measure);
            println!("pass {pass:>3}{training}  {measure} {loss:.4}  {seconds:.3} s");
        }
        run.target.is_none_or(|target| loss > target)
    }

    /// Seconds of training and loss after each pass.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (point.seconds, point.loss))
    }

    /// Seconds of training in all.
    pub(crate) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    /// Says what was reached at last.
    pub(super) fn say_end(&self, name: &str) {
        let Some(last) = self.points.last() else { return };
        let passes = self.begun + self.points.len();
        println!("{name}: {} {:.4} after {passes} passes, {:.3} s", self.measure, last.loss, last.seconds);
    }
}
