//! Who may speak with whom, and what both are told.
use super::network::*;
use hectare_session::*;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn two_hosts_connect_and_know_each_other() {
    let mut network = Network::pair(1, &Path::default(), |_| {});
    assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
    // Hello, Retry, Hello, Welcome, Finish, Ping: two and a half round trips.
    assert!(network.now < Time::from_nanos(4_000_000), "{:?}", network.now);
    let Some((_, Event::Connected { peer: HostId(1), boot: 1, identity })) = network.hosts[0].events.first()
    else {
        panic!("{:?}", network.hosts[0].events)
    };
    assert_eq!(*identity, config(1).identity.public_key());
    assert_eq!(network.hosts[1].boots(), [1]);
}

#[test]
fn both_may_call_at_once() {
    for seed in 0..20 {
        let path = Path { jitter: Duration::from_millis(1), ..Path::default() };
        let mut network = Network::pair(seed, &path, |_| {});
        network.connect(1, 0);
        assert!(network.run(MINUTE, |network| network.is_connected(0, 1)), "seed {seed}");
        network.queue(0, 1, 20);
        network.queue(1, 0, 20);
        assert!(network.run(MINUTE, Network::is_done), "seed {seed}");
        assert!(network.hosts.iter().all(|host| host.boots().len() == 1), "seed {seed}: one session each");
    }
}

#[test]
fn a_handshake_survives_loss_doubles_and_changed_bits() {
    for seed in 0..24 {
        let path = Path {
            loss: 0.5,
            doubled: 0.3,
            changed: 0.1,
            jitter: Duration::from_millis(20),
            ..Path::default()
        };
        let mut network = Network::pair(seed, &path, |_| {});
        if seed % 2 == 0 {
            network.connect(1, 0);
        }
        assert!(network.run(MINUTE * 10, |network| network.is_connected(0, 1)), "seed {seed}");
        let path = Path { loss: 0.1, ..Path::default() };
        network.hosts.iter_mut().for_each(|host| host.path = path.clone());
        network.queue(0, 1, 50);
        network.queue(1, 0, 50);
        assert!(network.run(MINUTE, Network::is_done), "seed {seed}");
    }
}

/// Host 0 calls host 1, whose settings differ; what both were told, and what was counted.
fn refused(differ: impl Fn(&mut Config)) -> (Vec<Reason>, Vec<Refusal>, Counters, Counters) {
    let mut network = Network::new(1);
    network.add(config(0), Path::default());
    let mut other = config(1);
    differ(&mut other);
    network.add(other, Path::default());
    network.connect(0, 1);
    network.run(Duration::from_secs(1), |_| false);
    assert!(!network.is_connected(0, 1));
    let counters = |host: usize| network.hosts[host].endpoint.counters();
    (network.hosts[0].disconnects(), network.hosts[1].refusals(), counters(0), counters(1))
}

