//! A schedule as a picture: which worker runs which part of the iteration space, and when.
mod svg;

use self::svg::{Anchor, Rect, Svg};
use crate::explain::Explanation;
use crate::text::counted;
use hectare_dependence::schedule::Tile;
use std::ops::Range;

/// Colours of workers that people with impaired colour vision tell apart (Okabe and Ito, 2008).
const COLOURS: [[u8; 3]; 8] = [
    [0x56, 0xb4, 0xe9],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xf0, 0xe4, 0x42],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x72, 0xb2],
    [0x99, 0x99, 0x99],
];

/// Of the iteration space, in pixels.
const SIDE: f64 = 320.0;
/// The height of a space of one dimension.
const BAR: f64 = 48.0;
/// The most planes that are drawn of a space of three and more dimensions.
const PLANES: usize = 24;
/// The length of all steps of a pass in the chart of workers and steps.
const TIME: f64 = 420.0;
const ROW: f64 = 22.0;
const LETTERS: f64 = 11.0;
const LEFT: f64 = 64.0;
const GAP: f64 = 28.0;

/// Two dimensions of the loop that span a plane, or one, and a cell of each of the others.
struct Plane {
    down: Option<usize>,
    across: usize,
    /// Cells of each dimension that is drawn in neither direction, which no tile parts.
    at: Vec<(usize, Range<usize>)>,
}

impl Explanation {
    /// The schedule as a picture (SVG): the iteration space with its tiles, in a colour for each worker and darker from step to
    /// step, and below a row for each worker with the steps in which it has a tile. Each tile bears the number of its step, if there is
    /// room. Of more than two dimensions that are cut, planes of the first two are drawn for the tiles of the others, 24 at most.
    ///
    /// ```
    /// use hectare_orion::{parallel_for, run};
    ///
    /// let pictures = run(2, |w| {
    ///     let x = w.range(0..8)?;
    ///     let mut y = w.zeros::<f64, 1>([8])?;
    ///     parallel_for!(w, unordered, read x, write y; for i in 0..8 { y[i] = x[i] as f64; })?;
    ///     Ok(w.explain()[0].to_svg())
    /// })?;
    /// assert!(pictures[0].starts_with("<svg") && pictures[0].contains("worker 1, step 0: i in 4..8"));
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn to_svg(&self) -> String {
        let mut svg = Svg::new();
        let mut y = 24.0;
        svg.text((12.0, y), Anchor::Start, 14.0, &format!("{}: {}", self.loop_name, self.chosen()));
        y += 18.0;
        let what = format!(
            "{}; {}, {}",
            self.space,
            counted(self.workers as u64, "worker"),
            counted(self.tiles.len() as u64, "step")
        );
        svg.text((12.0, y), Anchor::Start, LETTERS, &what);
        y += 16.0;
        let (planes, left_out) = self.planes();
        let mut bottom = y;
        for (number, plane) in planes.iter().enumerate() {
            let (column, row) = (number % 4, number / 4);
            let scale = if planes.len() > 1 { 0.5 } else { 1.0 };
            let height = if plane.down.is_some() { SIDE * scale } else { BAR };
            let at = Rect {
                x: LEFT + column as f64 * (SIDE * scale + LEFT + GAP),
                y: y + GAP + row as f64 * (height + 2.0 * GAP),
                width: SIDE * scale,
                height,
            };
            self.draw_plane(&mut svg, plane, at);
            bottom = bottom.max(at.y + at.height + GAP);
        }
        if left_out > 0 {
            let text = format!("{} like these are not drawn", counted(left_out as u64, "plane"));
            svg.text((12.0, bottom), Anchor::Start, LETTERS, &text);
            bottom += GAP;
        }
        self.draw_time(&mut svg, bottom + 8.0);
        svg.to_string()
    }

    /// The planes to draw, and how many are left out.
    fn planes(&self) -> (Vec<Plane>, usize) {
        // Those that are cut first: the others have one cell.
        let cells = |dim: usize| self.grid.get(dim).copied().unwrap_or(1);
        let mut dims: Vec<usize> = (0..self.grid.len()).collect();
        dims.sort_by_key(|dim| (cells(*dim) <= 1, *dim));
        let (drawn, others) = dims.split_at(dims.len().min(2));
        let mut drawn = drawn.to_vec();
        drawn.sort_unstable();
        let (down, across) = match drawn[..] {
            [] => return (Vec::new(), 0),
            [across] => (None, across),
            [down, across, ..] => (Some(down), across),
        };
        let others: Vec<(usize, Vec<usize>)> = others.iter().map(|dim| (*dim, self.borders(*dim))).collect();
        let count: usize = others.iter().map(|(_, borders)| borders.len() - 1).product();
        let plane = |mut number: usize| {
            let at = others.iter().map(|(dim, borders)| {
                let at = number % (borders.len() - 1);
                number /= borders.len() - 1;
                (*dim, borders[at]..borders[at + 1])
            });
            Plane { down, across, at: at.collect() }
        };
        ((0..count.min(PLANES)).map(plane).collect(), count.saturating_sub(PLANES))
    }

