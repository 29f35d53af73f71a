//! Helper values of rules: given back by a checkpoint or by parts, and beside arrays that other loops have moved.
use crate::common;

use common::Scratch;
use hectare_orion::relax::{AdaGrad, AdaRevision, Apply, Buffered, Consistency, Sum};
use hectare_orion::serve::Served;
use hectare_orion::{Context, DistArray, Error, Result, parallel_for, run};
use std::path::Path;

const LEN: usize = 40;
const PASSES: usize = 6;

fn target(k: usize) -> f64 {
    (k % LEN) as f64 / 3.0
}

fn pass<A: Apply<f64> + 'static>(w: &mut Context<'_>, means: &mut Buffered<f64, 1, A>) -> Result<()> {
    parallel_for!(w, unordered, buffer means, consistency = Consistency::Bsp; for k in 0..1000 {
        means.add(k % LEN, means.get(k % LEN) - target(k));
    })
}

fn served_pass<A: Apply<f64> + 'static>(w: &mut Context<'_>, means: &mut Served<f64, 1, A>) -> Result<()> {
    parallel_for!(w, unordered, serve means, consistency = Consistency::Bsp; for k in 0..1000 {
        means.add(k % LEN, means.get(k % LEN) - target(k));
    })
}

/// Trains to `end` passes from wherever the checkpoint stands.
fn train(w: &mut Context<'_>, path: &Path, end: usize, serves: bool) -> Result<Vec<f64>> {
    let rule = || AdaRevision::new(0.5);
    let (begin, array, state) = match w.open_checkpoint(path)? {
        Some(saved) => (saved.value("passes")?, saved.array(w, "means")?, Some(saved.array(w, "state")?)),
        None => (0, w.zeros([LEN])?, None),
    };
    let save = |w: &mut Context<'_>, array: &DistArray<f64, 1>, state: Option<&DistArray<_, 1>>| {
        w.save_checkpoint(path, |file| {
            file.value("passes", &end)?;
            file.array("means", array)?;
            file.array::<<AdaRevision as Apply<f64>>::State, 1>("state", state.expect("it has them"))
        })
    };
    if serves {
        let mut means = match state {
            Some(state) => w.served_from_parts(array, Some(state), rule())?,
            None => w.served(array, rule())?,
        };
        (begin..end).try_for_each(|_| served_pass(w, &mut means))?;
        save(w, means.array(), means.state())?;
        return means.array().to_vec(w);
    }
    let mut means = match state {
        Some(state) => w.buffered_from_parts(array, Some(state), rule())?,
        None => w.buffered(array, rule())?,
    };
    (begin..end).try_for_each(|_| pass(w, &mut means))?;
    save(w, means.array(), means.state())?;
    means.array().to_vec(w)
}

#[test]
fn a_rule_goes_on_where_the_checkpoint_was() {
    let scratch = Scratch::new("rule-states");
    for (workers, serves) in [(1, false), (2, false), (3, false), (1, true), (2, true)] {
        let at = |name: &str| scratch.0.join(format!("{name}-{workers}-{serves}"));
        let whole = run(workers, |w| train(w, &at("whole"), PASSES, serves)).unwrap().swap_remove(0);
        run(workers, |w| train(w, &at("parts"), 2, serves)).unwrap();
        let parts = run(workers, |w| train(w, &at("parts"), PASSES, serves)).unwrap().swap_remove(0);
        assert_eq!(parts, whole, "{workers} workers, serves: {serves}");
        // Without what the rule remembers, steps are others.
        let fresh = run(workers, |w| {
            let array = w.open_checkpoint(at("whole"))?.expect("saved").array(w, "means")?;
            let mut means = w.buffered(array, AdaRevision::new(0.5))?;
            pass(w, &mut means)?;
            means.array().to_vec(w)
        });
        assert_ne!(fresh.unwrap()[0], whole);
    }
}

#[test]
fn helper_values_lie_beside_arrays_that_loops_have_moved() {
    let learned = |workers: usize, moves: bool, consistency| {
        run(workers, |w| {
            let mut array = w.zeros::<f64, 1>([LEN])?;
            let space = w.entries([LEN, LEN], LEN * LEN, |k| ([k / LEN, k % LEN], ()))?;
            let mut rows = w.zeros::<f64, 1>([LEN])?;
            if moves {
                // A rotation leaves parts with other workers.
                parallel_for!(w, unordered, write [rows, array]; for ((i, j), _) in space {
                    rows[i] += 1.0;
                    array[j] += 1.0;
                })?;
                // Here one worker has all.
                parallel_for!(w, ordered, write array; for k in 0..LEN {
                    array[k * k % LEN] = 0.0;
                    array[k] = 0.0;
                })?;
            }
            let mut means = w.buffered(array, AdaGrad::new(0.5))?;
            for _pass in 0..3 {
                parallel_for!(w, unordered, buffer means, consistency = consistency; for k in 0..1000 {
                    means.add(k % LEN, means.get(k % LEN) - target(k));
                })?;
            }
            let (array, state) = means.into_parts(w)?;
            let mut again = w.buffered_from_parts(array, state, AdaGrad::new(0.5))?;
            parallel_for!(w, unordered, buffer again, consistency = consistency; for k in 0..1000 {
                again.add(k % LEN, again.get(k % LEN) - target(k));
            })?;
            again.array().to_vec(w)
        })
        .unwrap()
        .swap_remove(0)
    };
    for workers in [1, 2, 3] {
        for consistency in [Consistency::Serializable, Consistency::Bsp] {
            let (moved, fresh) = (learned(workers, true, consistency), learned(workers, false, consistency));
            assert_eq!(moved, fresh, "{workers} workers, {consistency}");
        }
    }
}

#[test]
fn helper_values_that_do_not_fit_are_refused_in_words() {
    let errors = run(2, |w| {
        let (array, other) = (w.zeros::<f64, 1>([LEN])?, w.zeros::<f64, 1>([LEN + 1])?);
        let missing = w.buffered_from_parts(array, None, AdaGrad::new(0.5)).unwrap_err();
        let array = w.zeros::<f64, 1>([LEN])?;
        let longer = w.served_from_parts(array, Some(other), AdaGrad::new(0.5)).unwrap_err();
        assert!(matches!((&missing, &longer), (Error::Shape { .. }, Error::Shape { .. })));
        let array = w.zeros::<f64, 1>([LEN])?;
        w.buffered_from_parts(array, None, Sum)?;
        w.barrier()?;
        Ok([missing, longer].map(|error| error.to_string()))
    });
    for [missing, longer] in errors.unwrap() {
        assert!(missing.contains("AdaGrad") && missing.contains("none are given"), "{missing}");
        assert!(longer.contains("[41]") && longer.contains("[40]"), "{longer}");
    }
}
