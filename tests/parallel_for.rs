//! Loops through the facade alone: no other crate is named.
#![deny(unused, missing_docs)]
use hectare::{Context, DistArray, parallel_for, run};

/// Adds a multiple of one array to another; extents and factors differ from call to call.
fn add(
    w: &mut Context<'_>,
    from: &DistArray<u64, 1>,
    to: &mut DistArray<u64, 1>,
    shift: usize,
) -> hectare::orion::Result<u64> {
    let [n] = from.shape();
    parallel_for!(w, unordered, read from, write to, sum added: u64;
    for i in shift..n {
        to[i - shift] += 3 * from[i];
        added += from[i];
    })
}

#[test]
fn a_function_with_a_loop_is_called_with_many_extents() {
    for workers in 1..=4 {
        let results = run(workers, |w| {
            let mut sums = Vec::new();
            for n in [0usize, 1, 7, 64] {
                let from = w.from_fn([n.max(1)], |[i]| i as u64 + 1)?;
                let mut to = w.fill([n.max(1)], 5u64)?;
                for shift in [0, n / 2, n] {
                    sums.push(add(w, &from, &mut to, shift)?);
                }
                sums.extend(to.to_vec(w)?);
            }
            Ok(sums)
        });
        let mut wanted = Vec::new();
        for n in [0usize, 1, 7, 64] {
            let (from, mut to): (Vec<u64>, _) = ((1..=n.max(1) as u64).collect(), vec![5; n.max(1)]);
            for shift in [0, n / 2, n] {
                wanted.push(from.iter().skip(shift).sum());
                (shift..from.len()).for_each(|i| to[i - shift] += 3 * from[i]);
            }
            wanted.extend(to);
        }
        for result in results.unwrap() {
            assert_eq!(result, wanted, "{workers} workers");
        }
    }
}

mod through_the_prelude {
    use hectare::prelude::*;

    #[test]
    fn the_macro_is_there() {
        let results = hectare::run(2, |w| {
            let mut a = w.zeros::<u32, 1>([10])?;
            parallel_for!(w, ordered, write a; for i in 0..10 { a[i] = i as u32 })?;
            a.to_vec(w)
        });
        assert_eq!(results.unwrap()[1], (0..10).collect::<Vec<u32>>());
    }
}
