//! Areas on demand that are given to each other by workers of two hosts, which then ask for what they gave, as a third host does:
//! what each is given cannot be taken before a round of its host, whose only worker waits for an answer.
use crate::common::cluster::{join, run_on_each};
use crate::common::role_here;
use hectare_dsm::{Area, AreaSpec, Error, Worker};
use std::time::Duration;

const ROLE: &str = "ASKED_WHILE_GIVEN_ROLE";
/// As long as an area is asked for in vain before the test fails.
const LONG: Duration = Duration::from_secs(20);
/// It takes longer to come than a question and its answer.
const LEN: usize = 600_000;
const TURNS: u64 = 10;
/// Two hosts give areas to each other, and a third one reads them.
const RANKS: u32 = 3;

fn parts(worker: &mut Worker) -> Result<Vec<Area<u64>>, Error> {
    worker.barrier()?;
    let parts = (0..2).map(|rank| worker.attach_within(&format!("part/{rank}"), LONG)).collect();
    worker.barrier()?;
    parts
}

fn give_and_ask(worker: &mut Worker) -> Result<(), Error> {
    let (me, other) = (worker.rank(), 1 - worker.rank());
    let mut held = worker.create::<u64>(AreaSpec::new(format!("part/{me}")).copies(3).on_demand(), LEN)?;
    let parts = parts(worker)?;
    for turn in 1..=TURNS {
        let given = (u64::from(me) + turn - 1) as usize % 2;
        held.write(worker)?.fill(turn);
        held.give_published(worker, other).map_err(|failed| failed.error)?;
        // It leaves this host, and is not there yet.
        std::thread::sleep(Duration::from_millis(1));
        let asked = parts[given].ask(worker)?;
        let seen = parts[given].read_asked(worker, asked, LONG)?;
        // The other may have taken it, and have written it again.
        assert!(seen[0] == turn || seen[0] == turn + 1, "rank {me}, turn {turn}: {}", seen[0]);
        assert!(seen.iter().all(|value| *value == seen[0]), "rank {me}, turn {turn}: torn");
        held = parts[1 - given].take_within(worker, LONG)?;
        assert_eq!(held.read(worker)?[LEN - 1], turn, "rank {me} takes it in turn {turn}");
    }
    worker.barrier()
}

/// Asks for what the others give to each other: each state is whole, and none is older than one that it has seen.
fn ask_for_both(worker: &mut Worker) -> Result<(), Error> {
    let parts = parts(worker)?;
    let mut last = [0, 0];
    for turn in 0..2 * TURNS {
        let asked = [parts[0].ask(worker)?, parts[1].ask(worker)?];
        for (part, (asked, last)) in parts.iter().zip(asked.into_iter().zip(&mut last)) {
            let seen = part.read_asked(worker, asked, LONG)?;
            assert!(seen[0] >= *last, "turn {turn}: {} after {last}", seen[0]);
            assert!(seen.iter().all(|value| *value == seen[0]), "turn {turn}: torn");
            *last = seen[0];
        }
        worker.sync()?;
    }
    worker.barrier()
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        let (_job, mut worker) = join(RANKS as usize);
        match worker.rank() {
            2 => ask_for_both(&mut worker).unwrap(),
            _ => give_and_ask(&mut worker).unwrap(),
        }
        println!("done");
    }
}

#[test]
fn areas_are_asked_for_while_they_are_given() {
    run_on_each(RANKS as usize, &role_here(), ROLE, "done");
}
