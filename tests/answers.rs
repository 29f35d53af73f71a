//! An agent's answers to workers about names and areas: why a name cannot be had, and why other hosts refuse an area.
use crate::common::*;
use hectare::agent::{Agent, Conflict, Event, Over, Refusal};
use hectare::{AreaSpec, ElementType, Error, Job, Owned, Unshared, Worker};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

/// Host 1 of three: ranks 2 and 3 are here.
fn job() -> Job {
    let job = Job::builder().reserve(1 << 28).round_timeout(LONG).hosts(&[2, 2, 1], 1).embedded().unwrap();
    job.agent().unwrap().name_host(2, "c (10.0.0.3:7400)").unwrap();
    job
}

/// Answers all who ask as long as somebody does.
fn answering<R: Send>(job: &Job, refusal: &Refusal, ask: impl FnOnce() -> R + Send) -> R {
    let mut agent = job.agent().unwrap();
    std::thread::scope(|scope| {
        let asks = scope.spawn(ask);
        while !asks.is_finished() {
            agent.wait(SHORT);
            for event in heard(&mut agent) {
                if let Event::Wanted { name } = event {
                    // Those for others are no answer.
                    (0..20).for_each(|other| agent.refuse(&format!("other/{other}"), &Refusal::Unknown));
                    agent.refuse(&name, refusal);
                }
            }
        }
        asks.join().unwrap()
    })
}

/// The names that workers want.
fn wanted(agent: &mut Agent) -> Vec<String> {
    let name = |event| if let Event::Wanted { name } = event { Some(name) } else { None };
    heard(agent).into_iter().filter_map(name).collect()
}

#[test]
fn names_are_asked_for_before_they_are_waited_for() {
    let job = job();
    let mut worker = job.worker().unwrap();
    // Nobody is there to be asked.
    worker.ask_for(["early"]).unwrap();
    let mut agent = job.agent().unwrap();
    assert!(wanted(&mut agent).is_empty());
    let _here = worker.create::<u64>("here", 8).unwrap();
    heard(&mut agent);
    worker.ask_for(["a", "here", "b", "a"]).unwrap();
    assert_eq!(wanted(&mut agent), ["a", "b"]);
    // There is room for so many; the others are asked for when somebody waits for them.
    let many: Vec<String> = (0..100).map(|number| format!("many/{number}")).collect();
    worker.ask_for(many.iter().map(String::as_str)).unwrap();
    assert_eq!(wanted(&mut agent), many[..64]);
    // A job on one host has no other to ask.
    let alone = Job::builder().reserve(1 << 28).embedded().unwrap();
    let (mut worker, mut agent) = (alone.worker().unwrap(), alone.agent().unwrap());
    worker.ask_for(["a"]).unwrap();
    assert!(wanted(&mut agent).is_empty());
}

fn heard(agent: &mut Agent) -> Vec<Event> {
    let mut events = Vec::new();
    agent.look(&mut events);
    events
}

