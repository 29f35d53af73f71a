//! The interface of every mode: what it is given and reports back.

use super::data::Rating;
use super::kernel::Kernels;
use super::model::Model;
use super::options::Schedule;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// A training run: what a mode needs to know beside the model.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a, E> {
    /// The arithmetic.
    pub kernels: Kernels<E>,
    /// The ratings, in the order in which they are to be learnt from, the same in every epoch.
    pub ratings: &'a [Rating],
    /// The step sizes.
    pub schedule: Schedule,
    /// How many passes over the ratings.
    pub epochs: usize,
    /// Files that each process reads, and has to see as the others do.
    pub files: &'a [PathBuf],
    /// Turns of an idle loop after each update: 0, except for measuring how modes compare under code whose
    /// updates take longer.
    pub idle_turns: u32,
}

/// The report of a mode after each epoch.
#[derive(Debug)]
pub struct EpochEnd<'a, E> {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// How long training took in it. What the callback does is not counted.
    pub time: Duration,
    /// The model as it is now.
    pub model: &'a Model<E>,
}

/// Called after each epoch, from whichever thread has the model then; `Break` ends the run.
pub type OnEpoch<'a, E> = dyn FnMut(EpochEnd<'_, E>) -> ControlFlow<()> + Send + 'a;
