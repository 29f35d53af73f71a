//! The requirements on every transport. Its tests call [`all`].
use crate::contract::{Sending, Transport};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// So long a datagram may take on a busy machine before it counts as lost.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Runs all checks, each with two transports that `pair` makes and that reach each other.
///
/// # Panics
/// If a transport breaks the contract.
pub fn all<T: Transport>(pair: impl Fn() -> (T, T)) {
    for check in [
        datagrams_arrive_whole_with_their_sender,
        a_burst_arrives_as_the_datagrams_it_was,
        a_lone_datagram_of_any_size_arrives,
        nobody_there_is_no_error,
        too_large_is_a_loss_and_no_error,
        a_wait_ends_with_a_datagram,
        a_wait_ends_with_its_time,
    ] {
        let (mut a, mut b) = pair();
        check(&mut a, &mut b);
    }
    let (mut a, _b) = pair();
    a_wait_ends_with_a_waker(&mut a);
}

/// Datagrams with their senders.
type Came = Vec<(SocketAddr, Vec<u8>)>;

/// Sends `bytes` in datagrams of `segment`.
fn send(from: &mut impl Transport, to: SocketAddr, bytes: &[u8], segment: usize) -> bool {
    from.buffer()[..bytes.len()].copy_from_slice(bytes);
    from.send(Sending { to, bytes: bytes.len(), segment }).expect("the transport works")
}

/// The next `count` datagrams, and whatever came with them.
fn receive(at: &mut impl Transport, count: usize) -> Came {
    let (mut came, start) = (Came::new(), Instant::now());
    while came.len() < count {
        assert!(start.elapsed() < TIME_LIMIT, "{} of {count} datagrams came", came.len());
        at.wait(Duration::from_millis(50)).expect("the transport works");
        let given = came.len();
        let said =
            at.receive(&mut |from, _, datagram| came.push((from, datagram.to_vec()))).expect("it works");
        assert_eq!(came.len() - given, said, "the number of datagrams that were given");
    }
    came
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn datagrams_arrive_whole_with_their_sender<T: Transport>(a: &mut T, b: &mut T) {
    let (at_a, at_b) = (a.facts().address, b.facts().address);
    for round in 1..50 {
        let bytes = pattern(round * 20);
        assert!(send(a, at_b, &bytes, bytes.len()));
        assert_eq!(receive(b, 1), [(at_a, bytes.clone())]);
        assert!(send(b, at_a, &bytes, bytes.len()));
        assert_eq!(receive(a, 1), [(at_b, bytes)]);
    }
    assert_eq!(b.receive(&mut |_, _, _| {}).expect("it works"), 0, "nothing comes twice");
}

fn a_burst_arrives_as_the_datagrams_it_was<T: Transport>(a: &mut T, b: &mut T) {
    let (at_a, at_b) = (a.facts().address, b.facts().address);
    let segment = a.facts().max_datagram.min(1000);
    for packets in 1..=a.facts().max_packets.min(a.buffer().len() / segment) {
        // The last is shorter, but for every third burst.
        let bytes = pattern(packets * segment - if packets % 3 == 0 { 0 } else { segment / 2 });
        assert!(send(a, at_b, &bytes, segment));
        let expected: Came = bytes.chunks(segment).map(|part| (at_a, part.to_vec())).collect();
        assert_eq!(receive(b, packets), expected, "{packets} packets");
    }
}

fn a_lone_datagram_of_any_size_arrives<T: Transport>(a: &mut T, b: &mut T) {
    let to = b.facts().address;
    for length in [1, 2, 100, a.facts().max_datagram - 1, a.facts().max_datagram] {
        let bytes = pattern(length);
        assert!(send(a, to, &bytes, length), "{length} bytes");
        assert_eq!(receive(b, 1)[0].1, bytes, "{length} bytes");
    }
}

fn nobody_there_is_no_error<T: Transport>(a: &mut T, b: &mut T) {
    let mut nobody = b.facts().address;
    nobody.set_port(1);
    for _ in 0..5 {
        send(a, nobody, &[1; 100], 100);
    }
    a.receive(&mut |_, _, _| {}).expect("word of it is no error");
    let to = b.facts().address;
    // Word of the loss may be told in place of the next sending; the one after goes.
    let start = Instant::now();
    while !send(a, to, &[2; 100], 100) {
        assert!(start.elapsed() < TIME_LIMIT, "it sends no more");
    }
    assert_eq!(receive(b, 1)[0].1, [2; 100]);
}

fn too_large_is_a_loss_and_no_error<T: Transport>(a: &mut T, b: &mut T) {
    let to = b.facts().address;
    let too_large = a.facts().max_datagram + 1;
    if too_large <= a.buffer().len() {
        send(a, to, &pattern(too_large), too_large);
    }
    assert!(send(a, to, &[3; 100], 100));
    assert!(receive(b, 1).iter().any(|(_, bytes)| bytes == &[3; 100]));
}

fn a_wait_ends_with_a_datagram<T: Transport>(a: &mut T, b: &mut T) {
    let to = b.facts().address;
    for _ in 0..20 {
        assert!(send(a, to, &[4; 10], 10));
        let start = Instant::now();
        b.wait(TIME_LIMIT * 2).expect("it works");
        assert!(start.elapsed() < TIME_LIMIT, "it slept over a datagram");
        assert_eq!(receive(b, 1).len(), 1);
    }
}

fn a_wait_ends_with_its_time<T: Transport>(a: &mut T, _: &mut T) {
    let start = Instant::now();
    a.wait(Duration::from_millis(5)).expect("it works");
    a.wait(Duration::ZERO).expect("it works");
    assert!(start.elapsed() < TIME_LIMIT);
}

fn a_wait_ends_with_a_waker<T: Transport>(a: &mut T) {
    // Before it, and in it; each ends one.
    for round in 0..20 {
        let (waker, start) = (a.waker(), Instant::now());
        let other = std::thread::spawn(move || {
            if round % 2 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            waker.wake();
        });
        a.wait(TIME_LIMIT * 2).expect("it works");
        assert!(start.elapsed() < TIME_LIMIT, "it slept over a waker");
        other.join().expect("it only wakes");
    }
}
