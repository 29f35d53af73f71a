//! Whom each worker waits for before each batch.
//!
//! For each row it is kept who wrote it last, and who has read it since. Who writes it waits for all of them, who reads it for the
//! writer; and of each worker only the last batch counts. One sweep over all batches finds this within a pass. What touches a
//! row before anybody has written it in the pass waits, from the second pass on, for those who touched it last in the pass
//! before, which is known after the sweep. What comes before the batches of the second pass comes before those of all later
//! ones, as many batches on, and before those of the first as far as there is anything before.
use super::{RowError, Touched};
use crate::error::Rank;

/// The batches of other workers that a worker waits for before each batch of the second pass.
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
    /// [`RowError::Race`], [`RowError::NoMemory`].
    pub(super) fn of(
        arrays: &[usize],
        batches: usize,
        touched: &[Vec<Touched>],
    ) -> Result<Vec<Waits>, RowError> {
        if touched.len() < 2 {
            return Ok(touched.iter().map(|_| Waits::new(batches, Vec::new())).collect());
        }
        let mut sweep = Sweep::new(arrays, touched)?;
        let mut found = vec![Vec::new(); touched.len()];
        for batch in 0..batches {
            sweep.look_at(batch)?;
            for (worker, found) in found.iter_mut().enumerate() {
                sweep.needed[worker].take(worker, |other, count| {
                    found.push((batch as u32, other, count + batches as u32));
                });
            }
        }
        let all = found.into_iter().enumerate();
        Ok(all
            .map(|(worker, mut found)| {
                sweep.add_waits_for_pass_before(worker, &mut found);
                Waits::new(batches, found)
            })
            .collect())
    }

    /// From batches, other workers and how many batches those must have done.
    fn new(batches: usize, mut found: Vec<(u32, Rank, u32)>) -> Waits {
        found.sort_unstable();
        let start = |batch| found.partition_point(|(of, ..)| (*of as usize) < batch);
        let starts = (0..=batches).map(start).collect();
        Waits { starts, list: found.into_iter().map(|(_, other, count)| (other, count)).collect() }
    }

    #[inline]
    pub(super) fn before(&self, batch: usize) -> &[(Rank, u32)] {
        match (self.starts.get(batch), self.starts.get(batch + 1)) {
            (Some(start), Some(end)) => &self.list[*start..*end],
            _ => &[],
        }
    }
}

/// In which batch a row was written last in the pass, counted from 1, and by whom; 0 if it was not.
#[derive(Clone, Copy, Default)]
struct Written(u64);

impl Written {
    fn new(batch: u32, writer: usize) -> Written {
        Written(u64::from(batch) << 16 | writer as u64)
    }

    fn batch(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// There are fewer than 2^16.
    fn writer(self) -> usize {
        self.0 as u16 as usize
    }
}

struct Reader {
    rank: usize,
    batch: u32,
    /// As in [`Sweep::first_readers`].
    next: u32,
}

/// How many batches of each other worker must be done before a batch of this one.
struct Needed {
    counts: Vec<u32>,
    /// Those of which it may need some.
    named: Vec<usize>,
    /// Batches of each other worker that it has already waited for.
    known: Vec<u32>,
}

impl Needed {
    fn new(workers: usize) -> Needed {
        Needed { counts: vec![0; workers], named: Vec::new(), known: vec![0; workers] }
    }

    /// Also of the worker itself, which costs less than to tell.
    #[inline(always)]
    fn add(&mut self, other: usize, batch: u32) {
        let count = &mut self.counts[other];
        if *count == 0 {
            self.named.push(other);
        }
        *count = batch.max(*count);
    }

    /// Passes on the needed batches that it has not waited for before.
    fn take(&mut self, worker: usize, mut wait: impl FnMut(Rank, u32)) {
        for other in self.named.drain(..) {
            let count = std::mem::take(&mut self.counts[other]);
            if other != worker && count > self.known[other] {
                self.known[other] = count;
                wait(other as Rank, count);
            }
        }
    }
}

/// A row that a worker touches before anybody has written it in the pass.
#[derive(Clone, Copy)]
struct Untouched {
    batch: u32,
    array: u32,
    row: u32,
    is_written: bool,
}

struct Sweep<'a> {
    touched: &'a [Vec<Touched>],
    /// By array and row.
    written: Vec<Vec<Written>>,
    /// By array and row, the place in `readers` of the first who has read it since, and 1; 0 if nobody has. Empty for an
    /// array that nobody reads only.
    first_readers: Vec<Vec<u32>>,
    readers: Vec<Reader>,
    /// Places of `readers` that are not used, in a list.
    unused: u32,
    /// By worker.
    needed: Vec<Needed>,
    untouched: Vec<Vec<Untouched>>,
}

/// For each array a value for each of its rows: there is memory for all, before any is written.
pub(super) fn zeros<T: Clone + Default>(arrays: &[usize]) -> Result<Vec<Vec<T>>, RowError> {
    let reserved = arrays.iter().enumerate().map(|(array, &rows)| {
        let mut list = Vec::new();
        list.try_reserve_exact(rows).map_err(|_| RowError::NoMemory { array, rows })?;
        Ok(list)
    });
    let mut lists = reserved.collect::<Result<Vec<_>, _>>()?;
    lists.iter_mut().zip(arrays).for_each(|(list, rows)| list.resize(*rows, T::default()));
    Ok(lists)
}

