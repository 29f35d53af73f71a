//! Sparse logistic regression through the loop layer, under every consistency, and its serial twin.
//!
//! `cargo run --release --example sparse_lr -- [--workers 2] [--consistency bsp|bounded:S|unbounded|async|serializable]
//! [--rule sgd] [--serve] [--data FILE --test FILE] [--all --curve losses.svg] [--serial] [--help]`
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
pub(crate) mod options;
pub(crate) mod planted;
#[path = "../training/mod.rs"]
pub(crate) mod training;

pub(crate) use self::options::{Options, Rule};

use clap::Parser;
use hectare::orion::array::text::LabelledRow;
use hectare::orion::relax::{AdaRevision, Apply, Buffered, Consistency, Every, Sum};
use hectare::orion::serve::Served;
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};
use labels::Labels;
use std::f64::consts::LN_2;
use std::process::ExitCode;
use training::{Baseline, Curve};

/// Clocks in a pass, for each worker. Changes of all workers are added up: the fewer clocks and the more workers, the
/// further steps overshoot.
pub(crate) const CLOCKS: usize = 8;
pub(crate) const KINDS: [Consistency; 4] =
    [Consistency::Bounded(1), Consistency::Bsp, Consistency::UNBOUNDED, Consistency::Async];

const MEASURE: &str = "test loss";
const ADVICE: &str =
    "steps were too long; try a smaller --rate, or --rule ada-revision, which needs no tuning";

/// Weights of zero.
const UNTRAINED: Baseline = Baseline { loss: LN_2, of: "a model that learns nothing", advice: ADVICE };

/// The loss of an example with this margin, and its derivative.
#[inline(always)]
pub(crate) fn logistic(margin: f32, label: f32) -> (f32, f32) {
    let sign = if label > 0.0 { 1.0 } else { -1.0 };
    let right = sign * margin;
    // Never above 1: a greater one does not fit 32 bits from a margin of 89 on.
    let odds = (-right.abs()).exp();
    let wrong = if right > 0.0 { odds } else { 1.0 } / (1.0 + odds);
    (odds.ln_1p() - right.min(0.0), -sign * wrong)
}

/// The weights, and how they are changed.
#[allow(clippy::large_enum_variant)] // there is one
enum Model {
    Sgd(DistArray<f32, 1>),
    AdaRevision(Buffered<f32, 1, AdaRevision>),
    Served(Served<f32, 1, Sum>),
    ServedAdaRevision(Served<f32, 1, AdaRevision>),
}

impl Model {
    fn weights(&self) -> &DistArray<f32, 1> {
        match self {
            Model::Sgd(weights) => weights,
            Model::AdaRevision(buffered) => buffered.array(),
            Model::Served(served) => served.array(),
            Model::ServedAdaRevision(served) => served.array(),
        }
    }
}

/// One pass; the sum of the losses before each step.
pub(crate) fn pass(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut DistArray<f32, 1>,
    rate: f32,
    consistency: Consistency,
    every: Every,
) -> Result<f64> {
    parallel_for!(w, unordered, relax weights, sum losses: f64, consistency = consistency, every = every;
    for ((_number), row) in train {
        let mut margin = 0.0;
        for (feature, x) in &row.features {
            margin += weights.get(*feature as usize) * x;
        }
        let (loss, slope) = logistic(margin, row.label);
        let step = -rate * slope;
        for (feature, x) in &row.features {
            weights.add(*feature as usize, step * x);
        }
        losses += loss as f64;
    })
}

fn revised_pass(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut Buffered<f32, 1, AdaRevision>,
    consistency: Consistency,
    every: Every,
) -> Result<f64> {
    parallel_for!(w, unordered, buffer weights, sum losses: f64, consistency = consistency, every = every;
    for ((_number), row) in train {
        let mut margin = 0.0;
        for (feature, x) in &row.features {
            margin += weights.get(*feature as usize) * x;
        }
        let (loss, slope) = logistic(margin, row.label);
        for (feature, x) in &row.features {
            weights.add(*feature as usize, slope * x);
        }
        losses += loss as f64;
    })
}

/// With weights that are served; contributions are gradients, times `scale`.
fn served_pass<A: Apply<f32> + 'static>(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut Served<f32, 1, A>,
    scale: f32,
    consistency: Consistency,
    every: Every,
) -> Result<f64> {
    parallel_for!(w, unordered, serve weights, sum losses: f64, consistency = consistency, every = every;
    for ((_number), row) in train {
        let mut margin = 0.0;
        for (feature, x) in &row.features {
            margin += weights.get(*feature as usize) * x;
        }
        let (loss, slope) = logistic(margin, row.label);
        for (feature, x) in &row.features {
            weights.add(*feature as usize, scale * slope * x);
        }
        losses += loss as f64;
    })
}

