//! Agents and workers are killed while versions arrive from other hosts: what is published stays whole, and the next goes on.
#![cfg(feature = "fault-points")]
use crate::arrivals::{SOURCE, arrival, look};
use crate::common::*;
use hectare::agent::Agent;
use hectare::{AreaSpec, ElementType, Job, Worker};
use std::time::Duration;

/// Lines of the areas that a victim writes.
const LINES: u64 = 40;
const NAMES: [&str; 2] = ["x", "y"];

/// The value in line `line` of version `counter`: each version changes one line, to its number.
fn content(line: u64, counter: u64) -> u64 {
    (0..=counter).rev().find(|counter| counter % LINES == line).unwrap_or(0)
}

fn line(value: u64) -> Vec<u8> {
    std::iter::repeat_n(value.to_ne_bytes(), 8).flatten().collect()
}

fn check(worker: &Worker, last: &mut u64) {
    let mut versions = Vec::new();
    for name in NAMES {
        let Ok(area) = worker.attach_here::<u64>(name) else { return };
        let counter = area.version(worker).unwrap().counter;
        let lines: Vec<u64> = area.read(worker).unwrap().chunks(8).map(uniform).collect();
        let expected: Vec<u64> = (0..LINES).map(|line| content(line, counter)).collect();
        assert_eq!(lines, expected, "version {counter} of {name}");
        versions.push(counter);
    }
    assert!(versions[0] == versions[1] && versions[0] >= *last, "{versions:?} after {last}");
    *last = versions[0];
}

/// Delivers the next version, if the last is published; with rubbish in between, in a line of its own.
fn deliver_next(agent: &mut Agent, rubbish: Option<u64>) {
    let areas = NAMES.map(|name| agent.find(name).unwrap());
    look(agent);
    let Some(mut receiving) = agent.receive(&areas, SOURCE).unwrap() else { return };
    let newest = agent.newest(areas[0]).unwrap().counter;
    let next = newest + 1;
    for area in areas {
        if let Some(at) = rubbish {
            receiving.write(area, at % LINES, &line(u64::MAX)).unwrap();
            receiving.write(area, at % LINES, &line(content(at % LINES, newest))).unwrap();
        }
        receiving.write(area, next % LINES, &line(next)).unwrap();
    }
    receiving.commit(&areas.map(|area| arrival(area, next)), true).unwrap();
}

/// The areas, one of which an agent before may have made.
fn make(agent: &Agent) {
    for name in NAMES {
        if agent.find(name).is_none() {
            let spec = AreaSpec::new(name).copies(2).group("g");
            agent.create(&spec, ElementType::of::<u64>(), LINES as usize * 8).unwrap();
        }
    }
}

/// Deletes the areas, if they are there.
fn delete(job: &Job) {
    let agent = job.agent().unwrap();
    NAMES.into_iter().filter_map(|name| agent.find(name)).for_each(|area| agent.delete(area).unwrap());
}

#[test]
fn agents_are_killed_at_any_step() {
    const NAME: &str = "agents_are_killed_at_any_step";
    if let Some((points, job)) = role() {
        let points = points.parse().unwrap();
        hectare::fault::die_after(points);
        let mut agent = job.agent().unwrap();
        make(&agent);
        loop {
            deliver_next(&mut agent, Some(u64::from(points)));
            agent.wait(Duration::from_millis(1));
        }
    }
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut last = 0;
    for points in (0..60).chain((60..300).step_by(23)) {
        if points % 10 == 0 {
            delete(&job);
            worker.sync().unwrap();
            worker.sync().unwrap();
            last = 0;
        }
        let mut victim = spawn(NAME, &points.to_string(), &job);
        while !victim.has_ended() {
            worker.sync().unwrap();
            check(&worker, &mut last);
        }
        assert!(!victim.wait(), "killed");
        worker.sync().unwrap();
        check(&worker, &mut last);
        // The next one goes on with what is there, and nothing of the dead one's comes to light.
        let mut agent = job.agent().unwrap();
        make(&agent);
        for _ in 0..3 {
            let before = last;
            deliver_next(&mut agent, None);
            worker.sync().unwrap();
            check(&worker, &mut last);
            assert_eq!(last, before + 1, "point {points}");
        }
    }
}

#[test]
fn workers_are_killed_while_versions_arrive() {
    const NAME: &str = "workers_are_killed_while_versions_arrive";
    if let Some((points, job)) = role() {
        let mut worker = job.worker().unwrap();
        hectare::fault::die_after(points.parse().unwrap());
        loop {
            worker.sync().unwrap();
        }
    }
    for points in 0..40 {
        let job =
            Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(200)).embedded().unwrap();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let mut agent = job.agent().unwrap();
        make(&agent);
        let mut victim = spawn(NAME, &points.to_string(), &job);
        let mut last = 0;
        while !victim.has_ended() {
            deliver_next(&mut agent, None);
            worker.sync().unwrap();
            check(&worker, &mut last);
        }
        let before = last;
        for _ in 0..4 {
            deliver_next(&mut agent, None);
            worker.sync().unwrap();
            check(&worker, &mut last);
        }
        assert!(last > before + 2, "{last} after {before}, point {points}");
    }
}
