//! Arrays whose tails are merged at fewer clocks than their heads.
use hectare_orion::relax::{AdaRevision, Consistency, Every, Sum, Tail};
use hectare_orion::{Context, Error, Result, parallel_for, run};
use proptest::prelude::*;

const LEN: usize = 1000;

/// The element that iteration `i` changes; one in two changes one of the first few.
fn place(i: usize) -> usize {
    if i.is_multiple_of(2) { i / 2 % 7 } else { i * 37 % LEN }
}

/// The bits of an array that a loop relaxes, and reads.
fn relaxed(workers: usize, consistency: Consistency, times: usize, tail: Tail) -> Vec<u32> {
    let all = run(workers, |w| {
        let mut a = w.uniform([LEN], 0.0..1.0f32, 1)?;
        for _pass in 0..2 {
            parallel_for!(w, unordered, relax a, consistency = consistency, every = Every::PerPass(times), tail = tail;
            for i in 0..9600 {
                let other = a.get((i * 11) % LEN);
                a.add(place(i), 0.001 * other);
            })?;
        }
        a.to_vec(w)
    });
    all.unwrap().swap_remove(0).into_iter().map(f32::to_bits).collect()
}

/// The same of one to which it contributes, by a rule that looks at what was seen when.
fn buffered(workers: usize, consistency: Consistency, times: usize, tail: Tail) -> Vec<u32> {
    let all = run(workers, |w| {
        let a = w.uniform([LEN], 0.0..1.0f32, 1)?;
        let mut a = w.buffered(a, AdaRevision::new(0.1))?;
        for _pass in 0..2 {
            parallel_for!(w, unordered, buffer a, consistency = consistency, every = Every::PerPass(times), tail = tail;
            for i in 0..9600 {
                let other = a.get((i * 11) % LEN);
                a.add(place(i), other - 0.3);
            })?;
        }
        a.array().to_vec(w)
    });
    all.unwrap().swap_remove(0).into_iter().map(f32::to_bits).collect()
}

/// A tail that is the whole array is an array with fewer clocks: for rules and numbers that notice when what was read.
#[test]
fn a_tail_that_is_all_of_it_is_as_fewer_clocks() {
    for workers in [1, 2, 3, 4] {
        for clocks in [2, 3, 4] {
            // So many that loops are cut into cells by nothing else.
            let (tail, many) = (Tail::new(0, clocks), 192);
            let fewer = many / clocks as usize;
            let with = relaxed(workers, Consistency::Bsp, many, tail);
            assert!(with == relaxed(workers, Consistency::Bsp, fewer, Tail::NONE), "{workers}, {clocks}");
            assert!(workers == 1 || with != relaxed(workers, Consistency::Bsp, many, Tail::NONE));
            let with = buffered(workers, Consistency::Bsp, many, tail);
            assert!(with == buffered(workers, Consistency::Bsp, fewer, Tail::NONE), "{workers}, {clocks}");
            assert!(with != buffered(workers, Consistency::Bsp, many, Tail::NONE));
        }
    }
}

#[test]
fn a_tail_that_is_empty_is_none() {
    for tail in [Tail::new(LEN, 4), Tail::new(0, 1), Tail::new(usize::MAX - 1, 3)] {
        assert!(relaxed(3, Consistency::Bsp, 8, tail) == relaxed(3, Consistency::Bsp, 8, Tail::NONE));
        assert!(buffered(3, Consistency::Bsp, 8, tail) == buffered(3, Consistency::Bsp, 8, Tail::NONE));
    }
}

#[test]
fn runs_repeat_their_bits_under_bsp() {
    // The last clock is one of the whole, and one that would not be.
    for times in [8, 10] {
        for tail in [Tail::new(7, 4), Tail::new(128, 3), Tail::new(70, 100)] {
            assert!(relaxed(4, Consistency::Bsp, times, tail) == relaxed(4, Consistency::Bsp, times, tail));
            assert!(buffered(4, Consistency::Bsp, times, tail) == buffered(4, Consistency::Bsp, times, tail));
        }
    }
}

/// By iteration, what each worker has seen of the first element and of the last, to which all add one in each iteration: one worker's
/// clock has ten iterations, and its first twenty are seen here.
fn seen(is_buffer: bool) -> Vec<[u32; 2]> {
    let all = run(2, |w| {
        let mut log = w.zeros::<[u32; 2], 1>([80])?;
        let a = w.zeros::<u32, 1>([LEN])?;
        let (every, tail) = (Every::PerPass(4), Tail::new(64, 2));
        if is_buffer {
            let mut a = w.buffered(a, Sum)?;
            parallel_for!(w, unordered, buffer a, write log, consistency = Consistency::Bsp, every = every, tail = tail; for i in 0..80 {
                log[i] = [a.get(0), a.get(LEN - 1)];
                a.add(0, 1);
                a.add(LEN - 1, 1);
            })?;
            assert_eq!(a.array().get(w, [0])?, 80);
            assert_eq!(a.array().get(w, [LEN - 1])?, 80);
        } else {
            let mut a = a;
            parallel_for!(w, unordered, relax a, write log, consistency = Consistency::Bsp, every = every, tail = tail; for i in 0..80 {
                log[i] = [a.get(0), a.get(LEN - 1)];
                a.add(0, 1);
                a.add(LEN - 1, 1);
            })?;
            assert_eq!(a.get(w, [0])?, 80);
            assert_eq!(a.get(w, [LEN - 1])?, 80);
        }
        log.to_vec(w)
    });
    all.unwrap().swap_remove(0)
}

