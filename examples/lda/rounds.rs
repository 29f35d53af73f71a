//! The schedule: words go around several times in a pass.
use hectare::orion::schedule::{Schedule, Steps, Tile};
use std::ops::Range;

/// Rounds in a pass.
///
/// A draw is exact in any order, but topics form the faster the closer together the tokens of a document are visited:
/// after 8 passes from random topics, a rotation whose words go around once in a pass (each document visited in two
/// pieces per worker, far apart) has a perplexity 3 % above that of whole documents, and one of 16 rounds has 0.5 %
/// (see `docs/src/applications.md`).
pub(crate) const ROUNDS: usize = 16;

/// Each worker has documents of its own, in groups. In a round all words go around, in two blocks per worker, and every
/// worker visits one of its groups; one worker alone visits document by document. Without rounds there is but one, where
/// the totals keep their dependences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) rounds: usize,
}

/// Cells `part` of `of` shares of `cells`.
fn share(cells: usize, part: usize, of: usize) -> Range<usize> {
    cells * part / of..cells * (part + 1) / of
}

impl Schedule for Rounds {
    fn name(&self) -> String {
        format!("{} rounds of all words", self.rounds)
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        let cells =
            if workers == 1 || self.rounds == 0 { [1, 1] } else { [workers * self.rounds, 2 * workers] };
        extents.iter().zip(cells).map(|(extent, cells)| cells.min(*extent).max(1)).collect()
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        if workers == 1 || self.rounds == 0 {
            let all = Tile { cells: grid.iter().map(|cells| 0..*cells).collect() };
            return vec![(0..workers).map(|worker| (worker == 0).then(|| all.clone())).collect()];
        }
        let (blocks, groups) = (2 * workers, workers * self.rounds);
        let tile = |step: usize, worker: usize| {
            let docs = share(grid[0], worker * self.rounds + step / blocks, groups);
            // A part that one worker has visited, its neighbour visits two steps later.
            let words = share(grid[1], (2 * worker + step) % blocks, blocks);
            Some(Tile { cells: vec![docs, words] })
        };
        let step = |step| (0..workers).map(|worker| tile(step, worker)).collect();
        (0..self.rounds * blocks).map(step).collect()
    }
}
