//! Small data, and training on it in every mode.
use crate::matrix_completion::data::{DataSet, split};
use crate::matrix_completion::evaluate::{squared_error, test_rmse};
use crate::matrix_completion::generate::{Size, generate};
use crate::matrix_completion::kernel::{Element, Kernels, Step};
use crate::matrix_completion::model::{Layout, Model};
use crate::matrix_completion::modes::{areas, handover, serial, shared};
use crate::matrix_completion::options::{Schedule, Transports};
use crate::matrix_completion::plan::{Plan, PlanOptions};
use crate::matrix_completion::random::Random;
use crate::matrix_completion::train::{EpochEnd, Training};
use std::ops::ControlFlow;

/// Small enough for a build without optimization.
pub(crate) const SMALL: Size = Size { users: 300, items: 200, ratings: 9000 };

pub(crate) fn small_data(seed: u64) -> DataSet {
    let (train, test) = split(&generate(SMALL, seed), 0.1, seed);
    let mut data = DataSet::new(&train, &test).unwrap();
    Random::new(seed, "order").shuffle(&mut data.train);
    data
}

/// How to train.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way<'a> {
    Serial,
    Shared(&'a Plan),
    Areas(&'a Plan, Transports),
    /// With so many workers.
    Handover(usize),
}

/// Training loss and test RMSE after each epoch.
pub(crate) fn losses<E: Element>(
    data: &DataSet,
    rank: usize,
    step: Step,
    epochs: usize,
    way: Way<'_>,
    threads: usize,
) -> Vec<[f64; 2]> {
    let layout = Layout::new::<E>(rank, step);
    let mut model = Model::<E>::new(data.users, data.items, layout, 1).unwrap();
    let kernels = Kernels::new(layout.lines, step);
    let schedule = Schedule { lr: 0.05, decay: 0.9, reg: 0.04 };
    let training = Training { kernels, ratings: &data.train, schedule, epochs, files: &[], idle_turns: 0 };
    let mut losses = Vec::new();
    let mut on_epoch = |end: EpochEnd<'_, E>| {
        assert_eq!(end.epoch, losses.len());
        losses.push([
            squared_error(&kernels, end.model, &data.train, threads) / data.train.len() as f64,
            test_rmse(&kernels, end.model, &data.test, &data.test_unseen, threads),
        ]);
        ControlFlow::Continue(())
    };
    match way {
        Way::Serial => serial::train(&training, &mut model, &mut on_epoch),
        Way::Shared(plan) => shared::train(&training, plan, &mut model, &mut on_epoch).unwrap(),
        Way::Areas(plan, transport) => {
            areas::train(&training, plan, transport, &mut model, &mut on_epoch).unwrap();
        }
        Way::Handover(workers) => {
            handover::train(&training, workers, &mut model, &mut on_epoch).unwrap();
        }
    }
    losses
}

pub(crate) fn plan(data: &DataSet, batch: usize, workers: usize, affinity: bool) -> Plan {
    Plan::new(&data.train, data.users, data.items, PlanOptions { batch, workers, affinity })
}

pub(crate) fn bits(losses: &[[f64; 2]]) -> Vec<[u64; 2]> {
    losses.iter().map(|pair| pair.map(f64::to_bits)).collect()
}

pub(crate) const TRANSPORTS: [Transports; 3] =
    [Transports::Published, Transports::Handed, Transports::Logged];
