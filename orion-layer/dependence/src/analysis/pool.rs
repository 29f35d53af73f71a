//! The inequalities between which variables are eliminated.
use super::linear::Row;
use std::collections::HashMap;

/// Inequalities `row >= 0`, of which no two are parallel, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Pool {
    rows: Vec<Row>,
    /// The place of each by its coefficients, once there are [`MANY`].
    places: HashMap<Vec<i128>, usize>,
}

/// From this number of rows on, a parallel one is looked up and not searched for. An elimination may make tens of thousands.
const MANY: usize = 48;

impl Pool {
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds an inequality, keeping the tightest of parallel ones; `None` if it is never true.
    pub(super) fn insert(&mut self, mut row: Row) -> Option<()> {
        row.tighten();
        if row.coefficients.iter().all(|c| *c == 0) {
            return (row.constant >= 0).then_some(());
        }
        match self.parallel(&row) {
            Some(place) => self.rows[place].constant = self.rows[place].constant.min(row.constant),
            None => self.push(row),
        }
        Some(())
    }

    fn parallel(&self, row: &Row) -> Option<usize> {
        if self.rows.len() < MANY {
            return self.rows.iter().position(|other| other.coefficients == row.coefficients);
        }
        self.places.get(&row.coefficients).copied()
    }

    fn push(&mut self, row: Row) {
        self.rows.push(row);
        match self.rows.len() {
            ..MANY => {}
            MANY => self.places = places(&self.rows),
            len => drop(self.places.insert(self.rows[len - 1].coefficients.clone(), len - 1)),
        }
    }

    /// Takes out the rows of which that is true.
    pub(super) fn take(&mut self, is_taken: impl Fn(&Row) -> bool) -> Vec<Row> {
        let (taken, rest) = std::mem::take(&mut self.rows).into_iter().partition(is_taken);
        self.rows = rest;
        self.places = if self.rows.len() < MANY { HashMap::new() } else { places(&self.rows) };
        taken
    }
}

fn places(rows: &[Row]) -> HashMap<Vec<i128>, usize> {
    rows.iter().enumerate().map(|(place, row)| (row.coefficients.clone(), place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a search among all rows.
        #[test]
        fn no_two_are_parallel_and_the_tightest_stays(
            given in proptest::collection::vec((-3i128..4, -3i128..4, -3i128..4, 0i128..9), 0..400),
        ) {
            let (mut pool, mut plain) = (Pool::default(), Vec::<Row>::new());
            for (at, (a, b, c, constant)) in given.into_iter().enumerate() {
                let mut row = Row { constant, coefficients: vec![a, b, c] };
                pool.insert(row.clone()).unwrap();
                row.tighten();
                match plain.iter_mut().find(|other| other.coefficients == row.coefficients) {
                    _ if row.coefficients == [0; 3] => {}
                    Some(other) => other.constant = other.constant.min(row.constant),
                    None => plain.push(row),
                }
                if at % 150 == 149 {
                    let is_taken = |row: &Row| row.coefficients[0] > 1;
                    let (taken, rest) = plain.into_iter().partition(is_taken);
                    plain = rest;
                    let same: Vec<Row> = taken;
                    prop_assert_eq!(pool.take(is_taken), same);
                }
                prop_assert_eq!(pool.rows(), &plain[..]);
            }
        }
    }

    #[test]
    fn what_is_never_true_is_said() {
        assert!(Pool::default().insert(Row { constant: -1, coefficients: vec![0, 0] }).is_none());
    }
}
