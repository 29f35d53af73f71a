//! The bare network: a datagram of 64 bytes there and back.
use crate::support::{mean_us, say};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const TURNS: usize = 50_000;

/// Asks or answers, spinning or asleep until a datagram comes.
pub(crate) fn play(part: &str, address: &str, spins: bool) {
    let is_asking = part == "ask";
    let socket = UdpSocket::bind(if is_asking { "0.0.0.0:0" } else { address }).expect("a socket");
    socket.set_nonblocking(spins).expect("a socket that spins or not");
    if !is_asking {
        loop {
            let (bytes, from) = receive(&socket);
            socket.send_to(&bytes, from).expect("an answer");
        }
    }
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
    // Until the other side is there.
    while socket.send_to(&[0; 64], address).is_err() || !answers(&socket) {}
    socket.set_read_timeout(None).expect("no time-out");
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let since = Instant::now();
        socket.send_to(&[1; 64], address).expect("a question");
        receive(&socket);
        times.push(since.elapsed());
    }
    say(mean_us(&times), times);
}

fn answers(socket: &UdpSocket) -> bool {
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        if socket.recv_from(&mut [0; 64]).is_ok() {
            return true;
        }
    }
    false
}

fn receive(socket: &UdpSocket) -> ([u8; 64], std::net::SocketAddr) {
    let mut bytes = [0; 64];
    loop {
        match socket.recv_from(&mut bytes) {
            Ok((_, from)) => return (bytes, from),
            Err(_) => std::hint::spin_loop(),
        }
    }
}
