//! Areas that their owners have lent, while rounds publish them.
use super::{Scene, counter};
use crate::agent::{Agent, Event, Published};
use crate::protocol::round::slot_state;
use crate::protocol::word::{Phase, RoundWord};
use crate::{AreaId, AreaSpec, Job, Lent, StallPolicy};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Two workers of the first of two hosts, and its agent.
fn on_two_hosts() -> (Scene, Agent) {
    let mut scene = Scene::new(0, StallPolicy::Wait);
    scene.job = Job::builder().reserve(1 << 28).hosts(&[2, 1], 0).embedded().unwrap();
    scene.workers = (0..2).map(|_| scene.job.worker().unwrap()).collect();
    let agent = scene.job.agent().unwrap();
    (scene, agent)
}

impl Scene {
    /// An area of worker 0 that has written it and lent it.
    fn lend(&mut self, name: &str) -> Lent<u64> {
        let mut owned = self.create(0, AreaSpec::new(name).copies(2).on_demand());
        self.write(&mut owned, 0, 7);
        owned.lend(&self.workers[0]).unwrap()
    }
}

fn has_heard(agent: &mut Agent, area: AreaId) -> bool {
    let mut events = Vec::new();
    agent.look(&mut events);
    events.iter().any(|event| match event {
        Event::Published { area: it, version, .. } => *it == area && version.counter == 1,
        _ => false,
    })
}

/// Workers publish what was lent, and the last of the round's steps, by which the agent hears of it, is not done.
#[test]
fn what_a_round_is_publishing_is_not_told_before_it_is_past() {
    let (mut scene, mut agent) = on_two_hosts();
    let lent = scene.lend("a");
    let area = agent.find("a").unwrap();
    assert!(!has_heard(&mut agent, area));
    let segment = &scene.job.shared.segment;
    let index = area.index as usize;
    segment.forced(index).set();
    let round = scene.arrive(&[0, 1]);
    segment.rounds().word.store(RoundWord::new(round, Phase::Plan).0, SeqCst);
    assert!(scene.runtime(0).make_plan(round, 0));
    (0..2).for_each(|rank| scene.runtime(rank).copy_chunks(round, rank as u32));
    segment.rounds().word.store(RoundWord::new(round, Phase::Publish).0, SeqCst);
    segment.dirty(index).clear();
    assert_eq!(agent.publish_lent(area), Some(Published::PutOff));
    assert!(!has_heard(&mut agent, area));
    // Nor when its owner has taken it back meanwhile, who waits for the round.
    let word = &segment.areas()[index].own.ownership;
    let before = word.load(SeqCst);
    assert!(crate::protocol::ownership::recall(word, 0, 1));
    assert_eq!(agent.publish_lent(area), Some(Published::PutOff));
    word.store(before, SeqCst);
    scene.runtime(0).publish_plan(round, 0);
    scene.end();
    assert_eq!(agent.publish_lent(area), Some(Published::All));
    assert!(has_heard(&mut agent, area));
    drop(lent);
}

/// Rounds that wait for nobody say nothing of an owner that was not in them.
#[test]
fn an_owner_is_waited_for_beside_rounds_that_wait_for_nobody() {
    let (mut scene, agent) = on_two_hosts();
    let mut owned = scene.create(1, AreaSpec::new("held"));
    scene.write(&mut owned, 1, 7);
    let lent: Vec<_> = (0..5).map(|at| scene.lend(&format!("lent/{at}"))).collect();
    let forced = agent.force(agent.find("held").unwrap()).unwrap();
    assert!(scene.job.shared.segment.header().sync.take_request(), "a worker comes to open the round");
    for lent in &lent {
        assert_eq!(agent.publish_lent(agent.find(lent.area().name()).unwrap()), Some(Published::All));
        assert_eq!(agent.published(&forced), None);
        scene.job.shared.segment.header().sync.take_request();
    }
    scene.run(&[1, 0]);
    assert_eq!((agent.published(&forced), counter(&owned)), (Some(Published::All), 1));
}

