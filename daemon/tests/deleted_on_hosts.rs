//! Areas that are deleted on another host than the one that created them, and created again under the same name: at once where they
//! were deleted, and after a barrier anywhere.
use crate::common::cluster::{join, run_on_each};
use crate::common::role_here;
use hectare_dsm::{Error, Owned, Worker};
use std::time::Duration;

const ROLE: &str = "DELETED_ROLE";
const LONG: Duration = Duration::from_secs(60);
const TURNS: u64 = 24;
const RANKS: u32 = 3;

/// Every host has the latest area of this name.
fn all_see(worker: &mut Worker, turn: u64) -> Result<(), Error> {
    worker.barrier()?;
    let area = worker.attach_within::<u64>("again", LONG)?;
    worker.barrier()?;
    assert_eq!(area.read(worker)?, [turn; 8], "turn {turn}");
    worker.barrier()
}

fn create(worker: &mut Worker, turn: u64) -> Result<Owned<u64>, Error> {
    let mut owned = worker.create::<u64>("again", 8)?;
    owned.write(worker)?.fill(turn);
    Ok(owned)
}

/// One of three ranks, each on a host of its own: one creates an area, the next takes and deletes it; then that one, the third or the
/// first creates it again.
fn in_turn(worker: &mut Worker) -> Result<(), Error> {
    let rank = worker.rank();
    let mut creator = 0;
    let mut mine = if rank == creator { Some(create(worker, 0)?) } else { None };
    for turn in 0..TURNS {
        all_see(worker, turn)?;
        let taker = (creator + 1) % RANKS;
        if let Some(owned) = mine.take() {
            owned.give(worker, taker)?;
        }
        // By the same host at once, or by any after a barrier.
        let (next, at_once) = match turn % 4 {
            0 => (taker, true),
            1 => (taker, false),
            2 => ((creator + 2) % RANKS, false),
            _ => (creator, false),
        };
        if rank == taker {
            let owned = worker.attach::<u64>("again")?.take_within(worker, LONG)?;
            owned.delete(worker)?;
            if at_once {
                mine = Some(create(worker, turn + 1)?);
            }
        }
        worker.barrier()?;
        if !at_once {
            if turn % 8 > 3 {
                let gone = worker.attach::<u64>("again").map(drop).unwrap_err();
                assert!(matches!(gone, Error::NoSuchArea { .. }), "turn {turn}: {gone}");
                worker.barrier()?;
            }
            if rank == next {
                mine = Some(create(worker, turn + 1)?);
            }
        }
        creator = next;
    }
    all_see(worker, TURNS)
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        in_turn(&mut join(RANKS as usize).1).unwrap();
        println!("done");
    }
}

#[test]
fn the_name_of_an_area_that_was_deleted_elsewhere_is_free_after_a_barrier() {
    run_on_each(RANKS as usize, &role_here(), ROLE, "done");
}