/// Trains on the workers.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, consistency: Consistency) -> Result<Curve> {
    let data::Examples { mut train, test, features, labels } = data::parallel(w, o)?;
    data::check(o, train.len(), test.len())?;
    w.root(|| tell(labels, o));
    if o.data.is_some() {
        // Examples of a class often stand together in files.
        train = train.permute(w, 0, 1)?;
    }
    let zeros = w.zeros::<f32, 1>([features])?.named("weights");
    let rule = AdaRevision::new(o.rate(0).into());
    let mut model = match (o.rule, o.serve) {
        (Rule::Sgd, false) => Model::Sgd(zeros),
        (Rule::Sgd, true) => Model::Served(w.served(zeros, Sum)?),
        (Rule::AdaRevision, false) => Model::AdaRevision(w.buffered(zeros, rule)?),
        (Rule::AdaRevision, true) => Model::ServedAdaRevision(w.served(zeros, rule)?),
    };
    let every = o.run.every(CLOCKS * w.size());
    let mut curve = Curve::of(MEASURE, ADVICE).against(UNTRAINED);
    for number in 0..o.passes {
        curve.begin();
        let sum = match &mut model {
            Model::Sgd(weights) => pass(w, &train, weights, o.rate(number), consistency, every)?,
            Model::AdaRevision(weights) => revised_pass(w, &train, weights, consistency, every)?,
            Model::Served(weights) => served_pass(w, &train, weights, -o.rate(number), consistency, every)?,
            Model::ServedAdaRevision(weights) => served_pass(w, &train, weights, 1.0, consistency, every)?,
        };
        curve.end();
        let weights = model.weights();
        let missed = parallel_for!(w, unordered, read weights, sum missed: f64;
        for ((_number), row) in test {
            let mut margin = 0.0;
            for (feature, x) in &row.features {
                margin += weights[*feature as usize] * x;
            }
            missed += logistic(margin, row.label).0 as f64;
        })?;
        if !curve.push(&o.run, Some(sum / train.len() as f64), missed / test.len() as f64, w.rank() == 0)? {
            break;
        }
    }
    training::explain(w, &o.run)?;
    Ok(curve)
}

/// Says which label is which, if that is not plain.
fn tell(labels: Labels, o: &Options) {
    if let Some(told) = labels.told().filter(|_| !o.run.quiet) {
        training::say(format_args!("{told}"));
    }
}

/// One pass of the serial twin.
#[inline(never)]
pub(crate) fn serial_pass(train: &data::Rows, weights: &mut [f32], rate: f32) -> f64 {
    let mut sum = 0.0;
    for (label, features) in train.iter() {
        let mut margin = 0.0;
        for (feature, x) in features {
            margin += weights[*feature as usize] * x;
        }
        let (loss, slope) = logistic(margin, label);
        let step = -rate * slope;
        for (feature, x) in features {
            weights[*feature as usize] += step * x;
        }
        sum += loss as f64;
    }
    sum
}

/// The same without Hectare.
pub(crate) fn serial(o: &Options) -> Result<Curve> {
    let data::Examples { train, test, features, labels } = data::load(o)?;
    data::check(o, train.labels.len(), test.labels.len())?;
    tell(labels, o);
    let mut weights = vec![0.0; features];
    let rule = AdaRevision::new(o.rate(0).into());
    let mut states = vec![Apply::<f32>::initial(&rule); features];
    let mut curve = Curve::of(MEASURE, ADVICE).against(UNTRAINED);
    for number in 0..o.passes {
        curve.begin();
        let sum = match o.rule {
            Rule::Sgd => serial_pass(&train, &mut weights, o.rate(number)),
            Rule::AdaRevision => {
                let mut sum = 0.0;
                for (label, features) in train.iter() {
                    let margin = features.iter().map(|(feature, x)| weights[*feature as usize] * x).sum();
                    let (loss, slope) = logistic(margin, label);
                    for (feature, x) in features {
                        let at = *feature as usize;
                        let seen = Apply::<f32>::see(&rule, &states[at]);
                        rule.apply(&mut weights[at], &mut states[at], slope * x, seen);
                    }
                    sum += loss as f64;
                }
                sum
            }
        };
        curve.end();
        let missed: f64 = test
            .iter()
            .map(|(label, features)| {
                let margin = features.iter().map(|(feature, x)| weights[*feature as usize] * x).sum();
                logistic(margin, label).0 as f64
            })
            .sum();
        let [learned, tested] = [&train, &test].map(|rows| rows.labels.len() as f64);
        if !curve.push(&o.run, Some(sum / learned), missed / tested, true)? {
            break;
        }
    }
    Ok(curve)
}

fn main() -> ExitCode {
    let o = Options::parse();
    let parallel = |workers, consistency| {
        let all = hectare::run(workers, |w| train(w, &o, consistency));
        Ok(all?.swap_remove(0))
    };
    let manner = match (o.rule, o.serve) {
        (Rule::AdaRevision, false) => None,
        (Rule::AdaRevision, true) => Some("served"),
        (Rule::Sgd, false) => Some("SGD"),
        (Rule::Sgd, true) => Some("SGD, served"),
    };
    training::exit(o.run.by(manner).train(&KINDS, || Ok(serial(&o)?), parallel))
}