impl<'a> Sweep<'a> {
    fn new(arrays: &[usize], touched: &'a [Vec<Touched>]) -> Result<Sweep<'a>, RowError> {
        let workers = touched.len();
        let is_read = |array: usize| touched.iter().any(|lists| !lists[array].reads.is_empty());
        let readable = |(array, rows): (usize, &usize)| if is_read(array) { *rows } else { 0 };
        let readable: Vec<usize> = arrays.iter().enumerate().map(readable).collect();
        Ok(Sweep {
            touched,
            written: zeros(arrays)?,
            first_readers: zeros(&readable)?,
            readers: Vec::new(),
            unused: 0,
            needed: touched.iter().map(|_| Needed::new(workers)).collect(),
            untouched: vec![Vec::new(); workers],
        })
    }

    /// Looks at what all workers do in a batch: first at what they write, then at what they read.
    fn look_at(&mut self, batch: usize) -> Result<(), RowError> {
        let arrays = self.written.len();
        for rank in 0..self.touched.len() {
            (0..arrays).try_for_each(|array| self.write(batch, rank, array))?;
        }
        for rank in 0..self.touched.len() {
            (0..arrays).try_for_each(|array| self.read(batch, rank, array))?;
        }
        Ok(())
    }

    fn write(&mut self, batch: usize, rank: usize, array: usize) -> Result<(), RowError> {
        let now = batch as u32 + 1;
        let (written, first_readers) = (&mut self.written[array][..], &mut self.first_readers[array][..]);
        let needed = &mut self.needed[rank];
        for &number in self.touched[rank][array].writes.of(batch) {
            let row = &mut written[number as usize];
            let last = std::mem::replace(row, Written::new(now, rank));
            if last.batch() == now && last.writer() != rank {
                let workers = [last.writer() as Rank, rank as Rank];
                return Err(RowError::Race { array, row: number as usize, batch, workers, both_write: true });
            }
            if last.batch() == 0 {
                let (batch, array) = (batch as u32, array as u32);
                self.untouched[rank].push(Untouched { batch, array, row: number, is_written: true });
            } else {
                needed.add(last.writer(), last.batch());
            }
            if let Some(first) = first_readers.get_mut(number as usize) {
                let mut at = std::mem::take(first);
                while at > 0 {
                    let reader = &mut self.readers[at as usize - 1];
                    needed.add(reader.rank, reader.batch);
                    let next = std::mem::replace(&mut reader.next, self.unused);
                    self.unused = at;
                    at = next;
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, batch: usize, rank: usize, array: usize) -> Result<(), RowError> {
        let now = batch as u32 + 1;
        'rows: for &number in self.touched[rank][array].reads.of(batch) {
            let last = self.written[array][number as usize];
            if last.batch() == now {
                if last.writer() == rank {
                    continue;
                }
                let workers = [last.writer() as Rank, rank as Rank];
                return Err(RowError::Race {
                    array,
                    row: number as usize,
                    batch,
                    workers,
                    both_write: false,
                });
            }
            let first = &mut self.first_readers[array][number as usize];
            let mut at = *first;
            while at > 0 {
                let reader = &mut self.readers[at as usize - 1];
                if reader.rank == rank {
                    reader.batch = now;
                    continue 'rows;
                }
                at = reader.next;
            }
            let reader = Reader { rank, batch: now, next: *first };
            *first = if self.unused == 0 {
                self.readers.push(reader);
                u32::try_from(self.readers.len()).map_err(|_| RowError::TooMany)?
            } else {
                let place = self.unused;
                self.unused = std::mem::replace(&mut self.readers[place as usize - 1], reader).next;
                place
            };
            if last.batch() == 0 {
                let (batch, array) = (batch as u32, array as u32);
                self.untouched[rank].push(Untouched { batch, array, row: number, is_written: false });
            } else {
                self.needed[rank].add(last.writer(), last.batch());
            }
        }
        Ok(())
    }

    /// Adds the batches of the pass before that a worker waits for, but those of workers that it waits for in the same pass by then.
    fn add_waits_for_pass_before(&self, worker: usize, found: &mut Vec<(u32, Rank, u32)>) {
        let mut in_same_pass = vec![u32::MAX; self.touched.len()];
        for (batch, other, _) in found.iter().rev() {
            in_same_pass[*other as usize] = *batch;
        }
        let mut needed = Needed::new(self.touched.len());
        for rows in self.untouched[worker].chunk_by(|one, other| one.batch == other.batch) {
            for row in rows {
                let (array, number) = (row.array as usize, row.row as usize);
                let last = self.written[array][number];
                if last.batch() > 0 {
                    needed.add(last.writer(), last.batch());
                }
                let first = self.first_readers[array].get(number).filter(|_| row.is_written);
                let mut at = first.copied().unwrap_or(0);
                while at > 0 {
                    let reader = &self.readers[at as usize - 1];
                    needed.add(reader.rank, reader.batch);
                    at = reader.next;
                }
            }
            let batch = rows[0].batch;
            needed.take(worker, |other, count| {
                if batch < in_same_pass[other as usize] {
                    found.push((batch, other, count));
                }
            });
        }
    }
}
