//! Agents that place lines by RDMA, on real devices, with datagrams between them that are simulated. `net/rdma/guest/run` runs this where
//! there are such.
#[allow(dead_code, reason = "it is that of all tests")]
#[path = "network/mod.rs"]
mod network;

use hectare_agent::{Placer, RdmaDevice};
use hectare_dsm::{AreaSpec, Owned, Version};
use network::{MS, World, filled};
use std::process::Command;

/// Whether there are devices. In the guest there have to be.
fn has_devices() -> bool {
    let is_guest = std::env::var_os("HECTARE_RDMA_GUEST").is_some();
    if !is_guest {
        hectare_testing::skip("RDMA devices", "agents over RDMA run in the guest with devices");
    }
    is_guest
}

/// Each host has one of the two devices, between which packets cross a link.
fn placer(host: usize) -> Placer {
    let device = RdmaDevice { device: Some(format!("rxe{}", host % 2)) };
    Placer::open(&device, [127, 0, 0, 1].into()).unwrap()
}

const ELEMENTS: usize = 36_004;

fn version_on(world: &World, host: usize) -> Version {
    let host = &world.hosts[host];
    let Ok(area) = host.worker.attach_here::<u64>("w") else { return Version::default() };
    let version = area.version(&host.worker).unwrap();
    let values = area.read(&host.worker).unwrap();
    let wrong = values.iter().enumerate().find(|(at, value)| **value != filled(*at, version.counter));
    assert_eq!(wrong, None, "version {version}, torn");
    version
}

/// Writes a version, and waits until it is on the other hosts, whole at each look.
fn write(world: &mut World, owned: &mut Owned<u64>, version: u64) {
    world.hosts[0].write(owned, version);
    for host in 1..world.hosts.len() {
        let mut last = Version::default();
        while last.counter < version {
            for _ in 0..4 {
                world.turn();
            }
            let seen = version_on(world, host);
            assert!(seen >= last, "{seen} after {last}");
            last = seen;
        }
    }
}

fn begun(hosts: usize, seed: u64) -> (World, Owned<u64>) {
    let mut world = World::with_placers(hosts, seed, placer);
    let owned = world.hosts[0].worker.create::<u64>(AreaSpec::new("w").row(4), ELEMENTS).unwrap();
    (1..hosts).for_each(|host| world.find_on(host, "w"));
    (world, owned)
}

/// Writes versions until lines of one are placed.
fn until_placed(world: &mut World, owned: &mut Owned<u64>, from: u64) -> u64 {
    let (before, mut version) = (world.hosts[0].counters().lines_placed, from);
    while world.hosts[0].counters().lines_placed == before {
        assert!(version < from + 2000, "nothing is placed");
        version += 1;
        write(world, owned, version);
        world.run(5 * MS);
    }
    version
}

#[test]
fn large_cuts_are_placed_and_each_version_is_whole() {
    if !has_devices() {
        return;
    }
    for loss in [0, 50] {
        let (mut world, mut owned) = begun(3, 1 + loss);
        world.loss = loss;
        let version = until_placed(&mut world, &mut owned, 0);
        let before = world.hosts[0].counters();
        for turn in 1..=30 {
            write(&mut world, &mut owned, version + turn);
        }
        let after = world.hosts[0].counters();
        let (placed, sent) = (after.lines_placed - before.lines_placed, after.lines_sent - before.lines_sent);
        // Who does not place them any more is the one whose queue pair broke, which none does.
        assert!(placed > 10_000 && sent < placed / 10, "{placed} lines placed, {sent} sent");
        assert_eq!((after.violations, after.malformed), (0, 0));
    }
}

#[test]
fn a_small_cut_is_sent_and_not_placed() {
    if !has_devices() {
        return;
    }
    let (mut world, mut owned) = begun(2, 7);
    until_placed(&mut world, &mut owned, 0);
    let before = world.hosts[0].counters();
    owned.write(&world.hosts[0].worker).unwrap().set(17, 1);
    world.hosts[0].worker.sync().unwrap();
    world.until("one line", |world| {
        let host = &world.hosts[1];
        host.worker.attach_here::<u64>("w").unwrap().read(&host.worker).unwrap()[17] == 1
    });
    let after = world.hosts[0].counters();
    assert_eq!(after.lines_placed, before.lines_placed);
    assert!(after.lines_sent > before.lines_sent);
}

#[test]
fn agents_that_end_in_the_middle_leave_whole_versions_and_place_again() {
    if !has_devices() {
        return;
    }
    let (mut world, mut owned) = begun(2, 3);
    let mut version = until_placed(&mut world, &mut owned, 0);
    for round in 0..12 {
        // Under way, at another moment each time.
        version += 1;
        world.hosts[0].write(&mut owned, version);
        for _ in 0..round * 3 {
            world.turn();
            version_on(&world, 1);
        }
        world.restart(round as usize % 2);
        world.until("the version", |world| version_on(world, 1).counter == version);
    }
    until_placed(&mut world, &mut owned, version);
}

#[test]
fn a_link_of_rdma_that_is_gone_is_done_without_until_it_is_back() {
    if !has_devices() {
        return;
    }
    let rule = |action: &[&str]| {
        let done =
            Command::new("tc").arg("qdisc").args(action).args(["root", "netem", "loss", "100%"]).status();
        assert!(done.unwrap().success(), "{action:?}");
    };
    let (mut world, mut owned) = begun(2, 4);
    let mut version = until_placed(&mut world, &mut owned, 0);
    let before = world.hosts[0].counters();
    rule(&["replace", "dev", "v0"]);
    // The first of them waits until its queue pair is given up; then all go by datagrams.
    for _ in 0..5 {
        version += 1;
        write(&mut world, &mut owned, version);
    }
    let after = world.hosts[0].counters();
    assert!(after.lines_sent > before.lines_sent + 1000, "nothing went by datagrams");
    let loss = std::env::var("HECTARE_RDMA_LOSS").unwrap_or("0".into());
    let back = Command::new("tc")
        .args(["qdisc", "replace", "dev", "v0", "root", "netem", "loss", &format!("{loss}%")])
        .status();
    assert!(back.unwrap().success());
    until_placed(&mut world, &mut owned, version);
}
