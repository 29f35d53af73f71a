//! Training on the workers.
use super::data::{self, Examples};
use super::numbering::Numbering;
use super::quality::{Quality, Scored};
use super::step::{self, Step};
use super::training::{self, Curve};
use super::{Options, Rule, curve, output, passes, tell};
use hectare::orion::array::text::LabelledRow;
use hectare::orion::relax::{AdaRevision, Buffered, Consistency, Every, Sum, Tail};
use hectare::orion::serve::Served;
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};

/// The weights, the intercept behind them, and how they are changed.
#[allow(clippy::large_enum_variant)] // there is one
pub(crate) enum Weights {
    Sgd(DistArray<f32, 1>),
    AdaRevision(Buffered<f32, 1, AdaRevision>),
    Served(Served<f32, 1, Sum>),
    ServedAdaRevision(Served<f32, 1, AdaRevision>),
}

impl Weights {
    pub(crate) fn new(
        w: &mut Context<'_>,
        o: &Options,
        train: &SparseArray<LabelledRow, 1>,
        weights: DistArray<f32, 1>,
    ) -> Result<Weights> {
        let mut mine = [0.0; 2];
        train.for_each_local(|_, row| mine = plus(mine, step::squares(&row.features)));
        let rule = step::rule(o, w.all_reduce(mine, plus)?);
        Ok(match (o.rule, o.serve) {
            (Rule::Sgd, false) => Weights::Sgd(weights),
            (Rule::Sgd, true) => Weights::Served(w.served(weights, Sum)?),
            (Rule::AdaRevision, false) => Weights::AdaRevision(w.buffered(weights, rule)?),
            (Rule::AdaRevision, true) => Weights::ServedAdaRevision(w.served(weights, rule)?),
        })
    }

    pub(crate) fn array(&self) -> &DistArray<f32, 1> {
        match self {
            Weights::Sgd(weights) => weights,
            Weights::AdaRevision(buffered) => buffered.array(),
            Weights::Served(served) => served.array(),
            Weights::ServedAdaRevision(served) => served.array(),
        }
    }

    pub(crate) fn pass(
        &mut self,
        w: &mut Context<'_>,
        train: &SparseArray<LabelledRow, 1>,
        step: &Step,
        consistency: Consistency,
        (every, tail): (Every, Tail),
    ) -> Result<f64> {
        match self {
            Weights::Sgd(weights) => passes::relaxed(w, train, weights, step, consistency, (every, tail)),
            Weights::AdaRevision(weights) => {
                passes::buffered(w, train, weights, step, consistency, (every, tail))
            }
            Weights::Served(weights) => passes::served(w, train, weights, step, consistency, every),
            Weights::ServedAdaRevision(weights) => {
                passes::served(w, train, weights, step, consistency, every)
            }
        }
    }
}

fn plus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

/// Predicts the examples to test with; worker 0 judges. Collective.
pub(crate) fn judge(
    w: &mut Context<'_>,
    test: &SparseArray<LabelledRow, 1>,
    weights: &DistArray<f32, 1>,
    (last, one): (usize, f32),
    scored: &mut DistArray<Scored, 1>,
) -> Result<Quality> {
    parallel_for!(w, unordered, read weights, write scored;
    for ((number), row) in test {
        let mut margin = one * weights[last];
        for (feature, x) in &row.features {
            margin += weights[*feature as usize] * x;
        }
        scored[number] = [margin, row.label];
    })?;
    let quality = w.root(|| scored.to_vec(w).map(|scored| Quality::of(&scored)));
    w.broadcast(|| quality.expect("worker 0 makes it"))
}

/// Trains.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, consistency: Consistency) -> Result<Curve> {
    let tried = w.root(|| output::try_files(o));
    w.broadcast(|| tried.unwrap_or(Ok(())))?;
    let loaded = o.model()?;
    let Examples { mut train, test, features, labels } = data::parallel(w, o, loaded.as_ref())?;
    data::check(o, train.len(), test.len())?;
    w.root(|| tell(labels, o));
    if o.data.is_some() {
        // Examples of a class often stand together in files.
        train = train.permute(w, 0, 1)?;
    }
    let numbering = Numbering::of(w, o, &train, features)?;
    let (train, test) = (numbering.rows(w, train)?, numbering.rows(w, test)?);
    let strengths = step::count(w, o, &train, features)?;
    let weights = match loaded {
        Some(model) => w.from_slice([features + 1], &numbering.placed(model.widened(features)))?,
        None => w.zeros::<f32, 1>([features + 1])?,
    };
    let mut weights = Weights::new(w, o, &train, weights.named("weights"))?;
    let mut scored = w.zeros::<Scored, 1>([test.len()])?.named("margins and labels");
    let clocks = numbering.clocks(o, w.size());
    let mut curve = curve();
    for number in 0..o.passes {
        let step = Step::of(o, number, numbering.intercept(), &strengths);
        curve.begin();
        let sum = weights.pass(w, &train, &step, consistency, clocks)?;
        curve.end();
        let quality = judge(w, &test, weights.array(), (step.last, step.one), &mut scored)?;
        curve.note(quality.to_string());
        if !curve.push(&o.run, Some(sum / train.len() as f64), quality.loss, Some(w))? {
            break;
        }
    }
    let written = w.root(|| {
        output::save(o, labels, numbering.restored(weights.array().to_vec(w)?))?;
        output::predict(o, labels, &scored.to_vec(w)?)
    });
    w.broadcast(|| written.unwrap_or(Ok(())))?;
    training::explain(w, &o.run)?;
    Ok(curve)
}
