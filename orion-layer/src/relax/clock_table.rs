//! How far each worker is within a pass: words of shared memory, one writer each, read by all.
use super::MOST_SLOTS;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fabric::watched::{Reading, Watched, Writing};
use crate::fabric::{is_gone, name_of_other};
use crate::site::Site;
use hectare_dsm::{Area, Cells, ClockWords, Rank, Worker};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How many clocks the worker has published, whether it publishes more in this pass, and how many cells it had run at the
/// last of them.
const CLOCKS: ClockWords = ClockWords::new(0, MOST_SLOTS);
/// Whether the worker has failed.
const FAILED: usize = CLOCKS.end();
/// How many cells the worker has run.
const PROGRESS: usize = FAILED + 1;
/// In which loop over arrays that lie open the worker is, as a number for all that it says of it.
const LOOP: usize = PROGRESS + 1;
/// And after how many collective calls.
const CALLS: usize = LOOP + 1;
/// How many clocks of each worker this one has applied to its share of the buffered arrays; behind these, how many cells
/// of each are in what it reads.
const APPLIED: usize = CALLS + 1;

/// Words in a line of memory.
const LINE: usize = 8;

/// Looks at whether others are alive are this far apart.
const PULSE: Duration = Duration::from_millis(5);

/// The words of all workers.
#[derive(Debug)]
pub(crate) struct ClockTable {
    words: RefCell<Watched<u64>>,
    /// That of worker 0, with the bell.
    bell: Area<u64>,
    size: usize,
    me: Rank,
}

/// Where the bell is among the words of worker 0: whoever waits sleeps on it, whoever changes a word that others may
/// wait for rings it afterwards. In a line of its own.
fn bell(size: usize) -> usize {
    APPLIED + 2 * size + LINE
}

impl ClockTable {
    /// Makes the words of this worker. All workers call this, and agree that each could before they look for those of the others.
    fn make(worker: &mut Worker, size: usize) -> Result<Watched<u64>> {
        Watched::make(worker, "orion/clocks", "words", bell(size) + 1)
    }

    /// Finds the words of the others.
    fn find(mut words: Watched<u64>, worker: &mut Worker, size: usize) -> Result<ClockTable> {
        words.find(worker, size)?;
        Ok(ClockTable { bell: words.area(0).clone(), words: RefCell::new(words), size, me: worker.rank() })
    }

    /// Back to clock 0. To be followed by a barrier.
    pub(crate) fn reset(&self, worker: &Worker) -> Result<()> {
        // All but the bell.
        self.change(worker, |words| (0..APPLIED + 2 * self.size).for_each(|word| words.publish(word, 0)))
    }

