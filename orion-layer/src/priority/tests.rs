//! How variables are drawn: the distribution, the pairs, the bits; errors; planted faults.
use super::Priority;
use crate::error::Error;
use crate::mutant::{self, Mutant};
use crate::{Context, Result, run};
use hectare_data::random::Stream;

/// How often each variable is in rounds of one whose weights stay as they are: `k + 1` of variable `k`.
fn counts(w: &mut Context<'_>, mut priority: Priority, rounds: usize) -> Result<Vec<u64>> {
    let mut counts = vec![0; 10];
    for _ in 0..rounds {
        let round = priority.draw(w, |_, _| 0.0)?;
        round.iter().for_each(|k| counts[*k] += 1);
        priority.feed(&round.iter().map(|k| *k as f64 + 1.0).collect::<Vec<_>>())?;
    }
    Ok(counts)
}

/// Pearson's statistic of counts against chances, which sum to 1.
fn chi_square(counts: &[u64], chance: impl Fn(usize) -> f64) -> f64 {
    let all: u64 = counts.iter().sum();
    let term = |(k, count): (usize, &u64)| {
        let expected = all as f64 * chance(k);
        (*count as f64 - expected).powi(2) / expected
    };
    counts.iter().enumerate().map(term).sum()
}

/// The quantile of 0.999 for nine degrees of freedom.
const UNLIKELY: f64 = 27.88;
const ROUNDS: usize = 20_000;

fn by_weight(k: usize) -> f64 {
    (k as f64 + 1.0) / 55.0
}

#[test]
fn draws_have_the_chances_of_their_weights() {
    let weighted = || Priority::new(10).batch(1).weigh((1..=10).map(f64::from).collect());
    let of = |priority: fn(Priority) -> Priority| {
        run(1, |w| counts(w, priority(weighted()), ROUNDS)).unwrap().swap_remove(0)
    };
    let plain = of(|priority| priority.explore(0.0));
    assert!(chi_square(&plain, by_weight) < UNLIKELY, "{plain:?}");
    let mixed = of(|priority| priority.explore(0.4));
    assert!(chi_square(&mixed, |k| 0.6 * by_weight(k) + 0.04) < UNLIKELY, "{mixed:?}");
    assert!(chi_square(&mixed, by_weight) > 10.0 * UNLIKELY, "{mixed:?}");
    let even = of(Priority::uniform);
    assert!(chi_square(&even, |_| 0.1) < UNLIKELY, "{even:?}");
}

#[test]
fn weights_that_are_not_fed_back_are_noticed() {
    let fed =
        || run(1, |w| counts(w, Priority::new(10).batch(1).explore(0.0), ROUNDS)).unwrap().swap_remove(0);
    assert!(chi_square(&fed(), by_weight) < UNLIKELY);
    let kept = run(1, |w| {
        mutant::with(Mutant::WeightsKept, || counts(w, Priority::new(10).batch(1).explore(0.0), ROUNDS))
    });
    assert!(chi_square(&kept.unwrap()[0], by_weight) > 10.0 * UNLIKELY);
}

/// A round has no more than there are, whatever is asked for.
#[test]
fn a_batch_of_more_than_all_ends() {
    let rounds = run(1, |w| {
        let mut priority = Priority::new(4).batch(usize::MAX).explore(0.0).weigh(vec![0.0, 3.0, 0.0, 1.0]);
        let round = priority.draw(w, |_, _| 0.0)?;
        priority.feed(&vec![1.0; round.len()])?;
        Ok(round.len())
    });
    assert!(rounds.unwrap()[0] <= 4);
}

#[test]
fn all_have_a_first_turn_before_one_has_a_second() {
    let rounds = run(2, |w| {
        let mut priority = Priority::new(40).batch(7);
        let mut seen = Vec::<usize>::new();
        while seen.len() < 40 {
            let round = priority.draw(w, |_, _| 0.0)?;
            seen.extend(&round);
            priority.feed(&vec![1.0; round.len()])?;
        }
        Ok(seen)
    });
    let mut seen = rounds.unwrap().swap_remove(0);
    seen.truncate(40);
    assert_ne!(seen, (0..40).collect::<Vec<_>>());
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
}

