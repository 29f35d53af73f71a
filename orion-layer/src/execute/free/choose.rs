//! Which tile a worker tries next.
use super::FreeTiles;
use super::claims::Progress;

/// The state of a pass as a worker sees it.
#[derive(Debug, Default)]
pub(in crate::execute) struct Outlook {
    /// Tiles that may be free, the best first.
    pub(in crate::execute) candidates: Vec<usize>,
    /// How many were begun.
    pub(in crate::execute) begun: u64,
    /// How many were run.
    pub(in crate::execute) done: usize,
}

impl FreeTiles {
    /// The best tile for worker `me`: of its own, and then of those of the worker that has most left, the one whose blocks were
    /// used longest ago.
    pub(in crate::execute) fn outlook(
        &self,
        me: usize,
        workers: usize,
        progress: impl Iterator<Item = Progress>,
    ) -> Outlook {
        // By block: after how many tiles it was used last, and whether it is in use.
        let mut used = vec![(0, false); self.blocks];
        let mut left = vec![0; workers];
        let mut outlook = Outlook::default();
        for (number, (tile, progress)) in self.tiles.iter().zip(progress).enumerate() {
            let (before, in_use) = match progress {
                Progress::Left => {
                    left[tile.home] += 1;
                    outlook.candidates.push(number);
                    continue;
                }
                Progress::Begun(before) => (before, true),
                Progress::Done(before) => {
                    outlook.done += 1;
                    (before, false)
                }
            };
            outlook.begun += 1;
            for block in &tile.blocks {
                let (last, busy) = &mut used[*block];
                (*last, *busy) = ((*last).max(before + 1), *busy || in_use);
            }
        }
        outlook.candidates.retain(|tile| !self.tiles[*tile].blocks.iter().any(|block| used[*block].1));
        outlook.candidates.sort_by_cached_key(|number| {
            let tile = &self.tiles[*number];
            let most_left = if tile.home == me { 0 } else { usize::MAX - left[tile.home] };
            (most_left, tile.blocks.iter().map(|block| used[*block].0).sum::<u64>(), *number)
        });
        outlook
    }
}