    /// Changes the words of this worker.
    fn change(&self, worker: &Worker, change: impl FnOnce(&Cells<'_, u64>)) -> Result<()> {
        let mut all = self.words.borrow_mut();
        let mut mine = match all.write(worker)? {
            Writing::Open(cells) => {
                change(&cells);
                return Ok(());
            }
            mine => mine,
        };
        let mut words = vec![0; bell(self.size) + 1];
        mine.load(0, &mut words)?;
        change(&Cells::from_mut(&mut words));
        mine.store(0, &words)
    }

    /// Looks at the words of a worker.
    fn look<R>(&self, worker: &Worker, rank: usize, look: impl FnOnce(&Cells<'_, u64>) -> R) -> Result<R> {
        let all = self.words.borrow();
        // The words of a worker are open for as long as it lives.
        let words = all.of(worker, rank).map_err(|error| match rank == self.me as usize {
            true => error,
            false => lost(worker, rank),
        })?;
        Ok(match words {
            Reading::Open(cells) => look(&cells),
            Reading::Published(words) => look(&Cells::from_mut(&mut words.to_vec())),
        })
    }

    fn observe(&self, worker: &Worker, rank: usize, word: usize) -> Result<u64> {
        self.look(worker, rank, |words| words.observe(word))
    }

    fn publish(&self, worker: &Worker, word: usize, value: u64) -> Result<()> {
        self.change(worker, |words| words.publish(word, value))
    }

    /// How many clocks a worker has published, and whether these are all.
    pub(crate) fn clock(&self, worker: &Worker, rank: usize) -> Result<(u64, bool)> {
        self.look(worker, rank, |words| CLOCKS.get(words))
    }

    /// This worker has published `clock` clocks, having run `cells` cells: whoever sees the clock sees that number.
    pub(crate) fn set_clock(&self, worker: &Worker, clock: u64, done: bool, cells: u64) -> Result<()> {
        self.change(worker, |words| CLOCKS.set(words, clock, done, cells))?;
        self.notify(worker)
    }

    /// How many clocks of `of` worker `server` has applied.
    pub(crate) fn applied(&self, worker: &Worker, server: usize, of: usize) -> Result<u64> {
        self.observe(worker, server, APPLIED + of)
    }

    /// This worker has applied `clocks` clocks of worker `of`.
    pub(crate) fn set_applied(&self, worker: &Worker, of: usize, clocks: u64) -> Result<()> {
        self.publish(worker, APPLIED + of, clocks)?;
        // Those who wait for room are told before this worker's next clock.
        self.words.borrow().request_sync();
        self.notify(worker)
    }

    /// How many cells a worker has run.
    pub(crate) fn progress(&self, worker: &Worker, rank: usize) -> Result<u64> {
        self.observe(worker, rank, PROGRESS)
    }

    /// This worker has run `cells` cells.
    pub(crate) fn set_progress(&self, worker: &Worker, cells: u64) -> Result<()> {
        self.publish(worker, PROGRESS, cells)
    }

    /// This worker has begun a loop after `calls` collective calls.
    pub(crate) fn set_loop(&self, worker: &Worker, calls: u64, fingerprint: u64) -> Result<()> {
        // Who sees the calls sees the loop.
        self.change(worker, |words| {
            words.publish(LOOP, fingerprint);
            words.publish(CALLS, calls);
        })
    }

    /// Whether a worker has begun another loop than this after `calls` collective calls.
    pub(crate) fn is_in_another_loop(
        &self,
        worker: &Worker,
        rank: usize,
        calls: u64,
        fingerprint: u64,
    ) -> Result<bool> {
        let is = |words: &Cells<'_, u64>| words.observe(CALLS) == calls && words.observe(LOOP) != fingerprint;
        self.look(worker, rank, is)
    }

    /// How many cells a worker had run when it published `clock`, one of its last clocks. Without buffered arrays nobody
    /// keeps it from publishing more meanwhile: then it may be a later number, of changes that are read after this.
    pub(crate) fn cells_at(&self, worker: &Worker, rank: usize, clock: u64) -> Result<u64> {
        self.look(worker, rank, |words| CLOCKS.told(words, clock))
    }

    /// How many cells of `of` are in what worker `reader` reads.
    pub(crate) fn merged(&self, worker: &Worker, reader: usize, of: usize) -> Result<u64> {
        self.observe(worker, reader, APPLIED + self.size + of)
    }

    /// This worker reads the effect of `cells` cells of worker `of`.
    pub(crate) fn set_merged(&self, worker: &Worker, of: usize, cells: u64) -> Result<()> {
        self.publish(worker, APPLIED + self.size + of, cells)
    }

    /// Tells those who wait for this worker that it has failed.
    pub(crate) fn set_failed(&self, worker: &Worker) {
        // A worker whose words cannot be written is not among the living; others notice that.
        let _ = self.publish(worker, FAILED, 1).and_then(|()| self.notify(worker));
        self.words.borrow().request_sync();
    }

    /// Whether others see the words when this worker publishes them, and not at once.
    pub(crate) fn is_published(&self) -> bool {
        self.words.borrow().is_published()
    }

    /// Lets those who sleep in [`ClockTable::wait`] look again.
    pub(crate) fn notify(&self, worker: &Worker) -> Result<()> {
        if self.size > 1 && !self.is_published() {
            self.look(worker, 0, |words| words.notify(bell(self.size)))?;
        }
        Ok(())
    }

    /// Waits until `is_done` says so; it may do some work meanwhile, and is called again and again. `what` says what is
    /// waited for, and `behind` whether a worker is why.
    pub(crate) fn wait(
        &self,
        worker: &mut Worker,
        timeout: Duration,
        what: impl Fn() -> String,
        behind: impl Fn(&Worker, usize) -> Result<bool>,
        mut is_done: impl FnMut(&Worker) -> Result<bool>,
    ) -> Result<()> {
        let since = Instant::now();
        let mut looked = since;
        let look = |worker: &mut Worker| {
            if is_done(worker)? {
                return Ok(Some(()));
            }
            let now = Instant::now();
            if now - looked < PULSE {
                return Ok(None);
            }
            looked = now;
            self.check_peers(worker)?;
            if now - since <= timeout {
                return Ok(None);
            }
            let mut late = Vec::new();
            for rank in 0..self.size {
                if behind(worker, rank)? {
                    late.push(format!("worker {rank} is at clock {}", self.clock(worker, rank)?.0));
                }
            }
            let (waited, missing) = (now - since, late.join(", "));
            Err(hectare_dsm::Error::TimedOut { what: what(), waited, missing }.into())
        };
        if self.is_published() {
            return worker.wait_in_rounds(look);
        }
        match worker.wait_for_event(&self.bell, bell(self.size), look) {
            // The bell is open for as long as worker 0 lives.
            Err(Error::Core(hectare_dsm::Error::NotOpen { .. })) => Err(lost(worker, 0)),
            waited => waited,
        }
    }

    /// Whether all others live and none has failed.
    pub(crate) fn check_peers(&self, worker: &Worker) -> Result<()> {
        for rank in 0..self.size {
            if self.observe(worker, rank, FAILED)? != 0 {
                return Err(Error::PeerFailed {
                    site: "a clock".into(),
                    rank: rank as Rank,
                    message: "it ended its part of the loop with an error".into(),
                });
            }
        }
        let workers = worker.job().workers().unwrap_or_default();
        let dead = workers.iter().find(|other| (other.rank as usize) < self.size && is_gone(other));
        dead.map_or(Ok(()), |dead| Err(lost(worker, dead.rank as usize)))
    }
}

fn lost(worker: &Worker, rank: usize) -> Error {
    let host = name_of_other(worker, rank);
    Error::WorkerLost { site: "a clock".into(), rank: rank as Rank, host }
}

impl Context<'_> {
    /// The words by which workers tell each other how far they are in a relaxed loop. All workers call this together.
    pub(crate) fn clock_table(&mut self, site: Site) -> Result<Rc<ClockTable>> {
        if let Some(clock_table) = self.extensions.get::<Rc<ClockTable>>() {
            return Ok(clock_table.clone());
        }
        let size = self.size();
        let (made, words) = match ClockTable::make(self.fabric.worker, size) {
            Ok(words) => (Ok(()), Some(words)),
            Err(error) => (Err(error), None),
        };
        let agreed = self.agree_on(site, made);
        let words = match (agreed, words) {
            (Ok(()), Some(words)) => words,
            (Ok(()), None) => unreachable!("who has none has failed"),
            (Err(error), words) => {
                // For when they are made again. The error that came first counts.
                let _ = words.map(|words| words.delete(self.fabric.worker));
                return Err(error);
            }
        };
        let clock_table = Rc::new(ClockTable::find(words, self.fabric.worker, size)?);
        self.extensions.put(clock_table.clone());
        Ok(clock_table)
    }

    /// Tells those who may wait for this worker that it has failed. If there are no clocks yet, none does so by them.
    pub(crate) fn tell_failed(&mut self) {
        if let Some(clock_table) = self.extensions.get::<Rc<ClockTable>>() {
            clock_table.set_failed(self.fabric.worker);
        }
    }

    /// How long a worker waits for others at a clock of a relaxed loop, before it takes them to stand still and the
    /// loop ends with an error that names them; a minute unless this is called. To be called by every worker with the
    /// same value.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }
}