/// Variables 0 to 3 are dependent on most others.
fn dependency(a: usize, b: usize) -> f64 {
    let x = Stream::new(5, "dependency").uniform((a * 60 + b) as u64);
    if a < 4 { 0.5 + 0.5 * x } else { 0.9 * x }
}

/// Rounds whose weights depend on the variable and the round.
fn rounds(w: &mut Context<'_>, mut priority: Priority, count: usize) -> Result<Vec<Vec<usize>>> {
    let mut all = Vec::new();
    for number in 0..count {
        let round = priority.draw(w, dependency)?;
        let weight = |at: &usize| Stream::new(9, "weights").uniform((at * 1000 + number) as u64).powi(4);
        priority.feed(&round.iter().map(weight).collect::<Vec<_>>())?;
        all.push(round);
    }
    assert_eq!(priority.rounds(), count as u64);
    assert_eq!(priority.updates(), all.iter().map(Vec::len).sum::<usize>() as u64);
    Ok(all)
}

/// Pairs in rounds that are above the bound.
fn above(rounds: &[Vec<usize>], bound: f64) -> usize {
    let of = |round: &Vec<usize>| {
        let pairs = round.iter().flat_map(|a| round.iter().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| a < b && dependency(*a, *b) > bound).count()
    };
    rounds.iter().map(of).sum()
}

#[test]
fn no_pair_of_a_round_is_above_the_bound() {
    for bound in [0.0, 0.2, 0.45, 0.8] {
        let all = run(2, |w| rounds(w, Priority::new(60).batch(6).bound(bound), 200)).unwrap().swap_remove(0);
        assert_eq!(above(&all, bound), 0);
        for round in &all {
            let mut different = round.clone();
            different.sort_unstable();
            different.dedup();
            assert!(different.len() == round.len() && (1..=6).contains(&round.len()), "{round:?}");
        }
        assert!(all.iter().any(|round| round.len() > 1) || bound == 0.0);
        // Whoever depends on nearly all others runs, too: what is put off comes first next time.
        assert!((0..60).all(|k| all.iter().any(|round| round.contains(&k))), "{bound}");
    }
    let kept =
        run(1, |w| mutant::with(Mutant::PairsKept, || rounds(w, Priority::new(60).batch(6).bound(0.2), 200)));
    assert!(above(&kept.unwrap()[0], 0.2) > 100);
}

#[test]
fn rounds_are_the_same_for_every_number_of_workers() {
    let of = |workers, seed, priority: fn(Priority) -> Priority| {
        let all = run(workers, |w| {
            w.set_seed(seed);
            rounds(w, priority(Priority::new(60).batch(9).bound(0.6)), 150)
        });
        let mut all = all.unwrap();
        let first = all.swap_remove(0);
        assert!(all.iter().all(|other| *other == first));
        first
    };
    for priority in [|priority| priority, Priority::uniform] {
        let one = of(1, 0, priority);
        for workers in [2, 3, 5] {
            assert_eq!(of(workers, 0, priority), one);
        }
        assert_ne!(of(2, 1, priority), one);
    }
}

#[test]
fn a_pair_is_evaluated_once_and_by_one_worker() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let calls = AtomicU64::new(0);
    let evaluated = run(3, |w| {
        let mut priority = Priority::new(30).batch(6).bound(0.5);
        for _ in 0..300 {
            let round = priority.draw(w, |a, b| {
                assert!(a < b);
                calls.fetch_add(1, Relaxed);
                dependency(a, b)
            })?;
            priority.feed(&vec![1.0; round.len()])?;
        }
        Ok(priority.evaluated())
    });
    let evaluated = evaluated.unwrap();
    assert!(evaluated.iter().all(|count| *count == calls.load(Relaxed)));
    assert!((1..=30 * 29 / 2).contains(&evaluated[0]), "{evaluated:?}");
}