/// Of a round that waits for nobody, an owner has its part to copy, and stands still: the agent goes on with what else it does.
#[test]
fn the_agent_does_not_wait_for_who_stands_still_in_its_round() {
    let mut scene = Scene::new(0, StallPolicy::Wait);
    // Longer than any test takes.
    let builder = Job::builder().reserve(1 << 28).round_timeout(Duration::from_secs(100_000));
    scene.job = builder.hosts(&[2, 1], 0).embedded().unwrap();
    Arc::get_mut(&mut scene.job.shared).unwrap().cores = 64;
    scene.workers = (0..2).map(|_| scene.job.worker().unwrap()).collect();
    let agent = scene.job.agent().unwrap();
    let mut held = scene.create(1, AreaSpec::new("held"));
    scene.write(&mut held, 1, 7);
    held.core().force();
    let lent = scene.lend("lent");
    let (round, rounds) = (scene.round(), scene.job.shared.segment.rounds());
    rounds.word.store(RoundWord::new(round, Phase::Open).0, SeqCst);
    rounds.all_seats[..2].iter().for_each(|seat| seat.arrived.store(round, SeqCst));
    let area = agent.find("lent").unwrap();
    for _ in 0..3 {
        assert_eq!(agent.publish_lent(area), Some(Published::PutOff));
        let word = scene.job.shared.segment.rounds().load();
        assert_eq!((word.round(), word.phase()), (round, Phase::Copy));
    }
    (0..2).for_each(|rank| scene.runtime(rank).copy_chunks(round, rank as u32));
    assert_eq!(agent.publish_lent(area), Some(Published::All));
    assert_eq!((counter(&held), lent.area().newest_version().unwrap().counter), (1, 1));
}

#[test]
fn clocks_wait_for_what_was_lent_after_it_was_to_be_published() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let mut owned = scene.create(0, AreaSpec::new("a"));
    let (observer, area) = (scene.job.observer().unwrap(), owned.area());
    let pinned = observer.read(&area).unwrap();
    scene.write(&mut owned, 0, 1);
    scene.workers.iter_mut().for_each(|worker| assert_eq!(worker.tick().unwrap(), 1));
    let lent = owned.lend(&scene.workers[0]).unwrap();
    assert!(!scene.run(&[0, 1]));
    assert_eq!((area.newest_version().unwrap().counter, scene.lowest_clock()), (0, 0));
    drop(pinned);
    assert!(scene.run(&[0, 1]));
    assert_eq!((area.newest_version().unwrap().counter, scene.lowest_clock()), (1, 1));
    drop(lent);
}

#[test]
fn a_version_of_what_is_lent_has_the_clock_of_its_owner() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let mut owned = scene.create(0, AreaSpec::new("a").copies(2));
    scene.write(&mut owned, 0, 1);
    (1..=3).for_each(|clock| assert_eq!(scene.workers[0].tick().unwrap(), clock));
    let lent = owned.lend(&scene.workers[0]).unwrap();
    assert!(scene.run(&[0, 1]));
    assert_eq!((lent.area().clock(&scene.workers[1]).unwrap(), scene.lowest_clock()), (3, 0));
}

/// Of a group, an owner has lent one area, and dies while it writes the other.
#[test]
fn of_a_group_nothing_is_published_that_a_dead_owner_had_not() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let [mut a, mut b] = ["a", "b"].map(|name| scene.create(0, AreaSpec::new(name).copies(2).group("g")));
    scene.write(&mut a, 0, 1);
    scene.write(&mut b, 0, 1);
    let lent = a.lend(&scene.workers[0]).unwrap();
    scene.job.shared.segment.all_seats()[0].set_state(slot_state::DEAD);
    lent.area().request_sync();
    let published = scene.run(&[1]);
    scene.job.shared.segment.all_seats()[0].set_state(slot_state::LIVE);
    assert_eq!([lent.area(), b.area()].map(|area| area.newest_version().unwrap().counter), [0, 0]);
    assert!(!published);
}
