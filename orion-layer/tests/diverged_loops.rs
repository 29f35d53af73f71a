//! Loops that workers describe differently: an error at once, on all of them, that says what differs.
use crate::common;

use common::diverging::assert_diverged;
use common::hand::on_each;
use hectare_orion::collections::{First, Last};
use hectare_orion::relax::{AdaGrad, Apply, Consistency, Every, Mean, Sum};
use hectare_orion::{Context, Error, parallel_for};
use std::time::Duration;

const COUNT: usize = 600;

/// Runs a program in which worker 1 says something else: the error of each worker, which names both and `words`.
fn differs(words: [&str; 2], program: impl Fn(&mut Context<'_>, bool) -> Result<(), Error> + Sync) {
    let results = on_each(3, |w| {
        let result = program(w, w.rank() == 1);
        // Nobody is out of step.
        w.barrier()?;
        let mut fresh = w.zeros::<u64, 1>([9])?;
        parallel_for!(w, unordered, relax fresh; for i in 0..9 { fresh.add(i, 1); })?;
        assert_eq!(fresh.to_vec(w)?, [1; 9]);
        result
    });
    assert_diverged("diverged_loops.rs", words, results);
}

fn relaxed(w: &mut Context<'_>, consistency: Consistency, every: Every) -> Result<(), Error> {
    let mut bins = w.zeros::<u64, 1>([9])?;
    parallel_for!(w, unordered, relax bins, consistency = consistency, every = every;
        for i in 0..COUNT { bins.add(i % 9, 1); })
}

#[test]
fn a_consistency_that_differs() {
    let every = Every::PerPass(4);
    differs(["consistency = Bsp", "consistency = Async"], |w, other| {
        relaxed(w, if other { Consistency::Async } else { Consistency::Bsp }, every)
    });
    // Plans do not depend on the bound.
    differs(["consistency = Bounded(1)", "consistency = Bounded(2)"], |w, other| {
        relaxed(w, Consistency::Bounded(if other { 2 } else { 1 }), every)
    });
    differs(["consistency = Serializable", "consistency = Bsp"], |w, other| {
        relaxed(w, if other { Consistency::Bsp } else { Consistency::Serializable }, every)
    });
}

#[test]
fn an_interval_that_differs() {
    let time = |ms| Every::Time(Duration::from_millis(ms));
    differs(["every = Time(1ms)", "every = Time(2ms)"], |w, other| {
        relaxed(w, Consistency::Bounded(1), time(if other { 2 } else { 1 }))
    });
    differs(["every = PerPass(4)", "every = Iterations(0)"], |w, other| {
        relaxed(w, Consistency::Bsp, if other { Every::Iterations(0) } else { Every::PerPass(4) })
    });
}

#[test]
fn a_consistency_that_differs_only_in_a_later_pass() {
    differs(["consistency = Bsp", "consistency = Async"], |w, other| {
        let mut bins = w.zeros::<u64, 1>([9])?;
        for pass in 0..3 {
            let consistency = if pass == 2 && other { Consistency::Async } else { Consistency::Bsp };
            let done = parallel_for!(w, unordered, relax bins, consistency = consistency;
                for i in 0..COUNT { bins.add(i % 9, 1); });
            assert_eq!(done.is_err(), pass == 2);
            done?;
        }
        Ok(())
    });
}

/// A loop that is the same for the compiler, whatever the rule.
fn buffered<A: Apply<f64> + 'static>(w: &mut Context<'_>, rule: A) -> Result<(), Error> {
    let start = w.zeros::<f64, 1>([9])?;
    let mut bins = w.buffered(start, rule)?;
    parallel_for!(w, unordered, buffer bins; for i in 0..COUNT { bins.add(i % 9, 1.0); })
}

#[test]
fn a_rule_that_differs() {
    differs(["buffer bins (array 1) by the rule Sum", "by the rule Mean"], |w, other| {
        if other { buffered(w, Mean::over(3)) } else { buffered(w, Sum) }
    });
    differs(["rate: 0.5", "rate: 0.25"], |w, other| {
        buffered(w, AdaGrad::new(if other { 0.25 } else { 0.5 }))
    });
    differs(["buffer map (array 1) by the rule First", "by the rule Last"], |w, other| {
        fn pass<M: hectare_orion::collections::Merge<u64, Part = u64>>(
            w: &mut Context<'_>,
            rule: M,
        ) -> Result<(), Error> {
            let mut map = w.dist_map::<u64, u64, M>(rule)?;
            parallel_for!(w, unordered, buffer map; for i in 0..COUNT { map.add(&(i as u64 % 9), 1); })
        }
        if other { pass(w, Last) } else { pass(w, First) }
    });
}

#[test]
fn arrays_spaces_and_checks_that_differ() {
    differs(["relax bins (array 1)", "relax bins (array 2)"], |w, other| {
        let mut both = [w.zeros::<u64, 1>([9])?, w.zeros::<u64, 1>([9])?];
        let bins = &mut both[usize::from(other)];
        parallel_for!(w, unordered, relax bins; for i in 0..COUNT { bins.add(i % 9, 1); })
    });
    differs(["i in 0..600", "i in 0..599"], |w, other| {
        let (mut bins, count) = (w.zeros::<u64, 1>([9])?, COUNT - usize::from(other));
        parallel_for!(w, unordered, relax bins; for i in 0..count { bins.add(i % 9, 1); })
    });
    differs(["without that", "check_loops"], |w, other| {
        w.check_loops(other);
        let result = relaxed(w, Consistency::Bsp, Every::default());
        w.check_loops(false);
        result
    });
    // Also where nothing is relaxed.
    differs(["shift = 0", "shift = 90"], |w, other| {
        let (mut rows, shift) = (w.zeros::<u64, 1>([200_000])?, if other { 90 } else { 0 });
        parallel_for!(w, unordered, write rows; for i in 0..150_000 { rows[i + shift] = 1; })
    });
}
