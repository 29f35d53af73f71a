//! The losses: derivatives by the margin, in fixed point.
//!
//! Sums of derivatives are sums of integers, which are the same in any order: so histograms, and with them trees, have the same
//! bits for every number of workers, whoever adds up which rows, and a histogram is exactly its parent less its sibling.
use super::labels::Labels;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The loss function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Loss {
    /// Which of two labels: logistic loss.
    Logistic,
    /// A number: half of the squared error.
    Squared,
}

/// Sums of both derivatives: the first one in the upper 32 bits, with a sign, the second one, which is not negative, below.
pub(crate) type Packed = i64;

/// The first and the second derivatives of a sum.
#[inline(always)]
pub(crate) fn unpacked(sum: Packed) -> (i32, i32) {
    ((sum >> 32) as i32, sum as i32)
}

/// How derivatives become integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Integers of a first derivative of 1, and of a second one.
    first: f32,
    second: f32,
    /// The greatest integer: as many of it as there are rows fit 32 bits.
    steps: f32,
    /// The reverse.
    pub(crate) of_first: f64,
    pub(crate) of_second: f64,
}

/// Steps between zero and the greatest derivative, at most: those of 32 bits' floats.
const FINEST: u32 = 1 << 20;
/// The most rows: of more, sums of 32 bits would leave too few steps.
pub(crate) const MOST_ROWS: usize = 1 << 24;

impl Scale {
    /// For `rows` rows whose first derivatives are cut off at `most`.
    pub(crate) fn new(loss: Loss, rows: usize, most: f32) -> Scale {
        let steps = (i32::MAX as usize / rows.max(1)).min(FINEST as usize) as f64;
        let second = match loss {
            Loss::Logistic => 0.25,
            Loss::Squared => 1.0,
        };
        let most = if most > 0.0 { f64::from(most) } else { 1.0 };
        Scale {
            first: (steps / most) as f32,
            second: (steps / second) as f32,
            steps: steps as f32,
            of_first: most / steps,
            of_second: second / steps,
        }
    }
}

impl Scale {
    /// To the nearest integer, of those that there are.
    #[inline(always)]
    fn rounded(&self, x: f32) -> i32 {
        // Only a rounding error is cut off. The bits above 2^23 are those of the integer.
        let shifted = x.clamp(-self.steps, self.steps) + SHIFT;
        (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32)
    }
}

impl Loss {
    /// Above all first derivatives of the first tree; of later ones, it depends on those before.
    pub(crate) fn most_at_first(self, greatest_error: f32) -> f32 {
        match self {
            Loss::Logistic => 1.0,
            Loss::Squared => greatest_error,
        }
    }

    /// Above all first derivatives after a tree, if `most` was above those before, and the tree's values are up to `step`.
    pub(crate) fn most_after(self, most: f32, step: f32) -> f32 {
        match self {
            Loss::Logistic => 1.0,
            Loss::Squared => most + step,
        }
    }

    /// The derivatives of a row, whose target is a number, or 0 or 1; and the size of the first one.
    #[inline(always)]
    pub(crate) fn derivatives(self, margin: f32, target: f32, scale: &Scale) -> (Packed, f32) {
        let (first, second) = match self {
            Loss::Logistic => {
                let p = 1.0 / (1.0 + exp(-margin));
                (p - target, p * (1.0 - p))
            }
            Loss::Squared => (margin - target, 1.0),
        };
        let packed = i64::from(scale.rounded(first * scale.first)) << 32;
        (packed + i64::from(scale.rounded(second * scale.second)), first.abs())
    }

    /// The margin before the first tree: the best single one. `mean` is that of the targets.
    pub(crate) fn begin(self, mean: f64) -> f32 {
        match self {
            Loss::Logistic => (mean / (1.0 - mean)).ln() as f32,
            Loss::Squared => mean as f32,
        }
    }

    /// The target of a label of a file, of rows to learn from and to test with.
    pub(crate) fn target(self, label: f32, labels: Option<Labels>) -> f32 {
        match labels {
            Some(labels) => f32::from(label == labels.positive),
            None => label,
        }
    }
}

/// Floats of 32 bits near this one are whole numbers: to add it rounds.
const SHIFT: f32 = 12_582_912.0;

/// The exponential function, to about one part in ten million: additions and products only, so that it vectorizes, and has the
/// same bits on every machine.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    let whole = (x * std::f32::consts::LOG2_E + SHIFT) - SHIFT;
    // ln 2 in two parts, the first of few digits.
    let rest = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let mut power = 1.0 / 720.0;
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * rest + coefficient;
    }
    power * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_function_is_near_that_of_the_library() {
        for step in -8700..=8700 {
            let x = step as f32 / 100.0;
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) / wanted - 1.0).abs() < 1e-6, "{x}");
        }
        assert!(exp(-1000.0) > 0.0 && exp(1000.0).is_finite());
    }

    #[test]
    fn sums_of_derivatives_do_not_overflow() {
        for (loss, margin, target) in [(Loss::Logistic, -100.0, 1.0), (Loss::Squared, -3.0, 4.0)] {
            for rows in [1, 1000, MOST_ROWS] {
                let scale = Scale::new(loss, rows, loss.most_at_first(7.0));
                let (packed, size) = loss.derivatives(margin, target, &scale);
                let (first, second) = unpacked(packed);
                assert!(i64::from(first).abs() * rows as i64 <= i64::from(i32::MAX), "{loss:?} {rows}");
                assert!(second >= 0 && i64::from(second) * rows as i64 <= i64::from(i32::MAX));
                let near = (f64::from(first) * scale.of_first + f64::from(size)).abs();
                assert!(near <= scale.of_first, "{loss:?} {rows}: {near}");
            }
        }
    }
}