fn why(reasons: &[Reason]) -> Refusal {
    match reasons {
        [Reason::Refused { why, .. }] => *why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_does_not_fit_is_refused_and_both_are_told_why() {
    let (told, seen, _, counted) = refused(|c| c.key = ClusterKey::new("lab", [8; 32]).unwrap());
    assert_eq!((why(&told), &seen[..], counted.refused_key), (Refusal::Key, &[Refusal::Key][..], 1));

    let (told, seen, _, counted) = refused(|c| c.key = ClusterKey::new("lob", [7; 32]).unwrap());
    assert_eq!(
        (why(&told), &seen[..], counted.refused_cluster),
        (Refusal::Cluster, &[Refusal::Cluster][..], 1)
    );

    let (told, seen, counted, theirs) = refused(|c| c.job = [2; 16]);
    assert_eq!((why(&told), &seen[..], theirs.refused_job), (Refusal::Job, &[Refusal::Job][..], 1));
    assert_eq!(counted.refused_by_peer, 1);

    let (told, seen, _, counted) = refused(|c| c.suite = Suite::Checksum);
    assert_eq!((why(&told), &seen[..], counted.refused_suite), (Refusal::Suite, &[Refusal::Suite][..], 1));

    let (told, seen, _, counted) = refused(|c| c.host = HostId(5));
    let host = Refusal::Host { asked: 1, is: 5 };
    assert_eq!((why(&told), &seen[..], counted.refused_host), (host, &[host][..], 1));
}

#[test]
fn a_static_key_that_was_not_expected_is_refused_on_both_sides() {
    for checks in 0..2 {
        let mut network = Network::pair(1, &Path::default(), |_| {});
        network.hosts[checks].endpoint.expect_identity(HostId(1 - checks as u16), [9; 32]);
        network.run(Duration::from_secs(1), |_| false);
        assert!(!network.is_connected(0, 1));
        let told = network.hosts[0].disconnects();
        assert!(
            !told.is_empty(),
            "{checks}: {:?}",
            network.hosts.iter().map(|h| h.endpoint.counters()).collect::<Vec<_>>()
        );
        assert_eq!(why(&told), Refusal::Identity, "host {checks} checks");
        assert_eq!(network.hosts[1].refusals(), [Refusal::Identity]);
        assert_eq!(network.hosts[checks].endpoint.counters().refused_identity, 1);
    }
    let mut network = Network::pair(1, &Path::default(), |_| {});
    network.hosts[0].endpoint.expect_identity(HostId(1), config(1).identity.public_key());
    assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
}

#[test]
fn another_version_is_refused_in_words() {
    let mut network = Network::pair(1, &Path::default(), |_| {});
    network.overheard = Some(Vec::new());
    network.cut.insert((0, 1));
    network.run(Duration::from_millis(1), |_| false);
    let mut hello = network.overheard.take().unwrap()[0].2.clone();
    hello[4..6].copy_from_slice(&7_u16.to_le_bytes());
    let from = network.hosts[0].address;
    network.hosts[1].take(network.now, from, false, &mut hello);
    // Host 0 gets the refusal: its own version is the one that differs.
    network.run(Duration::from_millis(5), |_| false);
    assert_eq!(network.hosts[1].refusals(), [Refusal::Version { theirs: 7, ours: VERSION }]);
    assert_eq!(why(&network.hosts[0].disconnects()), Refusal::Version { theirs: VERSION, ours: VERSION });
    assert_eq!(network.hosts[1].endpoint.counters().refused_version, 1);
}

#[test]
fn nobody_at_the_address_is_reported_and_tried_again() {
    let mut network = Network::pair(1, &Path::default(), |_| {});
    network.hosts[1].down = true;
    let address = network.hosts[1].address;
    network.run(Duration::from_secs(11), |_| false);
    let reasons = network.hosts[0].disconnects();
    assert_eq!(reasons, [Reason::NoAnswer { address }; 2]);
    network.hosts[1].down = false;
    assert!(network.run(Duration::from_secs(3), |network| network.is_connected(0, 1)));
}

#[test]
fn a_restarted_peer_is_a_new_session() {
    for caller in 0..2 {
        let mut network = Network::new(3);
        network.add(config(0), Path::default());
        network.add(config(1), Path::default());
        network.connect(caller, 1 - caller);
        assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
        network.queue(0, 1, 10_000);
        network.run(Duration::from_millis(20), |_| false);
        assert!(!network.hosts[0].open.is_empty(), "packets are on the way");
        network.restart(1, Config { boot: 2, ..config(1) });
        network.connect(1, 0);
        assert!(network.run(MINUTE, |network| network.hosts[0].boots() == [1, 2]), "caller {caller}");
        assert_eq!(network.hosts[0].disconnects(), [Reason::Restarted]);
        assert!(network.run(MINUTE, Network::is_done));
        assert!(
            network.hosts[1].endpoint.counters().unknown_session > 0,
            "packets of the old session were refused"
        );
    }
}

#[test]
fn an_old_start_of_a_host_is_refused() {
    let mut network = Network::new(3);
    network.add(config(0), Path::default());
    network.add(Config { boot: 5, ..config(1) }, Path::default());
    network.connect(1, 0);
    assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
    network.restart(1, Config { boot: 4, ..config(1) });
    network.connect(1, 0);
    network.run(Duration::from_secs(1), |_| false);
    assert_eq!(why(&network.hosts[1].disconnects()), Refusal::Boot);
    assert_eq!(network.hosts[0].boots(), [5]);
    assert_eq!(network.hosts[0].endpoint.counters().refused_boot, 1);
}

#[test]
fn a_partition_ends_the_session_and_its_end_begins_another() {
    let mut network = Network::pair(4, &Path::default(), |_| {});
    assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
    network.queue(0, 1, 5_000);
    network.queue(1, 0, 5_000);
    network.run(Duration::from_millis(10), |_| false);
    // One direction suffices.
    network.cut.insert((0, 1));
    network.run(Duration::from_secs(12), |_| false);
    assert_eq!(network.hosts[1].disconnects(), [Reason::TimedOut]);
    assert_eq!(network.hosts[0].disconnects()[0], Reason::TimedOut);
    network.cut.clear();
    assert!(network.run(MINUTE, Network::is_done));
    assert!(network.hosts.iter().all(|host| host.boots() == [1, 1]));
}

#[test]
fn an_idle_session_lives_on_keep_alives_only() {
    let mut network = Network::pair(5, &Path::default(), |_| {});
    network.run(Duration::from_secs(2), |_| false);
    let before = network.datagrams;
    network.run(Duration::from_secs(100), |_| false);
    assert!(network.is_connected(0, 1));
    let sent = network.datagrams - before;
    // A ping and its acknowledgement per second and side.
    assert!((200..=420).contains(&sent), "{sent}");
    assert!(network.hosts.iter().all(|host| host.disconnects().is_empty()));
}

#[test]
fn who_leaves_says_so() {
    let mut network = Network::pair(5, &Path::default(), |_| {});
    network.run(Duration::from_secs(1), |_| false);
    network.hosts[0].endpoint.disconnect(HostId(1));
    network.run(Duration::from_millis(10), |_| false);
    assert_eq!(network.hosts[1].disconnects(), [Reason::Closed]);
    assert_eq!(network.hosts[0].disconnects(), [Reason::Closed]);
}

#[test]
fn a_session_goes_on_with_a_peer_at_another_address() {
    let mut network = Network::pair(5, &Path::default(), |_| {});
    network.run(Duration::from_secs(1), |_| false);
    for (times, address) in ["10.9.9.9:1", "10.9.9.8:1"].into_iter().enumerate() {
        network.hosts[0].address = address.parse().unwrap();
        network.queue(0, 1, 100);
        network.queue(1, 0, 100);
        let since = network.now;
        assert!(network.run(MINUTE, Network::is_done));
        // Packets that the other sent to the old address meanwhile are lost, and sent again.
        assert!(network.now.since(since) < Duration::from_secs(3), "{:?}", network.now.since(since));
        assert_eq!(network.hosts[1].endpoint.counters().moved, 1 + times as u64);
        assert_eq!(network.status(1, 0).address, network.hosts[0].address);
        assert!(network.hosts.iter().all(|host| host.disconnects().is_empty()));
    }
}

/// Packets that somebody repeats from elsewhere, or changed on the way, move nothing; nor does one that comes late from the old
/// address.
#[test]
fn only_the_newest_packet_moves_a_session() {
    let mut network = Network::pair(6, &Path::default(), |_| {});
    network.run(Duration::from_secs(1), |_| false);
    let (old, new, stranger) =
        (network.hosts[0].address, "10.9.9.9:1".parse().unwrap(), "10.6.6.6:6".parse().unwrap());
    let now = network.now;
    let [first, second, third] = [1, 2, 3].map(|id| {
        let (mut buffer, endpoint) = ([0; 2000], &mut network.hosts[0].endpoint);
        let mut batch = Batch::new(&mut buffer, 1);
        endpoint.send(now, HostId(1), id, &[b"something"], &mut batch).unwrap();
        batch.bytes().to_vec()
    });
    let mut comes = |from, packet: &[u8]| {
        let endpoint = &mut network.hosts[1].endpoint;
        endpoint.receive(now, from, false, &mut packet.to_vec());
        endpoint.status(HostId(0)).unwrap().address
    };
    assert_eq!(comes(old, &first), old);
    assert_eq!(comes(stranger, &first), old, "it came before");
    let mut changed = third.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(comes(stranger, &changed), old, "it does not open");
    assert_eq!(comes(new, &third), new);
    assert_eq!(comes(old, &second), new, "it is older");
    assert_eq!(network.hosts[1].endpoint.counters().moved, 1);
}

/// The one with the higher number moves, whose call has no precedence; where it was, it is still reached (as behind a router that
/// gives addresses out), or nobody is.
#[test]
fn a_peer_that_moved_is_found_though_its_old_address_is_called() {
    for is_still_there in [true, false] {
        for seed in 0..10 {
            let path = Path { jitter: Duration::from_millis(1), loss: 0.05, ..Path::default() };
            let mut network = Network::pair(seed, &path, |_| {});
            network.connect(1, 0);
            assert!(network.run(MINUTE, |network| network.is_connected(0, 1)));
            let (old, new) = (network.hosts[1].address, "10.9.9.9:1".parse().unwrap());
            network.hosts[1].address = new;
            network.hosts[1].also_at = is_still_there.then_some(old);
            network.queue(0, 1, 100);
            network.queue(1, 0, 100);
            let case = format!("seed {seed}, still there: {is_still_there}");
            let since = network.now;
            assert!(network.run(MINUTE, Network::is_done), "{case}");
            // The old session is over after 5 s of silence.
            assert!(network.now.since(since) < Duration::from_secs(15), "{case}: {:?}", network.now);
            assert_eq!(network.status(0, 1).address, new, "{case}");
        }
    }
}
