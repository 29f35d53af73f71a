//! Groups are published whole, or left whole.
use super::{Scene, counter};
use crate::engine::runtime::Runtime;
use crate::protocol::claim;
use crate::protocol::pin::copy_state;
use crate::protocol::record::CopyRecord;
use crate::protocol::round::Work;
use crate::protocol::word::{Actor, Phase, RoundWord};
use crate::{AreaSpec, Job, Owned, StallPolicy};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

const PIN: StallPolicy = StallPolicy::Pin { after: Duration::from_nanos(1) };

/// Worker 0 owns `a` and `b` of a group, and `c`; worker 1 has claimed the copying of `a`, and the rest is copied.
fn stalled_in_the_middle(copies_of_b: u32) -> (Scene, [Owned<u64>; 3], u64) {
    let mut scene = Scene::new(2, PIN);
    let spec = |name: &str, copies| AreaSpec::new(name).copies(copies);
    let mut areas = [spec("a", 3).group("g"), spec("b", copies_of_b).group("g"), spec("c", 3)]
        .map(|spec| scene.create(0, spec));
    scene.workers[1].leave_clocks();
    for owned in &mut areas {
        scene.write(owned, 0, 1);
    }
    scene.workers[0].tick().unwrap();
    let round = scene.arrive(&[0, 1]);
    assert!(scene.runtime(0).make_plan(round, 0));
    for chunk in scene.chunks_of(&areas[0]) {
        chunk.claim.store(claim::claimed(round, 1), Relaxed);
    }
    scene.runtime(0).copy_chunks(round, 0);
    (scene, areas, round)
}

/// A stall begins with the first look at it.
fn tend_twice(runtime: &Runtime<'_>, round: u64) {
    runtime.tend(round, 0);
    std::thread::sleep(Duration::from_micros(1));
    runtime.tend(round, 0);
}

/// After the round in which worker 1 was left behind: it moves on, and everything is published.
fn goes_on(scene: &Scene, areas: &[Owned<u64>; 3], published: [u64; 3]) {
    assert_eq!([0, 1, 2].map(|index| counter(&areas[index])), published);
    assert_eq!(scene.lowest_clock(), 0, "what was abandoned was written before the clock rose");
    for (owned, published) in areas.iter().zip(published) {
        let is_aside = |copy: &&CopyRecord| copy.state.load(SeqCst) == copy_state::QUARANTINED;
        let aside = scene.parts(owned).copies().iter().filter(is_aside).count();
        assert_eq!(aside as u64, 1 - published, "copies that may still be written");
    }
    scene.end();
    scene.run(&[0, 1]);
    assert_eq!([0, 1, 2].map(|index| counter(&areas[index])), [1, 1, 1]);
    assert_eq!(scene.lowest_clock(), 1);
    for owned in areas {
        assert!(owned.area().read(&scene.workers[0]).unwrap().iter().all(|value| *value == 1));
        assert!(scene.parts(owned).copies().iter().all(|copy| copy.state.load(SeqCst) == copy_state::VALID));
    }
}

#[test]
fn a_group_is_abandoned_whole() {
    let (scene, areas, round) = stalled_in_the_middle(3);
    let runtime = scene.runtime(0);
    assert!(!runtime.all_copied(round));
    tend_twice(&runtime, round);
    assert!(runtime.all_copied(round));
    runtime.publish_plan(round, 0);
    goes_on(&scene, &areas, [0, 0, 1]);
}

/// The actor dies in the middle of abandoning a group: whoever publishes leaves all of it.
#[test]
fn a_group_that_was_abandoned_by_half_is_left_whole() {
    let (scene, areas, round) = stalled_in_the_middle(3);
    let entry = scene.chunks_of(&areas[0])[0].entry.load(Relaxed);
    scene.job.shared.segment.plan_entries()[entry as usize].abandoned.store(1, Relaxed);
    for chunk in scene.chunks_of(&areas[0]) {
        claim::finish(&chunk.claim, round, 1);
    }
    assert!(scene.runtime(1).all_copied(round));
    scene.runtime(1).publish_plan(round, 1);
    // Repeated by the next.
    scene.runtime(0).publish_plan(round, 0);
    goes_on(&scene, &areas, [0, 0, 1]);
}

