//! Loss over passes and seconds of one run.
use super::{Run, interrupt, say, warn};
use hectare::orion::{Context, Error, Result};
use std::time::{Duration, Instant};

/// The loss after each pass.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// Passes of an earlier run, from whose checkpoint this one goes on.
    pub(super) begun: usize,
    pub(super) measure: &'static str,
    /// Advice for when it is not finite any more.
    advice: &'static str,
    baseline: Option<Baseline>,
    /// Said beside the loss.
    note: String,
    pub(super) points: Vec<Point>,
    time: Duration,
    began: Option<Instant>,
    /// Whether Ctrl-C has ended training.
    interrupted: bool,
}

/// Sums in another order, and of 32 bits, are not worse.
const SLACK: f64 = 1.01;

/// The loss of a program that learns nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    /// Its loss.
    pub(crate) loss: f64,
    /// Who has that loss.
    pub(crate) of: &'static str,
    /// How to do better.
    pub(crate) advice: &'static str,
}

/// After a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) seconds: f64,
    /// The same of what was learned from, if that is another.
    pub(super) train: Option<f64>,
    /// The measure that the curve shows.
    pub(super) loss: f64,
}

impl Curve {
    /// The curve of a measure, and what to do when that is not finite any more.
    pub(crate) fn of(measure: &'static str, advice: &'static str) -> Curve {
        Curve {
            begun: 0,
            measure,
            advice,
            baseline: None,
            note: String::new(),
            points: Vec::new(),
            time: Duration::ZERO,
            began: None,
            interrupted: false,
        }
    }

    /// The same, of a run that goes on after `begun` passes.
    pub(crate) fn after(self, begun: usize) -> Curve {
        Curve { begun, ..self }
    }

    /// The same, which ends with a warning if its last loss is above that of the baseline.
    pub(crate) fn against(self, baseline: Baseline) -> Curve {
        Curve { baseline: Some(baseline), ..self }
    }

    /// Adds a remark to the state that is pushed next.
    pub(crate) fn note(&mut self, note: String) {
        self.note = format!(", {note}");
    }

    /// The remark on the state that was pushed last.
    pub(crate) fn said(&self) -> &str {
        &self.note
    }

    /// Times a pass: what is not between `begin` and `end` (reading, testing) does not count.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// The same, if it does not run yet: the first pass may have begun with work of its own.
    pub(crate) fn begin_unless_begun(&mut self) {
        self.began.get_or_insert_with(Instant::now);
    }

    /// Ends the pass.
    pub(crate) fn end(&mut self) {
        self.time += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Adds the roots of the means of squared errors, given their sums; false when training may stop.
    ///
    /// # Errors
    /// Those of [`Curve::push`].
    pub(crate) fn add(
        &mut self,
        run: &Run,
        train: (f64, usize),
        test: (f64, usize),
        w: Option<&mut Context<'_>>,
    ) -> Result<bool> {
        let root = |(squares, count): (f64, usize)| (squares / count.max(1) as f64).sqrt();
        self.push(run, Some(root(train)), root(test), w)
    }

    /// Adds what a pass has reached in whatever the curve is of, and what it is of the examples learned from, if that is
    /// measured. False when training may stop: the target is reached, or somebody was interrupted. Collective, if there are
    /// workers (`w`); the first of them speaks.
    ///
    /// # Errors
    /// One that names the pass and what to do, if one of the two is not finite: nothing is learned from there on. All
    /// workers have the same values, and so the same error.
    pub(crate) fn push(
        &mut self,
        run: &Run,
        train: Option<f64>,
        loss: f64,
        w: Option<&mut Context<'_>>,
    ) -> Result<bool> {
        let (pass, seconds) = (self.begun + self.points.len() + 1, self.time.as_secs_f64());
        for (what, value) in [("training loss", train), (self.measure, Some(loss))] {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Err(Error::Invalid(format!("pass {pass}: the {what} is {value}: {}", self.advice)));
            }
        }
        self.points.push(Point { seconds, train, loss });
        let speaks = w.as_ref().is_none_or(|w| w.rank() == 0);
        if speaks && !run.quiet {
            let training = train.map_or_else(String::new, |train| format!("  training {train:.4}"));
            let (measure, note) = (self.measure, &self.note);
            say(format_args!("pass {pass:>3}{training}  {measure} {loss:.4}{note}  {seconds:.3} s"));
        }
        let pressed = u32::from(interrupt::is_pressed());
        self.interrupted = w.map_or(Ok(pressed), |w| w.all_reduce(pressed, u32::max))? != 0;
        Ok(!self.interrupted && run.target.is_none_or(|target| loss > target))
    }

    /// Whether Ctrl-C has ended training.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Passes of this run and of those from whose checkpoint it went on.
    pub(crate) fn passes(&self) -> usize {
        self.begun + self.points.len()
    }

    /// Seconds of training and loss after each pass.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (point.seconds, point.loss))
    }

    /// Seconds of training in all.
    pub(crate) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    /// The loss of the baseline.
    pub(crate) fn baseline(&self) -> Option<f64> {
        self.baseline.map(|baseline| baseline.loss)
    }

    /// Of a finite loss that is worse than the baseline's: training did harm.
    pub(crate) fn warning(&self) -> Option<String> {
        let (last, baseline) = (self.points.last()?, self.baseline?);
        let Baseline { loss, of, advice } = baseline;
        let text =
            || format!("{} {:.4} is worse than {loss:.4}, that of {of}: {advice}", self.measure, last.loss);
        (last.loss > SLACK * loss).then(text)
    }

    /// Says what was reached at last, and on the standard error if that is worse than nothing.
    pub(super) fn say_end(&self, name: &str) {
        let Some(last) = self.points.last() else { return };
        let passes = self.passes();
        let (measure, note, Point { loss, seconds, .. }) = (self.measure, &self.note, last);
        say(format_args!("{name}: {measure} {loss:.4}{note} after {passes} passes, {seconds:.3} s"));
        if let Some(warning) = self.warning() {
            warn(format_args!("warning: {name}: {warning}"));
        }
    }
}
