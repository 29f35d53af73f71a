//! Whom each worker waits for before each batch.
//!
//! For each row it is kept who wrote it last, and who has read it since. Who writes it waits for all of them, who reads it for the
//! writer; and of each worker only the last batch counts. Two sweeps over all batches are two passes of a run: what comes before the
//! batches of the second one comes before those of all later ones, as many batches on, and before those of the first as far
//! as there is anything before.
use super::{RowError, Touched};
use crate::error::Rank;

/// What a worker waits for before each batch of the second pass.
#[derive(Debug)]
pub(super) struct Waits {
    /// Where those of each batch begin.
    starts: Vec<usize>,
    /// Another worker, and how many batches it must have done, those of the first pass included.
    list: Vec<(Rank, u32)>,
}

impl Waits {
    /// Those of all workers.
    ///
    /// # Errors
    /// [`RowError::Race`].
    pub(super) fn of(
        arrays: &[usize],
        batches: usize,
        touched: &[Vec<Touched>],
    ) -> Result<Vec<Waits>, RowError> {
        let mut all: Vec<_> =
            touched.iter().map(|_| Waits { starts: vec![0; batches + 1], list: Vec::new() }).collect();
        if touched.len() < 2 {
            return Ok(all);
        }
        let mut sweep = Sweep::new(arrays, batches, touched);
        for batch in 0..batches {
            sweep.look_at(batch, 0)?;
        }
        sweep.known.fill(0);
        sweep.needed.fill(0);
        sweep.named.iter_mut().for_each(Vec::clear);
        for batch in 0..batches {
            sweep.look_at(batch, batches)?;
            for (worker, waits) in all.iter_mut().enumerate() {
                sweep.take_needed(worker, &mut waits.list);
                waits.starts[batch + 1] = waits.list.len();
            }
        }
        Ok(all)
    }

    #[inline]
    pub(super) fn before(&self, batch: usize) -> &[(Rank, u32)] {
        match (self.starts.get(batch), self.starts.get(batch + 1)) {
            (Some(start), Some(end)) => &self.list[*start..*end],
            _ => &[],
        }
    }
}

/// What is known of a row. Batches are counted from 1, through both passes.
#[derive(Clone, Copy, Default)]
struct Row {
    /// The batch in which it was written last; 0 if it was not.
    written: u32,
    writer: Rank,
    /// The place in [`Sweep::readers`] of the first who has read it since, and 1; 0 if nobody has.
    readers: u32,
}

struct Reader {
    rank: Rank,
    batch: u32,
    /// As [`Row::readers`].
    next: u32,
}

struct Sweep<'a> {
    batches: usize,
    touched: &'a [Vec<Touched>],
    /// By array.
    rows: Vec<Vec<Row>>,
    readers: Vec<Reader>,
    /// Places of `readers` that are not used, in a list.
    unused: u32,
    /// For each worker, how many batches of each other it waits for before the batch that is looked at.
    needed: Vec<u32>,
    /// For each worker, those of which there are some.
    named: Vec<Vec<Rank>>,
    /// For each worker, how many batches of each other it has waited for.
    known: Vec<u32>,
}

impl<'a> Sweep<'a> {
    fn new(arrays: &[usize], batches: usize, touched: &'a [Vec<Touched>]) -> Sweep<'a> {
        let workers = touched.len();
        Sweep {
            batches,
            touched,
            rows: arrays.iter().map(|rows| vec![Row::default(); *rows]).collect(),
            readers: Vec::new(),
            unused: 0,
            needed: vec![0; workers * workers],
            named: vec![Vec::new(); workers],
            known: vec![0; workers * workers],
        }
    }

    /// Looks at what all workers do in a batch: first at what they write, then at what they read.
    fn look_at(&mut self, batch: usize, before: usize) -> Result<(), RowError> {
        let now = (before + batch + 1) as u32;
        for (rank, lists) in (0..).zip(self.touched) {
            for (array, touched) in lists.iter().enumerate() {
                for &row in touched.writes.of(batch) {
                    self.write(array, row as usize, rank, now)?;
                }
            }
        }
        for (rank, lists) in (0..).zip(self.touched) {
            for (array, touched) in lists.iter().enumerate() {
                for &row in touched.reads.of(batch) {
                    self.read(array, row as usize, rank, now)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, array: usize, number: usize, rank: Rank, now: u32) -> Result<(), RowError> {
        let row = self.rows[array][number];
        if row.written == now {
            return if row.writer == rank { Ok(()) } else { Err(self.race(array, number, rank, now, true)) };
        }
        self.wait_for(rank, row.writer, row.written);
        let mut at = row.readers;
        while at > 0 {
            let Reader { rank: reader, batch, next } = self.readers[at as usize - 1];
            self.wait_for(rank, reader, batch);
            self.readers[at as usize - 1].next = self.unused;
            self.unused = at;
            at = next;
        }
        self.rows[array][number] = Row { written: now, writer: rank, readers: 0 };
        Ok(())
    }

    #[inline]
    fn read(&mut self, array: usize, number: usize, rank: Rank, now: u32) -> Result<(), RowError> {
        let row = self.rows[array][number];
        if row.written == now {
            return if row.writer == rank { Ok(()) } else { Err(self.race(array, number, rank, now, false)) };
        }
        self.wait_for(rank, row.writer, row.written);
        let mut at = row.readers;
        while at > 0 {
            let reader = &mut self.readers[at as usize - 1];
            if reader.rank == rank {
                reader.batch = now;
                return Ok(());
            }
            at = reader.next;
        }
        let reader = Reader { rank, batch: now, next: row.readers };
        self.rows[array][number].readers = match self.unused {
            0 => {
                self.readers.push(reader);
                u32::try_from(self.readers.len()).map_err(|_| RowError::TooMany)?
            }
            place => {
                let place_of = &mut self.readers[place as usize - 1];
                self.unused = place_of.next;
                *place_of = reader;
                place
            }
        };
        Ok(())
    }

    fn race(&self, array: usize, row: usize, rank: Rank, now: u32, both_write: bool) -> RowError {
        let batch = (now as usize - 1) % self.batches;
        RowError::Race { array, row, batch, workers: [self.rows[array][row].writer, rank], both_write }
    }

    /// A worker begins its batch after that of another.
    #[inline]
    fn wait_for(&mut self, rank: Rank, other: Rank, batch: u32) {
        if other == rank || batch == 0 {
            return;
        }
        let needed = &mut self.needed[rank as usize * self.touched.len() + other as usize];
        if *needed == 0 {
            self.named[rank as usize].push(other);
        }
        *needed = batch.max(*needed);
    }

    /// What a worker waits for before the batch that was looked at, and has not waited for before.
    fn take_needed(&mut self, worker: usize, list: &mut Vec<(Rank, u32)>) {
        for other in self.named[worker].drain(..) {
            let at = worker * self.touched.len() + other as usize;
            let needed = std::mem::take(&mut self.needed[at]);
            if needed > self.known[at] {
                self.known[at] = needed;
                list.push((other, needed));
            }
        }
    }
}
