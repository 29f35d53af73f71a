//! Intercept and regularization: what is learned is the optimum of the objective that is documented.
use super::{Examples, losses, options, sparse_lr};
use crate::common::program::refuses;
use hectare::orion::relax::Consistency;
use sparse_lr::{serial, train};

/// Examples of one feature, which all have, so that the optimum is known: with the intercept it is that of the shares of
/// both labels.
fn shares(name: &str, positive: usize, of: usize) -> Examples {
    let line = |number| if number < positive { "+1\n" } else { "-1\n" };
    Examples::of(name, &(0..of).map(line).collect::<String>())
}

/// The last test loss of the twin and of every way with workers.
fn last_losses(args: &[&str]) -> Vec<(String, f64)> {
    let mut all = vec![];
    for manner in [
        &[][..],
        &["--serve"],
        &["--rule", "sgd", "--rate", "0.02"],
        &["--rule", "sgd", "--serve", "--rate", "0.02"],
    ] {
        let o = options(&[args, manner].concat());
        let last = |curve| *losses(&curve).last().unwrap();
        all.push((format!("serial, {manner:?}"), last(serial(&o).unwrap())));
        for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async] {
            for workers in [1, 3] {
                let curve = hectare::run(workers, |w| train(w, &o, consistency)).unwrap().swap_remove(0);
                all.push((format!("{workers} workers, {consistency}, {manner:?}"), last(curve)));
            }
        }
    }
    all
}

#[test]
fn the_intercept_alone_learns_the_share_of_positives() {
    let file = shares("shares", 300, 1000);
    // The entropy of 3 in 10.
    let entropy = -(0.3f64.ln() * 0.3 + 0.7f64.ln() * 0.7);
    for (how, loss) in last_losses(&["--data", file.path(), "--passes", "6"]) {
        assert!((loss / entropy - 1.0).abs() < 0.005, "{how}: {loss}, not {entropy}");
    }
    for (how, loss) in last_losses(&["--data", file.path(), "--no-intercept", "--passes", "2"]) {
        assert!((loss - 2f64.ln()).abs() < 1e-6, "{how}: {loss} without anything to learn from");
    }
}

#[test]
fn regularization_ends_at_the_optimum_of_its_objective() {
    const LAMBDA: f64 = 0.05;
    // Feature 1 is in all examples, feature 2 in a tenth of them, and each tells as much as the other.
    let line = |number: usize| {
        let label = if number % 10 < 8 { "+1" } else { "-1" };
        format!("{label} {}:1\n", if (number / 10).is_multiple_of(10) { 2 } else { 1 })
    };
    let file = Examples::of("penalty", &(0..2000).map(line).collect::<String>());
    // Each weight on its own: share * (p - 0.8) + lambda * w = 0, by bisection.
    let optimum = |share: f64| {
        let slope = |w: f64| share * (1.0 / (1.0 + (-w).exp()) - 0.8) + LAMBDA * w;
        let (mut low, mut high) = (-10.0, 10.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if slope(middle) < 0.0 { low = middle } else { high = middle }
        }
        low
    };
    let loss = |w: f64| 0.8 * (-w).exp().ln_1p() + 0.2 * w.exp().ln_1p();
    let expected = 0.9 * loss(optimum(0.9)) + 0.1 * loss(optimum(0.1));
    // Without regularization both weights would be ln 4, and the loss 0.5004; here they are 1.15 and 0.48.
    assert!(expected > 0.509, "{expected}");
    let lambda = LAMBDA.to_string();
    let args = ["--data", file.path(), "--no-intercept", "--l2", &lambda, "--passes", "20"];
    for (how, loss) in last_losses(&args) {
        assert!((loss / expected - 1.0).abs() < 0.005, "{how}: {loss}, not {expected}");
    }
}

#[test]
fn strengths_without_meaning_are_refused() {
    for lambda in ["-1", "NaN", "inf"] {
        refuses("sparse_lr", &[(&[&format!("--l2={lambda}")], "a finite number, 0 or greater")]);
    }
}
