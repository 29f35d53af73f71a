//! Areas that are given right after they were written: a host that neither gave nor got them sees what was written after a barrier.
use crate::common::cluster::{join, run_on_each};
use crate::common::role_here;
use hectare_dsm::{Error, Owned, Worker};
use std::time::Duration;

const ROLE: &str = "THIRD_HOST_ROLE";
const LONG: Duration = Duration::from_secs(60);
const RANKS: u32 = 3;
const TURNS: u64 = 400;

/// An area goes round the ranks, each on a host of its own. Each writes it and gives it away, published or as it is, before a barrier.
fn in_a_ring(worker: &mut Worker, published: bool) -> Result<(), Error> {
    let (me, name) = (worker.rank(), format!("token {published}"));
    let mut mine: Option<Owned<u64>> = if me == 0 { Some(worker.create(&name, 8)?) } else { None };
    worker.barrier()?;
    let area = worker.attach_within::<u64>(&name, LONG)?;
    worker.barrier()?;
    for turn in 1..=TURNS {
        let next = (turn % u64::from(RANKS)) as u32;
        if let Some(mut owned) = mine.take() {
            owned.write(worker)?.fill(turn);
            match published {
                true => owned.give_published(worker, next).map_err(|failed| failed.error)?,
                false => owned.give(worker, next).map_err(|failed| failed.error)?,
            }
        }
        worker.barrier()?;
        assert_eq!(*area.read(worker)?, [turn; 8], "rank {me} after barrier {turn}, published {published}");
        if next == me {
            let owned = area.take_within(worker, LONG)?;
            assert_eq!(*owned.read(worker)?, [turn; 8], "rank {me} takes it in turn {turn}");
            mine = Some(owned);
        }
    }
    worker.barrier()
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        let (_job, mut worker) = join(RANKS as usize);
        in_a_ring(&mut worker, true).unwrap();
        in_a_ring(&mut worker, false).unwrap();
        println!("done");
    }
}

#[test]
fn what_was_written_before_a_hand_over_is_seen_by_a_third_host_after_a_barrier() {
    run_on_each(RANKS as usize, &role_here(), ROLE, "done");
}
