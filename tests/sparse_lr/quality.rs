//! Accuracy and area under the curve.
use super::sparse_lr::quality::Quality;
use super::{Examples, losses, options};
use hectare::orion::array::random::Stream;

#[test]
fn the_area_is_the_share_of_pairs_in_order() {
    let of = |scored: &[[f32; 2]]| Quality::of(scored).auc;
    assert_eq!(of(&[[0.0, -1.0], [1.0, 1.0]]), Some(1.0));
    assert_eq!(of(&[[1.0, -1.0], [0.0, 1.0]]), Some(0.0));
    assert_eq!(of(&[[2.0, -1.0], [2.0, 1.0], [2.0, 1.0]]), Some(0.5), "all are alike");
    assert_eq!(of(&[[-0.0, -1.0], [0.0, 1.0]]), Some(0.5), "zero is zero");
    assert_eq!(of(&[[0.3, 1.0], [0.4, 1.0]]), None, "of one label");
    assert_eq!(of(&[]), None);
    for seed in 0..50 {
        // Few different margins, so that many are equal.
        let random = Stream::new(seed, "scores");
        let scored: Vec<[f32; 2]> = (0..60)
            .map(|at| [random.below(2 * at, 9) as f32 - 4.0, random.below(2 * at + 1, 2) as f32])
            .collect();
        let (mut won, mut pairs) = (0.0, 0.0);
        for [negative, _] in scored.iter().filter(|scored| scored[1] == 0.0) {
            for [positive, _] in scored.iter().filter(|scored| scored[1] == 1.0) {
                pairs += 1.0;
                won += if positive > negative { 1.0 } else { 0.0 }
                    + if positive == negative { 0.5 } else { 0.0 };
            }
        }
        assert!((of(&scored).unwrap() - won / pairs).abs() < 1e-12, "seed {seed}");
        let right = scored.iter().filter(|[margin, label]| (*margin > 0.0) == (*label == 1.0)).count();
        assert_eq!(Quality::of(&scored).accuracy, right as f64 / 60.0);
    }
}

#[test]
fn workers_say_what_the_twin_says_of_the_test_file() {
    use super::sparse_lr::{serial, train};
    let files = [Examples::write("judged", 0..800), Examples::write("judged-test", 800..1100)];
    // One worker with SGD computes what the twin computes, in the file's order or another.
    let o =
        options(&["--rule", "sgd", "--rate", "0.1", "--data", files[0].path(), "--test", files[1].path()]);
    let twin = serial(&o).unwrap();
    for workers in [1, 3] {
        let curve = hectare::run(workers, |w| train(w, &o, Default::default())).unwrap().swap_remove(0);
        let [said, expected] = [&curve, &twin].map(|curve| {
            let numbers: Vec<f64> =
                curve.said().split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
            assert_eq!(numbers.len(), 2, "{}", curve.said());
            numbers
        });
        assert!(expected[0] > 0.8 && expected[1] > 0.9, "{expected:?}, {:?}", losses(&twin));
        for (said, expected) in said.iter().zip(&expected) {
            assert!((said - expected).abs() < 0.05, "{said:?}, serial {expected:?}");
        }
    }
}
