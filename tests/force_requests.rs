//! Workers ask other hosts for what an area is there now, and agents answer: by what is public, with an agent by hand.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Event, Published, Source};
use hectare::{AreaId, AreaSpec, ElementType, Error, Job, Version, Worker};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SOURCE: Source = Source { term: 1, sender: 7 };

fn version(counter: u64) -> Version {
    Version { term: 1, counter }
}

/// A job on two hosts, of which this is the first.
fn job() -> Job {
    Job::builder().hosts(&[2, 1], 0).embedded().unwrap()
}

/// The agent of that job, and an area "w" of the other host.
fn agent_with_area(job: &Job) -> (Agent, AreaId) {
    let agent = job.agent().unwrap();
    let area = agent.create(&AreaSpec::new("w").copies(3), ElementType::of::<u64>(), 1).unwrap();
    (agent, area)
}

/// Hands over a version, and waits until it is published.
fn deliver(agent: &mut Agent, area: AreaId, counter: u64) {
    let mut receiving = agent.receive(&[area], SOURCE).unwrap().unwrap();
    receiving.write(area, 0, &counter.to_ne_bytes()).unwrap();
    let age = Duration::ZERO;
    receiving.commit(&[Arrival { area, version: version(counter), clock: 0, label: 0, age }], true).unwrap();
    until("the publication", || agent.may_receive(area));
}

/// The next request that the agent hears.
fn hear(agent: &mut Agent, area: AreaId) -> u64 {
    let (mut events, mut heard) = (Vec::new(), None);
    until("a request", || {
        agent.wait(Duration::from_millis(10));
        agent.look(&mut events);
        heard = events.drain(..).find_map(|event| match event {
            Event::Requested { area: requested, request } if requested == area => Some(request),
            _ => None,
        });
        heard.is_some()
    });
    heard.unwrap()
}

/// Runs a worker of `job` in another thread; what it comes to.
fn work<R: Send + 'static>(
    job: &Job,
    work: impl FnOnce(&mut Worker) -> R + Send + 'static,
) -> (Receiver<R>, std::thread::JoinHandle<()>) {
    let (job, (tell, told)) = (job.clone(), channel());
    let thread = std::thread::spawn(move || {
        let answer = work(&mut job.worker().unwrap());
        let _ = tell.send(answer);
    });
    (told, thread)
}

#[test]
fn a_sync_of_an_area_of_another_host_brings_what_it_is_there() {
    let job = job();
    let _watch = watch(&job);
    let (mut agent, area) = agent_with_area(&job);
    let (told, thread) = work(&job, |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        let synced = worker.sync_area(&area).unwrap();
        (synced.postponed, area.read(worker).unwrap()[0])
    });
    let request = hear(&mut agent, area);
    deliver(&mut agent, area, 1);
    assert!(told.try_recv().is_err(), "it was not answered yet");
    deliver(&mut agent, area, 2);
    agent.answer(area, request, false);
    assert_eq!(told.recv().unwrap(), (0, 2));
    thread.join().unwrap();
}

#[test]
fn an_owner_that_could_not_publish_is_told_of() {
    let job = job();
    let _watch = watch(&job);
    let (mut agent, area) = agent_with_area(&job);
    let (told, thread) = work(&job, |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        [worker.sync_area(&area).unwrap().postponed, worker.sync_area(&area).unwrap().postponed]
    });
    let first = hear(&mut agent, area);
    agent.answer(area, first, true);
    let second = hear(&mut agent, area);
    assert!(second > first);
    // The answer to the first is none to the second.
    agent.answer(area, first, false);
    std::thread::sleep(Duration::from_millis(20));
    assert!(told.try_recv().is_err());
    agent.answer(area, second, false);
    assert_eq!(told.recv().unwrap(), [1, 0]);
    thread.join().unwrap();
}

#[test]
fn the_next_agent_hears_what_is_not_answered() {
    let job = job();
    let _watch = watch(&job);
    let (mut agent, area) = agent_with_area(&job);
    let (told, thread) = work(&job, |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        worker.sync_area(&area).unwrap().postponed
    });
    let request = hear(&mut agent, area);
    drop(agent);
    let mut agent = job.agent().unwrap();
    assert_eq!(hear(&mut agent, area), request);
    agent.answer(area, request, false);
    assert_eq!(told.recv().unwrap(), 0);
    thread.join().unwrap();
    drop(agent);
    let (mut agent, mut events) = (job.agent().unwrap(), Vec::new());
    agent.look(&mut events);
    assert!(!events.iter().any(|event| matches!(event, Event::Requested { .. })), "{events:?}");
}

