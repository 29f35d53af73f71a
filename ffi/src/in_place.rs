//! Areas that are open to a run of rows or of a loop: how all workers open them, and give them back to their owners.
use crate::area::{Held, Right};
use crate::status::{Failure, Outcome, ha_status::*};
use hectare_dsm::tasks::{EndedRun, InPlace, RowRun};
use hectare_dsm::{Error, Worker};

/// Opens areas on all workers, and begins a run over them. All meet, whatever is wrong with one: `checked` is what this worker found
/// of its arguments. If one of them fails, all do, and nobody has begun. On several hosts, `begin` is where they meet first.
pub(crate) fn begin<'h, A, R>(
    worker: &mut Worker,
    checked: Outcome<(A, Vec<Held<'h>>)>,
    begin: impl FnOnce(&mut Worker, A, &[InPlace]) -> Result<R, Error>,
    check_begun: impl FnOnce(&R, &Worker) -> Result<(), Error>,
) -> Outcome<(R, Vec<Held<'h>>)> {
    let mut opened = Vec::new();
    let ready = match &checked {
        Ok((_, areas)) => areas.iter().try_for_each(|area| open(area, worker, &mut opened)),
        Err(_) => Ok(()),
    };
    let on_hosts = worker.job().hosts().len() > 1;
    let ready = if on_hosts { ready } else { ready.and(worker.barrier().map_err(Failure::from)) };
    let begun = match (checked, ready) {
        (Ok((what, areas)), Ok(())) => {
            let in_place: Vec<_> = areas.iter().map(|area| area.area.in_place()).collect();
            begin(worker, what, &in_place).map(|run| (run, areas)).map_err(Failure::from)
        }
        (Err(failure), _) | (_, Err(failure)) => {
            RowRun::decline(worker)?;
            Err(failure)
        }
    };
    worker.barrier()?;
    let begun = note(
        worker,
        begun.and_then(|(run, areas)| {
            check_begun(&run, worker)?;
            Ok((run, areas))
        }),
    );
    if begun.is_err() {
        // On all workers. Each takes back what it has opened, which the others wait for, in rounds.
        let closed = opened.iter().map(|area| close(area, worker)).fold(Ok(()), Outcome::and);
        worker.barrier()?;
        return begun.and_then(|begun| closed.map(|()| begun));
    }
    begun
}

/// Takes areas back when all workers have ended a run: all meet before and afterwards, and a worker that has done its part hears of
/// one that has not.
pub(crate) fn end<'h>(
    worker: &mut Worker,
    ended: Outcome<EndedRun>,
    areas: impl Iterator<Item = Held<'h>>,
) -> Outcome {
    let met = worker.barrier();
    // Before the second barrier nobody begins another run.
    let done = ended.and_then(|ended| if met.is_ok() { Ok(ended.check_done()?) } else { Ok(()) });
    let closed = areas.map(|area| close(&area, worker)).fold(Ok(()), Outcome::and);
    let met = met.and(worker.barrier());
    note(worker, done)?;
    met?;
    closed
}

/// Notes for the launcher whether this worker fails because another one has left a run: then that one is to be named. One that is not
/// there, or not any more, may be the reason or not.
pub(crate) fn note<T>(worker: &Worker, outcome: Outcome<T>) -> Outcome<T> {
    match outcome.as_ref().map_err(|failure| failure.status) {
        Err(HA_NO_SUCH_WORKER) => {}
        what => worker.note_consequence(matches!(what, Err(HA_WORKER_LEFT))),
    }
    outcome
}

/// Opens an area, if the worker owns it.
fn open<'h>(area: &Held<'h>, worker: &mut Worker, opened_areas: &mut Vec<Held<'h>>) -> Outcome {
    match &*area.right()? {
        Right::Open(_) => {
            let text = format!("area {:?} is in another run", area.area.name());
            return Err(Failure::new(HA_BUSY, text));
        }
        Right::Read | Right::Lend(_) => return Ok(()),
        Right::Write(_) => {}
    }
    let Right::Write(owned) = area.take_right()? else { return Err(area.not_owned()) };
    // An area that others read on demand is opened when all that was written to it is published.
    match owned.open_to_tasks(worker) {
        Ok(open) => {
            area.set(worker, Right::Open(open));
            opened_areas.push(*area);
            Ok(())
        }
        Err(refused) => {
            area.set(worker, Right::Write(refused.1));
            Err(refused.0.into())
        }
    }
}

/// Takes back an area that the worker has opened.
fn close(area: &Held<'_>, worker: &mut Worker) -> Outcome {
    if !matches!(*area.right()?, Right::Open(_)) {
        return Ok(());
    }
    if let Right::Open(opened) = area.take_right()? {
        let owned = opened.close(worker)?;
        area.set(worker, Right::Write(owned));
    }
    Ok(())
}
