//! Points in blocks, sixteen side by side, and around zero: how the inner loops read them.
use super::kernel::LANES;
use hectare::DistArray;
use hectare::orion::{Context, Result, parallel_for};

/// Points in a block, which is one iteration of a loop.
pub(crate) const BLOCK: usize = 256;
/// The number of points, at equal distances in the file, whose mean is the middle.
const SAMPLE: usize = 4096;

/// How many points there are, and where each lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    pub(crate) columns: usize,
}

impl Shape {
    /// How many blocks.
    pub(crate) fn blocks(self) -> usize {
        self.count.div_ceil(BLOCK)
    }

    /// Numbers in a block.
    pub(crate) fn width(self) -> usize {
        BLOCK * self.columns
    }

    /// Numbers of sixteen points.
    pub(crate) fn group(self) -> usize {
        LANES * self.columns
    }

    /// Points of block `number`: the last may have fewer than others.
    pub(crate) fn points_of(self, number: usize) -> usize {
        (self.count - number * BLOCK).min(BLOCK)
    }

    /// The coordinates of point `at` of a block.
    pub(crate) fn point(self, block: &[f32], at: usize) -> impl Iterator<Item = f32> {
        block[at / LANES * self.group() + at % LANES..].iter().step_by(LANES).take(self.columns).copied()
    }

    /// Coordinate `column` of point `at` lies here in its block.
    fn place(self, at: usize, column: usize) -> usize {
        at / LANES * self.group() + column * LANES + at % LANES
    }

    /// Where zero is to be: products of numbers that lie far from zero would lose what distinguishes points. The same for
    /// any number of workers.
    fn middle<'a>(self, row: impl Fn(usize) -> &'a [f32]) -> Vec<f32> {
        let sampled = self.count.min(SAMPLE);
        let mut sums = vec![0.0f64; self.columns];
        for point in (0..sampled).map(|number| row(number * self.count / sampled)) {
            sums.iter_mut().zip(point).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        sums.iter().map(|sum| (sum / sampled.max(1) as f64) as f32).collect()
    }

    /// Puts the points of block `number` into their places; places without a point stay as they are.
    fn pack<'a>(self, number: usize, row: impl Fn(usize) -> &'a [f32], middle: &[f32], block: &mut [f32]) {
        for at in 0..self.points_of(number) {
            for (column, (x, middle)) in row(number * BLOCK + at).iter().zip(middle).enumerate() {
                block[self.place(at, column)] = x - middle;
            }
        }
    }
}

/// All points, as an array of blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) shape: Shape,
    /// Where zero is.
    pub(crate) middle: Vec<f32>,
    pub(crate) rows: DistArray<f32, 2>,
}

impl Blocks {
    /// Of points in rows. Collective.
    pub(crate) fn new(w: &mut Context<'_>, points: &DistArray<f32, 2>) -> Result<Blocks> {
        let [count, columns] = points.shape();
        let shape = Shape { count, columns };
        let middle = {
            let view = points.read(w)?;
            shape.middle(|number| view.row(number))
        };
        let mut rows = w.zeros::<f32, 2>([shape.blocks(), shape.width()])?.named("blocks");
        parallel_for!(w, unordered, read points, write rows; for b in 0..shape.blocks() {
            for at in 0..shape.points_of(b) {
                for (column, (x, middle)) in points.row(b * BLOCK + at).iter().zip(&middle).enumerate() {
                    rows.row_mut(b)[shape.place(at, column)] = x - middle;
                }
            }
        })?;
        Ok(Blocks { shape, middle, rows })
    }
}

/// The same in plain memory, for the serial twin.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) shape: Shape,
    pub(crate) middle: Vec<f32>,
    pub(crate) rows: Vec<f32>,
}

impl Plain {
    pub(crate) fn new(columns: usize, points: &[f32]) -> Plain {
        let shape = Shape { count: points.len() / columns, columns };
        let row = |number: usize| &points[number * columns..][..columns];
        let (middle, mut rows) = (shape.middle(row), vec![0.0; shape.blocks() * shape.width()]);
        for (number, block) in rows.chunks_exact_mut(shape.width()).enumerate() {
            shape.pack(number, row, &middle, block);
        }
        Plain { shape, middle, rows }
    }

    pub(crate) fn block(&self, number: usize) -> &[f32] {
        &self.rows[number * self.shape.width()..][..self.shape.width()]
    }
}
