//! A pass over the examples, by each of the ways in which loops can change what all need: the body is the same.
use super::logistic::logistic;
use super::step::Step;
use hectare::orion::array::text::LabelledRow;
use hectare::orion::relax::{AdaRevision, Apply, Buffered, Consistency, Every, Tail};
use hectare::orion::serve::Served;
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};

/// The loss before each example, and a step after it. The loop and its body, of which the clause alone differs.
macro_rules! pass {
    ($w:ident, $clause:ident $weights:ident, $train:ident, $step:ident, $consistency:ident, $every:ident $(, $tail:ident)?) => {{
        let Step { scale, last, one, pulls } = $step;
        parallel_for!($w, unordered, $clause $weights, sum losses: f64, consistency = $consistency, every = $every $(, tail = $tail)?;
        for ((_number), row) in $train {
            let mut margin = one * $weights.get(*last);
            for (feature, x) in &row.features {
                margin += $weights.get(*feature as usize) * x;
            }
            let (loss, slope) = logistic(margin, row.label);
            let scaled = scale * slope;
            for (feature, x) in &row.features {
                let mut change = scaled * x;
                if !pulls.is_empty() {
                    change += pulls[*feature as usize] * $weights.get(*feature as usize);
                }
                $weights.add(*feature as usize, change);
            }
            $weights.add(*last, scaled * one);
            losses += loss as f64;
        })
    }};
}

/// Steps at once in a worker's copy; the sum of the losses before each.
pub(crate) fn relaxed(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut DistArray<f32, 1>,
    step: &Step,
    consistency: Consistency,
    (every, tail): (Every, Tail),
) -> Result<f64> {
    pass!(w, relax weights, train, step, consistency, every, tail)
}

/// Contributions that are merged at the clocks.
pub(crate) fn buffered(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut Buffered<f32, 1, AdaRevision>,
    step: &Step,
    consistency: Consistency,
    (every, tail): (Every, Tail),
) -> Result<f64> {
    pass!(w, buffer weights, train, step, consistency, every, tail)
}

/// With weights that are fetched before.
pub(crate) fn served<A: Apply<f32> + 'static>(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    weights: &mut Served<f32, 1, A>,
    step: &Step,
    consistency: Consistency,
    every: Every,
) -> Result<f64> {
    pass!(w, serve weights, train, step, consistency, every)
}
