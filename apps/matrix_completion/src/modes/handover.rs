//! Items go round: each worker keeps its users, and blocks of items go from worker to worker by changing owner.
//!
//! The two-dimensional rotation of distributed SGD (Gemulla et al., 2011; Wei et al., 2019): in an epoch every
//! block of items comes to every worker once. Giving an area is one store, whatever its size, and nothing is
//! copied. There are more blocks than workers, so that one is on its way while another is worked on, and nobody
//! waits unless it is ahead by a whole block.
//!
//! The order of the updates is not that of `serial`, but it is the same in every run with as many workers.

use super::super::blocks::Blocks;
use super::super::kernel::Element;
use super::super::model::{Matrix, Model};
use super::super::sweep::{Slices, Sweep};
use super::super::train::{OnEpoch, Training};
use super::root::{Ends, Root};
use super::team;
use anyhow::Result;
use hectare::{Area, AreaSpec, Owned, Tracking, Worker};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Blocks of items for each worker.
pub const BLOCKS_PER_WORKER: usize = 2;

/// Trains `model` with `workers` workers, see [`team::run`].
///
/// # Errors
/// Those of [`team::run`].
///
/// # Panics
/// When a rating names a row that the model does not have.
pub fn train<E: Element>(
    training: &Training<'_, E>,
    workers: usize,
    model: &mut Model<E>,
    on_epoch: &mut OnEpoch<'_, E>,
) -> Result<()> {
    let row_bytes = model.layout().stride * size_of::<E>();
    let rows = [model.users.rows(), model.items.rows()];
    let blocks = Blocks::new(training.ratings, rows, workers, workers * BLOCKS_PER_WORKER, row_bytes);
    let root = Root::new(model, on_epoch);
    team::run(workers, areas(workers), training.files, |worker| work(worker, training, &blocks, &root))
}

/// Areas of a run: the users of each worker, blocks of items, and what is said at the end of an epoch.
fn areas(workers: usize) -> u32 {
    ((3 + BLOCKS_PER_WORKER) * workers + 16).try_into().unwrap_or(u32::MAX)
}

