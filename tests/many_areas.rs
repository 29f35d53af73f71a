//! Jobs with many areas: names, groups, memory and intervals among hundreds of others that come and go.
use crate::common::*;
use hectare::{AreaSpec, Error, Job, Owned};
use std::collections::HashMap;
use std::time::Duration;

fn job() -> Job {
    Job::builder().reserve(1 << 30).max_areas(512).round_timeout(LONG).embedded().unwrap()
}

/// Names come and go at random: what is there is found and what is not is not, new areas are zero whatever lay there
/// before, and in the end nothing is left.
#[test]
fn names_and_memory_come_and_go() {
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let (free, resident) = (job.free_bytes().unwrap(), job.resident_bytes().unwrap());
    let mut random = Random(11);
    let mut there: HashMap<usize, Owned<u64>> = HashMap::new();
    for step in 0..4000u64 {
        let number = random.below(400);
        let name = format!("part/{number}");
        match there.remove(&number) {
            Some(mut area) if random.below(2) == 0 => {
                assert!(matches!(worker.create::<u64>(name.as_str(), 1), Err(Error::NameTaken { .. })));
                fill(&mut area, &worker, step + 1);
                there.insert(number, area);
            }
            Some(area) => {
                area.delete(&mut worker).unwrap();
                assert!(matches!(worker.attach::<u64>(&name), Err(Error::NoSuchArea { .. })), "{name}");
            }
            None => {
                assert!(matches!(worker.attach::<u64>(&name), Err(Error::NoSuchArea { .. })), "{name}");
                // From less than a line to areas that take their memory alone.
                let len = 1 << random.below(14);
                let spec = AreaSpec::new(name).copies(random.below(3) as u32);
                let mut area = worker.create::<u64>(spec, len).unwrap();
                assert_eq!(uniform(area.read(&worker).unwrap()), 0, "step {step}");
                fill(&mut area, &worker, step + 1);
                there.insert(number, area);
            }
        }
        if step % 16 == 0 {
            worker.sync().unwrap();
        }
    }
    assert_eq!(job.areas().unwrap().len(), there.len());
    for (number, area) in &there {
        let again = worker.attach::<u64>(&format!("part/{number}")).unwrap();
        assert_eq!(again.len(), area.len());
        uniform(area.read(&worker).unwrap());
    }
    for area in there.into_values() {
        area.delete(&mut worker).unwrap();
    }
    for _ in 0..3 {
        worker.sync().unwrap();
    }
    assert_eq!(job.free_bytes().unwrap(), free);
    let extra = job.resident_bytes().unwrap() - resident;
    assert!(extra < 2 << 20, "{extra} bytes stayed (tables excepted)");
}

/// Areas join a group whoever of it is still there, and are published with it.
#[test]
fn a_group_outlives_its_first_members() {
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let member = |worker: &mut hectare::Worker, number: usize| {
        let spec = AreaSpec::new(format!("state/{number}")).group("state");
        worker.create::<u64>(spec, 10).unwrap()
    };
    let _others: Vec<_> = (0..100)
        .map(|number| {
            let spec = AreaSpec::new(format!("other/{number}")).group(format!("group/{}", number % 10));
            worker.create::<u64>(spec, 10).unwrap()
        })
        .collect();
    let mut members = vec![member(&mut worker, 0), member(&mut worker, 1)];
    for number in 2..40 {
        members.push(member(&mut worker, number));
        members.remove(0).delete(&mut worker).unwrap();
        for area in &mut members {
            fill(area, &worker, number as u64);
        }
        // One is asked for: all of the group come.
        worker.sync_area(&members[0].area()).unwrap();
        for area in &members {
            assert_eq!(uniform(area.area().read(&worker).unwrap()), number as u64, "{}", area.name());
        }
    }
}

