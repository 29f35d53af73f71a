//! Versions and rounds whose numbers do not fit into the bits that some words have for them.
use crate::protocol::word::{Phase, RoundWord};
use crate::{AreaSpec, Job, Version, Worker};
use std::sync::atomic::Ordering;

/// Lets the newest version of area `index` have the number `counter`.
fn set_counter(job: &Job, index: usize, counter: u64) {
    let parts = crate::segment::parts::Parts::of(&job.shared.segment, index);
    parts.copies()[parts.current()].counter.store(counter, Ordering::Relaxed);
    let generations = parts.generations();
    let open = generations.words.open.load(Ordering::Relaxed) as usize;
    generations.records[open].newest.store(counter, Ordering::Relaxed);
}

fn write(worker: &mut Worker, owned: &mut crate::Owned<u64>, value: u64) {
    owned.write(worker).unwrap().set(value as usize % 1000, value);
    worker.barrier().unwrap();
    assert_eq!(owned.area().read(worker).unwrap()[value as usize % 1000], value);
}

#[test]
fn versions_pass_32_bits() {
    for copies in [1, 3] {
        // Sealed often, so that generations change places on both sides of the edge.
        let job = Job::builder().reserve(1 << 26).generations(3, 2).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(copies), 1000).unwrap();
        let area = owned.area();
        write(&mut worker, &mut owned, 1);
        let start = u64::from(u32::MAX) - 4;
        set_counter(&job, 0, start);
        for turn in 1..10 {
            let before = area.version(&worker).unwrap();
            write(&mut worker, &mut owned, 100 * turn);
            let after = Version { term: 1, counter: start + turn };
            assert_eq!((area.version(&worker).unwrap(), area.newest_version()), (after, Some(after)));
            assert!(after > before);
            let changed = area.changed_since(&worker, before).unwrap();
            let at = 100 * turn as usize % 1000;
            assert!(changed.iter().any(|range| range.contains(&at)), "{changed:?} after {before}");
            assert!(area.changed_since(&worker, after).unwrap().is_empty());
            let seen = job.observer().unwrap().read(&area).unwrap().version();
            assert_eq!(seen, after);
        }
    }
}

/// Rounds around the numbers at which the half of the word that sleepers compare, and the tags of actors and
/// claims, begin again.
#[test]
fn rounds_pass_the_widths_of_their_tags() {
    for bits in [24, 32, 40] {
        let job = Job::builder().reserve(1 << 26).embedded().unwrap();
        let word = RoundWord::new((1 << bits) - 4, Phase::Idle);
        job.shared.segment.header().sync.word.store(word.0, Ordering::SeqCst);
        job.run(2, |worker| {
            let name = format!("part/{}", worker.rank());
            // Large enough to be copied in chunks.
            let spec = AreaSpec::new(name.as_str()).copies(2);
            let mut mine = worker.create::<u64>(spec, 300_000).unwrap();
            worker.barrier().unwrap();
            let other = worker.attach::<u64>(&format!("part/{}", 1 - worker.rank())).unwrap();
            for turn in 1..10 {
                mine.write(worker).unwrap().fill(turn);
                worker.barrier().unwrap();
                let view = other.read(worker).unwrap();
                assert!(view.iter().all(|value| *value == turn), "round 2^{bits}, turn {turn}");
                worker.barrier().unwrap();
            }
        })
        .unwrap();
        assert!(job.shared.segment.rounds().load().round() > 1 << bits);
    }
}
