//! Packets that somebody recorded, changed or made up.
use super::network::*;
use hectare_session::*;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

/// A connected pair after a transfer, and every datagram that went to and fro.
fn recorded() -> (Network, Vec<(usize, usize, Vec<u8>)>) {
    let mut network = Network::pair(21, &Path::default(), |_| {});
    network.overheard = Some(Vec::new());
    network.queue(0, 1, 200);
    network.queue(1, 0, 200);
    assert!(network.run(Duration::from_secs(60), Network::is_done));
    let overheard = network.overheard.take().unwrap();
    assert!(overheard.len() > 400);
    (network, overheard)
}

fn settled(network: &Network) -> Vec<(usize, u64)> {
    network
        .hosts
        .iter()
        .map(|host| (host.got.len(), host.got.values().map(|times| u64::from(*times)).sum()))
        .collect()
}

#[test]
fn a_recording_played_again_changes_nothing() {
    let (mut network, overheard) = recorded();
    let before = settled(&network);
    for (from, to, mut bytes) in overheard {
        let from = network.hosts[from].address;
        network.hosts[to].take(network.now, from, false, &mut bytes);
    }
    network.run(Duration::from_secs(10), |_| false);
    assert_eq!(settled(&network), before);
    assert!(network.is_connected(0, 1));
    assert!(network.hosts.iter().all(|host| host.boots() == [1] && host.disconnects().is_empty()));
    assert!(network.hosts[0].endpoint.counters().replayed >= 200);
}

#[test]
fn a_recording_of_an_earlier_boot_changes_nothing() {
    let (mut network, overheard) = recorded();
    network.restart(1, Config { boot: 2, ..config(1) });
    network.connect(1, 0);
    assert!(network.run(Duration::from_secs(60), |network| network.hosts[0].boots() == [1, 2]));
    let before = settled(&network);
    for (from, to, mut bytes) in overheard {
        let from = network.hosts[from].address;
        network.hosts[to].take(network.now, from, false, &mut bytes);
    }
    network.run(Duration::from_secs(10), |_| false);
    assert_eq!(settled(&network), before);
    assert_eq!(network.hosts[0].boots(), [1, 2]);
}

#[test]
fn no_packet_with_a_bit_changed_is_taken() {
    let (mut network, overheard) = recorded();
    let before = settled(&network);
    for (at, (from, to, bytes)) in overheard.iter().enumerate() {
        // Packets of the session only; which bit differs from one to the next.
        if bytes[0] < 0x40 {
            continue;
        }
        for step in 0..8 {
            let mut bytes = bytes.clone();
            let bit = (at * 131 + step * 997) % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Beyond what came, so that it is no replay.
            bytes[12] |= 1;
            let from = network.hosts[*from].address;
            network.hosts[*to].take(network.now, from, false, &mut bytes);
        }
    }
    network.run(Duration::from_secs(2), |_| false);
    assert_eq!(settled(&network), before);
    assert!(network.is_connected(0, 1));
    assert!(network.hosts[0].endpoint.counters().forged > 1000);
}

/// Whoever floods a host from made-up addresses costs it no memory, and gets back no more bytes than it sent.
#[test]
fn strangers_leave_no_trace_and_get_no_more_than_they_sent() {
    let (_, overheard) = recorded();
    let hello = overheard.iter().find(|(from, _, bytes)| (*from, bytes[0]) == (0, 1)).unwrap().2.clone();
    let mut endpoint = Endpoint::new(config(1), [9; 32]);
    let mut buffer = vec![0; 65_536];
    for at in 0..5_000_u32 {
        let from = SocketAddr::from((at.to_be_bytes(), 9));
        let mut question = hello.clone();
        // A replayed Hello is asked for a cookie; others are refused, or are nothing at all.
        match at % 4 {
            1 => question[100] ^= 1,
            2 => question[20] ^= 1,
            3 => question.truncate(19 + at as usize % 600),
            _ => {}
        }
        let sent = question.len();
        assert!(endpoint.receive(Time::ZERO, from, false, &mut question).is_none());
        let mut batch = Batch::new(&mut buffer, 64);
        endpoint.transmit(Time::ZERO, &mut batch);
        assert!(batch.bytes().len() <= sent, "{} bytes for {sent}", batch.bytes().len());
        assert!(batch.is_empty() || batch.destination() == Some(from));
    }
    let counters = endpoint.counters();
    assert_eq!((counters.cookies, counters.refused_key, counters.refused_cluster), (1250, 1250, 1250));
    assert_eq!(endpoint.next_timeout(), None, "nothing is kept");
    let told = std::iter::from_fn(|| endpoint.poll_event()).count();
    assert!(told <= 64, "{told} events");
}

/// Deterministic random inputs: cut, spliced and changed datagrams, before, in and after handshakes. The fuzz target does
/// the same with a guide.
#[test]
fn random_inputs_do_no_harm() {
    let (mut network, overheard) = recorded();
    let known: HashSet<Vec<u8>> = overheard.iter().map(|(_, _, bytes)| bytes.clone()).collect();
    let before = settled(&network);
    let (mut lonely, from) = (Endpoint::new(config(1), [9; 32]), network.hosts[0].address);
    lonely.connect(Time::ZERO, HostId(0), from);
    let mut buffer = vec![0; 65_536];
    for _ in 0..50_000 {
        let pick = |draw: u64| &overheard[draw as usize % overheard.len()];
        let (one, two) = (network.draw(), network.draw());
        let (from, to, bytes) = pick(one);
        let mut bytes = bytes.clone();
        for _ in 0..1 + network.draw() % 4 {
            let at = network.draw() as usize;
            match network.draw() % 4 {
                0 => bytes.truncate(at % (bytes.len() + 1)),
                1 if !bytes.is_empty() => {
                    let at =
                        if at.is_multiple_of(2) { at / 2 % bytes.len().min(60) } else { at % bytes.len() };
                    bytes[at] = network.draw() as u8;
                }
                2 => {
                    let other = &pick(two).2;
                    let at = at % (other.len().min(bytes.len()) + 1);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[at..]);
                }
                _ => bytes.extend_from_slice(&one.to_le_bytes()),
            }
        }
        // One that came already is no random input.
        if known.contains(&bytes) {
            continue;
        }
        let address = network.hosts[*from].address;
        lonely.receive(network.now, address, false, &mut bytes.clone());
        lonely.handle_timeout(network.now);
        let mut batch = Batch::new(&mut buffer, 64);
        lonely.transmit(network.now, &mut batch);
        while lonely.poll_event().is_some() {}
        network.hosts[*to].take(network.now, address, false, &mut bytes);
    }
    network.run(Duration::from_secs(2), |_| false);
    assert_eq!(settled(&network), before);
    assert!(network.is_connected(0, 1) && network.hosts.iter().all(|host| host.boots() == [1]));
}

/// The body of the fuzz target, for a fixed number of inputs.
#[test]
fn any_bytes_do_no_harm() {
    let mut network = Network::new(31);
    for _ in 0..4_000 {
        let length = network.draw() as usize % 300;
        let mut input: Vec<u8> = (0..length).map(|_| network.draw() as u8).collect();
        // Half of them where everything is parsed: in a session without a cipher.
        if let Some(mode) = input.first_mut().filter(|_| network.draw().is_multiple_of(2)) {
            *mode = 0x8a;
        }
        super::inputs::run(&input);
    }
}
