//! Loops in the body whose bounds the description does not know: what does not depend on them is still cut.
use hectare_orion::schedule::{Candidate, Verdict};
use hectare_orion::{Explanation, parallel_for, run};

const COUNT: usize = 4800;
const BLOCKS: usize = 48;
const BINS: usize = 10;

fn chosen(explanation: &Explanation) -> &Candidate {
    let is_chosen = |candidate: &&Candidate| matches!(candidate.verdict, Verdict::Chosen(_));
    explanation.candidates.iter().find(is_chosen).expect("a schedule was chosen")
}

/// A table per block of iterations, each cell of it found by data.
#[test]
fn tables_by_block_are_cut() {
    for workers in [1, 2, 3] {
        let results = run(workers, |w| {
            let x = w.from_fn([COUNT], |[i]| i * 7919 % 100)?;
            let mut tables = w.zeros::<u64, 2>([BLOCKS, BINS])?;
            parallel_for!(w, unordered, read x, write tables;
            for b in 0..BLOCKS {
                for i in b * COUNT / BLOCKS..(b + 1) * COUNT / BLOCKS {
                    tables[[b, x[i] / 10]] += 1;
                }
            })?;
            let explained = w.explain().remove(0);
            Ok((chosen(&explained).name.clone(), tables.to_vec(w)?))
        })
        .unwrap();
        let mut expected = vec![0; BLOCKS * BINS];
        (0..COUNT).for_each(|i| expected[i * BLOCKS / COUNT * BINS + i * 7919 % 100 / 10] += 1);
        for (name, tables) in results {
            assert_eq!(name, "fully parallel, in blocks of b");
            assert_eq!(tables, expected);
        }
    }
}

/// An array that moves with a variable whose bounds are not known is not cut along it.
#[test]
fn what_depends_on_unknown_bounds_is_whole() {
    let results = run(2, |w| {
        let ends = w.from_fn([12], |[i]| i % 3 + 1)?;
        let mut a = w.zeros::<u64, 1>([24])?;
        parallel_for!(w, unordered, read ends, write a;
        for i in 0..12 {
            for k in 0..ends[i] {
                a[i + k] += 1;
            }
        })?;
        Ok((chosen(&w.explain()[0]).name.clone(), a.to_vec(w)?))
    })
    .unwrap();
    let mut expected = vec![0; 24];
    (0..12).for_each(|i| (0..i % 3 + 1).for_each(|k| expected[i + k] += 1));
    for (name, a) in results {
        assert_eq!((name.as_str(), a), ("serial", expected.clone()));
    }
}

/// A loop without conflicts whose array cannot be cut along any of its variables runs serially, and says why.
#[test]
fn a_serial_loop_without_conflicts_is_explained() {
    let mut wanted = vec![0; 40];
    (0..7).for_each(|i| (0..4).for_each(|j| wanted[3 * i + 7 * j] += 1));
    assert_eq!(wanted.iter().max(), Some(&1));
    let results = run(2, |w| {
        let mut a = w.zeros::<u64, 1>([40])?;
        // Each element once, but those of the blocks of either variable lie between each other without a pattern.
        parallel_for!(w, unordered, write a;
        for i in 0..7 {
            for j in 0..4 {
                a[3 * i + 7 * j] += 1;
            }
        })?;
        Ok((w.explain().remove(0), a.to_vec(w)?))
    })
    .unwrap();
    for (explanation, a) in results {
        assert_eq!(a, wanted);
        assert_eq!((explanation.conflicts.len(), chosen(&explanation).name.as_str()), (0, "serial"));
        let text = explanation.to_string();
        assert!(text.contains("no two iterations conflict, but their arrays cannot be cut"), "{text}");
        assert!(text.contains("1 step, 0 bytes change hands"), "{text}");
    }
}

/// A loop that an outer one bounds is planned for each range, and explained once for those that run alike.
#[test]
fn ranges_that_run_alike_are_explained_once() {
    let texts = run(2, |w| {
        let mut a = w.zeros::<u64, 1>([200])?;
        for k in 0..100 {
            parallel_for!(w, unordered, write a; for i in k..200 { a[i] += 1; })?;
        }
        let all = w.explain();
        Ok((all.len(), all.to_string()))
    });
    let (plans, text) = texts.unwrap().remove(0);
    assert_eq!((plans, text.matches("loop ").count()), (100, 1), "{text}");
    assert!(
        text.contains("i in 0..200")
            && text.contains("99 other ranges run alike, from i in 1..200 to i in 99..200."),
        "{text}"
    );
}
