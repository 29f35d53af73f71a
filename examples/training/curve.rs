//! Loss over passes and seconds: progress while training, a file afterwards.
use super::Options;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was reached after each pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    /// Passes of an earlier run, from whose checkpoint this one goes on.
    begun: usize,
    points: Vec<Point>,
    time: Duration,
    began: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    seconds: f64,
    train: f64,
    test: f64,
}

impl Curve {
    /// The curve of a run that goes on after `begun` passes.
    pub(crate) fn after(begun: usize) -> Curve {
        Curve { begun, ..Curve::default() }
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
        let point = Point { seconds: self.time.as_secs_f64(), train: root(train), test: root(test) };
        self.points.push(point);
        if speaks && !o.quiet {
            println!(
                "pass {:>3}  training {:.4}  test {:.4}  {:.3} s",
                self.begun + self.points.len(),
                point.train,
                point.test,
                point.seconds
            );
        }
        o.target.is_none_or(|target| point.test > target)
    }

    /// Seconds of training and test error after each pass.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (point.seconds, point.test))
    }

    /// Says what was reached at last, and writes the file.
    pub(crate) fn finish(&self, o: &Options) -> Result<()> {
        let Some(last) = self.points.last() else { return Ok(()) };
        let how = if o.serial { "serial".into() } else { format!("{} worker(s)", o.workers) };
        println!(
            "{how}: test error {:.4} after {} passes, {:.3} s",
            last.test,
            self.begun + self.points.len(),
            last.seconds
        );
        match &o.curve {
            Some(path) if path.extension().is_some_and(|extension| extension == "svg") => {
                self.draw(path, &how)
            }
            Some(path) => Ok(std::fs::write(path, self.csv())?),
            None => Ok(()),
        }
    }

    fn csv(&self) -> String {
        let mut text = "pass,seconds,training_rmse,test_rmse\n".to_owned();
        for (number, point) in (self.begun + 1..).zip(&self.points) {
            let _ = writeln!(text, "{number},{:.6},{},{}", point.seconds, point.train, point.test);
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
        chart.configure_mesh().x_desc("seconds").y_desc("RMSE").draw().map_err(words)?;
        type Part = fn(&Point) -> f64;
        let lines: [(&str, RGBColor, Part); 2] =
            [("training", RGBColor(120, 120, 120), |p| p.train), ("test", RGBColor(0, 90, 180), |p| p.test)];
        for (name, color, part) in lines {
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
