//! One pass whose tiles are taken as they come free, on one worker.
use super::any_loop::AnyLoop;
use super::body::guarded;
use super::cells::Cells;
use super::free::{Claims, FreeTile, FreeTiles, Progress};
use super::plan::LoopPlan;
use super::timing::timed;
use crate::context::Context;
use crate::contract::{AnyArrays, LoopArray, PassTrace};
use crate::error::Result;
use crate::relax::{ClockTable, LoopReport};
use hectare_dependence::schedule::cell_number;
use hectare_dsm::Worker;
use std::time::{Duration, Instant};

/// A worker that finds nothing free looks again after this time, should nobody end a tile meanwhile: another may have
/// acquired a part, and released it because it lacked a second. Then after twice the time, and so on.
const PAUSE: Duration = Duration::from_micros(50);
/// The longest such time: long enough that it is seen meanwhile whether others live and have not failed.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The plan and the state of a pass.
struct Turn<'t> {
    free: &'t FreeTiles,
    claims: &'t Claims,
    clock_table: &'t ClockTable,
    /// The number of the pass.
    pass: u64,
}

impl Context<'_> {
    /// [`Context::pass`], of a loop whose tiles are taken as they come free.
    pub(super) fn pass_dynamic(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
        free: &FreeTiles,
    ) -> Result<()> {
        let head = running.head();
        let pass = free.passes.get() + 1;
        free.passes.set(pass);
        let mut timing = plan.timing.borrow_mut();
        timed(&mut timing.placing, || {
            running.place(self, &plan.choice.cuts, &plan.owners, plan.is_sorted())?;
            running.share(self)
        })?;
        drop(timing);
        let clock_table = self.clock_table(head.site)?;
        let made = match free.claims.get() {
            Some(_) => Ok(()),
            None => Claims::make(self.fabric.worker, plan.number, free.tiles.len())
                .map(|claims| drop(free.claims.set(claims))),
        };
        let made = made.and_then(|()| clock_table.reset(self.fabric.worker));
        self.agree_on(head.site, made)?;
        let Some(claims) = free.claims.get() else { unreachable!("they were made") };
        let laid_out = self.begin(head, plan, running.arrays())?.handed;
        let laid_out = laid_out.and_then(|()| claims.find(self.fabric.worker));
        let since = Instant::now();
        running.begin_sums(plan.cells);
        let mut spent = LoopReport::default();
        let turn = Turn { free, claims, clock_table: &clock_table, pass };
        let worked = laid_out.and_then(|()| {
            guarded(&plan.nest, self.rank(), || {
                self.work_dynamic(&Cells::new(&plan.choice, None), &turn, running, &mut spent)
            })
        });
        let took = since.elapsed();
        if let Err(error) = worked.and_then(|()| self.end_dynamic(&turn, running.arrays())) {
            clock_table.set_failed(self.fabric.worker);
            let cause = error.to_string();
            running.arrays().each().iter_mut().for_each(|array| array.poison(&cause));
            return Err(self.fail(head.site, error));
        }
        let waited = Instant::now();
        self.combine(running, plan, [took, spent.compute])?;
        spent.wait += waited.elapsed();
        plan.note(head.relax, &spent, None);
        Ok(())
    }

    /// Leaves what this worker owns at rest to whoever needs it.
    pub(super) fn lay_out(&mut self, array: &mut dyn LoopArray) -> Result<()> {
        let me = self.rank();
        let owners = array.layout().owners.clone();
        let mut own = (0..owners.len()).filter(|part| owners[*part] == me);
        own.try_for_each(|part| array.release(self.fabric.worker, part))
    }

    /// Runs tiles until all are run.
    fn work_dynamic(
        &mut self,
        cells: &Cells<'_>,
        turn: &Turn<'_>,
        running: &mut dyn AnyLoop<'_>,
        spent: &mut LoopReport,
    ) -> Result<()> {
        let Turn { free, claims, clock_table, pass } = *turn;
        let (me, workers) = (self.rank() as usize, self.size());
        let mut pause = PAUSE;
        loop {
            let since = Instant::now();
            let outlook = free.outlook(me, workers, claims.progress(self.fabric.worker, pass)?);
            if outlook.done == free.tiles.len() {
                return Ok(());
            }
            let mut taken = None;
            for number in outlook.candidates {
                if !acquire(self.fabric.worker, running.arrays(), &free.tiles[number])? {
                    continue;
                }
                if claims.begin(self.fabric.worker, pass, number, outlook.begun)? {
                    taken = Some(number);
                    break;
                }
                release(self.fabric.worker, running.arrays(), &free.tiles[number])?;
            }
            let Some(number) = taken else {
                self.wait_for_tiles(turn, outlook.done, pause)?;
                pause = (2 * pause).min(LONGEST_PAUSE);
                spent.wait += since.elapsed();
                continue;
            };
            pause = PAUSE;
            let tile = &free.tiles[number];
            if tile.home != me {
                let grid = &cells.choice.grid;
                let wanted: Vec<usize> =
                    tile.cells.chunks_exact(grid.len()).map(|cell| cell_number(grid, cell)).collect();
                running.bring(self, tile.home, &wanted)?;
            }
            spent.wait += since.elapsed();
            let since = Instant::now();
            let trace = PassTrace::new(&cells.current);
            running.run(self.fabric.worker, cells, &tile.parts, trace, &mut |run| {
                tile.cells.chunks_exact(cells.choice.grid.len()).for_each(run);
            })?;
            spent.compute += since.elapsed();
            release(self.fabric.worker, running.arrays(), tile)?;
            claims.end(self.fabric.worker, number)?;
            clock_table.notify(self.fabric.worker)?;
            self.fabric.worker.service()?;
        }
    }

    /// Waits until a tile ends, of which `done` had, or for `pause` while some are left.
    fn wait_for_tiles(&mut self, turn: &Turn<'_>, done: usize, pause: Duration) -> Result<()> {
        let since = Instant::now();
        let is_done = |worker: &Worker| {
            let mut progress = turn.claims.progress(worker, turn.pass)?;
            let (mut now, mut left) = (0, false);
            progress.by_ref().for_each(|one| match one {
                Progress::Left => left = true,
                Progress::Begun(_) => {}
                Progress::Done(_) => now += 1,
            });
            Ok(now != done || left && since.elapsed() > pause)
        };
        let what = || "a tile of a loop".to_owned();
        turn.clock_table.wait(self.fabric.worker, Duration::MAX, what, |_, _| Ok(false), is_done)
    }

    /// Takes back what this worker owns at rest, and lends it. All tiles are run, but another worker that has not seen that
    /// may acquire a part and release it.
    fn end_dynamic(&mut self, turn: &Turn<'_>, arrays: &mut dyn AnyArrays) -> Result<()> {
        let me = self.rank();
        let what = || "a part of an array".to_owned();
        for array in arrays.each().iter_mut().filter(|array| array.is_written()) {
            let owners = array.layout().owners.clone();
            for part in (0..owners.len()).filter(|part| owners[*part] == me) {
                turn.clock_table.wait(
                    self.fabric.worker,
                    Duration::MAX,
                    what,
                    |_, _| Ok(false),
                    |worker| array.acquire(worker, part),
                )?;
            }
            array.lend(self.fabric.worker)?;
        }
        Ok(())
    }
}

/// Acquires all parts that a tile needs, or none.
fn acquire(worker: &Worker, arrays: &mut dyn AnyArrays, tile: &FreeTile) -> Result<bool> {
    let mut each = arrays.each();
    let mut held: Vec<(usize, usize)> = Vec::new();
    for (number, parts) in tile.parts.iter().enumerate() {
        for part in parts.clone() {
            if !each[number].acquire(worker, part)? {
                held.iter().try_for_each(|(number, part)| each[*number].release(worker, *part))?;
                return Ok(false);
            }
            held.push((number, part));
        }
    }
    Ok(true)
}

/// Lays all of them down.
fn release(worker: &Worker, arrays: &mut dyn AnyArrays, tile: &FreeTile) -> Result<()> {
    let mut each = arrays.each();
    let mut parts = tile
        .parts
        .iter()
        .enumerate()
        .flat_map(|(number, parts)| parts.clone().map(move |part| (number, part)));
    parts.try_for_each(|(number, part)| each[number].release(worker, part))
}
