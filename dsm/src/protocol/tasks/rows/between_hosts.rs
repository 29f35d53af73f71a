//! Which rows of a plan go from host to host, found in one sweep over its batches.
use super::{RowError, RowPlan};
use crate::error::Rank;
use crate::protocol::tasks::crossing::{Crossing, Places, Sent, When};
use std::sync::Arc;

/// Who wrote a row last in the pass, if anybody: the worker, and its batch.
type Writer = Option<(Rank, u32)>;

struct Sweep<'a> {
    plan: &'a RowPlan,
    places: &'a Places,
    /// By array and row.
    writers: Vec<Vec<Writer>>,
    /// By array and row, one bit for each host: those that have the row as it is, as far as tasks of the pass have seen to that.
    has: Vec<Vec<u64>>,
    /// Words of such bits for each row.
    words: usize,
    sent: Vec<Sent>,
    /// Rows that a host touches before they are written in the pass: the host, the array, the row.
    before: Vec<(usize, u32, u32)>,
}

impl Sweep<'_> {
    fn bit(&self, host: usize, row: u32) -> (usize, u64) {
        (row as usize * self.words + host / 64, 1 << (host % 64))
    }

    fn touch(&mut self, array: usize, row: u32, host: usize) {
        let (word, bit) = self.bit(host, row);
        if self.has[array][word] & bit != 0 {
            return;
        }
        self.has[array][word] |= bit;
        match self.writers[array][row as usize] {
            None => self.before.push((host, array as u32, row)),
            Some(writer) => self.send(writer, host, When::Always, array as u32, row),
        }
    }

    fn send(&mut self, (from, task): (Rank, u32), to: usize, when: When, array: u32, unit: u32) {
        self.sent.push(Sent { from, to: to as u32, task, when, array, unit, count: 1 });
    }

    fn write(&mut self, array: usize, row: u32, (rank, batch): (Rank, u32), host: usize) {
        let words = self.words;
        self.has[array][row as usize * words..][..words].fill(0);
        let (word, bit) = self.bit(host, row);
        self.has[array][word] = bit;
        self.writers[array][row as usize] = Some((rank, batch));
    }

    fn look_at(&mut self, batch: usize, rank: Rank) {
        let (plan, host) = (self.plan, self.places.host_of[rank as usize]);
        for array in 0..plan.arrays().len() {
            for row in plan.reads(rank, array, batch) {
                self.touch(array, *row, host);
            }
            for row in plan.writes(rank, array, batch) {
                self.touch(array, *row, host);
                self.write(array, *row, (rank, batch as u32), host);
            }
        }
    }

    fn has_it(&self, host: usize, array: u32, row: u32) -> bool {
        let (word, bit) = self.bit(host, row);
        self.has[array as usize][word] & bit != 0
    }

    /// Sends the rows that are needed before the first batches, by the next pass, and by the arrays' homes in the end.
    fn send_beside_tasks(&mut self) {
        for (host, array, row) in std::mem::take(&mut self.before) {
            let home = self.places.homes[array as usize];
            if let Some(first) = self.places.first_of(home).filter(|_| home != host) {
                self.send((first, 0), host, When::Before, array, row);
            }
            if let Some(writer) = self.writers[array as usize][row as usize]
                && !self.has_it(host, array, row)
            {
                self.send(writer, host, When::BeforeLast, array, row);
            }
        }
        for (array, home) in (0..).zip(self.places.homes.clone()) {
            for row in 0..self.plan.arrays()[array as usize] as u32 {
                if let Some(writer) = self.writers[array as usize][row as usize]
                    && !self.has_it(home, array, row)
                {
                    self.send(writer, home, When::AtEnd, array, row);
                }
            }
        }
    }
}

impl RowPlan {
    /// The traffic from host to host in a run of the plan, made once for the same places.
    ///
    /// # Errors
    /// [`RowError::NoMemory`].
    pub(crate) fn crossing_of(&self, places: &Places) -> Result<Arc<Crossing>, RowError> {
        self.crossing.of(places, || self.crossing(places))
    }

    /// The traffic from host to host in a run of the plan. Each home has a worker of the plan.
    ///
    /// # Errors
    /// [`RowError::NoMemory`].
    pub(crate) fn crossing(&self, places: &Places) -> Result<Crossing, RowError> {
        let words = places.hosts.div_ceil(64);
        let per_row: Vec<usize> = self.arrays.iter().map(|rows| rows.saturating_mul(words)).collect();
        let mut sweep = Sweep {
            plan: self,
            places,
            writers: super::waits::zeros(&self.arrays)?,
            has: super::waits::zeros(&per_row)?,
            words,
            sent: Vec::new(),
            before: Vec::new(),
        };
        for batch in 0..self.batches {
            for rank in 0..self.workers() as Rank {
                sweep.look_at(batch, rank);
            }
        }
        sweep.send_beside_tasks();
        Ok(Crossing::new(self.workers(), places.hosts, sweep.sent, self.told(places)))
    }

    /// Batches for which a worker of another host waits: whose, the host, and the batch.
    fn told(&self, places: &Places) -> Vec<(Rank, usize, usize)> {
        let mut told = Vec::new();
        for rank in 0..self.workers() as Rank {
            let host = places.host_of[rank as usize];
            // In the second pass: of what it waits for there, the first waits for a part.
            for (other, count) in (0..self.batches).flat_map(|batch| self.waits(rank, 1, batch)) {
                if places.host_of[other as usize] != host {
                    told.push((other, host, (count as usize - 1) % self.batches));
                }
            }
        }
        told
    }
}
