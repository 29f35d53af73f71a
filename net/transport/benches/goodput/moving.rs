//! One side of a measurement: a process that sends or receives.
use hectare_session::{Batch, ClusterKey, Config, Endpoint, Event, HostId, Suite, Time};
use hectare_transport::udp::Udp;
use hectare_transport::{Idle, Sending, Transport};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bursts in one turn of the loop.
const BURSTS: usize = 8;

/// Runs `send|receive FROM TO MTU plain|sealed BYTES`; the sender prints Gbit/s.
pub(crate) fn run(arguments: &[String]) {
    let [role, from, to, mtu, suite, bytes] = arguments else { panic!("send FROM TO MTU SUITE BYTES") };
    let sends = role == "send";
    let (from, to): (SocketAddr, SocketAddr) =
        (from.parse().expect("an address"), to.parse().expect("an address"));
    let mtu = mtu.parse().expect("a number");
    let mut udp = Udp::bind(if sends { from } else { to }, mtu).expect("a free port");
    let host = u16::from(!sends);
    let key = ClusterKey::new("bench", [7; 32]).expect("a key");
    let config = Config {
        suite: if suite == "plain" { Suite::Checksum } else { Suite::Aes128Gcm },
        max_datagram: udp.facts().max_datagram,
        ..Config::new(HostId(host), 1, [1; 16], key, [host as u8 + 1; 32])
    };
    let mut endpoint = Endpoint::new(config, [host as u8; 32]);
    let peer = HostId(1 - host);
    if sends {
        endpoint.connect(Time::ZERO, peer, to);
    }
    let total: u64 = if sends { bytes.parse().expect("a number") } else { 0 };
    let memory = vec![0x5a; 1 << 24];
    let mut idle = Idle::default();
    let begun = Instant::now();
    let clock = || Time::from_nanos(begun.elapsed().as_nanos() as u64);
    let (mut on_the_way, mut acked, mut first, mut ended) = (0_u64, 0_u64, None, false);
    let max_packets = udp.facts().max_packets;
    while !ended {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing comes to an end");
        let mut now = clock();
        let came = udp.receive(&mut |from, congested, datagram| {
            endpoint.receive(now, from, congested, datagram);
        });
        let mut worked = came.expect("a socket") > 0;
        endpoint.handle_timeout(now);
        while let Some(event) = endpoint.poll_event() {
            match event {
                // The id of a packet is its length: whichever is lost, as many bytes go again.
                Event::Acked { id, .. } => (acked, on_the_way) = (acked + id, on_the_way - id),
                Event::Lost { id, .. } => on_the_way -= id,
                Event::Disconnected { .. } => ended = true,
                _ => {}
            }
        }
        if total > 0 && acked >= total && !ended {
            report(total, first.unwrap_or(begun), &endpoint, peer);
            endpoint.disconnect(peer);
        }
        // Not more before it looks for acknowledgements again: what is on the way would be counted as it was long ago.
        for _ in 0..BURSTS {
            let mut batch = Batch::new(udp.buffer(), max_packets);
            while acked + on_the_way < total {
                let Some(most) = endpoint.max_payload(peer) else { break };
                let length = (total - acked - on_the_way).min(most as u64);
                let at = (acked + on_the_way) as usize % (memory.len() - most);
                if endpoint.send(now, peer, length, &[&memory[at..at + length as usize]], &mut batch).is_err()
                {
                    break;
                }
                first.get_or_insert_with(Instant::now);
                on_the_way += length;
            }
            endpoint.transmit(now, &mut batch);
            let Some(to) = batch.destination() else { break };
            let sending = Sending { to, bytes: batch.bytes().len(), segment: batch.segment_size() };
            udp.send(sending).expect("a socket");
            worked = true;
            now = clock();
        }
        let next = endpoint.next_timeout().map_or(Duration::from_millis(100), |at| at.since(clock()));
        idle.rest(&mut udp, worked, next).expect("a socket");
    }
}

fn report(total: u64, first: Instant, endpoint: &Endpoint, peer: HostId) {
    println!("{}", total as f64 * 8.0 / 1e9 / first.elapsed().as_secs_f64());
    eprintln!("{:?}", endpoint.status(peer));
}
