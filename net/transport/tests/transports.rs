//! Every transport keeps the contract.
use hectare_transport::udp::{Udp, interface_mtu};
use hectare_transport::{Idle, Transport, conformance, memory};
use std::time::Duration;

fn network() -> (memory::Memory, memory::Memory) {
    let network = memory::Network::default();
    let join = |host| network.join(std::net::SocketAddr::from(([10, 0, 0, host], 7000)), 1500).unwrap();
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
