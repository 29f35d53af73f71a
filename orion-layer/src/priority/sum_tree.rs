//! Weights, and the sums of ranges of them: a draw by weight takes the logarithm of their number.

/// A complete binary tree of sums: node 1 is the root, the children of node `k` are `2 k` and `2 k + 1`, and the weights are the
/// last level. A sum is recomputed from its two children, so that what was subtracted leaves no rounding behind.
#[derive(Debug)]
pub(super) struct SumTree {
    count: usize,
    sums: Vec<f64>,
}

impl SumTree {
    pub(super) fn new(weights: impl ExactSizeIterator<Item = f64>) -> SumTree {
        let count = weights.len();
        let first = count.next_power_of_two();
        let mut sums = vec![0.0; 2 * first];
        sums[first..].iter_mut().zip(weights).for_each(|(sum, weight)| *sum = weight);
        for node in (1..first).rev() {
            sums[node] = sums[2 * node] + sums[2 * node + 1];
        }
        SumTree { count, sums }
    }

    pub(super) fn total(&self) -> f64 {
        self.sums[1]
    }

    pub(super) fn get(&self, at: usize) -> f64 {
        self.sums[self.sums.len() / 2 + at]
    }

    pub(super) fn set(&mut self, at: usize, weight: f64) {
        assert!(at < self.count, "there are {} weights, and no weight {at}", self.count);
        let mut node = self.sums.len() / 2 + at;
        self.sums[node] = weight;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1];
        }
    }

    /// Where `share` of the total, a number of `[0, 1)`, falls: never on a weight of zero, if the total is above zero.
    pub(super) fn at(&self, share: f64) -> usize {
        let first = self.sums.len() / 2;
        let (mut node, mut rest) = (1, share * self.total());
        while node < first {
            let [left, right] = [self.sums[2 * node], self.sums[2 * node + 1]];
            // Rounding may lead past the end of the right side.
            if rest < left || right == 0.0 {
                node *= 2;
            } else {
                rest -= left;
                node = 2 * node + 1;
            }
        }
        node - first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_falls_where_a_plain_sum_puts_it() {
        for count in [1, 2, 3, 7, 64, 100] {
            let weights: Vec<f64> = (0..count).map(|k| (k * 7 % 5) as f64).collect();
            let total: f64 = weights.iter().sum();
            let tree = SumTree::new(weights.iter().copied());
            assert_eq!(tree.total(), total);
            for point in 0..total as usize {
                let share = (point as f64 + 0.5) / total;
                let mut rest = point as f64 + 0.5;
                let plain = weights.iter().position(|weight| {
                    rest -= weight;
                    rest < 0.0
                });
                assert_eq!(Some(tree.at(share)), plain, "{count} {point}");
            }
        }
    }

    #[test]
    fn weights_that_are_taken_away_leave_nothing() {
        let mut tree = SumTree::new((0..1000).map(|k| 0.1 + f64::from(k)));
        (0..1000).filter(|at| *at != 617).for_each(|at| tree.set(at, 0.0));
        assert_eq!(tree.total(), tree.get(617));
        for share in [0.0, 0.3, 1.0 - f64::EPSILON] {
            assert_eq!(tree.at(share), 617);
        }
    }
}