/// An area of two copies cannot be left in the middle, and so neither can the others of its group.
#[test]
fn a_group_with_an_area_of_few_copies_is_waited_for() {
    let (scene, areas, round) = stalled_in_the_middle(2);
    let runtime = scene.runtime(0);
    tend_twice(&runtime, round);
    assert!(!runtime.all_copied(round), "the group waits");
    runtime.rounds().actor.store(Actor::new(round, 0).at_work().0, SeqCst);
    scene.runtime(1).copy_chunks(round, 1);
    runtime.publish_plan(round, 0);
    assert_eq!([0, 1, 2].map(|index| counter(&areas[index])), [1, 1, 1]);
    assert_eq!(scene.lowest_clock(), 1);
    scene.end();
}

/// A planner died after it had marked copies of areas that its successor does not come to.
#[test]
fn a_plan_that_is_made_again_takes_every_mark_back() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let areas = ["a", "b"].map(|name| scene.create(0, AreaSpec::new(name)));
    for owned in &areas {
        scene.parts(owned).copies()[0].state.store(copy_state::WRITING, SeqCst);
    }
    let round = scene.arrive(&[0, 1]);
    let rounds = scene.job.shared.segment.rounds();
    rounds.word.store(RoundWord::new(round, Phase::Plan).0, SeqCst);
    let runtime = scene.runtime(0);
    rounds.drive(0, round, &runtime);
    assert_eq!(scene.round(), round + 1);
    for owned in &areas {
        assert_eq!(scene.parts(owned).copies()[0].state.load(SeqCst), copy_state::VALID);
    }
}

/// A round publishes into the only copy that has memory. The others get theirs from the agent while a worker stands still in the
/// middle: the newest version, which readers have, is not set aside.
#[test]
fn an_area_whose_copies_appear_in_the_middle_is_waited_for() {
    let mut scene = Scene::new(0, PIN);
    let builder = || Job::builder().reserve(1 << 28).stall_policy(PIN).hosts(&[2, 1], 0).min_copies(4);
    scene.job = builder().embedded().unwrap();
    scene.workers = (0..2).map(|_| scene.job.worker().unwrap()).collect();
    let agent = scene.job.agent().unwrap();
    let mut owned = scene.create_long(0, AreaSpec::new("a"), 1 << 17);
    scene.write(&mut owned, 0, 1);
    owned.core().force();
    let round = scene.arrive(&[0, 1]);
    let runtime = scene.runtime(0);
    assert!(runtime.make_plan(round, 0));
    for chunk in scene.chunks_of(&owned) {
        chunk.claim.store(claim::claimed(round, 1), Relaxed);
    }
    agent.complete(owned.core().id).unwrap();
    tend_twice(&runtime, round);
    assert!(!runtime.all_copied(round), "the round waits");
    for chunk in scene.chunks_of(&owned) {
        chunk.claim.store(claim::free(round), Relaxed);
    }
    scene.runtime(1).copy_chunks(round, 1);
    runtime.publish_plan(round, 0);
    assert_eq!(counter(&owned), 1);
    scene.end();
    // From now on it can be left.
    scene.write(&mut owned, 0, 2);
    owned.core().force();
    let round = scene.arrive(&[0, 1]);
    assert!(scene.runtime(0).make_plan(round, 0));
    for chunk in scene.chunks_of(&owned) {
        chunk.claim.store(claim::claimed(round, 1), Relaxed);
    }
    tend_twice(&scene.runtime(0), round);
    assert!(scene.runtime(0).all_copied(round));
    scene.runtime(0).publish_plan(round, 0);
    assert_eq!(counter(&owned), 1);
    scene.end();
}
