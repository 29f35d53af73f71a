//! The serial twin: the loop that one would write without Hectare.
use super::data::{self, Examples, Rows};
use super::logistic::logistic;
use super::quality::{Quality, Scored};
use super::step::{self, Step};
use super::training::Curve;
use super::{Options, Rule, curve, output, tell};
use hectare::orion::Result;
use hectare::orion::relax::{AdaRevision, Apply};

/// The margin of an example.
#[inline(always)]
fn margin(features: &[(u32, f32)], weights: &[f32], step: &Step) -> f32 {
    let mut margin = step.one * weights[step.last];
    for (feature, x) in features {
        margin += weights[*feature as usize] * x;
    }
    margin
}

/// One pass, in which `change` gets each weight's number and contribution; the sum of the losses.
#[inline(always)]
fn pass(
    rows: &Rows,
    weights: &mut [f32],
    step: &Step,
    mut change: impl FnMut(&mut [f32], usize, f32),
) -> f64 {
    let Step { scale, last, one, pulls } = step;
    let mut sum = 0.0;
    for (label, features) in rows.iter() {
        let (loss, slope) = logistic(margin(features, weights, step), label);
        let scaled = scale * slope;
        for (feature, x) in features {
            let at = *feature as usize;
            let pull = if pulls.is_empty() { 0.0 } else { pulls[at] * weights[at] };
            change(weights, at, scaled * x + pull);
        }
        change(weights, *last, scaled * one);
        sum += loss as f64;
    }
    sum
}

/// A pass of SGD.
#[inline(never)]
pub(crate) fn serial_pass(rows: &Rows, weights: &mut [f32], step: &Step) -> f64 {
    pass(rows, weights, step, |weights, at, change| weights[at] += change)
}

/// A pass of AdaRevision, whose gradients are never late here.
#[inline(never)]
pub(crate) fn revised_pass(
    rows: &Rows,
    weights: &mut [f32],
    states: &mut [[f32; 3]],
    rule: AdaRevision,
    step: &Step,
) -> f64 {
    pass(rows, weights, step, |weights, at, gradient| {
        let seen = Apply::<f32>::snapshot(&rule, &states[at]);
        rule.apply(&mut weights[at], &mut states[at], gradient, seen);
    })
}

/// Trains.
pub(crate) fn serial(o: &Options) -> Result<Curve> {
    output::try_files(o)?;
    let loaded = o.model()?;
    let Examples { train, test, features, labels } = data::load(o, loaded.as_ref())?;
    data::check(o, train.labels.len(), test.labels.len())?;
    tell(labels, o);
    let mut weights = loaded.map_or_else(|| vec![0.0; features + 1], |model| model.widened(features));
    let mut scored: Vec<Scored> = Vec::new();
    let rule = step::rule(o, step::squares(&train.features));
    let mut states = vec![Apply::<f32>::initial(&rule); features + 1];
    let strengths = match o.l2 {
        0.0 => Vec::new(),
        lambda => step::strengths(lambda, train.labels.len(), &train.counts(features)),
    };
    let mut curve = curve();
    for number in 0..o.passes {
        let step = Step::of(o, number, features, &strengths);
        curve.begin();
        let sum = match o.rule {
            Rule::Sgd => serial_pass(&train, &mut weights, &step),
            Rule::AdaRevision => revised_pass(&train, &mut weights, &mut states, rule, &step),
        };
        curve.end();
        scored = test.iter().map(|(label, features)| [margin(features, &weights, &step), label]).collect();
        let quality = Quality::of(&scored);
        curve.note(quality.to_string());
        if !curve.push(&o.run, Some(sum / train.labels.len() as f64), quality.loss, None)? {
            break;
        }
    }
    output::save(o, labels, weights)?;
    output::predict(o, labels, &scored)?;
    Ok(curve)
}
