//! Whoever asks for an area of another host is answered: with the area, or with the reason why there is none for him. Whose area
//! it is hears what others have against it.
use crate::network::{MS, World};
use hectare_dsm::{AreaSpec, Error, Owned, Unshared};
use std::time::Duration;

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(300);

fn create(world: &mut World, host: usize, spec: AreaSpec) -> Owned<u64> {
    world.hosts[host].worker.create::<u64>(spec, 10).unwrap()
}

#[track_caller]
fn is_not_shared(answer: Result<usize, Error>, because: Unshared) {
    match answer {
        Err(Error::NotShared { why, .. }) if why == because => {}
        other => panic!("{other:?}"),
    }
}

fn local(name: &str) -> AreaSpec {
    AreaSpec::new(name).copies(0)
}

#[test]
fn an_area_without_reader_copies_is_refused_at_once() {
    let mut world = World::new(3, 31);
    let mine = create(&mut world, 1, local("mine"));
    // Each host may have one of a name, and there may be one for all beside them.
    let _other = create(&mut world, 2, local("both"));
    let _another = create(&mut world, 1, local("both"));
    let _for_all = create(&mut world, 0, AreaSpec::new("beside"));
    let _beside = create(&mut world, 1, local("beside"));
    world.run(100 * MS);
    for host in [0, 2] {
        is_not_shared(world.ask(host, "mine", LONG), Unshared::Local);
    }
    is_not_shared(world.ask(0, "both", LONG), Unshared::Local);
    assert_eq!(world.ask(2, "beside", LONG).unwrap(), 10);
    // Agents that start know of it, whichever they are.
    for host in [1, 0, 2] {
        world.restart(host);
        is_not_shared(world.ask(2, "mine", LONG), Unshared::Local);
    }
    assert!(world.hosts.iter().all(|host| host.complaints.is_empty() && host.counters().names_refused == 0));
    // Its host counts who asked.
    assert!(world.hosts[1].counters().conflicts > 0);
    // When it is gone, the name is free for all.
    mine.delete(&mut world.hosts[1].worker).unwrap();
    assert!(matches!(world.ask(2, "mine", SHORT), Err(Error::TimedOut { .. })));
    let _mine = create(&mut world, 1, AreaSpec::new("mine"));
    assert_eq!(world.ask(2, "mine", LONG).unwrap(), 10);
}

