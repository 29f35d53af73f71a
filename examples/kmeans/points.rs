//! The points: from a file, checked, or generated.
use super::Options;
use hectare::DistArray;
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::Separator;
use hectare::orion::{Context, Error, Result};
use std::path::Path;

/// Coordinate `k` of generated point `number`: normal around one of the planted centers, which are uniform in a cube.
fn planted(o: &Options, number: usize, k: usize) -> f32 {
    let stream = Stream::new(13, "points");
    let cluster = stream.below(number as u64, o.clusters as u64);
    let center = 8.0 * stream.child(1).uniform(cluster * o.columns as u64 + k as u64);
    (center + stream.child(2).normal((number * o.columns + k) as u64)) as f32
}

/// The points, one a row. Collective.
pub(crate) fn points(w: &mut Context<'_>, o: &Options) -> Result<DistArray<f32, 2>> {
    let Some(path) = &o.points else {
        let points = w.from_fn([o.count, o.columns], |[number, k]| planted(o, number, k))?;
        enough(o, "--count", o.count)?;
        return Ok(points.named("points"));
    };
    let points = rows(w, path)?;
    enough(o, &path.display().to_string(), points.shape()[0])?;
    Ok(points.named("points"))
}

/// As many points as clusters, at least, of which points become the centers.
fn enough(o: &Options, from: &str, count: usize) -> Result<()> {
    match o.load.is_none() && count < o.clusters {
        true => {
            Err(Error::Invalid(format!("{from}: {count} points are too few for {} clusters", o.clusters)))
        }
        false => Ok(()),
    }
}

/// Rows of finite numbers, of which there are some. Collective.
pub(crate) fn rows(w: &mut Context<'_>, path: &Path) -> Result<DistArray<f32, 2>> {
    let rows = match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => w.npy_file_as::<f32, 2>(path)?,
        Some("csv") => w.text_array(path, Separator::Text(","))?,
        _ => w.text_array(path, Separator::Whitespace)?,
    };
    let wrong = |what: String| Error::Format { file: path.display().to_string(), what };
    let [count, columns] = rows.shape();
    if count == 0 || columns == 0 {
        return Err(wrong(format!("{count} rows of {columns} numbers: no points")));
    }
    let mut worst = [f64::INFINITY; 3];
    rows.for_each_local(w, |[row, column], x| {
        if !x.is_finite() && worst[0].is_infinite() {
            worst = [row as f64, column as f64, x.into()];
        }
    })?;
    let [row, column, x] = w.all_reduce(worst, |a, b| if b[0] < a[0] { b } else { a })?;
    match row.is_finite() {
        true => Err(wrong(format!(
            "row {}, column {} (from 1): {x} is no coordinate: finite numbers of 32 bits are",
            row + 1.0,
            column + 1.0
        ))),
        false => Ok(rows),
    }
}
