//! The transport over DPDK, on virtual devices between hosts that are network namespaces.
use hectare_hosts::{Network, Settings as Link};
use hectare_transport::dpdk::{Dpdk, Settings};
use hectare_transport::udp::Udp;
use hectare_transport::{Sending, Transport, conformance};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PORT: u16 = 7000;
/// No test lasts so long, unless it hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Two hosts, if there can be any.
fn network(mtu: u32) -> Option<Network> {
    let link = Link { mtu, ..Link::default() };
    Network::new(2, &link).map_err(|error| hectare_testing::skip("network namespaces", error)).ok()
}

/// The address of DPDK on a host; the host's own network stack has another.
fn address(host: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 200 + host as u8), PORT)
}

fn settings(host: usize, mtu: u32) -> Settings {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the number counts.
    let device = format!("net_af_packet{},iface=eth0", NEXT.fetch_add(1, Ordering::Relaxed));
    Settings { mtu: mtu as usize, ..Settings::new(device, address(host)) }
}

fn open(network: &Network, host: usize, mtu: u32) -> Dpdk {
    network.run_on(host, || Dpdk::open(&settings(host, mtu)).unwrap()).unwrap()
}

/// Two ports whose hosts have heard of each other.
fn pair(network: &Network, mtu: u32) -> (Dpdk, Dpdk) {
    let (mut a, mut b) = (open(network, 0, mtu), open(network, 1, mtu));
    let start = Instant::now();
    while !(a.reaches(*address(1).ip()) && b.reaches(*address(0).ip())) {
        assert!(start.elapsed() < TIME_LIMIT, "no answer: {:?}, {:?}", a.counts(), b.counts());
        for dpdk in [&mut a, &mut b] {
            dpdk.wait(Duration::from_millis(1)).unwrap();
        }
    }
    (a, b)
}

fn keeps_the_contract(mtu: u32) {
    let Some(network) = network(mtu) else { return };
    conformance::all(|| pair(&network, mtu));
}

#[test]
fn dpdk_keeps_the_contract_at_mtu_1500() {
    keeps_the_contract(1500);
}

#[test]
fn dpdk_keeps_the_contract_at_mtu_9000() {
    keeps_the_contract(9000);
}

fn send(from: &mut impl Transport, to: SocketAddr, bytes: &[u8]) -> bool {
    from.buffer()[..bytes.len()].copy_from_slice(bytes);
    from.send(Sending { to, bytes: bytes.len(), segment: bytes.len() }).unwrap()
}

/// Looks at the transport until it has got so many datagrams.
fn receive(at: &mut impl Transport, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut came, start) = (Vec::new(), Instant::now());
    while came.len() < count {
        assert!(start.elapsed() < TIME_LIMIT, "{} of {count} datagrams came", came.len());
        at.wait(Duration::from_millis(20)).unwrap();
        at.receive(&mut |from, _, datagram| came.push((from, datagram.to_vec()))).unwrap();
    }
    came
}

/// The first datagrams to a host wait until it has said what its hardware address is.
#[test]
fn the_first_datagrams_wait_for_their_neighbour() {
    let Some(network) = network(1500) else { return };
    let (mut a, mut b) = (open(&network, 0, 1500), open(&network, 1, 1500));
    for byte in 0..10 {
        assert!(send(&mut a, address(1).into(), &[byte; 100]));
    }
    assert!(!a.reaches(*address(1).ip()), "nobody has answered yet");
    let start = Instant::now();
    let mut came = Vec::new();
    while came.len() < 10 {
        assert!(start.elapsed() < TIME_LIMIT, "{} came", came.len());
        a.wait(Duration::from_millis(1)).unwrap();
        b.wait(Duration::from_millis(1)).unwrap();
        b.receive(&mut |from, _, datagram| came.push((from, datagram.to_vec()))).unwrap();
        // A question that was lost is asked again when there is more to send.
        a.reaches(*address(1).ip());
    }
    let expected: Vec<_> = (0..10).map(|byte| (SocketAddr::from(address(0)), vec![byte; 100])).collect();
    assert_eq!(came, expected);
    assert!(b.reaches(*address(0).ip()), "who was asked knows who has asked");
    assert_eq!(a.counts().unsent, 0);
}

/// A host with DPDK and one without.
#[test]
fn a_peer_may_use_the_systems_network_stack() {
    let Some(network) = network(1500) else { return };
    let mut dpdk = open(&network, 0, 1500);
    let there = SocketAddr::from((network.address(1), PORT));
    let mut udp = network.run_on(1, || Udp::bind(there, 1500).unwrap()).unwrap();
    for length in [1, 100, 1472] {
        let bytes = vec![length as u8; length];
        assert!(send(&mut dpdk, there, &bytes));
        let start = Instant::now();
        while !dpdk.reaches(network.address(1)) {
            assert!(start.elapsed() < TIME_LIMIT, "the other host's system answers");
            dpdk.wait(Duration::from_millis(1)).unwrap();
        }
        assert_eq!(receive(&mut udp, 1), [(address(0).into(), bytes.clone())]);
        // The system asks for the address of this side, and has to be answered meanwhile.
        assert!(send(&mut udp, address(0).into(), &bytes));
        assert_eq!(receive(&mut dpdk, 1), [(there, bytes)]);
    }
    // A burst that the system cuts into datagrams.
    let bytes: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
    udp.buffer()[..bytes.len()].copy_from_slice(&bytes);
    assert!(udp.send(Sending { to: address(0).into(), bytes: bytes.len(), segment: 1000 }).unwrap());
    let came: Vec<u8> = receive(&mut dpdk, 10).into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(came, bytes);
}

