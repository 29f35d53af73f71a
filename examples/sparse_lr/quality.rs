//! How good predictions are.
use super::logistic::logistic;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The margin and the label of an example that was predicted.
pub(crate) type Scored = [f32; 2];

/// Measures of the predictions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quality {
    /// The mean logistic loss.
    pub(crate) loss: f64,
    /// The part whose label is right; an even chance counts as negative.
    pub(crate) accuracy: f64,
    /// The chance that a positive example has a greater margin than a negative one; of equal margins, half a chance. None
    /// if all examples have one label.
    pub(crate) auc: Option<f64>,
}

impl Quality {
    pub(crate) fn of(scored: &[Scored]) -> Quality {
        let loss: f64 = scored.iter().map(|[margin, label]| f64::from(logistic(*margin, *label).0)).sum();
        let right = scored.iter().filter(|[margin, label]| (*margin > 0.0) == (*label > 0.0)).count();
        let count = scored.len() as f64;
        Quality { loss: loss / count, accuracy: right as f64 / count, auc: auc(scored) }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accuracy {:.4}, ", self.accuracy)?;
        match self.auc {
            Some(auc) => write!(f, "AUC {auc:.4}"),
            None => write!(f, "no AUC of one label"),
        }
    }
}

/// The area under the ROC curve, by the statistic of Mann and Whitney (1947), in whole numbers.
fn auc(scored: &[Scored]) -> Option<f64> {
    // Zero has two signs, which are one margin.
    let mut order: Vec<(f32, bool)> =
        scored.iter().map(|[margin, label]| (margin + 0.0, *label > 0.0)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Pairs of a negative example and a positive one with a greater margin, twice, and those with the same once.
    let (mut pairs, mut below) = (0u128, 0u128);
    for equal in order.chunk_by(|a, b| a.0 == b.0) {
        let positive = equal.iter().filter(|(_, positive)| *positive).count() as u128;
        let negative = equal.len() as u128 - positive;
        pairs += positive * (2 * below + negative);
        below += negative;
    }
    let all = 2 * below * (order.len() as u128 - below);
    (all > 0).then(|| pairs as f64 / all as f64)
}
