//! The lasso (Tibshirani, 1996) by coordinate descent through the loop layer, and its serial twin.
//!
//! `cargo run --release --example lasso -- [--workers 2] [--lambda 0.01] [--data FILE --test FILE] [--uniform] [--save FILE]
//! [--load FILE --test FILE --predict FILE] [--serial] [--help]`
//!
//! A round is a few features whose weights changed most, and whose columns are nearly uncorrelated, as a
//! [`Priority`](hectare::orion::priority::Priority) draws them. A loop over the round finds their steps, and one over blocks of rows
//! applies these to what the model leaves over.
#![allow(dead_code)] // the tests use other parts
pub(crate) mod columns;
pub(crate) mod data;
pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod options;
pub(crate) mod problem;
pub(crate) mod test;
pub(crate) mod train;
#[path = "../training/mod.rs"]
pub(crate) mod training;

pub(crate) use self::options::Options;
pub(crate) use self::train::train;

use self::data::Data;
use self::model::Model;
use anyhow::bail;
use clap::Parser;
use std::process::ExitCode;

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    test::try_files(o)?;
    if let Some(path) = &o.load {
        let [workers] = o.run.workers[..] else { bail!("several numbers of --workers: only with --all") };
        let model = Model::read(path)?;
        let rows = data::to_predict(o, &model)?;
        hectare::run(workers, |w| {
            training::same_files(w, &[Some(path), o.test.as_ref()])?;
            test::measure(w, o, &rows, &model, true)
        })?;
        return Ok(());
    }
    // All threads of a process read the same.
    let data = Data::read(o)?;
    let twin = || Ok(hectare::run(1, |w| train(w, o, &data, true))?.swap_remove(0).curve);
    let parallel = |workers, _| {
        let all = hectare::run(workers, |w| {
            training::same_files(w, &[o.data.as_ref(), o.test.as_ref()])?;
            train(w, o, &data, false)
        });
        Ok(all?.swap_remove(0).curve)
    };
    o.run.by(o.manner()).train(&[], twin, parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
