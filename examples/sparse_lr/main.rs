//! Sparse logistic regression through the loop layer, under every consistency, and its serial twin.
//!
//! `cargo run --release --example sparse_lr -- [--workers 2] [--consistency bsp|bounded:S|unbounded|async|serializable]
//! [--rule sgd] [--serve] [--l2 LAMBDA] [--data FILE --test FILE] [--save FILE] [--load FILE] [--predict FILE]
//! [--all --curve losses.svg] [--serial] [--help]`
//!
//! A loop over the examples, whose weights are those of the features that an example has: `w.get(feature)`. What an
//! iteration touches is in the data, so that as far as dependences go the loop is serial. It contributes gradients to the
//! weights through a *buffer*, whose rule is AdaRevision, or, with `--rule sgd`, *relaxes* them. With `--serve` the weights
//! that the examples between two clocks name are fetched in bulk before.
//!
//! AdaRevision is the default because it needs no tuning: gradients of all workers between two clocks are added up, and
//! steps of SGD that fit one example overshoot where many examples share a feature.
#![allow(dead_code)] // the bench and the tests use other parts
pub(crate) mod data;
pub(crate) mod labels;
pub(crate) mod logistic;
pub(crate) mod model;
pub(crate) mod numbering;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod passes;
pub(crate) mod planted;
pub(crate) mod predict;
pub(crate) mod quality;
pub(crate) mod serial;
pub(crate) mod step;
pub(crate) mod train;
#[path = "../training/mod.rs"]
pub(crate) mod training;

pub(crate) use self::options::{Options, Rule};
pub(crate) use self::serial::serial;
pub(crate) use self::train::train;

use self::labels::Labels;
use self::training::{Baseline, Curve};
use anyhow::bail;
use clap::Parser;
use hectare::orion::relax::Consistency;
use std::f64::consts::LN_2;
use std::process::ExitCode;

/// Clocks in a pass, for each worker, times the number of workers. Changes of all workers are added up: the fewer clocks and the more
/// workers, the further steps overshoot.
pub(crate) const CLOCKS: usize = 8;
pub(crate) const KINDS: [Consistency; 4] =
    [Consistency::Bounded(1), Consistency::Bsp, Consistency::UNBOUNDED, Consistency::Async];

const MEASURE: &str = "test loss";
const ADVICE: &str =
    "steps were too long; try a smaller --rate, or --rule ada-revision, which needs no tuning";

/// Weights of zero.
const UNTRAINED: Baseline = Baseline { loss: LN_2, of: "a model that learns nothing", advice: ADVICE };

fn curve() -> Curve {
    Curve::of(MEASURE, ADVICE).against(UNTRAINED)
}

/// Says which label is which, if that is not plain.
fn tell(labels: Labels, o: &Options) {
    if let Some(told) = labels.told().filter(|_| !o.run.quiet) {
        training::say(format_args!("{told}"));
    }
}

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    if o.data.is_none()
        && let Some(model) = o.model()?
    {
        let [workers] = o.run.workers[..] else { bail!("several numbers of --workers: only with --all") };
        hectare::run(workers, |w| {
            training::same_files(w, &[o.load.as_ref()])?;
            predict::predict(w, o, &model)
        })?;
        return Ok(());
    }
    let parallel = |workers, consistency| {
        let all = hectare::run(workers, |w| {
            training::same_files(w, &[o.load.as_ref()])?;
            train(w, o, consistency)
        });
        Ok(all?.swap_remove(0))
    };
    o.run.by(o.manner()).train(&KINDS, || Ok(serial(o)?), parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