/// Each area with an interval is published again and again, among many without.
#[test]
fn intervals_among_many() {
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut areas: Vec<_> = (0..300usize)
        .map(|number| {
            let mut spec = AreaSpec::new(format!("area/{number}"));
            if number % 7 == 0 {
                spec = spec.interval(Duration::from_millis(1 + number as u64 % 20));
            }
            worker.create::<u64>(spec, 10).unwrap()
        })
        .collect();
    for turn in 1..6 {
        for area in &mut areas {
            fill(area, &worker, turn);
        }
        serve_until(&mut worker, "all intervals", |worker| {
            areas.iter().step_by(7).all(|area| uniform(area.area().read(worker).unwrap()) == turn)
        });
        // One that is new, and one less.
        let spec = AreaSpec::new(format!("new/{turn}")).interval(Duration::from_millis(2));
        let mut fresh = worker.create::<u64>(spec, 10).unwrap();
        fill(&mut fresh, &worker, turn);
        let area = fresh.area();
        serve_until(&mut worker, "the new one", |worker| uniform(area.read(worker).unwrap()) == turn);
        fresh.delete(&mut worker).unwrap();
    }
    for area in areas.iter().enumerate().filter(|(number, _)| number % 7 != 0).map(|(_, area)| area) {
        assert_eq!(area.area().newest_version().unwrap().counter, 0, "{}", area.name());
    }
}

/// A process dies with the directory: whoever comes next finds all that was there, and goes on.
#[cfg(feature = "fault-points")]
#[test]
fn everything_is_found_after_a_death_with_the_directory() {
    const NAME: &str = "everything_is_found_after_a_death_with_the_directory";
    if let Some((role, job)) = role() {
        let mut worker = job.worker().unwrap();
        if role == "creates" {
            hectare::fault::die_after(0);
            worker.create::<u64>(AreaSpec::new("doomed").group("all"), 100).unwrap();
        } else {
            hectare::fault::die_after(0);
            job.delete("part/150").unwrap();
        }
        unreachable!("it was to die");
    }
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let free = job.free_bytes().unwrap();
    let create = |worker: &mut hectare::Worker, number: usize| {
        let spec = AreaSpec::new(format!("part/{number}")).group("all");
        let mut area = worker.create::<u64>(spec, 100 << (number % 5)).unwrap();
        assert_eq!(uniform(area.read(worker).unwrap()), 0);
        fill(&mut area, worker, number as u64 + 1);
        area
    };
    let mut areas: Vec<_> = (0..200).map(|number| create(&mut worker, number)).collect();
    // Holes, used and not.
    for number in (0..100).step_by(3) {
        areas.remove(number).delete(&mut worker).unwrap();
    }
    worker.sync().unwrap();
    worker.sync().unwrap();
    for (turn, role) in ["creates", "deletes"].into_iter().enumerate() {
        let mut child = spawn(NAME, role, &job);
        serve_until(&mut worker, "its death", |_| child.has_ended());
        areas.push(create(&mut worker, 200 + turn));
        for number in 0..100 {
            let name = format!("more/{role}/{number}");
            let mut area = worker.create::<u64>(name, 100 << (number % 5)).unwrap();
            assert_eq!(uniform(area.read(&worker).unwrap()), 0);
            fill(&mut area, &worker, 7);
            area.delete(&mut worker).unwrap();
        }
        for area in areas.iter().filter(|area| area.name() != "part/150") {
            let value = uniform(area.read(&worker).unwrap());
            assert_eq!(area.name(), format!("part/{}", value - 1));
            assert_eq!(worker.attach::<u64>(area.name()).unwrap().len(), area.len());
        }
        assert!(matches!(worker.attach::<u64>("doomed"), Err(Error::NoSuchArea { .. })));
    }
    assert!(matches!(worker.attach::<u64>("part/150"), Err(Error::NoSuchArea { .. })));
    for area in areas.into_iter().filter(|area| area.name() != "part/150") {
        area.delete(&mut worker).unwrap();
    }
    for _ in 0..3 {
        worker.sync().unwrap();
    }
    assert_eq!(job.free_bytes().unwrap(), free);
}
