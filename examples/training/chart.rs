//! Curves as SVG: panels side by side, each line named at its end, readable on light and dark pages.
use std::fmt::Write;

/// One line of a panel.
#[derive(Clone, Debug)]
pub struct Series {
    /// Stands at the line's end.
    pub name: String,
    /// By x.
    pub points: Vec<(f64, f64)>,
    /// Of `COLORS`; the first one is for what others are compared to.
    pub color: usize,
}

/// Lines that share axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below it: what x is.
    pub x: String,
    /// Its lines.
    pub series: Vec<Series>,
}

/// How many colours there are.
pub const COLORS: usize = 6;
/// Per colour, on light and on dark pages.
const SHADES: [[&str; 2]; COLORS] = [
    ["#6a737d", "#9aa4af"],
    ["#0a5fb4", "#6cb6ff"],
    ["#c2500a", "#f69d50"],
    ["#0a7d4b", "#57c98a"],
    ["#8a3fa0", "#d2a8ff"],
    ["#8f6a00", "#e0b93f"],
];
/// Pixels.
const PLOT: (f64, f64) = (300.0, 260.0);
const TOP: f64 = 64.0;
const BOTTOM: f64 = 48.0;
const LEFT: f64 = 62.0;
/// Panels in a row.
const COLUMNS: usize = 2;
/// A letter of the labels, and their line.
const LETTER: f64 = 6.7;
const LINE: f64 = 14.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn place(self, value: f64, pixels: f64) -> f64 {
        pixels * (value - self.low) / (self.high - self.low)
    }

    /// About `count` round numbers, and how many digits they have behind the point.
    fn ticks(self, count: f64) -> (Vec<f64>, usize) {
        let raw = (self.high - self.low) / count;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|x| x * power).into_iter().find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step - 1e-9).ceil();
        let last = (self.high / step + 1e-9).floor();
        let digits = (-step.log10().floor()).max(0.0) as usize;
        ((first as i64..=last as i64).map(|number| number as f64 * step).collect(), digits)
    }
}

fn scale(values: impl Iterator<Item = f64>, from: Option<f64>) -> Scale {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let (low, high) = if low > high { (0.0, 1.0) } else { (from.unwrap_or(low), high) };
    let room = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1e-3) };
    Scale { low: if from.is_some() { low } else { low - room }, high: high + room }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The text of an SVG file: panels in rows of two. All have the same scale of y, which ends at `highest`: what a run loses at
/// first does not squeeze the rest. Panels whose x is the same have the same scale of that, too, which begins at zero.
pub fn svg(title: &str, y: &str, panels: &[Panel], highest: f64) -> String {
    let points = || panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let ys = scale(points().map(|point| point.1).filter(|value| *value <= highest), None);
    let longest = |panel: &Panel| panel.series.iter().map(|series| series.name.chars().count()).max();
    let names = panels.iter().filter_map(longest).max().unwrap_or(0);
    let wide = LEFT + PLOT.0 + 20.0 + LETTER * names as f64;
    let high = TOP + PLOT.1 + BOTTOM;
    let (columns, rows) = (panels.len().clamp(1, COLUMNS), panels.len().div_ceil(COLUMNS).max(1));
    let (width, height) = (columns as f64 * wide, rows as f64 * high);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n<style>",
        escaped(title)
    );
    out += &style();
    let _ = writeln!(out, "</style>\n<text class=\"head\" x=\"8\" y=\"22\">{}</text>", escaped(title));
    for (number, panel) in panels.iter().enumerate() {
        let (column, row) = ((number % COLUMNS) as f64, (number / COLUMNS) as f64);
        let _ =
            writeln!(out, "<g transform=\"translate({:.0} {:.0})\">", LEFT + column * wide, TOP + row * high);
        let alike = panels.iter().filter(|other| other.x == panel.x).flat_map(|other| &other.series);
        let xs = scale(alike.flat_map(|series| &series.points).map(|point| point.0), Some(0.0));
        draw(&mut out, panel, (xs, ys), y);
        out += "</g>\n";
    }
    out + "</svg>\n"
}

fn style() -> String {
    let mut css = String::from(
        "text { font: 12px sans-serif; fill: #24292f } .head { font-size: 14px; font-weight: bold }\n\
         .grid { stroke: #888; stroke-opacity: 0.25 } .axis { stroke: #888 }\n\
         .line { fill: none; stroke-width: 2 } .lead { stroke-opacity: 0.6 }\n",
    );
    let mut dark = String::from("text { fill: #e6edf3 }");
    for (number, [on_light, on_dark]) in SHADES.iter().enumerate() {
        let _ = writeln!(css, ".s{number} {{ stroke: {on_light} }} text.t{number} {{ fill: {on_light} }}");
        let _ = write!(dark, " .s{number} {{ stroke: {on_dark} }} text.t{number} {{ fill: {on_dark} }}");
    }
    css + "@media (prefers-color-scheme: dark) { " + &dark + " }\n"
}

fn draw(out: &mut String, panel: &Panel, (xs, ys): (Scale, Scale), y: &str) {
    let (wide, high) = PLOT;
    let down = |value: f64| high - ys.place(value, high);
    let _ = writeln!(out, "<text x=\"0\" y=\"-14\">{}</text>", escaped(&panel.title));
    let (ticks, digits) = ys.ticks(5.0);
    for tick in ticks {
        let at = down(tick);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M0 {at:.1}H{wide}\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">\
             {tick:.digits$}</text>",
            at + 4.0
        );
    }
    let (ticks, digits) = xs.ticks(5.0);
    for tick in ticks {
        let at = xs.place(tick, wide);
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{at:.1} {high}v4\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">\
             {tick:.digits$}</text>",
            high + 17.0
        );
    }
    let _ = writeln!(out, "<path class=\"axis\" d=\"M0 {high}H{wide}\"/>");
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        wide / 2.0,
        high + 36.0,
        escaped(&panel.x)
    );
    let _ = writeln!(
        out,
        "<text transform=\"translate(-46 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        high / 2.0,
        escaped(y)
    );
    let mut ends: Vec<(f64, f64, &Series)> = Vec::new();
    for series in &panel.series {
        let inside = series.points.iter().filter(|point| point.1.is_finite() && point.1 <= ys.high);
        let places: Vec<_> = inside.map(|point| (xs.place(point.0, wide), down(point.1))).collect();
        let Some(last) = places.last() else { continue };
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = writeln!(out, "<path class=\"line s{}\" d=\"M{}\"/>", series.color % COLORS, path.join("L"));
        ends.push((last.0, last.1, series));
    }
    ends.sort_by(|one, other| one.1.total_cmp(&other.1));
    for ((x, y, series), place) in ends.iter().zip(apart(ends.iter().map(|end| end.1).collect())) {
        let color = series.color % COLORS;
        let _ = writeln!(
            out,
            "<path class=\"lead s{color}\" d=\"M{x:.1} {y:.1}L{:.1} {place:.1}\"/><text class=\"t{color}\" \
             x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            wide + 8.0,
            wide + 11.0,
            place + 4.0,
            escaped(&series.name)
        );
    }
}

/// Places of labels, in order, none nearer to the next than a line, and all beside the panel if there is room.
fn apart(mut places: Vec<f64>) -> Vec<f64> {
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LINE);
    }
    let mut below = PLOT.1;
    for place in places.iter_mut().rev() {
        *place = place.min(below);
        below = *place - LINE;
    }
    places
}
