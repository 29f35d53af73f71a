//! The last worker of a host gives areas to a worker of another host and is killed before a round has published them: the agent does, so
//! that they go where they were given.
use crate::common::*;
use hectare::agent::{Agent, Event, RemoteWorker};
use hectare::{AreaSpec, ElementType, Job, Version};

const LEN: usize = 3000;
const NAMES: [&str; 2] = ["a", "b"];

/// The memory of the first of two hosts, each of which has one worker.
fn first_host() -> Job {
    let job = Job::builder().hosts(&[1, 1], 0).min_copies(2).reserve(1 << 26).embedded().unwrap();
    job.agent().unwrap().set_worker(1, RemoteWorker::There).unwrap();
    job
}

/// Gives areas away of which the first is as it was created, and dies.
fn give_and_die(job: &Job, before: impl FnOnce()) -> ! {
    let mut worker = job.worker().unwrap();
    let mut areas = NAMES.map(|name| worker.create::<u64>(AreaSpec::new(name).copies(1), LEN).unwrap());
    fill(&mut areas[1], &worker, 7);
    before();
    for owned in areas {
        owned.give(&worker, 1).unwrap();
    }
    std::process::abort()
}

/// Looks until this host is out of the clocks; all that was heard.
fn look_to_the_end(agent: &mut Agent) -> Vec<Event> {
    let mut events = Vec::new();
    until("the end of its clock", || {
        agent.look(&mut events);
        events.iter().any(|event| matches!(event, Event::Clock { local: u64::MAX, .. }))
    });
    events
}

/// Which areas were given away, as heard; each of them can leave this host, with all that was written.
#[track_caller]
fn leave_all(agent: &Agent, events: &[Event]) -> Vec<&'static str> {
    let left = NAMES.into_iter().zip([0_u64, 7]).filter(|(name, value)| {
        let area = agent.find(name).unwrap();
        let given = |event: &Event| match event {
            Event::Given { area: it, to: 1, epoch } if *it == area => Some(*epoch),
            _ => None,
        };
        let Some(epoch) = events.iter().find_map(given) else {
            assert!(agent.describe(area).unwrap().given_to.is_none(), "{name} is on its way: {events:?}");
            return false;
        };
        assert!(agent.is_all_published(area), "{name}: {events:?}");
        let version = agent.newest(area).unwrap();
        let is_published = |event: &Event| match event {
            Event::Published { area: it, version: newest, .. } => *it == area && *newest == version,
            _ => false,
        };
        assert!(events.iter().any(is_published), "{name}: {events:?}");
        assert_eq!(version.counter, u64::from(*value != 0), "{name}");
        agent.complete(area).unwrap();
        let held = agent.hold(&[area]).unwrap();
        let expected: Vec<u8> = std::iter::repeat_n(value.to_ne_bytes(), LEN).flatten().collect();
        assert!(held[0].bytes() == expected, "{name} is not as it was written");
        assert!(agent.leave(area, 1, epoch, version).unwrap(), "{name}");
        true
    });
    left.map(|(name, _)| name).collect()
}

#[test]
fn what_the_last_worker_gave_before_it_was_killed_is_published() {
    const NAME: &str = "what_the_last_worker_gave_before_it_was_killed_is_published";
    if let Some((_, job)) = role() {
        give_and_die(&job, || {});
    }
    let job = first_host();
    let _watch = watch(&job);
    let mut agent = job.agent().unwrap();
    assert!(!spawn(NAME, "giver", &job).wait(), "it was to die");
    let events = look_to_the_end(&mut agent);
    assert_eq!(leave_all(&agent, &events), NAMES);
}

/// An observer has the only copy pinned: the area is published when it lets go, and goes then.
#[test]
fn what_cannot_be_published_at_once_is_published_later() {
    const NAME: &str = "what_cannot_be_published_at_once_is_published_later";
    if let Some((_, job)) = role() {
        give_and_die(&job, || drop(job.attach_within::<u64>("pinned", LONG).unwrap()));
    }
    let job = first_host();
    let _watch = watch(&job);
    let mut agent = job.agent().unwrap();
    let mut giver = spawn(NAME, "giver", &job);
    let observer = job.observer().unwrap();
    let area = job.attach_within::<u64>("b", LONG).unwrap();
    let pinned = observer.read(&area).unwrap();
    agent.create(&AreaSpec::new("pinned"), ElementType::of::<u64>(), 1).unwrap();
    assert!(!giver.wait(), "it was to die");
    let mut events = look_to_the_end(&mut agent);
    let here = agent.find("b").unwrap();
    for _ in 0..3 {
        agent.look(&mut events);
        assert!(!agent.is_all_published(here));
        assert_eq!((agent.newest(here), uniform(&pinned)), (Some(Version::default()), 0));
    }
    drop(pinned);
    agent.look(&mut events);
    assert_eq!(leave_all(&agent, &events), NAMES);
}

/// The giver is killed at every step of giving: an area is given, and published, or it is not.
#[cfg(feature = "fault-points")]
#[test]
fn an_area_is_given_and_published_or_not_given() {
    const NAME: &str = "an_area_is_given_and_published_or_not_given";
    if let Some((points, job)) = role() {
        give_and_die(&job, || hectare::fault::die_after(points.parse().unwrap()));
    }
    let mut counts = [0; 3];
    for points in 0..12 {
        let job = first_host();
        let _watch = watch(&job);
        let mut agent = job.agent().unwrap();
        assert!(!spawn(NAME, &points.to_string(), &job).wait(), "it was to die");
        let events = look_to_the_end(&mut agent);
        counts[leave_all(&agent, &events).len()] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// The agent is killed at every step of that, too: the next one goes on.
#[cfg(feature = "fault-points")]
#[test]
fn an_agent_that_is_killed_meanwhile_leaves_it_to_the_next() {
    const NAME: &str = "an_agent_that_is_killed_meanwhile_leaves_it_to_the_next";
    if let Some((role, job)) = role() {
        if role == "giver" {
            give_and_die(&job, || {});
        }
        let mut agent = job.agent().unwrap();
        hectare::fault::die_after(role.parse().unwrap());
        look_to_the_end(&mut agent);
        std::process::exit(0);
    }
    let (mut killed, mut in_rounds) = (0, 0);
    for points in 0.. {
        let job = first_host();
        let _watch = watch(&job);
        assert!(!spawn(NAME, "giver", &job).wait(), "it was to die");
        let has_ended = spawn(NAME, &points.to_string(), &job).wait();
        killed += u32::from(!has_ended);
        let mut agent = job.agent().unwrap();
        in_rounds += u32::from(agent.is_in_round());
        let events = look_to_the_end(&mut agent);
        assert_eq!(leave_all(&agent, &events), NAMES, "point {points}");
        if has_ended {
            break;
        }
    }
    assert!(in_rounds > 5 && killed > 10, "killed {killed} times, {in_rounds} of them in a round");
}
