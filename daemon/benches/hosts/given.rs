//! An area of a megabyte that goes to another host: from being given to the first use there, beside as many bytes by the transport
//! alone, which neither seals nor acknowledges them.
use super::{Cluster, best, figure, median, of_role_with, program};
use crate::support::{LONG, now_ns, say, worker};
use hectare_dsm::{AreaSpec, Result};
use hectare_transport::udp::Udp;
use hectare_transport::{Sending, Transport};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

const BYTES: usize = 1 << 20;
const TURNS: u64 = 200;
const ROUNDS: usize = 5;

/// Goes there and back, written all over each time. Each way ends when the taker has read a line of each page.
pub(crate) fn play() -> Result<()> {
    let (mut worker, _) = worker()?;
    let (own, other) = (worker.rank(), 1 - worker.rank());
    let len = BYTES / 8;
    if own == 0 {
        let mut owned = worker.create::<u64>(AreaSpec::new("given").on_demand(), len)?;
        owned.write_whole(&worker)?.fill(0);
        owned.give(&worker, 1)?;
    }
    let area = worker.attach_within::<u64>("given", LONG)?;
    let mut times = Vec::new();
    for turn in 0..TURNS {
        let mut owned = area.take_within(&mut worker, LONG)?;
        let seen = owned.read(&worker)?;
        let sum: u64 = seen.iter().skip(1).step_by(512).sum();
        let took = now_ns().saturating_sub(seen[0]);
        let hand = 2 * turn + u64::from(own == 0);
        assert_eq!(sum, hand * (len as u64 / 512));
        if turn >= TURNS / 10 {
            times.push(Duration::from_nanos(took));
        }
        let written = owned.write_whole(&worker)?;
        written.fill(hand + 1);
        written[0] = now_ns();
        owned.give(&worker, other)?;
    }
    worker.barrier()?;
    if own == 0 {
        times.sort();
        say(times[times.len() / 2].as_secs_f64() * 1e6, times);
    }
    Ok(())
}

/// The same bytes by the transport: `send` sends them each time that it is told that they have come, or that some have not.
pub(crate) fn burst(side: &str, own: &str, peer: &str, mtu: &str) {
    let own: SocketAddr = own.parse().expect("an address");
    let peer: SocketAddr = peer.parse().expect("an address");
    let mut transport = Udp::bind(own, mtu.parse().expect("an MTU")).expect("a socket");
    let segment = transport.facts().max_datagram;
    let most = (transport.buffer().len() / segment).clamp(1, transport.facts().max_packets) * segment;
    if side == "send" {
        let mut turn = 0u64;
        loop {
            turn += 1;
            let (mut sent, since) = (0, now_ns());
            while sent < BYTES {
                let bytes = (BYTES - sent).min(most);
                for datagram in transport.buffer()[..bytes].chunks_mut(segment) {
                    if let Some(head) = datagram.first_chunk_mut::<16>() {
                        *head = (u128::from(turn) << 64 | u128::from(since)).to_le_bytes();
                    }
                }
                transport.send(Sending { to: peer, bytes, segment }).expect("the transport works");
                sent += bytes;
            }
            let until = Instant::now() + Duration::from_millis(20);
            while Instant::now() < until
                && transport.receive(&mut |_, _, _| {}).expect("the transport works") == 0
            {}
        }
    }
    let (mut times, mut turn, mut came) = (Vec::new(), 0, 0);
    let until = Instant::now() + Duration::from_secs(20);
    while times.len() < TURNS as usize && Instant::now() < until {
        let mut whole = None;
        let mut take = |_: SocketAddr, _: bool, datagram: &mut [u8]| {
            let Some(head) = datagram.first_chunk::<16>() else { return };
            let head = u128::from_le_bytes(*head);
            if turn != (head >> 64) as u64 {
                (turn, came) = ((head >> 64) as u64, 0);
            }
            came += datagram.len();
            if came >= BYTES {
                whole = Some(Duration::from_nanos(now_ns() - head as u64));
            }
        };
        transport.receive(&mut take).expect("the transport works");
        if let Some(took) = whole {
            times.push(took);
            transport.send(Sending { to: peer, bytes: 64, segment: 64 }).expect("the transport works");
        }
    }
    times.sort();
    // None if it never came whole.
    let middle = times.get(times.len() / 2).map_or(f64::NAN, |middle| middle.as_secs_f64() * 1e6);
    println!("figure {middle}");
}

fn of_burst(cluster: &Cluster, mtu: u32) -> f64 {
    let address = |host: usize| format!("{}:{}", cluster.network.address(host), 7719);
    let side = |host: usize, name: &str| {
        let mut command = cluster.network.command(host, program());
        command.args(["role", "burst", name, &address(host), &address(1 - host), &mtu.to_string()]);
        command
    };
    let receiver = side(1, "receive").stdout(Stdio::piped()).spawn().expect("a program");
    let mut sender = side(0, "send").spawn().expect("a program");
    let said = receiver.wait_with_output().expect("its end");
    sender.kill().expect("it sends until it is ended");
    sender.wait().expect("its end");
    figure(&String::from_utf8_lossy(&said.stdout))
}

pub(crate) fn measure(cluster: &Cluster, mtu: u32) {
    let (mut sealed, mut plain, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        sealed.push(of_role_with(cluster, "aes-128-gcm", "given"));
        plain.push(of_role_with(cluster, "none", "given"));
        bare.push(of_burst(cluster, mtu));
    }
    let bare_us = median(&mut bare);
    println!("\nan area of 1 MiB, from given to used on the other host, MTU {mtu}: us");
    println!("  {:<36} median {bare_us:>8.1}  best {:>8.1}", "the same bytes by the transport", best(&bare));
    for (what, mut times) in [("sealed", sealed), ("no cipher", plain)] {
        let (least, middle) = (best(&times), median(&mut times));
        println!("  {what:<36} median {middle:>8.1}  best {least:>8.1}  {:.2} of that", middle / bare_us);
    }
}