fn work<E: Element>(
    worker: &mut Worker,
    training: &Training<'_, E>,
    blocks: &Blocks,
    root: &Root<'_, '_, E>,
) -> hectare::Result<()> {
    let mut rotation = Rotation::new(worker, blocks, root)?;
    let mut ends = Ends::new(worker, blocks.workers())?;
    rotation.attach(worker, blocks)?;
    for epoch in 0..training.epochs {
        worker.barrier()?;
        let begin = Instant::now();
        rotation.turn(worker, training, blocks, epoch)?;
        let time = begin.elapsed();
        // The blocks are back where they began, so each worker publishes its part of the model.
        let assemble = |worker: &Worker, time| rotation.assemble(worker, blocks, root, epoch, time);
        if ends.meet(worker, time, assemble)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// A worker's side of the rotation.
#[derive(Debug)]
struct Rotation<E: Element> {
    /// The rows of this worker's users.
    users: Owned<E>,
    /// The blocks of items that are here, by number.
    here: Vec<Option<Owned<E>>>,
    /// Everybody's users, and all blocks of items.
    all_users: Vec<Area<E>>,
    all_items: Vec<Area<E>>,
    stride: usize,
}

impl<E: Element> Rotation<E> {
    /// Creates the areas that are here at the beginning, with their part of the initial model.
    fn new(worker: &mut Worker, blocks: &Blocks, root: &Root<'_, '_, E>) -> hectare::Result<Self> {
        let me = worker.rank() as usize;
        let model = root.initial();
        let stride = model.layout().stride;
        let mut create = |name: String, rows: &[u32], matrix: &Matrix<E>| -> hectare::Result<Owned<E>> {
            // Published once an epoch, when all of it has changed: no need to log what.
            let spec = AreaSpec::new(name).tracking(Tracking::Whole);
            let mut area = worker.create(spec, rows.len() * stride)?;
            let mut guard = area.write(worker)?;
            for (place, row) in guard.as_mut_slice().chunks_exact_mut(stride).zip(rows) {
                place.copy_from_slice(&matrix.as_slice()[*row as usize * stride..][..stride]);
            }
            Ok(area)
        };
        let users = create(users_name(me), &blocks.users.blocks[me], &model.users)?;
        let mut here: Vec<Option<Owned<E>>> = blocks.items.blocks.iter().map(|_| None).collect();
        for block in home(me) {
            here[block] = Some(create(items_name(block), &blocks.items.blocks[block], &model.items)?);
        }
        Ok(Self { users, here, all_users: Vec::new(), all_items: Vec::new(), stride })
    }

    /// Attaches to the areas of all workers, which exist by now.
    fn attach(&mut self, worker: &mut Worker, blocks: &Blocks) -> hectare::Result<()> {
        let users = 0..blocks.users.blocks.len();
        let items = 0..blocks.items.blocks.len();
        self.all_users = users.map(|of| worker.attach(&users_name(of))).collect::<Result<_, _>>()?;
        self.all_items = items.map(|block| worker.attach(&items_name(block))).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// One epoch: every block of items comes by once.
    fn turn(
        &mut self,
        worker: &mut Worker,
        training: &Training<'_, E>,
        blocks: &Blocks,
        epoch: usize,
    ) -> hectare::Result<()> {
        let (me, workers, count) = (worker.rank() as usize, blocks.workers(), self.here.len());
        let rate = training.schedule.rate(epoch);
        let next = ((me + workers - 1) % workers) as u32;
        for step in 0..count {
            let block = (me * BLOCKS_PER_WORKER + step) % count;
            let mut items = match self.here[block].take() {
                Some(items) => items,
                None => self.all_items[block].take(worker)?,
            };
            let ratings = blocks.cell(me, block);
            let (mut user_rows, mut item_rows) = (self.users.write(worker)?, items.write(worker)?);
            let rows = &mut Slices { users: user_rows.as_mut_slice(), items: item_rows.as_mut_slice() };
            training
                .kernels
                .run(rate, Sweep { rows, ratings, count: ratings.len(), idle_turns: training.idle_turns });
            items.give(worker, next)?;
        }
        for block in home(me) {
            self.here[block] = Some(self.all_items[block].take(worker)?);
        }
        Ok(())
    }

    /// Puts the model together from what everybody published, and calls back.
    fn assemble(
        &self,
        worker: &Worker,
        blocks: &Blocks,
        root: &Root<'_, '_, E>,
        epoch: usize,
        time: Duration,
    ) -> hectare::Result<ControlFlow<()>> {
        let users = self.all_users.iter().zip(&blocks.users.blocks);
        let items = self.all_items.iter().zip(&blocks.items.blocks);
        root.show(epoch, time, |model| {
            for (area, rows) in users {
                scatter(area.read(worker)?, rows, model.users.as_mut_slice(), self.stride);
            }
            for (area, rows) in items {
                scatter(area.read(worker)?, rows, model.items.as_mut_slice(), self.stride);
            }
            Ok(())
        })
    }
}

fn scatter<E: Element>(block: &[E], rows: &[u32], matrix: &mut [E], stride: usize) {
    for (row, place) in block.chunks_exact(stride).zip(rows) {
        matrix[*place as usize * stride..][..stride].copy_from_slice(row);
    }
}

/// The blocks of items with which a worker begins an epoch.
fn home(worker: usize) -> std::ops::Range<usize> {
    worker * BLOCKS_PER_WORKER..(worker + 1) * BLOCKS_PER_WORKER
}

fn users_name(worker: usize) -> String {
    format!("users/{worker}")
}

fn items_name(block: usize) -> String {
    format!("items/{block}")
}
