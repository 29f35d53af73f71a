//! Areas that their owners have lent, read by workers of all hosts: threads over segments in one process, whose agents send datagrams to
//! each other that may be lost.
use crate::network::{World, on_all};
use hectare_dsm::{Area, AreaSpec, Owned, Worker};
use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(60);
const LEN: usize = 5000;

fn value(rank: u32, turn: u64, at: usize) -> u64 {
    u64::from(rank) * 1_000_000 + turn * 10_000 + at as u64
}

/// Reads an area as its owner has lent it, without a synchronization point.
fn read<'w>(area: &Area<u64>, worker: &'w Worker) -> &'w [u64] {
    let asked = area.ask(worker).unwrap();
    match asked.is_here() {
        true => area.read_lent(worker).unwrap(),
        false => area.read_asked(worker, asked, TIME_LIMIT).unwrap(),
    }
}

/// Tells all others `turn` where it is written before a barrier, and read after it: by nobody before the next one.
fn check_barrier(worker: &mut Worker, frame: &mut Owned<u64>, frames: &[Area<u64>], turn: u64) {
    frame.write(worker).unwrap().fill(turn);
    worker.barrier().unwrap();
    for other in frames {
        let seen = other.read(worker).unwrap()[0];
        assert_eq!(seen, turn, "{} as worker {} finds it after the barrier", other.name(), worker.rank());
    }
}

/// Each worker writes its area and lends it, and others read it, if `reads` says so of the turn, reader and owner.
fn take_turns(worker: &mut Worker, workers: u32, turns: u64, reads: impl Fn(u64, u32, u32) -> bool) -> u64 {
    let rank = worker.rank();
    let mut owned = worker.create::<u64>(AreaSpec::new(format!("part/{rank}")).on_demand(), LEN).unwrap();
    let mut frame = worker.create::<u64>(&*format!("frame/{rank}"), 1).unwrap();
    worker.barrier().unwrap();
    let mut attach =
        |of: &str| (0..workers).map(|other| worker.attach(&format!("{of}/{other}")).unwrap()).collect();
    let (areas, frames): (Vec<Area<u64>>, Vec<Area<u64>>) = (attach("part"), attach("frame"));
    worker.barrier().unwrap();
    for turn in 1..=turns {
        let elements = owned.write_whole(worker).unwrap().iter_mut().enumerate();
        elements.for_each(|(at, element)| *element = value(rank, turn, at));
        let lent = owned.lend(worker).unwrap();
        check_barrier(worker, &mut frame, &frames, 2 * turn);
        // All at once, while nobody comes to a synchronization point.
        for other in (0..workers).map(|at| (at + rank) % workers).filter(|other| reads(turn, rank, *other)) {
            let seen = read(&areas[other as usize], worker);
            let is_new = |(at, seen): (usize, &u64)| *seen == value(other, turn, at);
            assert!(seen.iter().enumerate().all(is_new), "part {other} in turn {turn}: {:?}", &seen[..3]);
        }
        check_barrier(worker, &mut frame, &frames, 2 * turn + 1);
        owned = lent.recall(worker).unwrap().finish(worker).unwrap();
    }
    worker.barrier().unwrap();
    owned.area().version(worker).unwrap().counter
}

fn check(
    seed: u64,
    ranks: &[u32],
    loss: u64,
    turns: u64,
    reads: impl Fn(u64, u32, u32) -> bool + Sync,
) -> Vec<u64> {
    let mut world = World::with_ranks_of(ranks, seed);
    world.loss = loss;
    let workers = ranks.iter().sum();
    on_all(&mut world, ranks, |worker| take_turns(worker, workers, turns, &reads))
}

#[test]
fn what_is_lent_is_read_on_all_hosts_while_nobody_serves_rounds() {
    for seed in 1..=4 {
        for (ranks, loss) in [(&[1, 1][..], 0), (&[2, 2], 0), (&[2, 1, 1], 20)] {
            check(seed, ranks, loss, 12, |_, _, _| true);
            check(seed, ranks, loss, 12, |turn, _, _| turn % 5 < 2);
        }
    }
}

/// Those who read nothing wait for the others already, some of whom read what was not asked for before: so it is published while workers of
/// its host wait for the clock of another.
#[test]
fn what_is_lent_is_published_while_others_wait_for_clocks() {
    let reads = |turn: u64, reader: u32, owner: u32| {
        let drawn = (turn * 31 + u64::from(reader) * 7 + u64::from(owner) * 13)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 60;
        if reader != owner && drawn == 0 {
            // The others have come to the barrier meanwhile.
            std::thread::sleep(Duration::from_micros(500));
        }
        reader != owner && drawn < 4
    };
    for (seed, ranks) in [(1, &[2, 2][..]), (2, &[3, 1]), (3, &[2, 2, 1])] {
        check(seed, ranks, 0, 150, reads);
    }
}

#[test]
fn what_is_lent_is_published_for_those_who_ask_and_for_nobody_else() {
    let published = check(1, &[1, 1], 0, 10, |turn, _, _| turn == 10);
    // When it was created, and when it was asked for.
    assert!(published.iter().all(|counter| *counter <= 2), "{published:?}");
    // Who is asked every time publishes before that.
    let published = check(1, &[1, 1], 0, 10, |_, _, _| true);
    assert!(published.iter().all(|counter| (10..=11).contains(counter)), "{published:?}");
}
