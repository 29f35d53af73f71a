//! Who goes through columns and rows: workers, by loops, or the serial twin.
use super::columns::Columns;
use hectare::DistArray;
use hectare::orion::{Context, Result, parallel_for};

/// The residuals of a model, row by row, apart from a constant.
pub(crate) trait Machine {
    /// The inner products of columns with what is left over. Collective.
    fn products(&mut self, w: &mut Context<'_>, columns: &[usize]) -> Result<Vec<f64>>;

    /// Takes `change` times each column away from what is left over. Collective.
    fn apply(&mut self, w: &mut Context<'_>, changes: &[(usize, f64)]) -> Result<()>;

    /// The sum of the squares of what is left over with `constant` added to each. Collective.
    fn squares(&mut self, w: &mut Context<'_>, constant: f64) -> Result<f64>;
}

fn sum_of_squares(block: &[f64], constant: f64) -> f64 {
    block.iter().map(|rest| (rest + constant).powi(2)).sum()
}

/// Residuals in the memory of all workers.
pub(crate) struct Workers<'a> {
    columns: &'a Columns,
    count: usize,
    rest: DistArray<f64, 2>,
    products: DistArray<f64, 1>,
    squares: DistArray<f64, 1>,
}

impl<'a> Workers<'a> {
    /// Collective.
    pub(crate) fn new(w: &mut Context<'_>, columns: &'a Columns, targets: &[f64]) -> Result<Workers<'a>> {
        let (count, rows) = (targets.len(), columns.block);
        let blocks = count.div_ceil(rows);
        let target = |[block, row]: [usize; 2]| targets.get(block * rows + row).copied().unwrap_or(0.0);
        Ok(Workers {
            columns,
            count,
            rest: w.from_fn([blocks, rows], target)?.named("rest"),
            products: w.zeros([columns.count()])?.named("products"),
            squares: w.zeros([blocks])?.named("squares"),
        })
    }
}

impl Machine for Workers<'_> {
    fn products(&mut self, w: &mut Context<'_>, round: &[usize]) -> Result<Vec<f64>> {
        let Workers { columns, rest, products, .. } = self;
        parallel_for!(w, unordered, read rest, write products; for at in 0..round.len() {
            let mut sum = 0.0;
            for part in columns.parts(round[at]) {
                sum += part.dot(rest.row(part.block));
            }
            products[at] = sum;
        })?;
        #[allow(clippy::single_range_in_vec_init, reason = "one range for each dimension")]
        products.read_range(w, [0..round.len()])
    }

    fn apply(&mut self, w: &mut Context<'_>, changes: &[(usize, f64)]) -> Result<()> {
        let Workers { columns, rest, .. } = self;
        let blocks = rest.shape()[0];
        parallel_for!(w, unordered, write rest; for block in 0..blocks {
            let rows = rest.row_mut(block);
            for (column, change) in changes {
                columns.part(*column, block).add_to(rows, -change);
            }
        })
    }

    fn squares(&mut self, w: &mut Context<'_>, constant: f64) -> Result<f64> {
        let Workers { count, rest, squares, .. } = self;
        let ([blocks, rows], count) = (rest.shape(), *count);
        parallel_for!(w, unordered, read rest, write squares; for block in 0..blocks {
            let len = rows.min(count - block * rows);
            squares[block] = sum_of_squares(&rest.row(block)[..len], constant);
        })?;
        Ok(squares.to_vec(w)?.iter().sum())
    }
}

/// The same in plain memory.
pub(crate) struct Plain<'a> {
    columns: &'a Columns,
    rest: Vec<f64>,
}

impl<'a> Plain<'a> {
    pub(crate) fn new(columns: &'a Columns, targets: &[f64]) -> Plain<'a> {
        Plain { columns, rest: targets.to_vec() }
    }

    fn block(&mut self, number: usize) -> &mut [f64] {
        let (rows, len) = (self.columns.block, self.rest.len());
        &mut self.rest[number * rows..len.min((number + 1) * rows)]
    }
}

impl Machine for Plain<'_> {
    fn products(&mut self, _: &mut Context<'_>, round: &[usize]) -> Result<Vec<f64>> {
        let columns = self.columns;
        let product =
            |column: &usize| columns.parts(*column).map(|part| part.dot(self.block(part.block))).sum();
        Ok(round.iter().map(product).collect())
    }

    fn apply(&mut self, _: &mut Context<'_>, changes: &[(usize, f64)]) -> Result<()> {
        let columns = self.columns;
        for (column, change) in changes {
            columns.parts(*column).for_each(|part| part.add_to(self.block(part.block), -change));
        }
        Ok(())
    }

    fn squares(&mut self, _: &mut Context<'_>, constant: f64) -> Result<f64> {
        Ok(self.rest.chunks(self.columns.block).map(|block| sum_of_squares(block, constant)).sum())
    }
}
