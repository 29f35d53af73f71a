//! Packets arrive, at most once each, and each has one fate.
use super::network::*;
use hectare_session::*;
use proptest::prelude::*;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Sends `count` packets each way until all have arrived, and checks that none came twice for one sending.
fn transfer(seed: u64, path: &Path, count: u64, set: impl Fn(&mut Config)) -> Network {
    let mut network = Network::pair(seed, path, set);
    assert!(network.run(HOUR, |network| network.is_connected(0, 1)), "not connected");
    network.queue(0, 1, count);
    network.queue(1, 0, count);
    assert!(network.run(HOUR, Network::is_done), "not done");
    for (at, host) in network.hosts.iter().enumerate() {
        let status = network.status(at, 1 - at);
        assert_eq!(host.got.len() as u64, count, "packets are missing");
        if host.boots().len() > 1 {
            // So much was lost that they gave each other up for a while: the figures are those of the last session.
            continue;
        }
        assert_eq!(status.acked, count);
        // A packet comes again only if its sender was told that it is lost.
        let came = host.got.values().map(|times| u64::from(*times)).sum::<u64>();
        let theirs = network.status(1 - at, at);
        assert!(came <= count + theirs.lost, "{came} came, {} sent", count + theirs.lost);
    }
    network
}

#[test]
fn all_arrive_over_a_good_network_without_a_loss() {
    let network = transfer(1, &Path { queue: 10_000_000, ..Path::default() }, 3000, |_| {});
    assert_eq!((network.status(0, 1).lost, network.status(1, 0).lost), (0, 0));
    assert_eq!(network.hosts[0].endpoint.counters().replayed, 0);
}

#[test]
fn half_reordered_half_doubled_and_some_changed_still_arrive_once() {
    let path =
        Path { jitter: Duration::from_millis(3), doubled: 0.5, changed: 0.02, loss: 0.01, ..Path::default() };
    let network = transfer(2, &path, 2000, |_| {});
    for host in &network.hosts {
        let counters = host.endpoint.counters();
        assert!(counters.replayed > 500, "{counters:?}");
        assert!(counters.forged > 10, "{counters:?}");
    }
}

#[test]
fn keys_change_under_way() {
    let path = Path { loss: 0.05, jitter: Duration::from_micros(300), ..Path::default() };
    let network = transfer(3, &path, 3000, |config| config.key_limit = 64);
    assert_eq!(network.hosts[0].endpoint.counters().forged, 0, "every packet found its key");
}

#[test]
fn without_a_cipher_too() {
    transfer(4, &Path { loss: 0.05, ..Path::default() }, 500, |config| config.suite = Suite::Checksum);
}

#[test]
fn small_packets_carry_acknowledgements_along() {
    let mut network = Network::pair(5, &Path::default(), |_| {});
    network.run(Duration::from_secs(1), |_| false);
    network.hosts.iter_mut().for_each(|host| host.size = Some(64));
    let before = network.datagrams;
    for _ in 0..500 {
        // To and fro, as a barrier does.
        for from in 0..2 {
            network.queue(from, 1 - from, 1);
            let id = HostId(1 - from as u16);
            assert!(network.run(HOUR, |network| network.hosts[from].to_send[&id].is_empty()));
            let got = network.hosts[1 - from].got.len();
            assert!(network.run(HOUR, |network| network.hosts[1 - from].got.len() > got));
        }
    }
    let each = (network.datagrams - before) as f64 / 1000.0;
    assert!(each < 1.1, "{each} datagrams per packet");
}

#[test]
fn jumbo_packets_are_used_where_the_path_carries_them() {
    let set = |config: &mut Config| config.max_datagram = 8972;
    let network = transfer(6, &Path { carries: 8972, ..Path::default() }, 300, set);
    assert_eq!(network.status(0, 1).max_datagram, 8972);
    // An MTU that lies: the interfaces say 9000, the path carries 1500.
    let mut network = transfer(7, &Path { carries: 1472, ..Path::default() }, 3000, set);
    network.run(Duration::from_secs(30), |_| false);
    let found = network.status(0, 1).max_datagram;
    assert!((1456..=1472).contains(&found), "{found}");
}

