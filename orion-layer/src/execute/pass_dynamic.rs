//! One pass whose tiles are taken as they come free, on one worker.
use super::body::guarded;
use super::called::{Called, Types, Values};
use super::free::{Claims, FreeTile, FreeTiles, Progress};
use super::plan::LoopPlan;
use super::timing::timed;
use super::work::Cells;
use crate::accumulate::Tree;
use crate::context::Context;
use crate::contract::{Arrays, IterationSpace, LoopArray, PassTrace};
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
    pub(super) fn pass_dynamic<L: Types>(
        &mut self,
        called: &Called<'_, L>,
        plan: &LoopPlan,
        free: &FreeTiles,
        arrays: &mut L::Arrays,
    ) -> Result<Values<L>> {
        let Called { head, space, accumulators, .. } = *called;
        let pass = free.passes.get() + 1;
        free.passes.set(pass);
        let mut timing = plan.timing.borrow_mut();
        let placed = timed(&mut timing.placing, || {
            let placed = space.place(self, head.site, &plan.choice.cuts, &plan.owners, plan.is_sorted())?;
            space.share(self, head.site, &placed)?;
            Ok::<_, crate::Error>(placed)
        })?;
        drop(timing);
        let clock_table = self.clock_table()?;
        let opened = match free.claims.get() {
            Some(_) => Ok(()),
            None => Claims::open(self.fabric.worker, plan.number, free.tiles.len())
                .map(|claims| drop(free.claims.set(claims))),
        };
        let opened = opened.and_then(|()| clock_table.reset(self.fabric.worker));
        self.agree_on(head.site, opened)?;
        let Some(claims) = free.claims.get() else { unreachable!("they were opened") };
        let laid_out = self.begin(head, plan, arrays)?.handed;
        let since = Instant::now();
        let mut tree = Tree::new(accumulators, plan.cells);
        let mut spent = LoopReport::default();
        let turn = Turn { free, claims, clock_table: &clock_table, pass };
        let worked = laid_out.and_then(|()| {
            guarded(&plan.nest, self.rank(), || {
                let cells = Cells::<L>::new(&placed, plan, called.body);
                self.work_dynamic(&cells, &turn, arrays, &mut tree, &mut spent)
            })
        });
        let took = since.elapsed();
        if let Err(error) = worked.and_then(|()| self.end_dynamic(&turn, arrays)) {
            clock_table.set_failed(self.fabric.worker);
            let cause = error.to_string();
            arrays.each().iter_mut().for_each(|array| array.poison(&cause));
            return Err(self.fail(head.site, error));
        }
        let waited = Instant::now();
        let (values, _) =
            self.combine(head.site, accumulators, plan, plan.cells, tree, [took, spent.compute])?;
        spent.wait += waited.elapsed();
        plan.note(head.relax, &spent, None);
        Ok(values)
    }

    /// Leaves what this worker owns at rest to whoever needs it.
    pub(super) fn lay_out(&mut self, array: &mut dyn LoopArray) -> Result<()> {
        let me = self.rank();
        let owners = array.layout().owners.clone();
        let mut own = (0..owners.len()).filter(|part| owners[*part] == me);
        own.try_for_each(|part| array.release(self.fabric.worker, part))
    }

    /// Runs tiles until all are run.
    fn work_dynamic<L: Types>(
        &mut self,
        cells: &Cells<'_, L>,
        turn: &Turn<'_>,
        arrays: &mut L::Arrays,
        tree: &mut Tree<'_, L::Sums>,
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
                if !acquire(self.fabric.worker, arrays, &free.tiles[number])? {
                    continue;
                }
                if claims.begin(self.fabric.worker, pass, number, outlook.begun)? {
                    taken = Some(number);
                    break;
                }
                release(self.fabric.worker, arrays, &free.tiles[number])?;
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
                let grid = &cells.plan.choice.grid;
                let wanted: Vec<usize> =
                    tile.cells.chunks_exact(grid.len()).map(|cell| cell_number(grid, cell)).collect();
                L::Space::bring(cells.placed, self, tile.home, &wanted)?;
            }
            spent.wait += since.elapsed();
            let since = Instant::now();
            let mut views = arrays.views(self.fabric.worker, &tile.parts, PassTrace::new(&cells.current))?;
            for cell in tile.cells.chunks_exact(cells.plan.choice.grid.len()) {
                cells.run(cell, &mut views, tree);
            }
            drop(views);
            spent.compute += since.elapsed();
            release(self.fabric.worker, arrays, tile)?;
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
    fn end_dynamic<A: Arrays>(&mut self, turn: &Turn<'_>, arrays: &mut A) -> Result<()> {
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
fn acquire<A: Arrays>(worker: &Worker, arrays: &mut A, tile: &FreeTile) -> Result<bool> {
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
fn release<A: Arrays>(worker: &Worker, arrays: &mut A, tile: &FreeTile) -> Result<()> {
    let mut each = arrays.each();
    let mut parts = tile
        .parts
        .iter()
        .enumerate()
        .flat_map(|(number, parts)| parts.clone().map(move |part| (number, part)));
    parts.try_for_each(|(number, part)| each[number].release(worker, part))
}
