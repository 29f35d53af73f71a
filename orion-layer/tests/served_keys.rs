//! Which keys of served arrays are fetched, how often, and whose they are.
use hectare_orion::relax::{Every, Sum};
use hectare_orion::serve::PrefetchStats;
use hectare_orion::{Context, PerWorker, Result, parallel_for, run};

/// The cost of serving.
fn serving(w: &mut Context<'_>) -> Result<PrefetchStats> {
    Ok(w.reports()?.swap_remove(0).serving)
}

#[test]
fn lists_are_made_once_while_the_data_stay() {
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([1000])?;
        let mut sums = w.served(zeros, Sum)?;
        let mut places = w.from_fn([480], |[k]| (7 * k % 1000) as u32)?;
        let mut counts = Vec::new();
        for pass in 0..6 {
            // In passes 2 and 4 the array, in pass 3 the value from outside is another.
            if pass == 2 || pass == 4 {
                places.set(w, [5], 900 + pass as u32)?;
            }
            let offset = usize::from(pass == 3);
            parallel_for!(w, unordered, read places, serve sums;
            for k in 0..480 {
                sums.add(places[k] as usize + offset, 1);
            })?;
            let serving = serving(w)?;
            assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{pass}: {serving:?}");
            counts.push(serving.plans_made);
        }
        assert_eq!(sums.array().to_vec(w)?.iter().sum::<u64>(), 6 * 480);
        Ok(counts)
    });
    // Pass 3 has other keys, and so has pass 4; pass 5 those of pass 4.
    assert_eq!(found.unwrap()[0], [2, 2, 4, 6, 8, 8]);
}

#[test]
fn values_from_outside_that_cannot_be_compared_make_lists_anew() {
    struct Opaque(usize);
    impl Opaque {
        fn place(&self, k: usize) -> usize {
            (k + self.0) % 1000
        }
    }
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([1000])?;
        let mut sums = w.served(zeros, Sum)?;
        for pass in 0..3 {
            let places = Opaque(pass);
            parallel_for!(w, unordered, serve sums;
            for k in 0..480 {
                sums.add(places.place(k), 1);
            })?;
        }
        serving(w)
    });
    let serving = &found.unwrap()[0];
    assert_eq!((serving.plans_made, serving.write_misses), (6, 0), "{serving:?}");
}

#[test]
fn what_has_not_changed_is_not_fetched_again() {
    let found = run(2, |w| {
        let start = w.fill([4096, 16], 1.0f32)?;
        let mut table = w.served(start, Sum)?;
        let mut counts = Vec::new();
        for pass in 0..4 {
            let sum = parallel_for!(w, unordered, serve table, every = Every::PerPass(4), sum sum: f64;
            for k in 0..4096 {
                // All rows are read by both workers in the course of two passes, eight are changed.
                let row = table.row(k * 31 % 2048);
                sum += row[0] as f64;
                if k % 512 == 0 {
                    table.add([k * 31 % 2048, 1], 1.0);
                }
            })?;
            assert_eq!(sum, 4096.0, "pass {pass}");
            counts.push(serving(w)?.fetched);
        }
        Ok(counts)
    });
    let counts = &found.unwrap()[0];
    // Both workers fetch the 2048 rows once, and then those that have changed.
    assert!((4096..4200).contains(&counts[0]), "{counts:?}");
    for pass in 1..4 {
        assert!(counts[pass] - counts[pass - 1] <= 4 * 2 * 8, "{counts:?}");
    }
}

#[test]
fn keys_of_one_worker_are_relocated_and_those_of_all_replicated() {
    let found = run(2, |w| {
        let start = w.zeros::<f64, 2>([1000, 8])?;
        let mut table = w.served(start, Sum)?;
        for _pass in 0..2 {
            parallel_for!(w, unordered, serve table, every = Every::PerPass(8);
            for k in 0..960 {
                // A row of its own, and one of four that all use; two rows are out of reach of the slice's clocks.
                let own = table.row(k)[0];
                table.add([k, 0], 1.0);
                assert_eq!(table.row(k)[0], own + 1.0, "a key of this worker alone has no delay");
                table.add_row(996 + k % 4, &[1.0; 8]);
            })?;
        }
        let values = table.array().to_vec(w)?;
        Ok((serving(w)?, values))
    });
    let (serving, values) = &found.unwrap()[0];
    assert_eq!(serving.relocated, 960, "{serving:?}");
    assert_eq!(serving.replicated, 2 * 4, "{serving:?}");
    assert!((0..960).all(|k| values[8 * k] == 2.0 && values[8 * k + 1] == 0.0));
    assert!((996..1000).all(|k| values[8 * k..8 * k + 8] == [480.0; 8]));
}

#[test]
fn intents_by_hand() {
    let found = run(2, |w| {
        let start = w.zeros::<u64, 1>([1000])?;
        let mut sums = w.served(start, Sum)?;
        let me = PerWorker::new(w.rank() as usize);
        assert!(sums.intend(&[1000], 1).unwrap_err().to_string().contains("1000 is to be used"));
        sums.intend(&(0..10).map(|k| 100 * k + *me).collect::<Vec<_>>(), 2)?;
        let mut counts = Vec::new();
        for _pass in 0..3 {
            parallel_for!(w, unordered, serve sums, prefetch = false;
            for k in 0..960 {
                // The next key depends on what is served.
                let next = sums.get(*me) as usize % 10;
                sums.add(100 * ((k + next) % 10) + *me, 1);
            })?;
            let serving = serving(w)?;
            counts.push((serving.read_misses, serving.write_misses, serving.plans_made));
        }
        assert_eq!(sums.array().to_vec(w)?.iter().sum::<u64>(), 3 * 960);
        Ok(counts)
    });
    assert_eq!(found.unwrap()[0], [(0, 0, 0), (0, 0, 0), (960, 960, 0)]);
}

/// The text names the arrays that are fetched, the subscripts that their keys come from, and the alternative, `buffer`.
#[test]
fn explanations_say_that_an_array_is_served() {
    let texts = run(2, |w| {
        let (a, b) = (w.zeros::<f32, 1>([5000])?, w.zeros::<f64, 3>([10, 4, 100])?);
        let (mut sums, mut table) = (w.served(a, Sum)?, w.served(b, Sum)?);
        let places = w.from_fn([480], |[k]| (7 * k % 5000) as u32)?;
        parallel_for!(w, unordered, read places, serve [sums, table];
        for k in 0..480 {
            let place = places[k] as usize;
            let sum = table.row([k % 10, k % 4])[0] as f32 + sums.get(place);
            sums.add(place, sum);
            table.add([k % 10, k % 4, 1], 1.0);
        })?;
        parallel_for!(w, unordered, serve sums, prefetch = false;
        for k in 0..480 {
            let next = sums.get(k) as usize;
            sums.add(next, 1.0);
        })?;
        Ok(w.explain().iter().map(ToString::to_string).collect::<Vec<_>>())
    });
    let texts = texts.unwrap().swap_remove(0);
    let has = |text: &str, part: &str| assert!(text.contains(part), "{part:?} is not in\n{text}");
    has(&texts[0], "except in arrays whose dependences are relaxed");
    has(&texts[0], "- sums: served: a slice of the body finds the elements, of 5000, that sums");
    has(&texts[0], "- table: served: a slice of the body finds the rows, of 40, that table");
    has(&texts[0], "(`buffer` would copy all of it, 20.0 kB, at every clock; `relax`");
    has(&texts[1], "are not prefetched: sums");
}
