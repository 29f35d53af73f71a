//! Bodies of inspected loops: the rows and elements that their batches lend them, and the lists of iterations that they get.
use hectare_orion::{Context, parallel_for, run};

/// So long that batches are held to pay.
type Long = [u64; 64];

/// How the only inspected loop ran.
fn kind(w: &Context<'_>) -> String {
    let all = w.explain();
    let found = all.0.iter().find_map(|one| one.inspected.as_ref()).expect("an inspection");
    found.kind.map_or_else(|| found.why_serial.clone().unwrap_or_default(), |kind| kind.to_string())
}

/// Of a batch's elements, those that are written are side by side, and those behind them are only read.
#[test]
fn a_slice_reaches_from_what_is_written_into_what_is_read() {
    let (count, rows) = (20_000, 400);
    let expected: u64 = (0..count as u64).map(|e| 2 + e * 7919 % rows as u64).sum();
    for workers in [2, 3, 5] {
        let all = run(workers, |w| {
            let mut x = w.from_fn([rows + 2], |[at]| [at as u64; 64])?;
            let mut sums = w.zeros::<u64, 1>([rows])?;
            let to = w.from_fn([count], |[e]| (e * 7919 % rows) as u32)?;
            parallel_for!(w, unordered, read to, write [x, sums];
            for e in 0..count {
                let at = to[e] as usize;
                let next = x.slice(at..at + 3)[2][0];
                sums[at] += next;
                x[at][1] += 1;
            })?;
            assert!(kind(w).contains("neighbouring rows"), "{}", w.explain());
            Ok(sums.to_vec(w)?.iter().sum::<u64>())
        });
        assert_eq!(all.expect("a run")[0], expected, "{workers} workers");
    }
}

/// A body that does not touch them runs, on one worker.
#[test]
fn rows_without_elements_are_no_rows() {
    for workers in [1, 2, 3] {
        let all = run(workers, |w| {
            let mut none = w.zeros::<u64, 2>([400, 0])?;
            let mut x = w.zeros::<Long, 1>([400])?;
            let to = w.from_fn([20_000], |[e]| (e * 7919 % 400) as u32)?;
            parallel_for!(w, unordered, read to, write [none, x];
            for e in 0..20_000 {
                let at = to[e] as usize;
                x[at][1] += 1;
                if e >= 20_000 {
                    none.row_mut(at).fill(1);
                }
            })?;
            assert!(workers == 1 || kind(w).contains("is empty"), "{}", w.explain());
            Ok(x.to_vec(w)?.iter().map(|one| one[1]).sum::<u64>())
        });
        assert_eq!(all.expect("a run")[0], 20_000, "{workers} workers");
    }
}

/// Runs of neighbours of many lengths, whose accesses to `steps` are lines where they are long, beside elements that a table names.
#[test]
fn runs_of_neighbours_have_the_values_of_the_serial_loop() {
    let (count, rows) = (24_000, 300);
    for length in [1, 7, 8, 9, 64] {
        let at = |e: usize| e / length * 7919 % rows;
        let (mut sums, mut steps) = (vec![0u64; rows], (0..count as u64).collect::<Vec<_>>());
        for e in 0..count {
            sums[at(e)] = sums[at(e)].wrapping_add(steps[e] * 3 + 1);
            steps[e] = 2 * steps[e] + 5;
        }
        for (workers, ordered) in
            [2, 3, 5].into_iter().flat_map(|workers| [(workers, false), (workers, true)])
        {
            let all = run(workers, |w| {
                let mut sums = w.zeros::<Long, 1>([rows])?;
                let mut steps = w.from_fn([count], |[e]| e as u64)?;
                let to = w.from_fn([count], |[e]| at(e) as u32)?;
                if ordered {
                    parallel_for!(w, ordered, read to, write [sums, steps];
                    for e in 0..count {
                        let sum = &mut sums[to[e] as usize][63];
                        *sum = sum.wrapping_add(steps[e] * 3 + 1);
                        steps[e] = 2 * steps[e] + 5;
                    })?;
                } else {
                    let (total, least) = parallel_for!(w, unordered, read to, write [sums, steps], sum total: u64, min least: u64;
                    for e in 0..count {
                        let sum = &mut sums[to[e] as usize][63];
                        *sum = sum.wrapping_add(steps[e] * 3 + 1);
                        steps[e] = 2 * steps[e] + 5;
                        total += e as u64;
                        least = least.min(e as u64 + 7);
                    })?;
                    assert_eq!((total, least), ((0..count as u64).sum(), 7));
                }
                let kind = kind(w);
                assert!(kind.contains(if ordered { "components" } else { "blocks" }), "{kind}");
                Ok((sums.to_vec(w)?.iter().map(|sum| sum[63]).collect::<Vec<_>>(), steps.to_vec(w)?))
            });
            let (found, made) = all.expect("a run").swap_remove(0);
            assert!(found == sums && made == steps, "{workers} workers, {ordered}, runs of {length}");
        }
    }
}
