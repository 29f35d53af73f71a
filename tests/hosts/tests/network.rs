//! The network is what it says: packets arrive, each fault does what it is named for, and nothing stays behind.
use hectare_hosts::{Fault, Network, Settings};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::ops::Not;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Numbered packets that one test sends. The sockets' buffers hold them all.
const PACKETS: u32 = 100;
/// After so long without a packet, none comes.
const SHORT: Duration = Duration::from_millis(500);
/// Expected packets arrive within this time.
const LONG: Duration = Duration::from_secs(20);

/// A network, if this process may make one.
fn network(hosts: usize, settings: &Settings) -> Option<Network> {
    Network::new(hosts, settings).map_err(|error| hectare_testing::skip("network namespaces", error)).ok()
}

fn socket(network: &Network, host: usize) -> UdpSocket {
    let address = network.address(host);
    let socket = network.run_on(host, || UdpSocket::bind((address, 7000)).unwrap()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// Bytes of a packet, without its headers of 28.
const SMALL: usize = 32;

/// The small packets from host 0 that arrive at host 1: per number how often, and whether its bytes are as sent.
fn arrivals(network: &Network) -> HashMap<u32, (u32, bool)> {
    let mut arrived = HashMap::new();
    for (number, whole) in in_order(network, SMALL) {
        let entry = arrived.entry(number).or_insert((0, true));
        *entry = (entry.0 + 1, entry.1 && whole);
    }
    arrived
}

/// The packets of that size from host 0 that arrive at host 1, one by one: number, and whether it is whole.
fn in_order(network: &Network, bytes: usize) -> Vec<(u32, bool)> {
    let (from, to) = (socket(network, 0), socket(network, 1));
    for number in 0..PACKETS {
        let mut packet = vec![0; bytes];
        packet[..4].copy_from_slice(&number.to_le_bytes());
        from.send_to(&packet, to.local_addr().unwrap()).unwrap();
    }
    let (mut packet, mut arrived) = (vec![0; bytes], Vec::new());
    to.set_read_timeout(Some(SHORT)).unwrap();
    while to.recv(&mut packet).is_ok() {
        let number = u32::from_le_bytes(packet[..4].try_into().unwrap());
        arrived.push((number, packet[4..].iter().all(|byte| *byte == 0)));
    }
    arrived
}

#[test]
fn packets_arrive_everywhere() {
    let Some(network) = network(5, &Settings::default()) else { return };
    let sockets: Vec<_> = (0..5).map(|host| socket(&network, host)).collect();
    for (from, sender) in sockets.iter().enumerate() {
        for (to, receiver) in sockets.iter().enumerate() {
            let sent = [from as u8, to as u8];
            // The first packet waits for the address to be resolved.
            sender.send_to(&sent, receiver.local_addr().unwrap()).unwrap();
            let mut packet = [0; 2];
            let (_, address) = receiver.recv_from(&mut packet).unwrap();
            assert_eq!((packet, address.ip()), (sent, network.address(from).into()));
        }
    }
    let whole = arrivals(&Network::new(2, &Settings::default()).unwrap());
    assert_eq!(whole.len(), PACKETS as usize);
    assert!(whole.values().all(|arrived| *arrived == (1, true)));
}

#[test]
fn each_fault_does_what_it_says() {
    let Some(mut network) = network(2, &Settings::default()) else { return };
    let (from, to, share) = (0, 1, 0.5);
    // Half of 100 packets are between 20 and 80, but for once in 10^9 runs.
    let half = |count: usize| (20..=80).contains(&count);

    network.set(&[Fault::Lose { from, to, share }]).unwrap();
    let arrived = arrivals(&network);
    assert!(half(arrived.len()), "{} of {PACKETS}", arrived.len());

    network.set(&[Fault::Duplicate { from, to, share }]).unwrap();
    let arrived = arrivals(&network);
    assert_eq!(arrived.len(), PACKETS as usize);
    let twice = arrived.values().filter(|(count, _)| *count == 2).count();
    assert!(half(twice), "{twice} of {PACKETS}");

    network.set(&[Fault::Corrupt { from, to, share }]).unwrap();
    let arrived = arrivals(&network);
    assert_eq!(arrived.len(), PACKETS as usize);
    let wrong = arrived.values().filter(|(_, whole)| !whole).count();
    assert!(half(wrong), "{wrong} of {PACKETS}");

    network.set(&[Fault::Detour { from, to, share }]).unwrap();
    // Packets overtake those of the detour if they come faster than it carries them, 16 large ones in 10 ms. On a busy
    // machine they may not.
    let overtakes = || {
        let order: Vec<u32> = in_order(&network, 600).into_iter().map(|(number, _)| number).collect();
        assert_eq!(order.len(), PACKETS as usize, "{order:?}");
        order.is_sorted().not()
    };
    assert!((0..20).any(|_| overtakes()), "nothing came late");

    // The packets are of 60 bytes, with their headers.
    network.set(&[Fault::LoseSizes { from, to, share: 1.0, least: 61, most: 1500 }]).unwrap();
    assert_eq!(arrivals(&network).len(), PACKETS as usize);
    network.set(&[Fault::LoseSizes { from, to, share: 1.0, least: 1, most: 60 }]).unwrap();
    assert!(arrivals(&network).is_empty());

    network.set(&[Fault::LoseRows { from, to, lost: 20, of: 50 }]).unwrap();
    let order: Vec<u32> = in_order(&network, SMALL).into_iter().map(|(number, _)| number).collect();
    let gaps = order.windows(2).filter(|pair| pair[1] == pair[0] + 21).count();
    assert!(order.len() == 60 && gaps > 0, "{order:?}");

    network.set(&[Fault::Cut { from, to }]).unwrap();
    assert!(arrivals(&network).is_empty());
    // One way only.
    network.set(&[Fault::Cut { from: to, to: from }]).unwrap();
    assert_eq!(arrivals(&network).len(), PACKETS as usize);
    network.set(&[]).unwrap();
    let arrived = arrivals(&network);
    assert!(arrived.len() == PACKETS as usize && arrived.values().all(|arrived| *arrived == (1, true)));
}

#[test]
fn a_host_has_another_address() {
    let Some(mut network) = network(2, &Settings::default()) else { return };
    let (one, other) = (socket(&network, 0), socket(&network, 1));
    let mut packet = [0; 4];
    for to in [0, 1] {
        network.set(&[Fault::Renumber { host: 0, to }]).unwrap();
        one.send_to(b"here", other.local_addr().unwrap()).unwrap();
        let (_, from) = other.recv_from(&mut packet).unwrap();
        assert_ne!(from.ip(), network.address(0));
        // Both are heard.
        for address in [from, one.local_addr().unwrap()] {
            other.send_to(b"well", address).unwrap();
            assert_eq!(one.recv_from(&mut packet).unwrap(), (4, other.local_addr().unwrap()));
        }
    }
    network.set(&[]).unwrap();
    one.send_to(b"home", other.local_addr().unwrap()).unwrap();
    assert_eq!(other.recv_from(&mut packet).unwrap().1, one.local_addr().unwrap());
}

#[test]
fn a_link_has_a_rate_and_a_size() {
    let settings = Settings { mtu: 9000, passes: Some(4000), segments: false, ..Settings::default() };
    let Some(mut network) = network(2, &settings) else { return };
    let (from, to) = (socket(&network, 0), socket(&network, 1));
    let address = to.local_addr().unwrap();
    let mut packet = [0; 9000];
    // Packets that arrive may take long on a busy machine; for lost ones a short wait is enough.
    let mut arrives = |size: usize, limit| {
        to.set_read_timeout(Some(limit)).unwrap();
        from.send_to(&packet[..size], address).unwrap();
        to.recv(&mut packet).is_ok_and(|received| received == size)
    };
    assert!(arrives(3900, LONG));
    assert!(!arrives(5000, SHORT), "larger than the switch passes on");
    assert!(arrives(3900, LONG));
    // Later it is another one; a veth pair carries four bytes more.
    network.set_passes(1, 3000).unwrap();
    assert!(!arrives(3500, SHORT));
    assert!(arrives(2900, LONG));
    network.set_passes(1, 4000).unwrap();
    network.set_mtu(0, 2000).unwrap();
    assert!(arrives(3500, LONG), "in parts, as the own device says");
    drop((from, to));
    // 100 packets at once are far more than a queue of 50 ms at 10 kbit/s and a burst of 64 KiB.
    network.limit(1, 10_000).unwrap();
    let (from, to) = (socket(&network, 0), socket(&network, 1));
    for _ in 0..PACKETS {
        from.send_to(&packet[..3000], address).unwrap();
    }
    to.set_read_timeout(Some(SHORT)).unwrap();
    let arrived = std::iter::from_fn(|| to.recv(&mut packet).ok()).count();
    assert!((5..60).contains(&arrived), "{arrived} of {PACKETS}");
}

/// A process that sleeps on host 0, and is there: what starts it enters the namespace some time after it has begun.
fn sleeper(network: &Network) -> Child {
    let mut sleeper = network.command(0, "sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    while !network.processes(0).unwrap().contains(&sleeper.id()) {
        assert!(sleeper.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    sleeper
}

/// The namespaces of a network and what runs in them go with it, and also when its maker is killed.
#[test]
fn nothing_stays_behind() {
    const ROLE: &str = "HECTARE_HOSTS_TEST_MAKER";
    if std::env::var_os(ROLE).is_some() {
        let network = Network::new(2, &Settings::default()).unwrap();
        let mut sleeper = sleeper(&network);
        println!("made {} {}", network.namespace(0), sleeper.id());
        sleeper.wait().unwrap();
        unreachable!("it is killed before");
    }
    let Some(network) = network(2, &Settings::default()) else { return };
    let (own, mut sleeper) = (network.namespace(0), sleeper(&network));
    let exists = |name: &str| std::path::Path::new("/run/netns").join(name).exists();
    assert!(exists(&own));
    drop(network);
    assert!(!exists(&own) && !sleeper.wait().unwrap().success());

    let mut maker = Command::new(std::env::current_exe().unwrap());
    maker.args(["--exact", "nothing_stays_behind", "--nocapture"]).env(ROLE, "1").stdout(Stdio::piped());
    let mut maker = maker.spawn().unwrap();
    let said = BufReader::new(maker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = said.filter_map(|line| line.strip_prefix("made ").map(str::to_owned)).next().unwrap();
    let (namespace, sleeper) = said.split_once(' ').unwrap();
    // Who was killed may stand in the table of processes until its new parent looks.
    let stat = format!("/proc/{sleeper}/stat");
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(exists(namespace) && runs());
    let _others = Network::new(1, &Settings::default()).unwrap();
    assert!(exists(namespace), "its maker lives");
    maker.kill().unwrap();
    maker.wait().unwrap();
    assert!(exists(namespace) && runs(), "a process that is killed cleans nothing up");
    let _next = Network::new(1, &Settings::default()).unwrap();
    assert!(!exists(namespace) && !runs());
}

#[test]
fn frames_are_as_late_as_was_asked_for() {
    let delay = Duration::from_millis(20);
    let Some(network) = network(3, &Settings { delay, ..Settings::default() }) else { return };
    let (from, to) = (socket(&network, 0), socket(&network, 2));
    to.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The first finds out where the other is.
    for number in 0..3u8 {
        let since = std::time::Instant::now();
        from.send_to(&[number; SMALL], (network.address(2), 7000)).unwrap();
        let mut packet = [9; SMALL];
        assert_eq!(to.recv(&mut packet).unwrap(), SMALL);
        assert_eq!(packet, [number; SMALL]);
        assert!(since.elapsed() >= delay, "{:?}", since.elapsed());
    }
}