/// The errors of all workers, which are one.
fn error(workers: usize, act: impl Fn(&mut Context<'_>) -> Result<()> + Sync) -> String {
    let errors = run(workers, |w| Ok(act(w).unwrap_err().to_string())).unwrap();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors.into_iter().next().unwrap()
}

/// A setting of a `Priority`.
type Setting = fn(Priority) -> Priority;

#[test]
fn bad_functions_and_weights_are_errors_with_loop_and_place() {
    for workers in [1, 2, 3] {
        let draw = |function: fn(usize, usize) -> f64| {
            error(workers, |w| Priority::new(12).batch(12).draw(w, function).map(drop))
        };
        let line = format!("{}:", file!());
        for (said, what) in [
            (
                draw(|a, b| if a == 3 && b == 7 { panic!("no column 7") } else { 0.0 }),
                "variables 3 and 7: the dependency function panicked: no column 7",
            ),
            (
                draw(|a, b| if a + b > 15 { f64::NAN } else { 0.0 }),
                "variables 5 and 11: the dependency is NaN: the function has to return a number",
            ),
        ] {
            assert!(said.contains(&line) && said.starts_with("loop ") && said.ends_with(what), "{said}");
        }
        let feed = |weight: f64| {
            error(workers, |w| {
                let mut priority =
                    Priority::new(9).batch(3).explore(0.0).weigh([&[0.0; 8][..], &[1.0]].concat());
                let round = priority.draw(w, |_, _| 0.0)?;
                assert_eq!(round[0], 8);
                priority.feed(&[&[weight], &vec![0.0; round.len() - 1][..]].concat())
            })
        };
        for (weight, what) in [(f64::NAN, "NaN"), (-1.0, "-1"), (f64::INFINITY, "inf")] {
            let said = feed(weight);
            let what = format!("variable 8: the weight is {what}: a number from 0 to 1e290");
            assert!(said.contains(&line) && said.ends_with(&what), "{said}");
        }
        let settings: [(Setting, &str); 5] = [
            (|priority| priority.batch(0), "batch: 0: at least 1"),
            (|priority| priority.bound(f64::NAN), "bound: NaN: a number"),
            (|priority| priority.explore(1.5), "explore: 1.5: a share, from 0 to 1"),
            (|priority| priority.weigh(vec![1.0; 3]), "weights: 3 of them for 4 variables"),
            (|priority| priority.weigh(vec![1.0, 0.0, -2.0, 0.0]), "variable 2: the weight is -2"),
        ];
        for (set, what) in settings {
            let said = error(workers, |w| set(Priority::new(4)).draw(w, |_, _| 0.0).map(drop));
            assert!(said.contains(&line) && said.contains(what), "{said}");
        }
        let said = error(workers, |w| {
            let mut priority = Priority::new(4);
            priority.draw(w, |_, _| 0.0)?;
            priority.draw(w, |_, _| 0.0).map(drop)
        });
        assert!(said.contains("last round: its weights are missing"), "{said}");
        let said = error(workers, |w| {
            let mut priority = Priority::new(4).batch(2);
            priority.draw(w, |_, _| 0.0)?;
            priority.feed(&[1.0; 3])
        });
        assert!(said.contains("round 1: 3 weights for the 2 variables of the round"), "{said}");
        let said = error(workers, |_| Priority::new(4).feed(&[]));
        assert!(said.contains("there is no round"), "{said}");
    }
}

#[test]
fn after_an_error_the_program_may_go_on() {
    let rounds = run(2, |w| {
        let mut priority = Priority::new(5).batch(5);
        priority.draw(w, |_, _| f64::NAN).unwrap_err();
        let mut round = priority.draw(w, |_, _| 0.0)?;
        round.sort_unstable();
        Ok(round)
    });
    assert_eq!(rounds.unwrap(), [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]);
}

#[test]
fn workers_with_other_settings_or_weights_have_diverged() {
    let settings = run(2, |w| {
        let bound = if w.rank() == 0 { 0.5 } else { 0.25 };
        Ok(Priority::new(5).bound(bound).draw(w, |_, _| 0.0).unwrap_err())
    });
    let weights = run(2, |w| {
        let mut priority = Priority::new(5).batch(1);
        priority.draw(w, |_, _| 0.0)?;
        priority.feed(&[f64::from(w.rank())])?;
        Ok(priority.draw(w, |_, _| 0.0).unwrap_err())
    });
    for (errors, what) in [(settings, "bound 0.25"), (weights, "weights of 1.0")] {
        for error in errors.unwrap() {
            assert!(matches!(error, Error::Diverged { .. }) && error.to_string().contains(what), "{error}");
        }
    }
}

#[test]
fn no_variables_are_no_round() {
    let rounds = run(2, |w| Priority::new(0).draw(w, |_, _| 0.0)).unwrap();
    assert!(rounds.iter().all(Vec::is_empty));
}