fn all_who_wait(refusal: &Refusal, is_it: impl Fn(&Error) -> bool + Sync, parts: &[&str]) {
    type Wait = fn(&Job) -> Error;
    let waits: [Wait; 3] = [
        |job| job.worker().unwrap().attach::<u8>("theirs").unwrap_err(),
        |job| job.worker().unwrap().attach_within::<u8>("theirs", LONG).unwrap_err(),
        |job| job.attach_within::<u8>("theirs", LONG).unwrap_err(),
    ];
    for wait in waits {
        let job = job();
        let error = answering(&job, refusal, || wait(&job));
        assert!(is_it(&error), "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn an_area_that_its_host_keeps_is_an_error_for_all_who_wait_for_it() {
    let refusal = |why| Refusal::Unshared { host: 2, why };
    let is = |error: &Error, of| matches!(error, Error::NotShared { why, .. } if *why == of);
    for (why, part) in [
        (Unshared::Local, "`copies(1)`"),
        (Unshared::Members, "groups"),
        (Unshared::Length, "shorten"),
        (Unshared::Memory, "no memory"),
    ] {
        all_who_wait(&refusal(why), |error| is(error, why), &["\"theirs\"", "c (10.0.0.3:7400)", part]);
    }
}

#[test]
fn an_area_that_has_no_place_here_is_an_error_for_all_who_wait_for_it() {
    let full = Refusal::OutOfMemory { asked: 4097, free: 12, limit: 99, payer: "cgroup /small".into() };
    all_who_wait(&full, |error| matches!(error, Error::OutOfMemory { .. }), &["4097", "12", "99", "/small"]);
    let other = Refusal::NotReceived { host: 2, why: "all 3 area slots are taken".into() };
    let is_it = |error: &Error| matches!(error, Error::NotReceived { .. });
    all_who_wait(&other, is_it, &["\"theirs\"", "c (10.0.0.3:7400)", "all 3 area slots"]);
}

/// That there is none may change: whoever waits for it goes on.
#[test]
fn whoever_waits_for_a_name_goes_on_when_no_host_has_it() {
    let job = job();
    let error = answering(&job, &Refusal::Unknown, || {
        job.worker().unwrap().attach_within::<u8>("theirs", 10 * SHORT).unwrap_err()
    });
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

/// The errors of synchronization points, until one has none.
fn complaints(worker: &mut Worker) -> Vec<Error> {
    std::iter::from_fn(|| worker.sync().err()).take(100).collect()
}

fn over(over: Over, host: usize) -> Conflict {
    Conflict { over, host, is_known: true }
}

#[test]
fn an_owner_hears_of_each_host_that_clashes() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u64>(AreaSpec::new("both").group("g"), 1).unwrap();
    let area = agent.find("both").unwrap();
    let asked = ElementType::of::<f32>();
    let all = [
        over(Over::Name, 0),
        over(Over::Name, 2),
        over(Over::Group, 0),
        over(Over::Group, 2),
        over(Over::Type(asked.to_parts()), 0),
        over(Over::Type(ElementType::of::<u8>().to_parts()), 0),
    ];
    for conflict in all {
        agent.tell_conflict(area, conflict);
        // The same is not told twice.
        agent.tell_conflict(area, conflict);
    }
    let mut said: Vec<Error> = Vec::new();
    until("all are heard", || {
        said.extend(complaints(&mut worker));
        heard(&mut agent);
        said.len() >= all.len()
    });
    let count = |is_it: fn(&Error) -> bool| said.iter().filter(|error| is_it(error)).count();
    assert_eq!(count(|error| matches!(error, Error::NameClash { .. })), 2, "{said:?}");
    assert_eq!(count(|error| matches!(error, Error::GroupClash { .. })), 2, "{said:?}");
    let types: Vec<String> = said
        .iter()
        .filter(|error| matches!(error, Error::TypeClash { .. }))
        .map(ToString::to_string)
        .collect();
    assert!(types[0].contains("f32 (size 4") && types[0].contains("u64"), "{types:?}");
    assert!(types[1].contains("u8 (size 1"), "{types:?}");
    assert!(said[..3].iter().any(|error| error.to_string().contains("c (10.0.0.3:7400)")), "{said:?}");
    assert_eq!((said.len(), complaints(&mut worker).len()), (all.len(), 0));
    drop(owned);
}

#[test]
fn what_other_hosts_cannot_have_is_an_error_for_its_owner() {
    let job = job();
    let agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    let _owned = worker.create::<u64>("mine", 1).unwrap();
    let area = agent.find("mine").unwrap();
    agent.tell_conflict(area, over(Over::Members, 1));
    agent.tell_conflict(area, over(Over::Length, 1));
    let said = complaints(&mut worker);
    for (error, expected) in said.iter().zip([Unshared::Members, Unshared::Length]) {
        assert!(matches!(error, Error::NotShared { name, why, .. } if name == "mine" && *why == expected));
    }
    assert_eq!(said.len(), 2);
}

/// The same of synchronization points that do not wait for the other worker.
fn complaints_in_passing(worker: &mut Worker) -> Vec<Error> {
    (0..5000).filter_map(|_| worker.service().err()).collect()
}

/// The last owner did not come to a synchronization point, and the new one has looked at what it owned before.
#[test]
fn a_clash_is_heard_by_whoever_the_area_is_handed_to() {
    for is_claimed in [false, true] {
        let job = job();
        let agent = job.agent().unwrap();
        let [mut first, mut second] = [2, 3].map(|rank| job.worker_at(rank).unwrap());
        let mine = first.create::<u64>("mine", 1).unwrap();
        agent.tell_conflict(agent.find("mine").unwrap(), over(Over::Name, 0));
        assert_eq!(complaints_in_passing(&mut second).len(), 0);
        let owned: Owned<u64> = if is_claimed {
            drop(mine);
            second.claim("mine").unwrap().owned
        } else {
            mine.give(&first, second.rank()).unwrap();
            second.attach_here::<u64>("mine").unwrap().take(&mut second).unwrap()
        };
        let said = complaints_in_passing(&mut second);
        assert!(matches!(&said[..], [Error::NameClash { name, .. }] if name == "mine"), "{said:?}");
        drop(owned);
        assert_eq!(complaints_in_passing(&mut first).len(), 0);
    }
}

/// Whoever takes an area of another host for something else is refused, and the agent hears it for its owner.
#[test]
fn the_agent_hears_as_what_an_area_of_another_host_was_taken() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let spec = AreaSpec::new("theirs");
    let area = agent.create_hidden(&spec, ElementType::of::<f64>(), 10, 2, [0; 3]).unwrap();
    agent.show(area);
    let mut worker = job.worker().unwrap();
    let _mine = worker.create::<u64>("mine", 1).unwrap();
    heard(&mut agent);
    // That of an area of this host is nobody else's affair.
    assert!(matches!(worker.attach::<u8>("mine"), Err(Error::WrongType { host: None, .. })));
    for _ in 0..3 {
        let error = worker.attach::<u32>("theirs").unwrap_err();
        assert!(matches!(&error, Error::WrongType { host: Some(host), .. } if host.contains("10.0.0.3")));
    }
    assert!(matches!(job.attach::<f32>("theirs"), Err(Error::WrongType { .. })));
    let taken_for: Vec<_> = heard(&mut agent)
        .into_iter()
        .filter_map(|event| match event {
            Event::TakenFor { name, element } => Some((name, element)),
            _ => None,
        })
        .collect();
    let all = [ElementType::of::<u32>(), ElementType::of::<f32>()].map(|element| ("theirs".into(), element));
    assert_eq!(taken_for, all);
}
