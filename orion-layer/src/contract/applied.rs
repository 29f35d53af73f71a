//! How far contributions are applied, as arrays are told at a clock.

/// The clocks up to which each worker has applied the contributions of all.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    clocks: &'a [u64],
    workers: usize,
}

impl<'a> Applied<'a> {
    /// `clocks[server * workers + rank]` of worker `rank` has worker `server` applied.
    pub(crate) fn new(clocks: &'a [u64], workers: usize) -> Applied<'a> {
        Applied { clocks, workers }
    }

    /// How many clocks of worker `rank` has worker `server` applied.
    pub(crate) fn by(&self, server: usize, rank: usize) -> u64 {
        self.clocks[server * self.workers + rank]
    }

    /// How many clocks of worker `rank` have all applied.
    pub(crate) fn by_all(&self, rank: usize) -> u64 {
        (0..self.workers).map(|server| self.by(server, rank)).min().unwrap_or(0)
    }
}
