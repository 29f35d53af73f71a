//! Our transports by themselves: datagrams as fast as one takes them, and one there and back. What is counted is what comes.
use crate::LinkKind;
use hectare_transport::udp::Udp;
use hectare_transport::{Sending, Transport};
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Before the window, so that the link is busy when it begins.
const WARM: Duration = Duration::from_millis(200);
const WARM_TURNS: usize = 500;
const TURNS: usize = 20_000;
/// The first ones may be lost.
const LOST: Duration = Duration::from_millis(100);

/// Plays one side: by a transport, from an address, to another.
pub(crate) fn play(
    side: &str,
    kind: LinkKind,
    own: SocketAddr,
    peer: SocketAddr,
    mtu: usize,
    window: Duration,
) {
    match kind {
        LinkKind::Udp => over(side, &mut Udp::bind(own, mtu).expect("a socket"), peer, window),
        LinkKind::Dpdk => over_dpdk(side, own, peer, mtu, window),
    }
}

#[cfg(feature = "dpdk")]
fn over_dpdk(side: &str, own: SocketAddr, peer: SocketAddr, mtu: usize, window: Duration) {
    use hectare_transport::dpdk::{Dpdk, Settings};
    let SocketAddr::V4(address) = own else { panic!("IPv4") };
    let settings = Settings { mtu, ..Settings::new("net_af_packet0,iface=eth0", address) };
    over(side, &mut Dpdk::open(&settings).expect("a port"), peer, window);
}

#[cfg(not(feature = "dpdk"))]
fn over_dpdk(_: &str, _: SocketAddr, _: SocketAddr, _: usize, _: Duration) {
    panic!("this bench was built without DPDK");
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("who reads it is there");
}

fn over(side: &str, transport: &mut impl Transport, peer: SocketAddr, window: Duration) {
    say("ready");
    match side {
        "send" => send(transport, peer),
        "receive" => receive(transport, window),
        "answer" => answer(transport),
        "ask" => ask(transport, peer),
        other => panic!("no side: {other}"),
    }
}

fn send(transport: &mut impl Transport, to: SocketAddr) {
    let facts = transport.facts();
    let segment = facts.max_datagram;
    let most = (transport.buffer().len() / segment).clamp(1, facts.max_packets);
    transport.buffer().fill(7);
    loop {
        transport.send(Sending { to, bytes: most * segment, segment }).expect("the transport works");
        // Questions for this side's hardware address are answered here.
        transport.receive(&mut |_, _, _| {}).expect("the transport works");
    }
}

fn receive(transport: &mut impl Transport, window: Duration) {
    let mut bytes = 0_u64;
    let mut look = |transport: &mut _| take(transport, &mut |datagram| bytes += datagram.len() as u64);
    while look(transport) == 0 {}
    let start = Instant::now();
    while start.elapsed() < WARM {
        look(transport);
    }
    say("begin");
    bytes = 0;
    let mut look = |transport: &mut _| take(transport, &mut |datagram| bytes += datagram.len() as u64);
    let start = Instant::now();
    while start.elapsed() < window {
        look(transport);
    }
    let took = start.elapsed();
    say(&format!("end {bytes} {}", took.as_nanos()));
}

fn take(transport: &mut impl Transport, each: &mut dyn FnMut(&[u8])) -> usize {
    transport.receive(&mut |_, _, datagram| each(datagram)).expect("the transport works")
}

fn answer(transport: &mut impl Transport) {
    loop {
        let mut from = None;
        transport.receive(&mut |sender, _, _| from = Some(sender)).expect("the transport works");
        if let Some(to) = from {
            transport.send(Sending { to, bytes: 64, segment: 64 }).expect("the transport works");
        }
    }
}

fn ask(transport: &mut impl Transport, to: SocketAddr) {
    let mut times = Vec::with_capacity(TURNS);
    for turn in 0..WARM_TURNS + TURNS {
        let start = Instant::now();
        transport.send(Sending { to, bytes: 64, segment: 64 }).expect("the transport works");
        while take(transport, &mut |_| {}) == 0 && start.elapsed() < LOST {}
        if turn >= WARM_TURNS {
            times.push(start.elapsed());
        }
    }
    say(&times_line(times));
}

/// The line that says the median and the 99th percentile in microseconds.
pub(crate) fn times_line(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    format!("times {} {}", at(0.5), at(0.99))
}
