//! The interface of every mode: what it is given and reports back.

use super::data::Rating;
use super::element::Element;
use super::kernel::{Kernels, Rate};
use super::model::Model;
use std::ops::ControlFlow;
use std::time::Duration;

/// The step sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The learning rate of the first epoch.
    pub lr: f64,
    /// Its factor after each epoch.
    pub decay: f64,
    /// The weight of the L2 regularization.
    pub reg: f64,
}

impl Schedule {
    /// The step sizes of what is left after some epochs: to the bit those of the whole run.
    pub fn after(self, epochs: usize) -> Schedule {
        Schedule { lr: (0..epochs).fold(self.lr, |lr, _| lr * self.decay), ..self }
    }

    /// The step sizes of an epoch, counted from 0.
    pub fn rate<E: Element>(&self, epoch: usize) -> Rate<E> {
        // Not `powi`: repeated multiplication is the same on every machine.
        let learning_rate = (0..epoch).fold(self.lr, |lr, _| lr * self.decay);
        Rate { learning_rate: E::from_f64(learning_rate), regularization: E::from_f64(self.reg) }
    }
}

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
