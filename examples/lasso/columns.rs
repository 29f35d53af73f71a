//! The features of rows, column by column.
use hectare_data::text::LabelledRow;

/// A matrix by columns: each has the rows in which it is not 0, in their order.
#[derive(Debug)]
pub(crate) struct Columns {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f32>,
    /// How many rows a block has.
    pub(crate) block: usize,
}

/// The entries of a column in a block of rows.
pub(crate) struct Part<'a> {
    pub(crate) block: usize,
    first: u32,
    rows: &'a [u32],
    values: &'a [f32],
}

impl Part<'_> {
    /// The inner product with the block's part of a vector.
    pub(crate) fn dot(&self, block: &[f64]) -> f64 {
        let each = self.rows.iter().zip(self.values);
        each.map(|(row, value)| f64::from(*value) * block[(row - self.first) as usize]).sum()
    }

    /// Adds `factor` times the column.
    pub(crate) fn add_to(&self, block: &mut [f64], factor: f64) {
        let each = self.rows.iter().zip(self.values);
        each.for_each(|(row, value)| block[(row - self.first) as usize] += factor * f64::from(*value));
    }
}

impl Columns {
    /// The columns of rows with `features` features.
    pub(crate) fn of(all: &[LabelledRow], features: usize) -> Columns {
        let mut starts = vec![0; features + 1];
        let entries = || all.iter().flat_map(|row| &row.features).filter(|(_, value)| *value != 0.0);
        entries().for_each(|(feature, _)| starts[*feature as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let (mut next, len) = (starts.clone(), starts[features]);
        let (mut rows, mut values) = (vec![0; len], vec![0.0; len]);
        for (number, row) in (0..).zip(all) {
            for (feature, value) in row.features.iter().filter(|(_, value)| *value != 0.0) {
                let place = &mut next[*feature as usize];
                (rows[*place], values[*place]) = (number, *value);
                *place += 1;
            }
        }
        // About as many blocks for every number of rows, so that workers have some each, and not too short.
        let block = (all.len() / 64).next_power_of_two().clamp(64, 4096);
        Columns { starts, rows, values, block }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many rows have this feature.
    pub(crate) fn len(&self, column: usize) -> usize {
        self.starts[column + 1] - self.starts[column]
    }

    fn of_column(&self, column: usize) -> (&[u32], &[f32]) {
        let range = self.starts[column]..self.starts[column + 1];
        (&self.rows[range.clone()], &self.values[range])
    }

    /// A column, block by block; blocks in which it is 0 are left out.
    pub(crate) fn parts(&self, column: usize) -> impl Iterator<Item = Part<'_>> {
        let (mut rows, mut values) = self.of_column(column);
        std::iter::from_fn(move || {
            let block = *rows.first()? as usize / self.block;
            let end = rows.partition_point(|row| (*row as usize) < (block + 1) * self.block);
            let part;
            (part, (rows, values)) = (
                Part {
                    block,
                    first: (block * self.block) as u32,
                    rows: &rows[..end],
                    values: &values[..end],
                },
                (&rows[end..], &values[end..]),
            );
            Some(part)
        })
    }

    /// The entries of a column in one block.
    pub(crate) fn part(&self, column: usize, block: usize) -> Part<'_> {
        let (rows, values) = self.of_column(column);
        let first = block * self.block;
        let start = rows.partition_point(|row| (*row as usize) < first);
        let end = start + rows[start..].partition_point(|row| (*row as usize) < first + self.block);
        Part { block, first: first as u32, rows: &rows[start..end], values: &values[start..end] }
    }

    /// The sum of a column's values, and that of their squares.
    pub(crate) fn sums(&self, column: usize) -> [f64; 2] {
        let values = self.of_column(column).1.iter().map(|value| f64::from(*value));
        values.fold([0.0; 2], |[sum, squares], value| [sum + value, squares + value * value])
    }

    /// The inner product of two columns.
    pub(crate) fn product(&self, a: usize, b: usize) -> f64 {
        let ((rows, values), (others, factors)) = (self.of_column(a), self.of_column(b));
        let (mut at, mut other, mut sum) = (0, 0, 0.0);
        while at < rows.len() && other < others.len() {
            let (row, across) = (rows[at], others[other]);
            if row == across {
                sum += f64::from(values[at]) * f64::from(factors[other]);
            }
            at += usize::from(row <= across);
            other += usize::from(across <= row);
        }
        sum
    }
}