#[test]
fn what_is_confirmed_is_fresh() {
    let job = job();
    let _watch = watch(&job);
    let (mut agent, area) = agent_with_area(&job);
    let age = Duration::from_secs(3600);
    let (told, thread) = work(&job, move |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        until("it to be old", || area.age(worker).unwrap() > Duration::from_millis(5));
        let late = worker.wait_fresher_than(&area, Duration::from_millis(5), Duration::from_millis(50));
        let in_time = worker.wait_fresher_than(&area, age, LONG);
        (late, in_time, worker.wait_fresher_than(&area, Duration::from_nanos(1), Duration::ZERO))
    });
    // Nothing is said in time.
    let request = hear(&mut agent, area);
    let (late, in_time, never) = told.recv().unwrap();
    assert!(late.unwrap_err().to_string().contains("its age is"));
    in_time.unwrap();
    assert!(matches!(never, Err(Error::TimedOut { .. })));
    thread.join().unwrap();
    agent.answer(area, request, false);

    let (told, thread) = work(&job, |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        worker.wait_fresher_than(&area, Duration::from_millis(200), LONG)
    });
    loop {
        // The version is the one that the area was created with.
        agent.confirm(area, Version::default(), Duration::ZERO);
        agent.answer(area, u64::MAX >> 2, false);
        if let Ok(answer) = told.recv_timeout(Duration::from_millis(10)) {
            answer.unwrap();
            break;
        }
    }
    thread.join().unwrap();
}

/// The result for a worker that waits for an answer when this happens instead.
fn told_after(happens: impl FnOnce(&Agent, AreaId)) -> Error {
    let job = job();
    let _watch = watch(&job);
    let (mut agent, area) = agent_with_area(&job);
    let (told, thread) = work(&job, |worker| {
        let area = worker.attach_within::<u64>("w", LONG).unwrap();
        worker.sync_area(&area).map(|_| ())
    });
    hear(&mut agent, area);
    happens(&agent, area);
    let error = told.recv().unwrap().unwrap_err();
    thread.join().unwrap();
    error
}

#[test]
fn the_end_of_a_job_ends_the_wait_for_an_answer() {
    let error = told_after(|agent, _| agent.end_job("b", "silent").unwrap());
    assert!(matches!(error, Error::PeerFailed { .. }), "{error}");
}

#[test]
fn a_deleted_area_ends_the_wait_for_an_answer() {
    let error = told_after(|agent, area| agent.delete(area).unwrap());
    assert!(matches!(error, Error::Deleted { .. }), "{error}");
}

#[test]
fn an_agent_has_an_area_published_and_hears_what_became_of_it() {
    let job = patient_job();
    let _watch = watch(&job);
    let (mut agent, mut worker) = (job.agent().unwrap(), job.worker().unwrap());
    let mut area = worker.create::<u64>(AreaSpec::new("w").copies(2), 1).unwrap();
    fill(&mut area, &worker, 7);
    let mut events = Vec::new();
    agent.look(&mut events);
    let created = |event: &Event| if let Event::Created { area } = event { Some(*area) } else { None };
    let id = events.iter().find_map(created).unwrap();
    let forced = agent.force(id).unwrap();
    assert_eq!(agent.published(&forced), None, "no round yet");
    until("the round", || {
        worker.service().unwrap();
        agent.published(&forced).is_some()
    });
    assert_eq!(agent.published(&forced), Some(Published::All));
    assert_eq!(agent.newest(id).unwrap().counter, 1);
    // Nothing is new, which is known after a round, too.
    let forced = agent.force(id).unwrap();
    until("the round", || {
        worker.service().unwrap();
        agent.published(&forced).is_some()
    });
    assert_eq!(agent.published(&forced), Some(Published::All));
    assert_eq!(agent.newest(id).unwrap().counter, 1);
    // The owner has left: others go on with rounds, and nobody knows what it had written.
    let mut other = job.worker().unwrap();
    drop((area, worker));
    let forced = agent.force(id).unwrap();
    until("the round", || {
        other.service().unwrap();
        agent.published(&forced).is_some()
    });
    assert_eq!(agent.published(&forced), Some(Published::PutOff));
}
