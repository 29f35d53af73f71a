//! Which tiles of a pass were begun and ended: a word for each in an open area, written by who has the tile's parts.
use crate::error::{Error, Result};
use crate::fabric::attach_to;
use hectare_dsm::{Area, AreaSpec, Cells, Opened, Worker};
use std::cell::{OnceCell, RefCell};
use std::time::Duration;

/// How long a worker waits for the words that worker 0 has made.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The words of one loop.
#[derive(Debug)]
pub(in crate::execute) struct Claims {
    /// Held by worker 0: the area is open for as long as the plan exists.
    mine: RefCell<Option<Opened<u64>>>,
    name: String,
    /// Of whichever worker they are; none before they are found.
    words: OnceCell<Area<u64>>,
    tiles: usize,
}

/// How far a tile is in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) enum Progress {
    /// It is still to be run.
    Left,
    /// A worker has begun it; the number of others that were begun before it, as far as that worker knew.
    Begun(u64),
    /// It was run.
    Done(u64),
}

impl Claims {
    /// Makes the words, on worker 0. All workers call this, and agree that it could before they look for them ([`Claims::find`]).
    pub(in crate::execute) fn make(worker: &mut Worker, plan: u64, tiles: usize) -> Result<Claims> {
        let name = format!("orion/tiles/{plan}");
        let mine = match worker.rank() {
            0 => {
                let words = worker.create::<u64>(AreaSpec::new(&name).copies(0), tiles)?;
                Some(words.open(worker).map_err(hectare_dsm::Error::from)?)
            }
            _ => None,
        };
        Ok(Claims { mine: RefCell::new(mine), name, words: OnceCell::new(), tiles })
    }

    /// Finds the words, unless they are known.
    pub(in crate::execute) fn find(&self, worker: &mut Worker) -> Result<()> {
        if self.words.get().is_none() {
            // Nobody has set them meanwhile.
            let _ = self.words.set(attach_to(worker, "a loop", &self.name, 0, TIME_LIMIT)?);
        }
        Ok(())
    }

    fn words<'w>(&self, worker: &'w Worker) -> Result<Cells<'w, u64>> {
        let words = self.words.get().ok_or_else(|| Error::Invalid("tiles were not prepared".into()))?;
        Ok(words.cells(worker)?)
    }

    /// Gives the memory back, of a loop that is not run again.
    pub(in crate::execute) fn delete(&self, worker: &mut Worker) -> Result<()> {
        self.mine.take().map_or(Ok(()), |mine| Ok(mine.delete(worker)?))
    }

    /// How far each tile is in pass `pass`, which is not 0. Of a tile whose parts this worker holds it is the truth: who
    /// had them before wrote it before laying them down. Of others it is what was known a moment ago.
    pub(in crate::execute) fn progress(
        &self,
        worker: &Worker,
        pass: u64,
    ) -> Result<impl Iterator<Item = Progress>> {
        let words = self.words(worker)?;
        Ok((0..self.tiles).map(move |tile| {
            let word = words.observe(tile);
            match (word >> 32 == pass, word & 1) {
                (false, _) => Progress::Left,
                (true, 0) => Progress::Begun(word as u32 as u64 >> 1),
                (true, _) => Progress::Done(word as u32 as u64 >> 1),
            }
        }))
    }

    /// Whether this worker, which holds the tile's parts, is the first to do so in the pass; notes that it begins it then.
    pub(in crate::execute) fn begin(
        &self,
        worker: &Worker,
        pass: u64,
        tile: usize,
        before: u64,
    ) -> Result<bool> {
        let words = self.words(worker)?;
        let is_left = words.observe(tile) >> 32 != pass;
        if is_left {
            words.publish(tile, pass << 32 | before << 1);
        }
        Ok(is_left)
    }

    /// Notes that a tile that this worker has begun was run, and its parts released.
    pub(in crate::execute) fn end(&self, worker: &Worker, tile: usize) -> Result<()> {
        let words = self.words(worker)?;
        words.publish(tile, words.observe(tile) | 1);
        Ok(())
    }
}
