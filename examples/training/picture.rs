//! Curves of several runs in a file: loss over passes and over seconds, side by side, or a table.
use super::Curve;
use super::curve::Point;
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// Of a run and its curve.
type Named = (String, Curve);

/// Writes a picture if the file's name ends in .svg, else CSV.
pub(super) fn write(path: &Path, runs: &[Named]) -> Result<()> {
    match path.extension().is_some_and(|extension| extension == "svg") {
        true => draw(path, runs),
        false => Ok(std::fs::write(path, csv(runs))?),
    }
}

fn csv(runs: &[Named]) -> String {
    let measure = runs.first().map_or("loss", |(_, curve)| curve.measure);
    let mut text = format!("run,pass,seconds,training,{measure}\n");
    for (name, curve) in runs {
        for (pass, point) in (curve.begun + 1..).zip(&curve.points) {
            let train = point.train.map_or_else(String::new, |train| train.to_string());
            let _ = writeln!(text, "\"{name}\",{pass},{:.6},{train},{}", point.seconds, point.loss);
        }
    }
    text
}

const COLORS: [RGBColor; 6] = [
    RGBColor(60, 60, 60),
    RGBColor(0, 90, 180),
    RGBColor(200, 80, 0),
    RGBColor(0, 130, 80),
    RGBColor(140, 60, 160),
    RGBColor(190, 150, 0),
];

/// What the drawing library reports.
type Failed = DrawingAreaErrorKind<std::io::Error>;

fn draw(path: &Path, runs: &[Named]) -> Result<()> {
    let words = |error: Failed| anyhow!("{}: {error}", path.display());
    let area = SVGBackend::new(path, (1100, 460)).into_drawing_area();
    area.fill(&WHITE).map_err(words)?;
    let (left, right) = area.split_horizontally(550);
    panel(&left, "passes", runs, |pass, _| pass as f64).map_err(words)?;
    panel(&right, "seconds", runs, |_, point| point.seconds).map_err(words)?;
    area.present().map_err(words)
}

/// The losses of all runs over what `at` makes of a pass. What a run loses at first does not squeeze the rest: the
/// scale begins at the greatest loss after the first fifth of any run.
fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    over: &str,
    runs: &[Named],
    at: impl Fn(usize, &Point) -> f64,
) -> std::result::Result<(), Failed> {
    let places = |curve: &Curve| -> Vec<(f64, f64)> {
        (curve.begun + 1..).zip(&curve.points).map(|(pass, point)| (at(pass, point), point.loss)).collect()
    };
    let lists: Vec<Vec<(f64, f64)>> = runs.iter().map(|(_, curve)| places(curve)).collect();
    let late =
        |list: &[(f64, f64)]| list[list.len() / 5..].iter().map(|place| place.1).fold(f64::MIN, f64::max);
    let all = || lists.iter().flatten().filter(|place| place.1.is_finite());
    let low = all().map(|place| place.1).fold(f64::MAX, f64::min);
    let high = lists.iter().map(|list| late(list)).filter(|loss| loss.is_finite()).fold(low, f64::max);
    let end = all().map(|place| place.0).fold(1e-6, f64::max);
    let room = 0.03 * (high - low) + 1e-9;
    let measure = runs.first().map_or("loss", |(_, curve)| curve.measure);
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, low - room..high + room)?;
    chart.configure_mesh().max_light_lines(0).x_desc(over).y_desc(measure).draw()?;
    for (number, ((name, _), list)) in runs.iter().zip(&lists).enumerate() {
        // Colours go round; a second round has thin lines.
        let style = COLORS[number % COLORS.len()].stroke_width(if number < COLORS.len() { 2 } else { 1 });
        let inside = list.iter().copied().filter(|place| place.1 <= high + room);
        let line = chart.draw_series(LineSeries::new(inside, style))?;
        line.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).draw()
}
