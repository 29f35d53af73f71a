use crate::memory::SegmentMemory;
use hectare_dsm::{AreaSpec, Job};
use hectare_net::{Event, HostId, Memory};

/// Observers have all copies but the one with the last state of a label, over which the next label is published: who waits for that
/// state gets the later one, and does not wait for good.
#[test]
fn in_place_of_a_state_that_was_published_over_a_later_one_is_sent() {
    let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
    let (mut worker, observer) = (job.worker().unwrap(), job.observer().unwrap());
    let mut memory = SegmentMemory::with_ranks(job.agent().unwrap(), HostId(0), job.hosts());
    let mut owned = worker.create::<u64>(AreaSpec::new("ours").copies(2), 100).unwrap();
    memory.look();
    let created = std::iter::from_fn(|| memory.next_event()).find_map(|event| match event {
        Event::Created { area, .. } => Some(area.group),
        _ => None,
    });
    let group = created.unwrap();
    // From now on there are all copies that other hosts are sent.
    let first = memory.pin(group, None).unwrap().unwrap();
    memory.unpin(first.pin);

    let area = owned.area();
    let mut pins = Vec::new();
    loop {
        owned.write(&worker).unwrap().fill(1);
        pins.push(observer.read(&area).unwrap());
        if worker.sync().unwrap().postponed != 0 {
            break;
        }
    }
    drop(pins.pop());
    let label = |memory: &mut SegmentMemory, label| {
        let pinned = memory.pin(group, Some(label)).unwrap()?;
        memory.unpin(pinned.pin);
        Some(pinned.state.label)
    };
    memory.set_clock(HostId(1), 1);
    // Published at clock 0, and over the state that was the newest.
    worker.barrier().unwrap();
    assert_eq!(label(&mut memory, 1), Some(1));
    owned.write(&worker).unwrap().fill(2);
    assert_eq!(worker.sync().unwrap().postponed, 0);
    assert_eq!(label(&mut memory, 2), Some(2));
    assert_eq!(label(&mut memory, 1), Some(2), "published over, it is not there any more");
    assert_eq!(label(&mut memory, 3), None, "nothing was published so late");
}

/// Workers have published what was lent, and the agent has not looked since: who asks is answered when it has.
#[test]
fn a_question_for_what_was_lent_is_answered_after_what_workers_published() {
    let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut memory = SegmentMemory::with_ranks(job.agent().unwrap(), HostId(0), job.hosts());
    let mut owned = worker.create::<u64>(AreaSpec::new("ours").copies(2).on_demand(), 100).unwrap();
    memory.look();
    let created = std::iter::from_fn(|| memory.next_event()).find_map(|event| match event {
        Event::Created { area, .. } => Some(area.group),
        _ => None,
    });
    let group = created.unwrap();
    owned.write(&worker).unwrap().fill(1);
    let lent = owned.lend(&worker).unwrap();
    memory.look();
    while memory.next_event().is_some() {}
    assert_eq!(worker.sync_area(&lent.area()).unwrap().postponed, 0);
    assert!(!memory.show(group), "it is answered with what is known");
    memory.look();
    let told = std::iter::from_fn(|| memory.next_event()).filter_map(|event| match event {
        Event::Published { state, .. } => Some(state.versions[0].counter),
        Event::Forced { postponed: false, .. } => Some(0),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 0]);
}