#[test]
fn a_group_that_is_too_large_is_refused_on_both_sides() {
    let mut world = World::new(3, 32);
    let areas: Vec<_> =
        (0..35).map(|at| create(&mut world, 1, AreaSpec::new(format!("a{at}")).group("g"))).collect();
    world.run(300 * MS);
    assert_eq!(world.ask(2, "a31", LONG).unwrap(), 10);
    for name in ["a32", "a34"] {
        is_not_shared(world.ask(2, name, LONG), Unshared::Members);
    }
    assert_eq!(world.ask(2, "a0", LONG).unwrap(), 10);
    // An area that does fit comes whole, and goes on.
    let mut first = areas.into_iter().next().unwrap();
    world.hosts[1].write(&mut first, 3);
    world.until("the version", |world| {
        let host = &world.hosts[2];
        let area = host.worker.attach_here::<u64>("a0").unwrap();
        area.version(&host.worker).unwrap().counter
            == first.area().version(&world.hosts[1].worker).unwrap().counter
    });
    // The owner heard of each that is too many, once, and not again from the next agent.
    world.restart(1);
    world.run(1000 * MS);
    let mut said: Vec<String> = world.hosts[1].complaints.iter().map(ToString::to_string).collect();
    said.sort();
    assert!(
        said.iter().zip(["\"a32\"", "\"a33\"", "\"a34\""]).all(|(text, name)| text.contains(name)),
        "{said:?}"
    );
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn a_name_is_free_when_its_host_has_deleted_the_area() {
    let mut world = World::new(3, 36);
    // Packets overtake those that are sent again.
    world.loss = 300;
    for len in 1..=12 {
        let owned = world.hosts[1].worker.create::<u64>("again", len).unwrap();
        // At first, it may still have the one before.
        let mut asks = (0..500).map(|_| {
            world.run(10 * MS);
            world.ask(2, "again", LONG)
        });
        assert!(asks.any(|found| found.is_ok_and(|found| found == len)), "area {len} never comes");
        owned.delete(&mut world.hosts[1].worker).unwrap();
    }
    assert!(world.hosts[1].complaints.is_empty(), "{:?}", world.hosts[1].complaints);
}

#[test]
fn an_area_that_finds_no_memory_is_refused_until_there_is_some() {
    const LEN: usize = 1 << 20;
    let mut world = World::with_room(&[1 << 28, 48 << 20], 33);
    let mut mine = create(&mut world, 1, AreaSpec::new("mine"));
    let filler = world.hosts[1].worker.create::<u64>(AreaSpec::new("filler").copies(0), 3 * LEN).unwrap();
    let _large = world.hosts[0].worker.create::<u64>(AreaSpec::new("large").group("g"), LEN).unwrap();
    let _small = world.hosts[0].worker.create::<u64>(AreaSpec::new("small").group("g"), 10).unwrap();
    let refused = world.ask(1, "large", LONG).unwrap_err();
    assert!(
        matches!(&refused, Error::OutOfMemory { name, asked, .. } if name == "large" && *asked > LEN as u64 * 8),
        "{refused}"
    );
    // So is what comes after it in its group.
    let refused = world.ask(1, "small", LONG).unwrap_err();
    assert!(
        matches!(&refused, Error::NotReceived { name, why, .. } if name == "small" && why.contains("\"large\"")),
        "{refused}"
    );
    filler.delete(&mut world.hosts[1].worker).unwrap();
    // Its memory comes back with later rounds.
    let mut answers = (1..20).map(|version| {
        world.hosts[1].write(&mut mine, version);
        world.ask(1, "small", LONG)
    });
    assert_eq!(answers.find_map(Result::ok), Some(10));
    assert_eq!(world.ask(1, "large", LONG).unwrap(), LEN);
}

#[test]
fn an_area_whose_groups_name_is_taken_here_is_refused() {
    let mut world = World::new(2, 34);
    let spec = |name: &str| AreaSpec::new(name).group("g");
    let _theirs = [create(&mut world, 0, spec("sibling")), create(&mut world, 0, spec("wanted"))];
    let _mine = create(&mut world, 1, local("sibling"));
    let refused = world.ask(1, "wanted", LONG).unwrap_err();
    assert!(
        matches!(&refused, Error::NotReceived { why, .. } if why.contains("\"sibling\"") && why.contains("exists")),
        "{refused}"
    );
}

#[test]
fn both_sides_hear_and_count_that_an_area_is_taken_for_something_else() {
    let mut world = World::new(3, 35);
    world.loss = 100;
    let _owned = create(&mut world, 1, AreaSpec::new("w"));
    world.find_on(2, "w");
    for _ in 0..3 {
        let wrong = world.hosts[2].worker.attach_here::<f32>("w").unwrap_err();
        assert!(matches!(wrong, Error::WrongType { .. }), "{wrong}");
        world.run(100 * MS);
    }
    world.until("the owner's error", |world| !world.hosts[1].complaints.is_empty());
    world.run(1000 * MS);
    let said = &world.hosts[1].complaints;
    assert!(
        matches!(&said[..], [Error::TypeClash { name, asked, found, .. }]
            if name == "w" && asked.starts_with("f32") && found.starts_with("u64")),
        "{said:?}"
    );
    assert_eq!(world.hosts.iter().map(|host| host.counters().conflicts).collect::<Vec<_>>(), [0, 1, 0]);
}

/// Areas of one name and of one group, which two hosts make before they know of each other.
#[test]
fn clashes_are_counted_on_both_sides_and_heard_by_all() {
    for over_group in [false, true] {
        let mut world = World::new(4, 36);
        world.loss = 100;
        let _areas: Vec<_> = (0..4)
            .map(|host| {
                let spec = match over_group {
                    true => AreaSpec::new(format!("a{host}")).group("both"),
                    false => AreaSpec::new("both"),
                };
                create(&mut world, host, spec)
            })
            .collect();
        world.until("all are told", |world| {
            world.hosts.iter().map(|host| host.complaints.len()).sum::<usize>() >= 6
        });
        world.run(1000 * MS);
        let known = |error: &Error| match error {
            Error::NameClash { is_known, .. } if !over_group => *is_known,
            Error::GroupClash { is_known, .. } if over_group => *is_known,
            other => panic!("{other}"),
        };
        let mut seen = Vec::new();
        for host in &world.hosts {
            let counters = host.counters();
            let known = host.complaints.iter().filter(|error| known(error)).count();
            assert_eq!(counters.conflicts as usize, known, "each is counted where it is heard");
            assert_eq!(counters.names_refused as usize, host.complaints.len() - known);
            seen.push((known, host.complaints.len() - known));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 1), (0, 1), (3, 0)], "the first hears of all others");
    }
}
