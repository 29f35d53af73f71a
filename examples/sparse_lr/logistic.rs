//! The logistic loss.

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

/// The chance that an example with this margin is positive.
pub(crate) fn probability(margin: f32) -> f32 {
    // How wrong it would be to take it for negative.
    logistic(margin, -1.0).1
}
