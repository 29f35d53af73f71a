//! Fourier-Motzkin elimination, tightened to integers.
use super::budget::Budget;
use super::lattice::Overflow;
use super::linear::{Row, ceil_div, floor_div, gcd};
use super::pool::Pool;

/// Inequalities `row >= 0` in levels, one per variable: those of a level bound its variable once the variables of the
/// levels before have values.
#[derive(Debug)]
pub(super) struct Projection {
    levels: Vec<Level>,
    /// Whether all the given inequalities are among the rows, so that a point that satisfies the rows is a solution.
    pub(super) complete: bool,
}

#[derive(Debug)]
struct Level {
    variable: usize,
    rows: Vec<Row>,
}

/// Eliminates all variables, the first `keep` of them last, in their order; `None` if there is no solution.
///
/// Each step pairs every lower bound of a variable with every upper bound (Fourier 1826; Motzkin 1936), and rounds
/// the constants of the results, which is sound for integers (Williams 1976). The next variable is the one with the
/// fewest pairs. Where the budget ends or a number overflows, a result is left out; that only weakens what is known.
pub(super) fn project(
    rows: impl Iterator<Item = Option<Row>>,
    variables: usize,
    keep: usize,
    budget: &mut Budget,
) -> Option<Projection> {
    let (mut pool, mut complete) = (Pool::default(), true);
    for row in rows {
        match row {
            Some(row) => pool.insert(row)?,
            None => complete = false,
        }
    }
    let mut levels = Vec::with_capacity(variables);
    let mut open: Vec<usize> = (0..variables).collect();
    while let Some(next) = next_variable(&open, keep, pool.rows()) {
        let variable = open.remove(next);
        let rows = pool.take(|row| row.coefficients[variable] != 0);
        eliminate(variable, &rows, &mut pool, budget)?;
        levels.push(Level { variable, rows });
    }
    levels.reverse();
    Some(Projection { levels, complete })
}

/// Which of the open variables to eliminate next.
fn next_variable(open: &[usize], keep: usize, pool: &[Row]) -> Option<usize> {
    let pairs = |v: usize| {
        let count = |sign: i128| pool.iter().filter(|row| row.coefficients[v].signum() == sign).count();
        count(1) * count(-1)
    };
    let free = open.iter().enumerate().filter(|(_, v)| **v >= keep);
    free.min_by_key(|(_, v)| pairs(**v)).map(|(at, _)| at).or(open.len().checked_sub(1))
}

/// Adds what the bounds of a variable say about the others.
fn eliminate(variable: usize, rows: &[Row], pool: &mut Pool, budget: &mut Budget) -> Option<()> {
    let (lower, upper): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.coefficients[variable] > 0);
    for (low, high) in lower.iter().flat_map(|low| upper.iter().map(move |high| (low, high))) {
        if !budget.spend(2 * low.coefficients.len() + 2) {
            break;
        }
        let (a, b) = (low.coefficients[variable], -high.coefficients[variable]);
        let divisor = gcd(a, b);
        if let Some(row) = low.combine(b / divisor, high, a / divisor) {
            pool.insert(row)?;
        }
    }
    Some(())
}

impl Projection {
    /// How many variables there are.
    pub(super) fn variables(&self) -> usize {
        self.levels.len()
    }

    /// The variable of a level.
    pub(super) fn variable(&self, level: usize) -> usize {
        self.levels[level].variable
    }

    /// How many inequalities bound the variable of a level.
    pub(super) fn rows(&self, level: usize) -> usize {
        self.levels[level].rows.len()
    }

    /// The least and the greatest value of the variable of a level, as far as it is bounded, where the variables of
    /// the levels before have these values, and the others 0. `Err` on overflow.
    pub(super) fn range(&self, level: usize, values: &[i128]) -> Result<Range, Overflow> {
        let (mut low, mut high) = (None::<i128>, None::<i128>);
        let Level { variable, rows } = &self.levels[level];
        for row in rows {
            let rest = row.eval(values).ok_or(Overflow)?;
            match row.coefficients[*variable] {
                factor if factor > 0 => {
                    let bound = ceil_div(-rest, factor);
                    low = Some(low.map_or(bound, |low| low.max(bound)));
                }
                factor => {
                    let bound = floor_div(rest, -factor);
                    high = Some(high.map_or(bound, |high| high.min(bound)));
                }
            }
        }
        Ok((low, high))
    }
}

/// Least and greatest value, where there are any.
pub(super) type Range = (Option<i128>, Option<i128>);

#[cfg(test)]
mod tests {
    use super::super::search::{Answer, Search};
    use super::*;

    fn rows(rows: &[(i128, [i128; 2])]) -> Vec<Option<Row>> {
        rows.iter().map(|(constant, c)| Some(Row { constant: *constant, coefficients: c.to_vec() })).collect()
    }

    #[test]
    fn bounds_of_the_first_variable_are_the_shadow_of_the_polygon() {
        // x <= y <= 2x, y <= 10, x >= 3: x from 3 to 10, and for x = 4, y from 4 to 8.
        let triangle = rows(&[(0, [-1, 1]), (0, [2, -1]), (10, [0, -1]), (-3, [1, 0])]);
        let projection = project(triangle.into_iter(), 2, 1, &mut Budget::new(1000)).unwrap();
        assert_eq!(projection.range(0, &[0, 0]).unwrap(), (Some(3), Some(10)));
        assert_eq!(projection.range(1, &[4, 0]).unwrap(), (Some(4), Some(8)));
        let empty = rows(&[(0, [-1, 1]), (-1, [1, -1])]);
        assert!(project(empty.into_iter(), 2, 1, &mut Budget::new(1000)).is_none());
    }

    #[test]
    fn a_row_that_is_left_out_leaves_the_answer_open() {
        // x from 3 to 10, and perhaps something that did not fit its numbers.
        let known = || rows(&[(-3, [1, 0]), (10, [-1, 0]), (0, [0, 1]), (0, [0, -1])]).into_iter();
        let mut budget = Budget::new(1000);
        for (left_out, answer) in [(false, Answer::Yes), (true, Answer::Unknown)] {
            let given = known().chain(left_out.then_some(None));
            let projection = project(given, 2, 1, &mut budget).unwrap();
            assert_eq!(projection.complete, !left_out);
            assert_eq!(Search::new(&projection, &mut budget).witness(), answer);
        }
        // The known rows may rule out all points nevertheless.
        assert!(
            project(known().chain([None, rows(&[(-11, [1, 0])]).remove(0)]), 2, 1, &mut budget).is_none()
        );
    }

    #[test]
    fn constants_are_rounded_for_integers() {
        // 1 <= 2x - 2y <= 1 holds for halves only.
        let odd = rows(&[(-1, [2, -2]), (1, [-2, 2])]);
        assert!(project(odd.into_iter(), 2, 1, &mut Budget::new(1000)).is_none());
    }
}
