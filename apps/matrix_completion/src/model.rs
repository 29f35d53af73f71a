//! The model: a matrix of factors for users, and one for items.
//!
//! A row is a whole number of 64-byte lines, aligned to them. The factors come first, zeros fill up their last
//! line, and with AdaGrad one more line begins with the row's accumulator, so that everything an update needs of
//! a row moves together. Zeros stay zeros under every update.

use super::kernel::{Element, Step};
use super::random::Random;
use anyhow::{Context, Result};

/// Bytes in a line.
pub const LINE: usize = 64;

/// Initial factors are drawn between minus and plus this: small, so that ratings and not chance decide where
/// they go, but not zero, where the gradient is zero too.
const INITIAL: f64 = 0.05;

/// How a row is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Factors in a row.
    pub rank: usize,
    /// Lines of factors in a row.
    pub lines: usize,
    /// Elements from one row to the next.
    pub stride: usize,
    /// The step rule, which decides whether there is an accumulator.
    pub step: Step,
}

impl Layout {
    /// The layout of rows of `rank` factors.
    pub fn new<E: Element>(rank: usize, step: Step) -> Self {
        let lines = rank.div_ceil(E::LANES);
        let extra = match step {
            Step::Fixed => 0,
            Step::Adagrad => 1,
        };
        Self { rank, lines, stride: (lines + extra) * E::LANES, step }
    }
}

/// Rows of factors, one after the other.
#[derive(Debug)]
pub struct Matrix<E> {
    storage: Vec<E>,
    /// Where the first line begins: a vector is aligned to its elements only.
    start: usize,
    rows: usize,
    stride: usize,
}

impl<E: Element> Matrix<E> {
    fn new(rows: usize, stride: usize) -> Result<Self> {
        let mut storage: Vec<E> = Vec::new();
        rows.checked_mul(stride)
            .and_then(|length| length.checked_add(E::LANES))
            .and_then(|length| storage.try_reserve_exact(length).ok().map(|()| length))
            .map(|length| storage.resize(length, E::default()))
            .with_context(|| format!("there is no memory for {rows} rows of {stride} elements"))?;
        let start = storage.as_ptr().align_offset(LINE);
        Ok(Self { storage, start, rows, stride })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All rows.
    #[inline(always)]
    pub fn as_slice(&self) -> &[E] {
        &self.storage[self.start..][..self.rows * self.stride]
    }

    /// All rows, to be written.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [E] {
        &mut self.storage[self.start..][..self.rows * self.stride]
    }
}

/// The model that is trained.
#[derive(Debug)]
pub struct Model<E> {
    /// A row per user.
    pub users: Matrix<E>,
    /// A row per item.
    pub items: Matrix<E>,
    layout: Layout,
}

impl<E: Element> Model<E> {
    /// A model with the initial factors of `seed`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(users: usize, items: usize, layout: Layout, seed: u64) -> Result<Self> {
        let (users, items) = (Matrix::new(users, layout.stride)?, Matrix::new(items, layout.stride)?);
        let mut model = Self { users, items, layout };
        for (matrix, purpose) in [(&mut model.users, "user factors"), (&mut model.items, "item factors")] {
            let mut random = Random::new(seed, purpose);
            for row in matrix.as_mut_slice().chunks_exact_mut(layout.stride) {
                row[..layout.rank].fill_with(|| E::from_f64((2.0 * random.unit() - 1.0) * INITIAL));
                if layout.step == Step::Adagrad {
                    row[layout.lines * E::LANES] = E::from_f64(1.0);
                }
            }
        }
        Ok(model)
    }

    /// How its rows are laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }
}
