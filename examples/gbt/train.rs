//! Training: a tree after the other.
use super::bins::Bins;
use super::block::Kernel;
use super::blocks::{self, Blocks};
use super::data::{self, Data};
use super::grow::{Grower, Grown};
use super::loss::{Loss, Scale};
use super::machine::{Machine, Plain, Workers};
use super::model::Model;
use super::options::Options;
use super::quality::Measured;
use super::slot::Slot;
use super::test::{Tested, try_files};
use super::training::{self, Baseline, Curve};
use hectare::orion::{Context, Error, Result, parallel_for};

const ADVICE: &str = "labels, and the squares of their differences, have to fit 32 bits: scale them";

/// The trained model, and the course of the training.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) model: Model,
    pub(crate) measured: Measured,
    pub(crate) curve: Curve,
}

/// Trains: on the workers, or, if `is_serial`, by the loops that one would write without Hectare, of rows that one worker has
/// read. Collective.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, is_serial: bool) -> Result<Trained> {
    try_files(w, o)?;
    let data = data::read(w, o)?;
    let bins = blocks::bins(w, &data, o.bins)?;
    match () {
        () if bins.fit::<u8>() => train_by::<u8>(w, o, data, &bins, is_serial),
        () if bins.fit::<u16>() => train_by::<u16>(w, o, data, &bins, is_serial),
        () => train_by::<u32>(w, o, data, &bins, is_serial),
    }
}

fn train_by<S: Slot>(
    w: &mut Context<'_>,
    o: &Options,
    data: Data,
    bins: &Bins,
    is_serial: bool,
) -> Result<Trained> {
    let blocks = Blocks::<S>::new(w, &data, bins, o.loss)?;
    let Begun { begin, most } = begun(w, &blocks, o.loss)?;
    let kernel = Kernel { loss: o.loss, width: bins.width() };
    let Data { test, features, labels, names, .. } = data;
    let model = Model::new(o.loss, labels, (features, names), begin);
    let leaves = o.limits().most_leaves().min(blocks.shape.count);
    let tested = Tested::new(w, test, &model)?;
    let trained = match is_serial {
        false => {
            let count = blocks.shape.count;
            let mut workers = Workers::new(w, kernel, blocks, begin, leaves)?;
            boost(w, o, &mut workers, Grower::new(bins, o.limits()), (count, most), model, tested)?
        }
        true => {
            let mut plain = Plain::new(w, kernel, &blocks, begin, leaves)?;
            let count = blocks.shape.count;
            boost(w, o, &mut plain, Grower::new(bins, o.limits()), (count, most), model, tested)?
        }
    };
    training::explain(w, &o.run)?;
    Ok(trained)
}

/// Adds trees to a model. There are `count` rows, whose first derivatives are up to `most`. Collective.
fn boost(
    w: &mut Context<'_>,
    o: &Options,
    machine: &mut impl Machine,
    grower: Grower<'_>,
    (count, mut most): (usize, f32),
    mut model: Model,
    mut tested: Tested,
) -> Result<Trained> {
    let mut measured = tested.measure(w)?;
    let baseline = Baseline {
        loss: measured.loss(),
        of: "a single leaf",
        advice: "fewer trees, or a greater --least-weight or --lambda",
    };
    let mut curve = Curve::of(Measured::name(o.loss), ADVICE).against(baseline);
    let mut grown = Grown::default();
    for _ in 0..o.trees {
        curve.begin();
        let scale = Scale::new(o.loss, count, most);
        let (root, greatest) = machine.begin(w, &grown.tasks, &grown.values, &scale)?;
        grown = grower.grow(w, machine, root, &scale)?;
        let step = grown.values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        most = o.loss.most_after(greatest, step);
        model.trees.push(std::mem::take(&mut grown.tree));
        curve.end();
        tested.add(w, &model)?;
        measured = tested.measure(w)?;
        if let Some(said) = measured.said() {
            curve.note(said);
        }
        if !curve.push(&o.run, None, measured.loss(), Some(w))? {
            break;
        }
    }
    let saved = w.root(|| o.save.as_ref().map_or(Ok(()), |path| model.write(path)));
    w.broadcast(|| saved.unwrap_or(Ok(())))?;
    tested.write(w, o)?;
    Ok(Trained { model, measured, curve })
}

/// The margin to begin with, and how far the farthest target is from it.
struct Begun {
    begin: f32,
    most: f32,
}

/// Collective.
fn begun<S: Slot>(w: &mut Context<'_>, blocks: &Blocks<S>, loss: Loss) -> Result<Begun> {
    let Blocks { shape, targets, .. } = blocks;
    let shape = *shape;
    let (sum, least, greatest) = parallel_for!(w, unordered, read targets,
        sum total: f64, min least: f32, max greatest: f32;
    for b in 0..shape.blocks() {
        for target in &targets.row(b)[..shape.rows_of(b)] {
            total += f64::from(*target);
            least = least.min(*target);
            greatest = greatest.max(*target);
        }
    })?;
    let begin = loss.begin(sum / shape.count as f64);
    if !begin.is_finite() {
        return Err(Error::Invalid(format!("the mean of the labels is {begin}: {ADVICE}")));
    }
    Ok(Begun { begin, most: loss.most_at_first((begin - least).max(greatest - begin)) })
}
