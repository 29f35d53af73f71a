//! A limit on the work of an analysis, counted and not timed, so that every process decides alike.

/// The work that is left to spend, in multiplications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn new(multiplications: u64) -> Budget {
        Budget(multiplications)
    }

    /// Takes some off; `false` if fewer were left, and then none are.
    pub(super) fn spend(&mut self, multiplications: usize) -> bool {
        let left = self.0.checked_sub(multiplications as u64);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    /// Sets a share of what is left aside: `1 / parts` of it.
    pub(super) fn split(&mut self, parts: u64) -> Budget {
        let share = self.0 / parts;
        self.0 -= share;
        Budget(share)
    }

    /// Sets this many aside, or all that are left.
    pub(super) fn at_most(&mut self, multiplications: u64) -> Budget {
        let share = self.0.min(multiplications);
        self.0 -= share;
        Budget(share)
    }

    /// Puts back what a share has left.
    pub(super) fn give_back(&mut self, share: Budget) {
        self.0 += share.0;
    }

    /// Whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
