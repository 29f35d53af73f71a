//! The weights that variables are drawn by.
use super::sum_tree::SumTree;
use hectare_data::random::Stream;

/// How a variable is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Weight,
    Uniform,
}

/// Draws variables by their weights.
#[derive(Debug)]
pub(super) struct Drawer {
    /// One for each variable that is not taken for the round.
    even: SumTree,
    /// One for each that is not taken and has not run yet.
    first: SumTree,
    weights: SumTree,
    stream: Stream,
    drawn: u64,
}

impl Drawer {
    /// `weights` are those to begin with; if there are none, each of the `count` has a first turn.
    pub(super) fn new(count: usize, weights: Option<Vec<f64>>, stream: Stream) -> Drawer {
        let first = if weights.is_some() { 0.0 } else { 1.0 };
        Drawer {
            even: SumTree::new((0..count).map(|_| 1.0)),
            first: SumTree::new((0..count).map(|_| first)),
            weights: SumTree::new(weights.unwrap_or_else(|| vec![0.0; count]).into_iter()),
            stream,
            drawn: 0,
        }
    }

    /// The weight of one that has run.
    pub(super) fn feed(&mut self, at: usize, weight: f64) {
        self.first.set(at, 0.0);
        self.weights.set(at, weight);
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> f64 {
        self.weights.total()
    }

    /// One that is drawn; it may be one that is taken. None if all are.
    pub(super) fn next(&mut self, by: By, explore: f64) -> Option<usize> {
        if self.even.total() == 0.0 {
            return None;
        }
        let (explores, share) = (self.stream.uniform(self.drawn), self.stream.uniform(self.drawn + 1));
        self.drawn += 2;
        let tree = match by {
            By::Uniform => &self.even,
            By::Weight if self.first.total() > 0.0 => &self.first,
            By::Weight if self.weights.total() == 0.0 || explores < explore => &self.even,
            By::Weight => &self.weights,
        };
        Some(tree.at(share))
    }

    /// Takes a variable out of what is drawn evenly, until it is put back; returns whether it has its first turn yet.
    pub(super) fn take(&mut self, at: usize) -> f64 {
        let first = self.first.get(at);
        self.even.set(at, 0.0);
        self.first.set(at, 0.0);
        first
    }

    pub(super) fn is_taken(&self, at: usize) -> bool {
        self.even.get(at) == 0.0
    }

    pub(super) fn put_back(&mut self, at: usize, first: f64) {
        self.even.set(at, 1.0);
        self.first.set(at, first);
    }
}