/// The device counts the frames that came and went; one that is not for this transport is not given to anybody.
#[test]
fn frames_are_counted() {
    let Some(network) = network(1500) else { return };
    let (mut a, mut b) = pair(&network, 1500);
    let before = b.stats().unwrap();
    for _ in 0..20 {
        assert!(send(&mut a, address(1).into(), &[1; 500]));
    }
    assert_eq!(receive(&mut b, 20).len(), 20);
    let after = b.stats().unwrap();
    assert!(after.received >= before.received + 20, "{before:?}, {after:?}");
    assert!(after.received_bytes >= before.received_bytes + 20 * 500, "{before:?}, {after:?}");
    assert!(a.stats().unwrap().sent >= 20);
    assert_eq!(b.counts().datagrams, 20);
    let to_another_port = SocketAddrV4::new(*address(1).ip(), 1);
    let foreign = b.counts().foreign;
    assert!(send(&mut a, to_another_port.into(), &[2; 10]) && send(&mut a, address(1).into(), &[3; 10]));
    assert_eq!(receive(&mut b, 1), [(address(0).into(), vec![3; 10])]);
    assert!(b.counts().foreign > foreign, "{:?}", b.counts());
    assert!(!send(&mut a, "192.168.1.1:7".parse().unwrap(), &[4]), "there is no gateway");
    assert!(!send(&mut a, "[::1]:7".parse().unwrap(), &[4]), "IPv4 only");
    assert_eq!(a.counts().unsent, 2);
}

/// Who finds its address in use counts it; both would get half of each other's packets else, and nobody would know why.
#[test]
fn an_address_of_two_hosts_is_noticed() {
    let Some(network) = network(1500) else { return };
    let mut first = open(&network, 0, 1500);
    let again = Settings { address: address(0), ..settings(1, 1500) };
    // It tells the link of itself.
    let _second = network.run_on(1, || Dpdk::open(&again).unwrap()).unwrap();
    let start = Instant::now();
    while first.counts().conflicts == 0 {
        assert!(start.elapsed() < TIME_LIMIT, "{:?}", first.counts());
        first.wait(Duration::from_millis(1)).unwrap();
    }
}

/// A port that lost its link drops, and goes on when the link is back.
#[test]
fn a_link_that_comes_back_is_used_again() {
    let Some(network) = network(1500) else { return };
    let (mut a, mut b) = pair(&network, 1500);
    let set = |state: &str| {
        let status = network.command(0, "ip").args(["link", "set", "eth0", state]).status().unwrap();
        assert!(status.success());
    };
    set("down");
    for _ in 0..2000 {
        // Whether it says so or not, it goes nowhere; more than the port's ring holds.
        send(&mut a, address(1).into(), &[1; 100]);
    }
    a.wait(Duration::from_millis(5)).unwrap();
    set("up");
    let (start, mut came) = (Instant::now(), Vec::new());
    while !came.contains(&vec![2; 100]) {
        assert!(start.elapsed() < TIME_LIMIT, "it sends no more: {:?}", a.counts());
        send(&mut a, address(1).into(), &[2; 100]);
        b.wait(Duration::from_millis(10)).unwrap();
        b.receive(&mut |_, _, datagram| came.push(datagram.to_vec())).unwrap();
    }
}

/// An interface that was taken away under a port: what is sent is lost, more of it than the port's ring holds, and nothing hangs.
#[test]
fn a_device_that_is_gone_loses_what_is_sent() {
    let Some(network) = network(1500) else { return };
    let (mut a, _b) = pair(&network, 1500);
    let status = network.command(0, "ip").args(["link", "delete", "eth0"]).status().unwrap();
    assert!(status.success());
    for _ in 0..2000 {
        send(&mut a, address(1).into(), &[1; 100]);
    }
    a.wait(Duration::from_millis(5)).unwrap();
    assert_eq!(a.receive(&mut |_, _, _| {}).unwrap(), 0);
    assert!(a.counts().unsent > 0, "{:?}", a.counts());
}

fn refusal(network: &Network, settings: &Settings) -> String {
    network.run_on(0, || Dpdk::open(settings).unwrap_err().to_string()).unwrap()
}

#[test]
fn what_cannot_be_opened_says_why() {
    let Some(network) = network(1500) else { return };
    let first = settings(0, 1500);
    let port = network.run_on(0, || Dpdk::open(&first).unwrap()).unwrap();

    let no_interface = Settings { device: "net_af_packet90,iface=eth9".into(), ..first.clone() };
    let text = refusal(&network, &no_interface);
    assert!(text.contains("net_af_packet90,iface=eth9") && text.contains("no driver takes it"), "{text}");
    assert!(text.contains("DPDK says: "), "{text}");

    let text = refusal(&network, &Settings { device: "net_nonsense0".into(), ..first.clone() });
    assert!(text.contains("`net_nonsense0`: no driver takes it"), "{text}");

    let text = refusal(&network, &first);
    assert!(text.contains("a transport of this process has it already"), "{text}");

    let text = refusal(&network, &Settings { device: "net_af_packet91".into(), ..first.clone() });
    assert!(text.contains("it needs an interface"), "{text}");

    let arguments = Some(vec!["--no-huge".into()]);
    let text = refusal(&network, &Settings { arguments, ..first.clone() });
    assert!(text.contains("cannot be started again with `--no-huge`"), "{text}");

    drop(port);
    network.run_on(0, || Dpdk::open(&first).unwrap()).unwrap();
}
