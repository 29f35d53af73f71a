//! Areas that are sent on demand, as the host sees them that asks: what has come is read where it arrived, outside of rounds, and
//! stays as long as somebody reads it. By what is public, with an agent by hand.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Event, Source};
use hectare::{AreaId, AreaSpec, ElementType, Error, Job, Version, Worker};
use std::time::Duration;

const SOURCE: Source = Source { term: 1, sender: 7 };
const LEN: usize = 40;

/// The first of two hosts, the agent there, and an area of the other.
fn host() -> (Job, Agent, AreaId) {
    let job = Job::builder().hosts(&[2, 1], 0).round_timeout(Duration::from_millis(20)).embedded().unwrap();
    let agent = job.agent().unwrap();
    let spec = AreaSpec::new("part").copies(3).on_demand();
    let area = agent.create(&spec, ElementType::of::<u64>(), LEN).unwrap();
    assert!(agent.describe(area).unwrap().on_demand);
    (job, agent, area)
}

/// Has version `counter` arrive, if the agent may receive it.
fn arrive(agent: &Agent, area: AreaId, counter: u64) -> bool {
    let Some(mut receiving) = agent.receive(&[area], SOURCE).unwrap() else { return false };
    receiving.write(area, 0, hectare::bytemuck::cast_slice(&[counter; LEN])).unwrap();
    let version = Version { term: 1, counter };
    receiving.commit(&[Arrival { area, version, clock: 0, label: 0, age: Duration::ZERO }], false).unwrap();
    true
}

fn request(agent: &mut Agent, area: AreaId) -> u64 {
    let mut events = Vec::new();
    agent.look(&mut events);
    let of = |event| match event {
        Event::Requested { area: requested, request } if requested == area => Some(request),
        _ => None,
    };
    events.into_iter().find_map(of).expect("somebody asked")
}

#[test]
fn what_was_asked_for_is_read_without_a_round() {
    let (job, mut agent, area) = host();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let part = worker.attach_within::<u64>("part", LONG).unwrap();
    assert_eq!(part.read(&worker).unwrap()[0], 0);
    let asked = part.ask(&worker).unwrap();
    let late = part.read_asked(&worker, asked, Duration::from_millis(30));
    assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
    let request = request(&mut agent, area);
    assert!(arrive(&agent, area, 1));
    assert_eq!(part.read(&worker).unwrap()[0], 0, "no round has published it");
    agent.answer(area, request, false);
    let rounds = job.stats().unwrap().rounds;
    assert_eq!(part.read_asked(&worker, asked, LONG).unwrap(), [1; LEN]);
    assert_eq!(job.stats().unwrap().rounds, rounds);
    assert!(agent.receive(&[area], SOURCE).unwrap().is_none(), "it is not published");
    let again = part.ask(&worker).unwrap();
    let late = part.read_asked(&worker, again, Duration::from_millis(30)).unwrap_err().to_string();
    assert!(late.contains("after the reader's next synchronization point"), "{late}");
    worker.sync().unwrap();
    assert_eq!(part.read_asked(&worker, asked, LONG).unwrap(), [1; LEN]);
    assert!(arrive(&agent, area, 2), "it is published, and nobody reads the last in place");
}

#[test]
fn who_waits_for_an_answer_sleeps_until_it_comes() {
    let (job, mut agent, area) = host();
    let _watch = watch(&job);
    let thread = std::thread::spawn(move || {
        let mut worker: Worker = job.worker().unwrap();
        let part = worker.attach_within::<u64>("part", LONG).unwrap();
        let asked = part.ask(&worker).unwrap();
        part.read_asked(&worker, asked, LONG).unwrap().to_vec()
    });
    let mut heard = None;
    until("the request", || {
        let mut events = Vec::new();
        agent.look(&mut events);
        let mut requests = events.into_iter().filter_map(|event| match event {
            Event::Requested { request, .. } => Some(request),
            _ => None,
        });
        heard = requests.next_back().or(heard);
        heard.is_some()
    });
    std::thread::sleep(Duration::from_millis(5));
    assert!(arrive(&agent, area, 3));
    agent.answer(area, heard.unwrap(), false);
    assert_eq!(thread.join().unwrap(), [3; LEN]);
}

#[test]
fn the_next_agent_finds_what_has_arrived() {
    let (job, agent, area) = host();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    assert_eq!(agent.arrived(area), None);
    assert!(arrive(&agent, area, 1));
    drop(agent);
    let agent = job.agent().unwrap();
    assert_eq!(agent.arrived(area), Some(Version { term: 1, counter: 1 }));
    worker.sync().unwrap();
    assert!(agent.may_receive(area));
    assert_eq!(agent.arrived(area), None, "it is published");
}

#[test]
fn the_agent_waits_for_who_reads_in_place_and_was_passed_over() {
    let (job, mut agent, area) = host();
    let _watch = watch(&job);
    let (mut reader, mut other) = (job.worker().unwrap(), job.worker().unwrap());
    let part = reader.attach_within::<u64>("part", LONG).unwrap();
    let asked = part.ask(&reader).unwrap();
    let request = request(&mut agent, area);
    assert!(arrive(&agent, area, 1));
    agent.answer(area, request, false);
    let view = part.read_asked(&reader, asked, LONG).unwrap();
    // Gives a round up, and goes on without the reader in the next.
    until("a round without the reader", || {
        other.sync().unwrap();
        part.version(&other).unwrap().counter == 1
    });
    assert!(!agent.may_receive(area), "the reader has been at no synchronization point");
    assert!(agent.receive(&[area], SOURCE).unwrap().is_none());
    assert_eq!(view, [1; LEN]);
    reader.sync().unwrap();
    assert!(arrive(&agent, area, 2));
    assert_eq!(part.read(&reader).unwrap()[0], 1);
}

#[test]
fn on_this_host_an_area_is_read_as_any_other() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("part").on_demand(), LEN).unwrap();
    owned.write(&worker).unwrap().fill(5);
    worker.sync().unwrap();
    let part = owned.area();
    let asked = part.ask(&worker).unwrap();
    assert_eq!(part.read_asked(&worker, asked, Duration::ZERO).unwrap(), [5; LEN]);
    for spec in [AreaSpec::new("a").on_demand().copies(0), AreaSpec::new("b").on_demand().group("g")] {
        let refused = worker.create::<u64>(spec, 1);
        assert!(matches!(refused, Err(Error::InvalidArea { .. })), "{refused:?}");
    }
}
