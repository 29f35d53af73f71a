//! Agents over segments in one process, and datagrams between them on virtual time: no threads, and equal seeds have equal runs.
mod answers;
mod lent;
mod network;
mod refusals;
mod rows;

use hectare_dsm::agent::RemoteWorker;
use hectare_dsm::{AreaSpec, Error, Version};
use network::{Host, MS, World, filled};
use std::time::Duration;

/// Checks that host 1 has a version of an area of host 0 that is whole and no older than `last`.
fn check(world: &World, name: &str, last: &mut Version) {
    let host = &world.hosts[1];
    let Ok(area) = host.worker.attach_here::<u64>(name) else { return };
    let version = area.version(&host.worker).unwrap();
    assert!(version >= *last, "{name}: {version} after {last}");
    *last = version;
    let values = area.read(&host.worker).unwrap();
    assert!(
        values.iter().enumerate().all(|(at, value)| *value == filled(at, version.counter)),
        "{name} {version}"
    );
}

#[test]
fn an_area_that_is_written_on_one_host_is_read_on_another() {
    for (seed, loss) in [(1, 0), (2, 50), (3, 250)] {
        let mut world = World::new(2, seed);
        world.loss = loss;
        let mut owned = world.hosts[0].worker.create::<u64>(AreaSpec::new("w").row(4), 9_001 * 4).unwrap();
        let mut last = Version::default();
        for turn in 1..=40 {
            world.hosts[0].write(&mut owned, turn);
            for _ in 0..5 {
                world.turn();
                world.hosts[1].want("w");
                check(&world, "w", &mut last);
            }
        }
        world.until("the last version", |world| {
            let area = world.hosts[1].worker.attach_here::<u64>("w");
            area.is_ok_and(|area| area.version(&world.hosts[1].worker).unwrap().counter == 40)
        });
        check(&world, "w", &mut last);
        let area = world.hosts[1].worker.attach_here::<u64>("w").unwrap();
        assert_eq!((area.len(), area.row_len()), (36_004, 4));
        assert!(world.hosts[1].job.areas().unwrap()[0].remote);
        // Changes are sent, not areas.
        let before = world.hosts[0].counters().lines_sent;
        owned.write(&world.hosts[0].worker).unwrap().set(17, 1);
        world.hosts[0].worker.sync().unwrap();
        world.until("one line", |world| {
            let host = &world.hosts[1];
            host.worker.attach_here::<u64>("w").unwrap().read(&host.worker).unwrap()[17] == 1
        });
        let sent = world.hosts[0].counters().lines_sent - before;
        assert!((1..10).contains(&sent), "{sent} lines for one that changed");
    }
}

/// How many cuts go out for 300 versions, one a millisecond.
fn cuts(spec: AreaSpec) -> u64 {
    let mut world = World::new(2, 8);
    let mut owned = world.hosts[0].worker.create::<u64>(spec, 1000).unwrap();
    world.find_on(1, "w");
    let before = world.hosts[0].counters().cuts;
    for turn in 1..=300 {
        world.hosts[0].write(&mut owned, turn);
        world.run(MS);
    }
    let cuts = world.hosts[0].counters().cuts - before;
    // The last one comes, too.
    world.until("the last version", |world| {
        let area = world.hosts[1].worker.attach_here::<u64>("w").unwrap();
        area.version(&world.hosts[1].worker).unwrap().counter == 300
    });
    cuts
}

#[test]
fn an_interval_between_hosts_saves_cuts() {
    let interval = Duration::from_millis(50);
    let (all, few) = (cuts(AreaSpec::new("w")), cuts(AreaSpec::new("w").external_interval(interval)));
    assert!(all > 60 && few <= 7, "{all} cuts without an interval, {few} with one");
    // The shortest of a group counts, and an area without one has none.
    let mut world = World::new(2, 8);
    let spec = |name: &str| AreaSpec::new(name).group("g");
    let mut slow =
        world.hosts[0].worker.create::<u64>(spec("slow").external_interval(3600 * interval), 10).unwrap();
    let _quick = world.hosts[0].worker.create::<u64>(spec("quick"), 10).unwrap();
    world.find_on(1, "slow");
    world.hosts[0].write(&mut slow, 1);
    world.hosts[0].write(&mut slow, 2);
    let end = world.now + 1000 * MS;
    world.until("the second version", |world| {
        assert!(world.now < end, "it waits for the interval");
        let area = world.hosts[1].worker.attach_here::<u64>("slow").unwrap();
        area.version(&world.hosts[1].worker).unwrap().counter == 2
    });
}

