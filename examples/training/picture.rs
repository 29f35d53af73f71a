//! Curves of several runs in a file: loss over passes and over seconds, side by side, or a table.
use super::Curve;
use super::chart::{Panel, Series, svg};
use super::curve::Point;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// Of a run and its curve.
type Named = (String, Curve);

/// Writes a picture if the file's name ends in .svg, else CSV.
pub(super) fn write(path: &Path, runs: &[Named]) -> Result<()> {
    let text = match path.extension().is_some_and(|extension| extension == "svg") {
        true => draw(runs),
        false => csv(runs),
    };
    hectare_data::new_file::write(path, text).with_context(|| path.display().to_string())
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

/// The losses of all runs over passes and over seconds. What a run loses at first does not squeeze the rest: the scale ends at
/// the greatest loss after the first fifth of any run.
fn draw(runs: &[Named]) -> String {
    let late = |curve: &Curve| {
        let points = curve.points[curve.points.len() / 5..].iter();
        points.map(|point| point.loss).filter(|loss| loss.is_finite()).fold(f64::MIN, f64::max)
    };
    let highest = runs.iter().map(|(_, curve)| late(curve)).fold(f64::MIN, f64::max);
    let measure = runs.first().map_or("loss", |(_, curve)| curve.measure);
    let panel = |over: &str, at: fn(usize, &Point) -> f64| {
        let series = runs.iter().enumerate().map(|(color, (name, curve))| {
            let points = (curve.begun + 1..).zip(&curve.points);
            let points = points.map(|(pass, point)| (at(pass, point), point.loss)).collect();
            Series { name: name.clone(), points, color }
        });
        Panel { title: String::new(), x: over.into(), series: series.collect() }
    };
    let panels =
        [panel("passes", |pass, _| pass as f64), panel("seconds of training", |_, point| point.seconds)];
    svg(&format!("The {measure} over passes and over seconds"), measure, &panels, highest)
}
