//! Integer points within inequalities, found by trying values in the order of the elimination.
//!
//! Exact, because the rows that bound the last variable include everything that the others left open; and seldom
//! more than one try per variable, because the elimination has told each variable what the later ones need.
use super::budget::Budget;
use super::fourier_motzkin::{Projection, Range};

/// Whether there is an integer point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// The budget ended, or a variable has no bounds.
    Unknown,
}

/// Values tried of a variable that has at most one bound.
const UNBOUNDED_TRIES: i128 = 4;

/// A search, and where it stands.
pub(super) struct Search<'p> {
    projection: &'p Projection,
    /// By variable; 0 where it has none yet.
    values: Vec<i128>,
    level: usize,
    budget: &'p mut Budget,
}

impl<'p> Search<'p> {
    pub(super) fn new(projection: &'p Projection, budget: &'p mut Budget) -> Search<'p> {
        Search { projection, values: vec![0; projection.variables()], level: 0, budget }
    }

    /// Whether the values so far can be completed.
    pub(super) fn witness(&mut self) -> Answer {
        if self.level == self.projection.variables() {
            return if self.projection.complete { Answer::Yes } else { Answer::Unknown };
        }
        let Some((low, high)) = self.range() else { return Answer::Unknown };
        let (candidates, mut answer) = match (low, high) {
            (Some(low), Some(high)) => (low..=high, Answer::No),
            (Some(low), None) => (low..=low.saturating_add(UNBOUNDED_TRIES), Answer::Unknown),
            (None, Some(high)) => (high.saturating_sub(UNBOUNDED_TRIES)..=high, Answer::Unknown),
            (None, None) => (-UNBOUNDED_TRIES / 2..=UNBOUNDED_TRIES / 2, Answer::Unknown),
        };
        for value in candidates {
            match self.with(value, Search::witness) {
                Answer::Yes => return Answer::Yes,
                Answer::Unknown if self.budget.is_spent() => return Answer::Unknown,
                Answer::Unknown => answer = Answer::Unknown,
                Answer::No => {}
            }
        }
        answer
    }

    /// Collects every choice of the first `count` variables that can be completed; `None` if there are more than
    /// `limit`, or if not all could be decided. The elimination has kept these variables.
    pub(super) fn enumerate(&mut self, count: usize, limit: usize, found: &mut Vec<Vec<i128>>) -> Option<()> {
        if self.level == count {
            match self.witness() {
                Answer::Yes => found.push(self.values[..count].to_vec()),
                Answer::No => {}
                Answer::Unknown => return None,
            }
            return (found.len() <= limit).then_some(());
        }
        let (Some(low), Some(high)) = self.range()? else { return None };
        if high.checked_sub(low)? >= limit as i128 {
            return None;
        }
        for value in low..=high {
            self.with(value, |search| search.enumerate(count, limit, found))?;
        }
        Some(())
    }

    /// One level down, with a value for the variable of this one.
    fn with<R>(&mut self, value: i128, go_on: impl FnOnce(&mut Self) -> R) -> R {
        let variable = self.projection.variable(self.level);
        self.values[variable] = value;
        self.level += 1;
        let result = go_on(self);
        self.level -= 1;
        self.values[variable] = 0;
        result
    }

    /// The bounds of the next variable; `None` if the budget is spent or a number overflows.
    fn range(&mut self) -> Option<Range> {
        if !self.budget.spend(2 + (self.values.len() + 2) * self.projection.rows(self.level)) {
            return None;
        }
        self.projection.range(self.level, &self.values).ok()
    }
}
