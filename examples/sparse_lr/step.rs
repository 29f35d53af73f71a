//! The update rules of the weights that an example names.
use super::{Options, Rule, numbering};
use hectare::SparseArray;
use hectare::orion::array::text::LabelledRow;
use hectare::orion::relax::AdaRevision;
use hectare::orion::{Context, Result};

/// The contributions of a pass: an example whose loss has slope `s` adds `scale * s * x + pulls[i] * w[i]` to the weight
/// `w[i]` of each of its features.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// 1 for gradients, the negative rate for steps.
    pub(crate) scale: f32,
    /// Where the intercept is: behind the weights of all features.
    pub(crate) last: usize,
    /// The intercept's feature: 1, or 0 if there is none.
    pub(crate) one: f32,
    /// Towards zero, by regularization; none if there is none.
    pub(crate) pulls: Vec<f32>,
}

impl Step {
    /// Steps of SGD with an intercept, without regularization.
    pub(crate) fn sgd(rate: f32, features: usize) -> Step {
        Step { scale: -rate, last: features, one: 1.0, pulls: Vec::new() }
    }

    /// Those of pass `pass`, with this strength of regularization for each feature.
    pub(crate) fn of(o: &Options, pass: usize, features: usize, strengths: &[f32]) -> Step {
        let one = if o.no_intercept { 0.0 } else { 1.0 };
        let (scale, pulls) = match o.rule {
            Rule::AdaRevision => (1.0, strengths.to_vec()),
            Rule::Sgd => {
                let rate = o.rate(pass);
                // The exact step on the penalty alone, which never goes beyond zero.
                (-rate, strengths.iter().map(|strength| -rate * strength / (1.0 + rate * strength)).collect())
            }
        };
        Step { scale, last: features, one, pulls }
    }
}

/// The default rule for examples whose squared values have this sum and this count. It begins with their mean as
/// the sum of squared gradients, not with 1: with that, values as small as those of long rows of length 1 are learned slowly.
/// Never with more than 1, as a few large values say nothing of the others.
pub(crate) fn rule(o: &Options, [squares, count]: [f64; 2]) -> AdaRevision {
    let mean = (squares / count).min(1.0);
    AdaRevision { rate: o.rate(0).into(), initial: if mean > 0.0 { mean } else { 1.0 } }
}

/// The sum of the squares of values, and how many these are.
pub(crate) fn squares<'a>(features: impl IntoIterator<Item = &'a (u32, f32)>) -> [f64; 2] {
    let plus = |[sum, count]: [f64; 2], (_, x): &(u32, f32)| [sum + f64::from(*x).powi(2), count + 1.0];
    features.into_iter().fold([0.0; 2], plus)
}

/// How strongly an example pulls at the weight of each of its features, so that a pass pulls at all weights as
/// `lambda / 2 |w|^2` beside the mean loss does: those of rare features rarely, and the more. (As Hogwild! does: Niu et
/// al., 2011.) `counts` says how many examples have each feature.
pub(crate) fn strengths(lambda: f32, examples: usize, counts: &[u32]) -> Vec<f32> {
    let strength = |count: &u32| if *count == 0 { 0.0 } else { lambda * examples as f32 / *count as f32 };
    counts.iter().map(strength).collect()
}

/// [`strengths`] of the workers' examples, none if there is no penalty. Collective.
pub(crate) fn count(
    w: &mut Context<'_>,
    o: &Options,
    train: &SparseArray<LabelledRow, 1>,
    features: usize,
) -> Result<Vec<f32>> {
    if o.l2 == 0.0 {
        return Ok(Vec::new());
    }
    let counts = numbering::counts(w, train, features + 1)?;
    Ok(strengths(o.l2, train.len(), &counts))
}