#[test]
fn heads_are_merged_at_each_clock_and_tails_at_theirs() {
    // Of both workers, 20 are added in a clock. At the beginning of each clock a worker sees:
    let (head, tail) = ([0, 20, 40, 60], [0, 0, 40, 40]);
    let (relaxed, buffered) = (seen(false), seen(true));
    for first in [0, 40] {
        for clock in 0..4 {
            for at in 0..10 {
                let i = first + 10 * clock + at;
                let own = at as u32;
                // Copies have the worker's own changes at once: those of the tail since it was merged last.
                let since = own + if clock % 2 == 1 { 10 } else { 0 };
                assert_eq!(relaxed[i], [head[clock] + own, tail[clock] + since], "relaxed, {i}");
                assert_eq!(buffered[i], [head[clock], tail[clock]], "buffered, {i}");
            }
        }
    }
}

fn counts(w: &mut Context<'_>, consistency: Consistency, every: Every, tail: Tail) -> Result<Vec<u64>> {
    let mut relaxed = w.zeros::<u64, 2>([LEN / 10, 10])?;
    let zeros = w.zeros::<u64, 2>([LEN / 10, 10])?;
    let mut buffered = w.buffered(zeros, Sum)?;
    for _pass in 0..2 {
        parallel_for!(w, unordered, relax relaxed, buffer buffered, consistency = consistency, every = every, tail = tail;
        for i in 0..5000 {
            let at = place(i);
            relaxed.add([at / 10, at % 10], i as u64);
            buffered.add([at / 10, at % 10], i as u64);
        })?;
    }
    let counts = relaxed.to_vec(w)?;
    assert_eq!(counts, buffered.array().to_vec(w)?);
    Ok(counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each change counts once, whatever is merged when.
    #[test]
    fn nothing_is_lost(
        workers in 1usize..5,
        first in 0usize..110,
        clocks in 1u64..40,
        times in 1usize..40,
        consistency in prop::sample::select(vec![
            Consistency::Bsp, Consistency::Bounded(0), Consistency::Bounded(1), Consistency::UNBOUNDED,
        ]),
    ) {
        let mut expected = vec![0; LEN];
        (0..5000).for_each(|i| expected[place(i)] += 2 * i as u64);
        let tail = Tail::new(first, clocks);
        let all = run(workers, |w| counts(w, consistency, Every::PerPass(times), tail)).unwrap();
        prop_assert_eq!(&all[0], &expected);
        // Slots of one kind of pass are not those of another.
        let all = run(workers, |w| {
            counts(w, Consistency::Bsp, Every::PerPass(3), Tail::NONE)?;
            counts(w, consistency, Every::PerPass(times), tail)
        }).unwrap();
        prop_assert_eq!(&all[0], &expected);
    }
}

#[test]
fn passes_of_all_kinds_follow_each_other() {
    let kinds = [
        (Consistency::Bsp, 6, Tail::new(100, 4)),
        (Consistency::Bounded(1), 5, Tail::new(3, 2)),
        (Consistency::Bsp, 7, Tail::NONE),
        (Consistency::UNBOUNDED, 9, Tail::new(900, 5)),
        (Consistency::Bsp, 3, Tail::new(0, 2)),
    ];
    let all = run(3, |w| {
        let mut a = w.zeros::<u64, 1>([LEN])?;
        for (consistency, times, tail) in kinds.into_iter().chain(kinds) {
            parallel_for!(w, unordered, relax a, consistency = consistency, every = Every::PerPass(times), tail = tail;
                for i in 0..5000 { a.add(place(i), i as u64); })?;
        }
        a.to_vec(w)
    });
    let mut expected = vec![0; LEN];
    (0..5000).for_each(|i| expected[place(i)] += 2 * kinds.len() as u64 * i as u64);
    assert_eq!(all.unwrap()[0], expected);
}

fn refused(every: Every, tails: [Tail; 2], serves: bool) -> String {
    let all = run(2, |w| {
        let tail = tails[w.rank() as usize];
        let mut a = w.zeros::<u64, 1>([LEN])?;
        let zeros = w.zeros::<u64, 1>([LEN])?;
        let mut served = w.served(zeros, Sum)?;
        match serves {
            true => {
                parallel_for!(w, unordered, relax a, serve served, every = every, tail = tail; for i in 0..100 {
                    a.add(i, 1);
                    served.add(i, 1);
                })?
            }
            false => {
                parallel_for!(w, unordered, relax a, every = every, tail = tail; for i in 0..100 { a.add(i, 1); })?
            }
        };
        Ok(())
    });
    let error: Error = all.expect_err("it is refused");
    error.to_string()
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let (every, tail) = (Every::PerPass(4), Tail::new(64, 2));
    let never = refused(every, [Tail::new(64, 0); 2], false);
    assert!(never.contains("tail") && never.contains("never be merged"), "{never}");
    let stale = refused(Every::Staleness(50), [tail; 2], false);
    assert!(stale.contains("Staleness(50)") && stale.contains("`tail`"), "{stale}");
    let served = refused(every, [tail; 2], true);
    assert!(served.contains("served") && served.contains("`tail`"), "{served}");
    let differs = refused(every, [tail, Tail::new(65, 2)], false);
    assert!(differs.contains("first: 64") && differs.contains("first: 65"), "{differs}");
}
