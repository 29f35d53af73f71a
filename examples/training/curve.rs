//! Loss over passes and seconds: progress while training, a file afterwards.
use super::Options;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was reached after each pass.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// Passes of an earlier run, from whose checkpoint this one goes on.
    begun: usize,
    measure: &'static str,
    points: Vec<Point>,
    time: Duration,
    began: Option<Instant>,
}

impl Default for Curve {
    fn default() -> Curve {
        Curve::of("RMSE")
    }
}

#[derive(Clone, Copy, Debug)]
struct Point {
    seconds: f64,
    /// Not a number if it is not measured.
    train: f64,
    test: f64,
}

impl Curve {
    /// The curve of a run that goes on after `begun` passes.
    pub(crate) fn after(begun: usize) -> Curve {
        Curve { begun, ..Curve::default() }
    }

    /// A curve of something else than RMSE.
    pub(crate) fn of(measure: &'static str) -> Curve {
        Curve { begun: 0, measure, points: Vec::new(), time: Duration::ZERO, began: None }
    }

    /// Times a pass: what is not between `begin` and `end` (reading, testing) does not count.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Ends the pass.
    pub(crate) fn end(&mut self) {
        self.time += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Adds what was reached, given sums of squared errors; false when training may stop.
    pub(crate) fn add(&mut self, o: &Options, train: (f64, usize), test: (f64, usize), speaks: bool) -> bool {
        let root = |(squares, count): (f64, usize)| (squares / count.max(1) as f64).sqrt();
        self.push(root(train), root(test), speaks && !o.quiet);
        o.target.is_none_or(|target| root(test) > target)
    }

    /// Adds what was reached in whatever the curve is of; `train` is not a number if it is not measured.
    pub(crate) fn push(&mut self, train: f64, test: f64, speaks: bool) {
        self.points.push(Point { seconds: self.time.as_secs_f64(), train, test });
        if speaks {
            let training = if train.is_nan() { String::new() } else { format!("  training {train:.4}") };
            let (pass, seconds) = (self.begun + self.points.len(), self.time.as_secs_f64());
            println!("pass {pass:>3}{training}  test {test:.4}  {seconds:.3} s");
        }
    }

    /// Seconds of training and test error after each pass.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (point.seconds, point.test))
    }

    /// Says what was reached at last, and writes the file.
    pub(crate) fn finish(&self, o: &Options) -> Result<()> {
        let how = if o.serial { "serial".into() } else { format!("{} worker(s)", o.workers) };
        self.close(&how, "error", o.curve.as_deref())
    }

    /// The same, of a run that is described by `how`.
    pub(crate) fn close(&self, how: &str, what: &str, file: Option<&Path>) -> Result<()> {
        let Some(last) = self.points.last() else { return Ok(()) };
        let (passes, seconds) = (self.begun + self.points.len(), last.seconds);
        println!("{how}: test {what} {:.4} after {passes} passes, {seconds:.3} s", last.test);
        match file {
            Some(path) if path.extension().is_some_and(|extension| extension == "svg") => {
                self.draw(path, how)
            }
            Some(path) => Ok(std::fs::write(path, self.csv())?),
            None => Ok(()),
        }
    }

    fn csv(&self) -> String {
        let measure = self.measure.to_lowercase();
        let mut text = format!("pass,seconds,training_{measure},test_{measure}\n");
        for (number, point) in (self.begun + 1..).zip(&self.points) {
            let train = if point.train.is_nan() { String::new() } else { point.train.to_string() };
            let _ = writeln!(text, "{number},{:.6},{train},{}", point.seconds, point.test);
        }
        text
    }

    fn draw(&self, path: &Path, how: &str) -> Result<()> {
        let words = |error: DrawingAreaErrorKind<std::io::Error>| anyhow!("{error}");
        let values = || self.points.iter().flat_map(|point| [point.train, point.test]);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        let end = self.points.last().map_or(1.0, |point| point.seconds).max(1e-6);
        let area = SVGBackend::new(path, (800, 480)).into_drawing_area();
        area.fill(&WHITE).map_err(words)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(16)
            .caption(how, ("sans-serif", 18))
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..end, low * 0.98..high * 1.02)
            .map_err(words)?;
        chart.configure_mesh().x_desc("seconds").y_desc(self.measure).draw().map_err(words)?;
        type Part = fn(&Point) -> f64;
        let lines: [(&str, RGBColor, Part); 2] =
            [("training", RGBColor(120, 120, 120), |p| p.train), ("test", RGBColor(0, 90, 180), |p| p.test)];
        for (name, color, part) in lines {
            if self.points.iter().any(|point| part(point).is_nan()) {
                continue;
            }
            let points = self.points.iter().map(|point| (point.seconds, part(point)));
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))
                .map_err(words)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        }
        chart.configure_series_labels().background_style(WHITE).draw().map_err(words)?;
        area.present().map_err(words)
    }
}
