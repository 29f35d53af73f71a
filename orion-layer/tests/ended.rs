//! A worker whose program ends while others wait for it in a collective call: they say where both are.
use crate::common;

use common::watchdog::watched;
use hectare_orion::{Context, Error, Result, parallel_for, run};

/// The errors of those who go on when worker 1 ends as `end` says.
fn ended(
    workers: usize,
    end: impl Fn(&mut Context<'_>) -> Result<()> + Sync,
    call: impl Fn(&mut Context<'_>) -> Result<()> + Sync,
) -> Result<Vec<Option<Error>>> {
    watched("a worker that waits for one that has ended", || {
        run(workers, |w| match w.rank() {
            1 => end(w).map(|()| None),
            _ => Ok(Some(call(w).unwrap_err())),
        })
    })
}

fn loop_over(w: &mut Context<'_>) -> Result<()> {
    let mut a = w.zeros::<u64, 1>([90])?;
    parallel_for!(w, unordered, write a; for i in 0..90 { a[i] += 1; })
}

/// Collective calls of every kind.
const CALLS: [fn(&mut Context<'_>) -> Result<()>; 7] = [
    |w| w.barrier(),
    |w| w.zeros::<f32, 2>([9, 4]).map(drop),
    |w| w.entries([9], 9, |k| ([k], k)).map(drop),
    |w| w.broadcast(|| Ok(7)).map(drop),
    |w| w.agree(7).map(drop),
    |w| w.all_reduce(7, u64::max).map(drop),
    loop_over,
];

#[test]
fn who_returns_early_has_diverged() {
    for call in CALLS {
        for workers in [2, 3] {
            let errors = ended(workers, |_| Ok(()), call).unwrap();
            for (rank, error) in errors.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
                let error = error.expect("an error");
                let text = error.to_string();
                let Error::Diverged { here_rank, here, there_rank, there, .. } = error else {
                    panic!("{text}")
                };
                assert_eq!((here_rank as usize, there_rank), (rank, 1), "{text}");
                assert!(here.contains("ended.rs:"), "{text}");
                assert_eq!(there, "the end of its program, before any collective call");
                assert!(!text.contains("checkpoint"), "{text}");
            }
        }
    }
}

#[test]
fn who_returns_after_a_collective_call_says_which_was_the_last() {
    let program = |w: &mut Context<'_>, last: bool| {
        let mut a = w.zeros::<u64, 1>([90])?;
        for _pass in 0..if last { 2 } else { 3 } {
            parallel_for!(w, unordered, write a; for i in 0..90 { a[i] += 1; })?;
        }
        if last { Ok(()) } else { a.to_vec(w).and_then(|_| w.barrier()) }
    };
    // A loop whose plan is known, whose arrays are where they have to be.
    let errors = ended(3, |w| program(w, true), |w| program(w, false)).unwrap();
    for error in errors.into_iter().flatten() {
        let text = error.to_string();
        let Error::Diverged { here, there_rank: 1, there, .. } = error else { panic!("{text}") };
        // Both are at the loop: one comes to it, the other has left it behind.
        assert!(there.starts_with("the end of its program, past ") && there.ends_with(&here), "{text}");
    }
}

#[test]
fn the_error_of_who_fails_outside_of_collective_calls_reaches_those_who_wait() {
    let refused = ended(
        3,
        |_| Err(Error::Invalid("worker 1 does not like it".into())),
        |w| {
            let error = w.barrier().unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(&error, Error::PeerFailed { rank: 1, message, .. } if message == "worker 1 does not like it"),
                "{text}"
            );
            Err(error)
        },
    );
    // The failed worker's own message is the cause.
    assert!(matches!(&refused, Err(Error::Invalid(what)) if what.contains("does not like")), "{refused:?}");
    let panicked = ended(
        3,
        |_| panic!("worker 1 has had enough"),
        |w| {
            let error = w.barrier().unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(&error, Error::PeerFailed { rank: 1, message, .. } if message.contains("its program panicked")),
                "{text}"
            );
            Err(error)
        },
    );
    assert!(panicked.unwrap_err().to_string().contains("worker 1 has had enough"));
}