#[test]
fn an_area_that_was_never_published_is_zero_on_the_other_host_too() {
    let mut world = World::new(2, 4);
    let owned = world.hosts[0].worker.create::<u64>(AreaSpec::new("w"), 100).unwrap();
    world.find_on(1, "w");
    let host = &world.hosts[1];
    let area = host.worker.attach_here::<u64>("w").unwrap();
    assert_eq!(area.version(&host.worker).unwrap(), Version::default());
    assert!(area.read(&host.worker).unwrap().iter().all(|value| *value == 0));
    // The owner's deletion is one here.
    owned.delete(&mut world.hosts[0].worker).unwrap();
    world.until("the deletion", |world| world.hosts[1].job.areas().unwrap().is_empty());
    assert!(matches!(area.read(&world.hosts[1].worker), Err(Error::Deleted { .. })));
}

#[test]
fn nothing_is_found_before_its_data_has_come() {
    let mut world = World::new(2, 5);
    let mut owned = world.hosts[0].worker.create::<u64>(AreaSpec::new("w"), 50_000).unwrap();
    world.hosts[0].write(&mut owned, 1);
    let (mut looks, end) = (0, world.now + 10_000 * MS);
    loop {
        assert!(world.now < end, "it never comes");
        world.hosts[1].want("w");
        world.turn();
        let host = &world.hosts[1];
        let is_made = !host.job.areas().unwrap().is_empty();
        match host.worker.attach_here::<u64>("w") {
            Ok(area) => {
                assert_eq!(area.version(&host.worker).unwrap().counter, 1);
                break;
            }
            Err(Error::NoSuchArea { .. }) => looks += u32::from(is_made),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(looks > 0, "it was never on its way");
}

#[test]
fn a_group_is_one_state_on_the_other_host_whoever_joins_it() {
    let mut world = World::new(2, 6);
    world.loss = 100;
    let spec = |name: &str| AreaSpec::new(name).group("g");
    let mut areas = [("a", 9), ("b", 5_000)]
        .map(|(name, len)| world.hosts[0].worker.create::<u64>(spec(name), len).unwrap());
    let (mut late, mut last) = (None, [Version::default(); 3]);
    for turn in 1..=40 {
        if turn == 20 {
            late = Some(world.hosts[0].worker.create::<u64>(spec("late"), 70).unwrap());
        }
        areas.iter_mut().for_each(|area| world.hosts[0].fill(area, turn));
        late.iter_mut().for_each(|area| world.hosts[0].fill(area, turn - 19));
        world.hosts[0].worker.sync().unwrap();
        for _ in 0..10 {
            world.turn();
            let host = &mut world.hosts[1];
            ["a", "b", "late"].iter().for_each(|name| host.want(name));
            for (name, last) in ["a", "b", "late"].iter().zip(&mut last) {
                check(&world, name, last);
            }
            assert_eq!(last[0], last[1], "one state of a group");
            let joined = if last[2].counter == 0 { 0 } else { 19 };
            assert!(joined == 0 || last[2].counter + joined == last[0].counter, "{last:?}");
        }
    }
    world.until("the last state", |world| {
        let host = &world.hosts[1];
        let at = |name| {
            host.worker.attach_here::<u64>(name).ok().map(|area| area.version(&host.worker).unwrap().counter)
        };
        [at("a"), at("b"), at("late")] == [Some(40), Some(40), Some(21)]
    });
}

#[test]
fn agents_end_and_start_and_nothing_is_lost() {
    for seed in 10..30 {
        let mut world = World::new(2, seed);
        world.loss = 50;
        let spec = |name: &str| AreaSpec::new(name).group("g");
        let mut areas = [("a", 900), ("b", 30_000)]
            .map(|(name, len)| world.hosts[0].worker.create::<u64>(spec(name), len).unwrap());
        let mut last = [Version::default(); 2];
        for turn in 1..=60 {
            areas.iter_mut().for_each(|area| world.hosts[0].fill(area, turn));
            world.hosts[0].worker.sync().unwrap();
            for _ in 0..=world.random(12) {
                world.turn();
                let host = &mut world.hosts[1];
                ["a", "b"].iter().for_each(|name| host.want(name));
                for (name, last) in ["a", "b"].iter().zip(&mut last) {
                    check(&world, name, last);
                }
                assert_eq!(last[0], last[1], "one state of a group");
            }
            if turn % 4 == 0 {
                let host = world.random(2) as usize;
                world.restart(host);
            }
        }
        world.until("the last version", |world| {
            ["a", "b"].iter().all(|name| {
                let host = &world.hosts[1];
                let area = host.worker.attach_here::<u64>(name);
                area.is_ok_and(|area| area.version(&host.worker).unwrap().counter == 60)
            })
        });
        // Areas that earlier agents had made are there once, and the next agents went on with them.
        assert_eq!(world.hosts[1].job.areas().unwrap().len(), 2);
    }
}

#[test]
fn what_was_given_away_before_its_agent_was_replaced_goes_on() {
    for loss in [0, 250] {
        let mut world = World::with_ranks(3, 31);
        world.loss = loss;
        let mut owned = world.hosts[0].worker.create::<u64>("round", 900).unwrap();
        (1..3).for_each(|host| world.find_on(host, "round"));
        for turn in 0..12 {
            let (own, next) = (turn % 3, (turn + 1) % 3);
            world.hosts[own].write(&mut owned, turn as u64 + 1);
            // The next agent finds it given, but not left.
            world.hosts[own].relay = None;
            owned.give(&world.hosts[own].worker, next as u32).unwrap();
            world.restart(own);
            let there = world.hosts[next].worker.attach_here::<u64>("round").unwrap();
            owned = world.take(next, &there);
            let found = owned.read(&world.hosts[next].worker).unwrap();
            assert!(found.iter().enumerate().all(|(at, value)| *value == filled(at, turn as u64 + 1)));
        }
    }
}

/// Nobody reads where no worker is left: a hand-over does not wait for such a host.
#[test]
fn an_area_moves_though_a_third_host_has_no_workers_left() {
    for (loss, restarted) in [(0, false), (250, false), (0, true), (250, true)] {
        let mut world = World::with_ranks(3, 32);
        world.loss = loss;
        let mut owned = world.hosts[0].worker.create::<u64>("moved", 9_000).unwrap();
        (1..3).for_each(|host| world.find_on(host, "moved"));
        world.hosts[2].desert();
        world.hosts[0].write(&mut owned, 1);
        world.run(5 * MS);
        owned.give(&world.hosts[0].worker, 1).unwrap();
        if restarted {
            world.restart(2);
            world.restart(0);
        }
        let there = world.hosts[1].worker.attach_here::<u64>("moved").unwrap();
        let owned = world.take(1, &there);
        let found = owned.read(&world.hosts[1].worker).unwrap();
        assert!(found.iter().enumerate().all(|(at, value)| *value == filled(at, 1)));
    }
}

/// An area that is given to the last worker of a host while that worker leaves still arrives, and has no owner there. So nobody waits for
/// it, and it keeps no agent from ending.
#[test]
fn what_is_given_to_who_has_just_left_holds_up_nobody() {
    for (loss, restarted) in [(0, false), (100, false), (0, true), (100, true)] {
        let mut world = World::with_ranks(3, 33);
        world.loss = loss;
        let owned = world.hosts[0].worker.create::<u64>("late", 900).unwrap();
        (1..3).for_each(|host| world.find_on(host, "late"));
        world.hosts[2].desert();
        world.run(1000 * MS);
        // As if it had not been heard yet here that the worker has left, but that the host has none.
        let agent = world.hosts[0].relay.as_ref().unwrap().memory().agent();
        let refused = owned.give(&world.hosts[0].worker, 2).unwrap_err();
        agent.set_worker(2, RemoteWorker::There).unwrap();
        refused.owned.give(&world.hosts[0].worker, 2).unwrap();
        if restarted {
            world.restart(2);
        }
        world.until("the area to come", |world| world.hosts[2].counters().taken == 1);
        world.run(200 * MS);
        let claimed = world.hosts[0].worker.claim::<u64>("late").unwrap_err();
        assert!(matches!(claimed, Error::OwnerElsewhere { .. }), "{claimed}");
        world.hosts.iter_mut().for_each(|host| host.relay.as_mut().unwrap().leave());
        let is_done = |host: &Host| host.relay.as_ref().unwrap().is_done();
        world.until("the end", |world| world.hosts.iter().all(is_done));
    }
}

#[test]
fn who_has_left_stays_for_those_whose_clocks_are_behind() {
    let mut world = World::new(2, 12);
    let mut owned = world.hosts[1].worker.create::<u64>(AreaSpec::new("w"), 100).unwrap();
    world.find_on(0, "w");
    for turn in 1..=2 {
        world.hosts[1].write(&mut owned, turn);
        world.hosts[1].worker.tick().unwrap();
        world.hosts[1].worker.sync().unwrap();
        world.run(20 * MS);
    }
    // The last version is of clocks that the other host has not reached, so that nothing may be under way.
    let counter = |world: &World| {
        let host = &world.hosts[0];
        host.worker.attach_here::<u64>("w").unwrap().version(&host.worker).unwrap().counter
    };
    world.hosts[1].relay.as_mut().unwrap().leave();
    world.run(500 * MS);
    let is_done = |world: &World| world.hosts[1].relay.as_ref().unwrap().is_done();
    assert_eq!((counter(&world), is_done(&world)), (1, false));
    for _ in 1..=2 {
        world.hosts[0].worker.tick().unwrap();
        world.hosts[0].worker.sync().unwrap();
        world.run(20 * MS);
    }
    world.until("the last version", |world| counter(world) == 2);
    world.until("the end", is_done);
}

#[test]
fn whoever_leaves_last_says_so_before_it_ends() {
    for (first, last) in [(0, 1), (1, 0)] {
        let mut world = World::new(2, 13);
        let is_done = |world: &World, host: usize| world.hosts[host].relay.as_ref().unwrap().is_done();
        world.run(100 * MS);
        for host in [first, last] {
            world.hosts[host].relay.as_mut().unwrap().leave();
            if host == first {
                world.run(100 * MS);
            }
        }
        world.until("the last host's end", |world| is_done(world, last));
        world.hosts[last].relay = None;
        world.run(50 * MS);
        assert!(is_done(&world, first), "host {first} did not hear that host {last} has left");
    }
}

#[test]
fn a_name_has_one_area_and_the_first_has_it() {
    let mut world = World::new(3, 7);
    let mut first = world.hosts[1].worker.create::<u64>(AreaSpec::new("w"), 10).unwrap();
    world.hosts[1].write(&mut first, 1);
    world.find_on(0, "w");
    let second = world.hosts[0].worker.create::<u64>(AreaSpec::new("w"), 10);
    assert!(matches!(second, Err(Error::NameTaken { .. })), "{second:?}");
    world.find_on(2, "w");
    // Another type is an error where it is asked for.
    let wrong = world.hosts[2].worker.attach_here::<f32>("w");
    assert!(matches!(wrong, Err(Error::WrongType { .. })), "{wrong:?}");
}

#[test]
fn a_host_that_is_silent_ends_the_job_everywhere() {
    let mut world = World::new(3, 8);
    world.run(300 * MS);
    assert!(world.hosts.iter().all(|host| host.failure().is_none()));
    world.hosts[2].relay = None;
    world.until("the failure", |world| world.hosts[..2].iter().all(|host| host.ended.is_some()));
    for host in &world.hosts[..2] {
        let failure = host.failure().unwrap();
        assert_eq!(failure.host.0, 2, "{failure}");
        assert!(failure.to_string().contains("10.0.0.3:7000"), "{failure}");
        // So are those who work.
        let told = host.ended.as_ref().expect("its worker was told");
        assert!(told.contains("host 2 (10.0.0.3:7000) has failed: silent"), "{told}");
    }
}

/// The workers of a host that took the first one for failed leave. The first one hears of it again, but not that they left: its
/// workers would go on without them.
#[test]
fn who_leaves_because_the_job_has_ended_has_not_left_for_the_others() {
    let mut world = World::new(2, 11);
    world.run(300 * MS);
    world.mute = Some(0);
    world.until("the failure", |world| world.hosts[1].ended.is_some());
    assert!(world.hosts[0].failure().is_none());
    world.mute = None;
    for host in &mut world.hosts {
        host.relay.as_mut().unwrap().leave();
    }
    let speak = |world: &World| {
        world.hosts[0].relay.as_ref().unwrap().peers().all(|(_, peer, _)| peer.boot.is_some())
    };
    world.until("a session", speak);
    for _ in 0..500 {
        world.run(MS);
        assert!(!world.hosts[0].relay.as_ref().unwrap().is_done(), "the first host thinks that it is alone");
    }
    assert!(speak(&world) && world.hosts[0].failure().is_none(), "they did not speak");
    // Then its agent ends.
    world.hosts[1].relay = None;
    world.until("its worker to hear of it", |world| world.hosts[0].ended.is_some());
    assert!(world.hosts[0].ended.as_ref().unwrap().contains("host 1 (10.0.0.2:7000) has failed"));
}

#[test]
fn another_key_or_cluster_is_named() {
    for (cluster, secret, part) in [("lab", 9, "another key"), ("lob", 7, "another cluster")] {
        let mut world = World::new(2, 9);
        world.start_with(1, cluster, [secret; 32]);
        world.until("the failure", |world| world.hosts[0].failure().is_some());
        let said = world.hosts[0].failure().unwrap().to_string();
        assert!(said.contains("host 1 at 10.0.0.2:7000 failed") && said.contains(part), "{said}");
    }
}
