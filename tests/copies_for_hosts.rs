//! Reader copies that only other hosts need.
use hectare::{Error, Job, Worker};
use std::os::unix::fs::MetadataExt;

/// Copies that only other hosts need take no memory before one of them wants the area.
#[test]
fn copies_for_other_hosts_have_memory_when_they_are_needed() {
    const LARGE: usize = 1 << 17;
    let memory = Job::builder().reserve(1 << 28).hosts(&[1, 1], 0).min_copies(4).memory().unwrap();
    let file = std::fs::File::from(memory.try_clone().unwrap());
    let job = Job::from_descriptor(memory).unwrap();
    let mut worker = job.worker().unwrap();
    let info = |name: &str| {
        let areas = job.areas().unwrap();
        areas.into_iter().find(|area| area.name == name).map(|area| (area.copies, area.footprint)).unwrap()
    };
    let backed = || file.metadata().unwrap().blocks() * 512;
    let before = backed();
    let mut owned = worker.create::<u64>("large", LARGE).unwrap();
    let bytes = LARGE as u64 * 8;
    let (copies, footprint) = info("large");
    assert_eq!(copies, 1);
    let took = backed() - before;
    assert!(
        (2 * bytes..3 * bytes).contains(&took) && (2 * bytes..3 * bytes).contains(&footprint),
        "{took}, {footprint}"
    );
    let small = worker.create::<u64>("small", 9).unwrap();
    assert_eq!(info("small").0, 4, "those of small areas cost next to nothing");
    let agent = job.agent().unwrap();
    let area = agent.find("large").unwrap();
    let refused = agent.hold(&[area]).unwrap_err();
    assert!(matches!(refused, Error::NoSpareCopy { copies: 1, .. }), "{refused}");
    let mut publish = |worker: &mut Worker, value: u64| {
        owned.write(worker).unwrap().set(value as usize, value);
        worker.sync().unwrap();
    };
    publish(&mut worker, 1);
    publish(&mut worker, 2);
    agent.complete(area).unwrap();
    agent.complete(area).unwrap();
    let took = backed() - before;
    assert!((5 * bytes..6 * bytes).contains(&took), "{took}");
    assert_eq!(info("large").0, 4);
    // Earlier versions are in the new copies as well: each is published into.
    let held = agent.hold(&[area]).unwrap();
    let mut all = vec![held];
    for value in 3..5 {
        publish(&mut worker, value);
        all.push(agent.hold(&[area]).unwrap());
    }
    assert!(agent.hold(&[area]).is_ok(), "the same copy");
    publish(&mut worker, 5);
    let too_many = agent.hold(&[area]).unwrap_err();
    assert!(matches!(too_many, Error::NoSpareCopy { pinned: 3, copies: 4, .. }), "{too_many}");
    for (held, newest) in all.iter().zip(2..) {
        let words: Vec<u64> = held[0]
            .bytes()
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let expected: Vec<u64> = (0..LARGE as u64).map(|at| if at <= newest { at } else { 0 }).collect();
        assert!(words == expected, "state {newest}");
    }
    drop((all, agent, small));
    // All of it is given back with the area.
    owned.delete(&mut worker).unwrap();
    for _ in 0..2 {
        worker.sync().unwrap();
    }
    assert!(backed() < before + bytes, "{} after {before}", backed());
}
