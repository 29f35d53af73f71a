//! Losses over passes and seconds, of one run or of several: progress while training, a file afterwards.
use super::Options;
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was reached after each pass of one run.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    name: String,
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

impl Losses {
    pub(crate) fn new(name: String) -> Losses {
        Losses { name, points: Vec::new(), time: Duration::ZERO, began: None }
    }

    /// Times a pass: what is not between `begin` and `end` (reading, testing) does not count.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Ends the pass.
    pub(crate) fn end(&mut self) {
        self.time += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Adds the mean losses of a pass; false when training may stop.
    pub(crate) fn add(&mut self, o: &Options, train: f64, test: f64, speaks: bool) -> bool {
        let point = Point { seconds: self.time.as_secs_f64(), train, test };
        self.points.push(point);
        if speaks && !o.quiet {
            let number = self.points.len();
            println!("pass {number:>3}  training {train:.5}  test {test:.5}  {:.3} s", point.seconds);
        }
        o.target.is_none_or(|target| test > target)
    }

    /// Seconds of training and test loss after each pass.
    pub(crate) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (point.seconds, point.test))
    }
}

/// Says what was reached at last, and writes the file.
pub(crate) fn finish(o: &Options, runs: &[Losses]) -> Result<()> {
    for run in runs {
        let Some(last) = run.points.last() else { continue };
        let (name, passes) = (&run.name, run.points.len());
        println!("{name}: test loss {:.5} after {passes} passes, {:.3} s", last.test, last.seconds);
    }
    match &o.curve {
        Some(path) if path.extension().is_some_and(|extension| extension == "svg") => draw(path, runs),
        Some(path) => Ok(std::fs::write(path, csv(runs))?),
        None => Ok(()),
    }
}

fn csv(runs: &[Losses]) -> String {
    let mut text = "run,pass,seconds,training_loss,test_loss\n".to_owned();
    for run in runs {
        for (number, point) in (1..).zip(&run.points) {
            let _ = writeln!(
                text,
                "\"{}\",{number},{:.6},{},{}",
                run.name, point.seconds, point.train, point.test
            );
        }
    }
    text
}

const COLORS: [RGBColor; 5] = [
    RGBColor(60, 60, 60),
    RGBColor(0, 90, 180),
    RGBColor(200, 80, 0),
    RGBColor(0, 130, 80),
    RGBColor(140, 60, 160),
];

fn draw(path: &Path, runs: &[Losses]) -> Result<()> {
    let words = |error: DrawingAreaErrorKind<std::io::Error>| anyhow!("{error}");
    let area = SVGBackend::new(path, (1100, 460)).into_drawing_area();
    area.fill(&WHITE).map_err(words)?;
    let (left, right) = area.split_horizontally(550);
    panel(&left, "passes", runs, |number, _| number as f64 + 1.0)?;
    panel(&right, "seconds", runs, |_, point| point.seconds)?;
    area.present().map_err(words)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    over: &str,
    runs: &[Losses],
    at: impl Fn(usize, &Point) -> f64,
) -> Result<()> {
    let words = |error: DrawingAreaErrorKind<std::io::Error>| anyhow!("{error}");
    let tests = || runs.iter().flat_map(|run| run.points.iter().map(|point| point.test));
    let (low, high) = (tests().fold(f64::MAX, f64::min), tests().fold(f64::MIN, f64::max));
    let ends = runs.iter().filter_map(|run| Some(at(run.points.len() - 1, run.points.last()?)));
    let end = ends.fold(1e-6, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, low - 0.02 * (high - low)..high + 0.02 * (high - low) + 1e-9)
        .map_err(words)?;
    chart.configure_mesh().x_desc(over).y_desc("test loss").draw().map_err(words)?;
    for (run, color) in runs.iter().zip(COLORS.into_iter().cycle()) {
        let points = run.points.iter().enumerate().map(|(number, point)| (at(number, point), point.test));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(words)?
            .label(&run.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE).draw().map_err(words)
}
