//! Every transport keeps the contract.
use hectare_transport::udp::{Udp, interface_mtu};
use hectare_transport::{Both, Idle, Sending, Transport, conformance, memory};
use std::net::SocketAddr;
use std::time::Duration;

fn network() -> (memory::Memory, memory::Memory) {
    let network = memory::Network::default();
    let join = |host| network.join(SocketAddr::from(([10, 0, 0, host], 7000)), 1500).unwrap();
    (join(1), join(2))
}

#[test]
fn memory_keeps_the_contract() {
    conformance::all(network);
}

#[test]
fn udp_keeps_the_contract() {
    let bind = || Udp::bind("127.0.0.1:0".parse().unwrap(), 1500).unwrap();
    conformance::all(|| (bind(), bind()));
    let mtu = interface_mtu("lo").unwrap();
    let jumbo = || Udp::bind("127.0.0.1:0".parse().unwrap(), mtu).unwrap();
    conformance::all(|| (jumbo(), jumbo()));
}

#[test]
fn udp_keeps_the_contract_over_ipv6() {
    match Udp::bind("[::1]:0".parse().unwrap(), 1500) {
        Ok(_) => conformance::all(|| {
            let bind = || Udp::bind("[::1]:0".parse().unwrap(), 1500).unwrap();
            (bind(), bind())
        }),
        Err(error) => hectare_testing::skip("IPv6", error),
    }
}

#[test]
fn an_address_is_had_once() {
    let network = memory::Network::default();
    let address = "10.0.0.1:7".parse().unwrap();
    let first = network.join(address, 1500).unwrap();
    assert!(network.join(address, 1500).is_err());
    drop(first);
    assert!(network.join(address, 1500).is_ok(), "who left makes room");
}

/// A thread that rests is woken, however deep it sleeps.
#[test]
fn an_idle_thread_is_woken() {
    let (mut a, _b) = network();
    let waker = a.waker();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        waker.wake();
    });
    let mut idle = Idle::default();
    // Looks come first, then one wait, which the waker ends.
    while !idle.is_to_sleep(false) {}
    idle.rest(&mut a, false, Duration::from_secs(240)).unwrap();
    other.join().unwrap();
}

/// A socket with a port beside it; the other's port is behind its own.
fn beside_ports() -> (Both<memory::Memory>, Both<memory::Memory>) {
    let bind = || Udp::bind("127.0.0.1:0".parse().unwrap(), 1500).unwrap();
    let (a, b) = network();
    let (at_a, at_b) = (a.facts().address, b.facts().address);
    (Both::new(bind(), a, [at_b]), Both::new(bind(), b, [at_a]))
}

#[test]
fn a_socket_with_a_port_beside_it_keeps_the_contract() {
    conformance::all(beside_ports);
}

#[test]
fn the_address_of_a_peer_says_by_which_link_it_is_reached() {
    let (mut a, mut b) = beside_ports();
    let send = |from: &mut Both<memory::Memory>, to: SocketAddr, bytes: &[u8]| {
        from.buffer()[..bytes.len()].copy_from_slice(bytes);
        assert!(from.send(Sending { to, bytes: bytes.len(), segment: 2 }).unwrap());
    };
    let receive = |at: &mut Both<memory::Memory>, count: usize| {
        let mut came = Vec::new();
        while came.len() < count {
            // A minute is more than any of it takes: the wait ends with a datagram by either link.
            at.wait(Duration::from_secs(60)).unwrap();
            at.receive(&mut |from, _, datagram| came.push((from, datagram.to_vec()))).unwrap();
        }
        came
    };
    let (udp_a, udp_b) = (a.facts().address, b.facts().address);
    let (port_a, port_b) = (a.port().facts().address, b.port().facts().address);
    for round in 0..20 {
        send(&mut a, udp_b, &[round, 1, 2]);
        assert_eq!(receive(&mut b, 2), [(udp_a, vec![round, 1]), (udp_a, vec![2])]);
        send(&mut a, port_b, &[round, 3, 4]);
        assert_eq!(receive(&mut b, 2), [(port_a, vec![round, 3]), (port_a, vec![4])]);
        send(&mut b, port_a, &[round]);
        assert_eq!(receive(&mut a, 1), [(port_b, vec![round])]);
    }
    // A port that always has something does not keep the socket waiting for ever.
    send(&mut a, udp_b, &[9]);
    let mut turns = 0;
    let mut is_there = false;
    while !is_there {
        turns += 1;
        assert!(turns < 100, "the socket is never looked at");
        send(&mut a, port_b, &[1]);
        b.receive(&mut |from, _, _| is_there |= from == udp_a).unwrap();
    }
}
