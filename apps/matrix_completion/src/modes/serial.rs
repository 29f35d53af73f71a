//! One worker: the loop that all other modes have to agree with.

use super::super::kernel::Element;
use super::super::model::Model;
use super::super::sweep::{Slices, Sweep};
use super::super::train::{EpochEnd, OnEpoch, Training};
use std::time::Instant;

/// Trains `model` in the order of the ratings.
///
/// # Panics
/// When a rating names a row that the model does not have.
pub fn train<E: Element>(training: &Training<'_, E>, model: &mut Model<E>, on_epoch: &mut OnEpoch<'_, E>) {
    for epoch in 0..training.epochs {
        let begin = Instant::now();
        let rows = &mut Slices { users: model.users.as_mut_slice(), items: model.items.as_mut_slice() };
        let sweep = Sweep {
            rows,
            ratings: training.ratings,
            count: training.ratings.len(),
            idle_turns: training.idle_turns,
        };
        training.kernels.run(training.schedule.rate(epoch), sweep);
        if on_epoch(EpochEnd { epoch, time: begin.elapsed(), model }).is_break() {
            return;
        }
    }
}
