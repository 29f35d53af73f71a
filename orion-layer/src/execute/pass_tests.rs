//! Passes that one worker alone cannot begin.
use crate::common::watchdog::watched;
use crate::schedule::Rotation;
use crate::site::Site;
use crate::{Context, Error, Result, parallel_for, run};

/// A pass whose parts all change hands; `fails` has worker 0 lose its own before.
fn pass(w: &mut Context<'_>, fails: bool, names: [&str; 2]) -> Result<[Result<()>; 2]> {
    let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], k))?.named("ratings");
    let mut users = w.zeros::<f32, 1>([40])?.named(names[0]);
    let mut films = w.zeros::<f32, 1>([30])?.named(names[1]);
    let mut passes = Vec::new();
    for number in 0..2 {
        if fails && number == 1 && w.rank() == 0 {
            films.partitions().iter_mut().for_each(|part| part.abandon());
        }
        passes.push(parallel_for!(w, unordered, read ratings, write [users, films],
        schedule = Rotation::over(vec![0, 1]);
        for ((user, film), _k) in ratings {
            users[user] += 1.0;
            films[film] += 1.0;
        }));
    }
    Ok([passes.remove(0), passes.remove(0)])
}

/// As of a part that was to go to a worker which has died: all hear of it in the same call, and none is a call ahead after it.
#[test]
fn who_cannot_hand_out_its_parts_tells_the_others() {
    let program = |w: &mut Context<'_>| {
        let [first, second] = pass(w, true, ["users", "films"])?;
        first?;
        let failed = second.expect_err("worker 0 has nothing to hand out");
        w.barrier()?;
        let [again, after] = pass(w, false, ["other users", "other films"])?;
        again.and(after)?;
        Ok(failed)
    };
    let failed = watched("a pass that fails at its beginning", || run(2, program)).unwrap();
    assert!(
        failed[0].to_string().contains("\"") && !matches!(failed[0], Error::Diverged { .. }),
        "{failed:?}"
    );
    assert!(matches!(&failed[1], Error::PeerFailed { rank: 0, .. }), "{failed:?}");
}

/// The core's errors about a dead worker become the error that all collective calls have for it.
#[test]
fn who_was_to_be_given_something_and_is_dead_is_lost() {
    let told = run(2, |w| {
        let gone = Error::Core(hectare_dsm::Error::NoSuchWorker { rank: 1 });
        Ok(w.fail(Site::here(), gone))
    });
    let told = told.unwrap();
    assert!(matches!(&told[0], Error::WorkerLost { rank: 1, host: None, .. }), "{told:?}");
    assert!(matches!(&told[1], Error::PeerFailed { rank: 0, .. }), "{told:?}");
}