    /// The cells of a dimension at which tiles begin and end.
    fn borders(&self, dim: usize) -> Vec<usize> {
        let tiles = self.tiles.iter().flatten().flatten().filter(|tile| !tile.is_empty());
        let mut borders: Vec<usize> = tiles
            .flat_map(|tile| [tile.cells[dim].start, tile.cells[dim].end])
            .chain([0, self.grid[dim].max(1)])
            .collect();
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    /// The values of a dimension in a range of its cells.
    fn values(&self, dim: usize, cells: &Range<usize>) -> (i64, i64) {
        let cuts = &self.cuts[dim];
        (cuts[cells.start], cuts[cells.end])
    }

    fn draw_plane(&self, svg: &mut Svg, plane: &Plane, frame: Rect) {
        let name = |dim: usize| &self.dims[dim];
        let whole = |dim: usize| (self.cuts[dim][0], self.cuts[dim][self.cuts[dim].len() - 1]);
        let share = |dim: usize, value: i64| {
            let (first, last) = whole(dim);
            (value - first) as f64 / (last - first).max(1) as f64
        };
        svg.frame(frame);
        let tiles = self.tiles.iter().enumerate().flat_map(|(step, tiles)| {
            tiles.iter().enumerate().filter_map(move |(worker, tile)| Some((step, worker, tile.as_ref()?)))
        });
        for (step, worker, tile) in tiles {
            if tile.is_empty() || plane.at.iter().any(|(dim, cells)| !tile.cells[*dim].contains(&cells.start))
            {
                continue;
            }
            let (left, right) = self.values(plane.across, &tile.cells[plane.across]);
            let (x, end) = (share(plane.across, left), share(plane.across, right));
            let (y, below) = plane.down.map_or((0.0, 1.0), |down| {
                let (top, bottom) = self.values(down, &tile.cells[down]);
                (share(down, top), share(down, bottom))
            });
            let at = Rect {
                x: frame.x + x * frame.width,
                y: frame.y + y * frame.height,
                width: (end - x) * frame.width,
                height: (below - y) * frame.height,
            };
            svg.rect(at, &self.colour(worker, step), &self.title(worker, step, tile));
            if at.width >= 12.0 && at.height >= 12.0 {
                let middle = (at.x + at.width / 2.0, at.y + at.height / 2.0 + 4.0);
                svg.text(middle, Anchor::Middle, LETTERS, &step.to_string());
            }
        }
        let (first, last) = whole(plane.across);
        let above = frame.y - 4.0;
        svg.text((frame.x, above), Anchor::Start, LETTERS, &first.to_string());
        let middle = frame.x + frame.width / 2.0;
        svg.text((middle, above), Anchor::Middle, LETTERS, name(plane.across));
        svg.text((frame.x + frame.width, above), Anchor::End, LETTERS, &last.to_string());
        if let Some(down) = plane.down {
            let (first, last) = whole(down);
            let before = frame.x - 6.0;
            svg.text((before, frame.y + LETTERS), Anchor::End, LETTERS, &first.to_string());
            svg.text((before, frame.y + frame.height / 2.0), Anchor::End, LETTERS, name(down));
            svg.text((before, frame.y + frame.height), Anchor::End, LETTERS, &last.to_string());
        }
        let cut = plane.at.iter().filter(|(dim, _)| self.grid[*dim] > 1);
        let at: Vec<String> = cut.map(|(dim, cells)| self.range_text(*dim, cells)).collect();
        if !at.is_empty() {
            svg.text((frame.x, frame.y + frame.height + 14.0), Anchor::Start, LETTERS, &at.join(", "));
        }
    }

    fn range_text(&self, dim: usize, cells: &Range<usize>) -> String {
        let (first, last) = self.values(dim, cells);
        format!("{} in {first}..{last}", self.dims[dim])
    }

    fn title(&self, worker: usize, step: usize, tile: &Tile) -> String {
        let ranges = tile.cells.iter().enumerate().map(|(dim, cells)| self.range_text(dim, cells));
        format!("worker {worker}, step {step}: {}", ranges.collect::<Vec<_>>().join(", "))
    }

    /// The colour of a worker, darker from step to step.
    fn colour(&self, worker: usize, step: usize) -> String {
        let share = step as f64 / (self.tiles.len().max(2) - 1) as f64;
        // From a tint of one half to the full colour.
        let tint = 0.5 * (1.0 - share);
        let [r, g, b] = COLOURS[worker % COLOURS.len()].map(|part| {
            let part = f64::from(part);
            (part + (255.0 - part) * tint).round() as u8
        });
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// A row for each worker, in which a step that it has a tile in is filled.
    fn draw_time(&self, svg: &mut Svg, top: f64) {
        let steps = self.tiles.len().max(1);
        let width = (TIME / steps as f64).min(48.0);
        svg.text((12.0, top), Anchor::Start, LETTERS, "worker");
        svg.text(
            (LEFT, top),
            Anchor::Start,
            LETTERS,
            if self.is_dynamic { "blocks, as they come free" } else { "steps" },
        );
        for worker in 0..self.workers {
            let y = top + 8.0 + worker as f64 * ROW;
            svg.text((LEFT - 12.0, y + 14.0), Anchor::End, LETTERS, &worker.to_string());
            for (step, tiles) in self.tiles.iter().enumerate() {
                let Some(tile) = tiles.get(worker).and_then(Option::as_ref).filter(|tile| !tile.is_empty())
                else {
                    continue;
                };
                let at = Rect { x: LEFT + step as f64 * width, y, width, height: ROW - 4.0 };
                svg.rect(at, &self.colour(worker, step), &self.title(worker, step, tile));
                if width >= 12.0 {
                    svg.text((at.x + width / 2.0, y + 13.0), Anchor::Middle, LETTERS, &step.to_string());
                }
            }
            svg.frame(Rect { x: LEFT, y, width: width * steps as f64, height: ROW - 4.0 });
        }
    }
}