#[test]
fn a_path_that_begins_to_swallow_large_packets_is_noticed() {
    let mut network = Network::pair(8, &Path::default(), |_| {});
    network.queue(0, 1, 2000);
    assert!(network.run(HOUR, Network::is_done));
    assert_eq!(network.status(0, 1).max_datagram, 1472);
    network.hosts[1].path.carries = 1280;
    network.queue(0, 1, 2000);
    assert!(network.run(HOUR, Network::is_done));
    assert_eq!(network.hosts[1].got.len(), 4000);
    network.run(Duration::from_secs(60), |_| false);
    let status = network.status(0, 1);
    assert!(status.black_holes > 0 && (1264..=1280).contains(&status.max_datagram), "{status:?}");
    assert!(network.hosts[0].disconnects().is_empty(), "the session lived on");
}

#[test]
fn a_path_that_becomes_too_narrow_ends_the_session_until_it_is_wide_again() {
    let mut network = Network::pair(9, &Path::default(), |_| {});
    network.queue(0, 1, 200);
    assert!(network.run(HOUR, Network::is_done));
    network.hosts[1].path.carries = 1000;
    network.queue(0, 1, 200);
    let address = network.hosts[1].address;
    // Small packets still arrive, and keep no session alive that carries nothing else.
    assert!(network.run(Duration::from_secs(5), |network| {
        network.hosts[0].disconnects() == [Reason::Narrow { address }]
    }));
    network.run(Duration::from_secs(60), |_| false);
    assert!(!network.is_connected(0, 1));
    network.hosts[1].path.carries = 1300;
    assert!(network.run(Duration::from_secs(60), Network::is_done));
    assert_eq!(network.hosts[1].got.len(), 400);
}

/// Where the base size is all that the path carries.
#[test]
fn loss_makes_no_path_too_narrow() {
    for seed in 0..20 {
        let path = Path { carries: 1200, ..Path::default() };
        let mut network = Network::pair(seed, &path, |_| {});
        assert!(network.run(HOUR, |network| network.is_connected(0, 1)));
        network.hosts[1].path.loss = 0.5;
        network.queue(0, 1, 1_000_000);
        network.run(Duration::from_secs(20), |_| false);
        let reasons = network.hosts[0].disconnects();
        assert!(!reasons.iter().any(|reason| matches!(reason, Reason::Narrow { .. })), "{seed}: {reasons:?}");
        assert!(network.status(0, 1).lost > 100, "seed {seed}");
    }
}

/// Many large packets in a row are lost, and so are many small ones.
#[test]
fn overload_is_no_path_that_swallows_large_packets() {
    let mut network = Network::pair(10, &Path::default(), |_| {});
    network.queue(0, 1, 1_000_000);
    network.run(Duration::from_millis(100), |_| false);
    assert_eq!(network.status(0, 1).max_datagram, 1472);
    network.hosts[1].path = Path { rate: 2e5, queue: 6_000, loss: 0.5, ..Path::default() };
    for _ in 0..20 {
        network.run(Duration::from_secs(1), |_| false);
        let status = network.status(0, 1);
        assert_eq!((status.max_datagram, status.black_holes), (1472, 0), "{status:?}");
    }
    let status = network.status(0, 1);
    assert!(status.lost > 500, "{status:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = |seed| {
        let path = Path { loss: 0.1, jitter: Duration::from_millis(1), doubled: 0.1, ..Path::default() };
        let mut network = Network::pair(seed, &path, |_| {});
        network.overheard = Some(Vec::new());
        network.queue(0, 1, 300);
        assert!(network.run(HOUR, Network::is_done));
        (network.now, network.overheard)
    };
    assert!(run(1) == run(1), "two runs of one seed differ");
    assert!(run(1) != run(2));
}

#[test]
fn a_large_boot_epoch_and_a_late_start_of_time_change_nothing() {
    let mut network = Network::pair(9, &Path::default(), |config| config.boot = u64::MAX);
    network.now = Time::from_nanos(u64::MAX / 2);
    network.connect(0, 1);
    network.queue(0, 1, 100);
    assert!(network.run(HOUR, Network::is_done));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_network_that_lets_something_through(
        seed in 0..1_u64 << 40, loss in 0.0..0.4, doubled in 0.0..0.5, changed in 0.0..0.1,
        delay_us in 10..50_000_u64, jitter_us in 0..20_000_u64, kbytes in 100..100_000_u64, carries in 1200..3000_usize
    ) {
        let path = Path {
            loss, doubled, changed, carries,
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            rate: kbytes as f64 * 1000.0,
            queue: 30_000 + kbytes * 10,
            marks: seed % 2 == 0,
        };
        transfer(seed, &path, 60, |config| config.max_datagram = 2000);
    }
}
