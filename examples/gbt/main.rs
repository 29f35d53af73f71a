//! Gradient-boosted trees through the loop layer (Friedman, 2001), of second order and by histograms (Chen and Guestrin, 2016),
//! and their serial twin.
//!
//! `cargo run --release --example gbt -- [--workers 2] [--loss squared] [--growth leaf] [--data FILE --test FILE] [--save FILE]
//! [--load FILE --test FILE --predict FILE] [--serial] [--help]`
//!
//! A loop over blocks of rows, whose derivatives are added to the histograms of the leaves: sums that are arrays
//! (`sum sums: [Packed; n]`). They are sums of integers, so that trees have the same bits for every number of workers.
#![allow(dead_code)] // the tests use other parts
pub(crate) mod bins;
pub(crate) mod block;
pub(crate) mod blocks;
#[path = "../sparse_lr/quality.rs"]
mod classes;
pub(crate) mod data;
pub(crate) mod grow;
#[path = "../sparse_lr/labels.rs"]
pub(crate) mod labels;
#[path = "../sparse_lr/logistic.rs"]
mod logistic;
pub(crate) mod loss;
pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod options;
pub(crate) mod quality;
pub(crate) mod slot;
pub(crate) mod table;
pub(crate) mod test;
pub(crate) mod train;
#[path = "../training/mod.rs"]
pub(crate) mod training;
pub(crate) mod tree;

pub(crate) use self::options::Options;
pub(crate) use self::train::train;

use self::model::Model;
use self::quality::Measured;
use self::test::{Tested, try_files};
use anyhow::bail;
use clap::Parser;
use hectare::orion::{Context, Result};
use std::process::ExitCode;

/// Predicts the rows to test with by a model that was learned before. Collective.
pub(crate) fn predict(w: &mut Context<'_>, o: &Options, model: &Model) -> Result<Measured> {
    try_files(w, o)?;
    let rows = data::read_to_predict(w, o, model)?;
    let tested = Tested::new(w, rows, model)?;
    let measured = tested.measure(w)?;
    tested.write(w, o)?;
    let said = measured.said().map_or_else(String::new, |said| format!(", {said}"));
    w.root(|| training::say(format_args!("{} {:.4}{said}", Measured::name(model.loss), measured.loss())));
    Ok(measured)
}

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    if let Some(path) = &o.load {
        let [workers] = o.run.workers[..] else { bail!("several numbers of --workers: only with --all") };
        let model = Model::read(path)?;
        hectare::run(workers, |w| {
            training::same_files(w, &[Some(path)])?;
            predict(w, o, &model)
        })?;
        return Ok(());
    }
    let twin = || Ok(hectare::run(1, |w| train(w, o, true))?.swap_remove(0).curve);
    let parallel = |workers, _| Ok(hectare::run(workers, |w| train(w, o, false))?.swap_remove(0).curve);
    o.run.by(o.manner()).train(&[], twin, parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
