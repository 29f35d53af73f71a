//! Loops whose description does not fit their arrays or their body: every worker gets an error that says so.
#![allow(clippy::single_range_in_vec_init)]
use crate::common;

use common::hand::{access, blames, head, index, on_each};
use hectare_orion::Error;
use hectare_orion::execute::Ranges;
use hectare_orion::loop_nest::{Access, Affine, LoopNest, Mode, Subscript};

/// Runs a loop over `0..10` that only differs in its description and in what it touches of `a`, which it writes, and
/// of `b`, which it reads.
fn touching(
    accesses: &[Access],
    names: &[&str],
    variables: &[&str],
    touch: impl Fn(usize) -> (usize, usize) + Sync,
) -> Vec<Result<(), Error>> {
    on_each(3, |w| {
        let mut a = w.zeros::<u64, 1>([10])?.named("left");
        let b = w.fill::<u64, 2>([10, 2], 1)?.named("right");
        w.run_loop(
            &head(variables, names),
            &Ranges([0..10]),
            (&mut a, &b),
            (),
            &|nest: &mut LoopNest| nest.accesses = accesses.to_vec(),
            |[is], (a, b)| {
                for i in is {
                    let (to, from) = touch(i);
                    a[i] = a[to] + b[[from, 1]];
                }
            },
        )
    })
}

fn plain() -> Vec<Access> {
    let b = vec![Subscript::Index(Affine::var(0)), Subscript::Full];
    vec![access(0, index(Affine::var(0)), Mode::Update, "a[i]"), access(1, b, Mode::Read, "b[i, ..]")]
}

#[test]
fn subscripts_out_of_range_name_loop_array_index_and_worker() {
    let names = ["a", "b"];
    let beyond = |touch: fn(usize) -> (usize, usize), array: &str, at: &[usize], why: &str| {
        let results = touching(&plain(), &names, &["i"], touch);
        blames(&results, 2);
        let error = results[2].as_ref().unwrap_err();
        let Error::OutOfBounds { loop_name, array: found, index, worker: 2, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((loop_name.as_str(), found.as_str(), index.as_slice()), ("wrong.rs:7:1", array, at));
        let text = results[0].as_ref().unwrap_err().to_string();
        // One below zero is shown as such.
        let shown: Vec<isize> = at.iter().map(|at| at.cast_signed()).collect();
        assert!(text.contains(&format!("index {shown:?} of {array} is {why}")), "{text}");
    };
    beyond(|i| (i, i + usize::from(i == 9)), "right", &[10, 1], "outside of its shape [");
    beyond(|i| (if i == 9 { 10 } else { i }, i), "left", &[10], "outside of its shape [");
    beyond(|i| (if i == 9 { usize::MAX } else { i }, i), "left", &[usize::MAX], "outside of its shape [");
    // In bounds, but another worker's.
    beyond(|i| (if i == 9 { 0 } else { i }, i), "left", &[0], "not with this worker, which holds ");
    // An array that is only read may be read anywhere.
    assert!(touching(&plain(), &names, &["i"], |i| (i, 9 - i)).iter().all(Result::is_ok));
}

#[test]
fn descriptions_that_do_not_fit_their_arrays_are_refused() {
    let refused = |accesses: Vec<Access>, names: &[&str], variables: &[&str], because: &str| {
        for (worker, result) in touching(&accesses, names, variables, |i| (i, i)).into_iter().enumerate() {
            let error = result.expect_err(because);
            let text = error.to_string();
            assert!(text.contains(because) && text.contains("wrong.rs:7:1"), "worker {worker}: {text}");
            assert!(matches!(error, Error::InvalidLoop { .. } | Error::PeerFailed { .. }), "{error}");
        }
    };
    let names = ["a", "b"];
    let mut accesses = plain();
    accesses[0].subscripts.push(Subscript::Full);
    refused(accesses, &names, &["i"], "\"a[i]\" has 2 subscripts, a has 1 dimensions");
    let mut accesses = plain();
    accesses[1].array = 5;
    refused(accesses, &names, &["i"], "array number 5");
    let mut accesses = plain();
    accesses[1].mode = Mode::Write;
    refused(accesses, &names, &["i"], "writes b, which is passed for reading");
    let mut accesses = plain();
    accesses[0].mode = Mode::Read;
    refused(accesses, &names, &["i"], "a is passed for writing, but no access writes it");
    refused(plain(), &names, &["i", "j"], "2 loop variables for a space of 1 dimensions");
    refused(plain(), &["a"], &["i"], "1 names for 2 arrays");
    refused(plain(), &["a", "b", "c"], &["i"], "3 names for 2 arrays");
    let mut accesses = plain();
    accesses[0].subscripts = index(Affine::var(3));
    refused(accesses, &names, &["i"], "\"a[i]\" names variable number 3");
}
