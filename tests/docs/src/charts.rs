//! The charts of the documents: loss over seconds, a panel for each mode, in each the serial loop and all workers.
use crate::chart::{Panel, Series, svg};
use crate::root;
use std::collections::BTreeMap;
use std::io::{Error, Result};

/// Of each chart: picture, data, title, y axis, and where the scale of y ends.
const CHARTS: [(&str, &str, &str, &str, f64); 3] = [
    ("mf.svg", "mf.csv", "Matrix factorization, 0.9 M generated ratings, rank 32", "test RMSE", 0.45),
    ("mf-ml1m.svg", "mf-ml1m.csv", "Matrix factorization, MovieLens-1M, rank 32", "test RMSE", 0.88),
    (
        "lr.svg",
        "lr.csv",
        "Sparse logistic regression by SGD, 100,000 generated examples",
        "test loss",
        f64::MAX,
    ),
];

/// Seconds and losses of one run after each pass, in all its repeats.
type Passes = BTreeMap<u32, Vec<(f64, f64)>>;

/// Every chart's file name and text.
///
/// # Errors
/// When data cannot be read, naming the file.
pub fn all() -> Result<Vec<(&'static str, String)>> {
    CHARTS
        .iter()
        .map(|(picture, data, title, y, highest)| {
            let path = root().join("docs/data").join(data);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            let panels = panels(&runs(&text).ok_or_else(|| Error::other(format!("{data}: not curves")))?);
            Ok((*picture, svg(title, y, &panels, *highest)))
        })
        .collect()
}

/// The runs of a table in the order in which it names them.
fn runs(text: &str) -> Option<Vec<(String, Passes)>> {
    let mut runs: Vec<(String, Passes)> = Vec::new();
    for line in text.lines().skip(1) {
        let (name, rest) = line.split_once('"')?.1.split_once('"')?;
        let fields: Vec<&str> = rest.split(',').collect();
        let [_, pass, seconds, _, loss] = fields[..] else { return None };
        let at = runs.iter().position(|run| run.0 == name).unwrap_or_else(|| {
            runs.push((name.to_owned(), Passes::new()));
            runs.len() - 1
        });
        let point = (seconds.parse().ok()?, loss.parse().ok()?);
        runs[at].1.entry(pass.parse().ok()?).or_default().push(point);
    }
    Some(runs)
}

/// A panel for each mode; the serial loop is in all of them.
fn panels(runs: &[(String, Passes)]) -> Vec<Panel> {
    let serial = runs.iter().find(|run| run.0.starts_with("serial") && !run.0.starts_with("serializable"));
    let line = |name: &str, passes: &Passes, color| Series {
        name: name.to_owned(),
        points: passes.values().map(|points| (median(points, |p| p.0), median(points, |p| p.1))).collect(),
        color,
    };
    let mut panels: Vec<Panel> = Vec::new();
    for (name, passes) in runs {
        let mut parts = name.split(", ");
        let (Some(workers), Some(mode)) = (parts.next(), parts.next()) else { continue };
        let Some(count) = workers.split(' ').next().and_then(|count| count.parse::<usize>().ok()) else {
            continue;
        };
        let at = panels.iter().position(|panel| panel.title == mode).unwrap_or_else(|| {
            let first = serial.map(|run| line("serial loop", &run.1, 0)).into_iter().collect();
            panels.push(Panel { title: mode.to_owned(), x: "seconds of training".into(), series: first });
            panels.len() - 1
        });
        panels[at].series.push(line(workers, passes, count));
    }
    panels
}

fn median(points: &[(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    let mut values: Vec<f64> = points.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
