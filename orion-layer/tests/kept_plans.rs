//! Plans of loops that are reached with other arrays or bounds each time: they do not pile up, and what they cost is not forgotten.
use hectare_orion::{Context, Result, parallel_for, run};

/// Adds to all elements of a new array, and deletes it.
fn with_a_new_array(w: &mut Context<'_>, round: u64) -> Result<u64> {
    let mut a = w.zeros::<u64, 1>([40])?;
    let sum = parallel_for!(w, unordered, write a, sum all: u64; for i in 0..40 {
        a[i] = round + i as u64;
        all += a[i];
    })?;
    a.delete(w)?;
    Ok(sum)
}

#[test]
fn plans_of_arrays_that_are_gone_are_dropped() {
    const ROUNDS: u64 = 200;
    run(2, |w| {
        for round in 0..ROUNDS {
            assert_eq!(with_a_new_array(w, round)?, 40 * round + 780);
        }
        let timings = w.timings();
        // The last one's array is gone, too, which is found with the next plan.
        assert_eq!(timings.len(), 2, "{timings:?}");
        assert_eq!(timings.iter().map(|timing| timing.passes).sum::<u64>(), ROUNDS);
        let reports = w.reports()?;
        assert_eq!(reports.iter().map(|report| report.passes).collect::<Vec<_>>(), [ROUNDS]);
        assert_eq!(w.explain().len(), 1, "{}", w.explain());
        Ok(())
    })
    .unwrap();
}

/// A kept plan is used again only for the conditions that it was made for.
#[test]
fn loops_are_planned_anew_when_links_may_choose_other_schedules() {
    run(2, |w| {
        let mut a = w.zeros::<u64, 1>([40])?;
        for (allowed, plans) in [(false, 1), (false, 1), (true, 2), (true, 2), (false, 2)] {
            w.allow_link_schedules(allowed);
            parallel_for!(w, unordered, write a; for i in 0..40 {
                a[i] += 1;
            })?;
            assert_eq!(w.timings().len(), plans, "{:?}", w.timings());
        }
        Ok(())
    })
    .unwrap();
}

/// A worker may keep the handle of an array that the others have dropped.
#[test]
fn workers_drop_handles_at_different_times() {
    let sums = run(3, |w| {
        let mut held = Vec::new();
        let mut sums = 0;
        for round in 0..20 {
            let mut a = w.zeros::<u64, 1>([30])?;
            sums += parallel_for!(w, unordered, write a, sum all: u64; for i in 0..30 {
                a[i] += round;
                all += a[i];
            })?;
            if w.rank() == round as u32 % 3 {
                held.push(a);
            }
        }
        let passes: u64 = w.reports()?.iter().map(|report| report.passes).sum();
        assert_eq!(passes, 20);
        drop(held);
        Ok(sums)
    });
    assert_eq!(sums.unwrap(), [30 * 190; 3]);
}

/// Bounds that change each time. Those that come again after long are planned again, by all workers.
#[test]
fn there_are_no_more_than_some_thousand_plans() {
    const LOOPS: usize = 4000;
    run(2, |w| {
        let mut a = w.zeros::<u64, 1>([LOOPS])?;
        for end in (1..=LOOPS).chain([1, 2, LOOPS]) {
            let counted = parallel_for!(w, unordered, write a, sum all: u64; for i in 0..end {
                a[i] += 1;
                all += 1;
            })?;
            assert_eq!(counted, end as u64);
        }
        let timings = w.timings();
        assert!(timings.len() < LOOPS * 3 / 4, "{}", timings.len());
        assert!(timings.len() > 1000, "those of an elimination of this size are kept: {}", timings.len());
        assert_eq!(timings.iter().map(|timing| timing.passes).sum::<u64>(), LOOPS as u64 + 3);
        assert_eq!(a.to_vec(w)?[..3], [LOOPS as u64 + 3, LOOPS as u64 + 1, LOOPS as u64 - 1]);
        Ok(())
    })
    .unwrap();
}

/// As many plans as are kept, of arrays that one worker drops later than the others: what is planned again is so by all.
#[test]
fn workers_plan_again_together() {
    const ROUNDS: usize = 1500;
    run(2, |w| {
        let mut a = w.zeros::<u64, 1>([ROUNDS])?;
        let mut held = Vec::new();
        for round in 1..=ROUNDS {
            let b = w.fill([1], 1u64)?;
            parallel_for!(w, unordered, write a, read b; for i in 0..round { a[i] += b[0]; })?;
            // Over the same array, with bounds that come again.
            parallel_for!(w, unordered, write a; for i in 0..ROUNDS - round % 700 { a[i] += 1; })?;
            if w.rank() == 1 && round % 3 == 0 {
                held.push(b);
            }
        }
        let expected = |i: usize| {
            (1..=ROUNDS).filter(|round| i < *round).count()
                + (1..=ROUNDS).filter(|round| i < ROUNDS - round % 700).count()
        };
        let all = a.to_vec(w)?;
        assert!((0..ROUNDS).all(|i| all[i] == expected(i) as u64));
        Ok(())
    })
    .unwrap();
}
