//! How much of a link is used, and how it is shared. Time is virtual: nothing here depends on the machine.
use super::network::*;
use super::tcp::{Rule, SEGMENT, Tcp};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Goodput of one flow, as a share of the link's rate.
fn goodput(path: &Path, loss: f64) -> f64 {
    let mut network = Network::pair(11, path, |_| {});
    network.run(SECOND, |_| false);
    network.hosts[1].path.loss = loss;
    network.queue(0, 1, 10_000_000);
    network.run(SECOND * 3, |_| false);
    let before = network.hosts[1].got_bytes;
    network.run(SECOND * 4, |_| false);
    (network.hosts[1].got_bytes - before) as f64 / (path.rate * 4.0)
}

fn link(rate: f64, delay_us: u64) -> Path {
    let delay = Duration::from_micros(delay_us);
    let queue = (rate * 2.0 * delay.as_secs_f64()).max(60_000.0) as u64;
    Path { rate, delay, queue, ..Path::default() }
}

#[test]
fn a_link_without_loss_is_filled() {
    for (rate, delay_us) in [(1.25e6, 5_000), (1.25e7, 500)] {
        let share = goodput(&link(rate, delay_us), 0.0);
        assert!(share > 0.85, "{share} of {rate} bytes/s at {delay_us} us");
    }
}

/// The losses are the path's own, and no reason to send less.
#[test]
fn random_loss_costs_little_more_than_what_is_lost() {
    for path in [link(1.25e6, 5_000), link(1.25e7, 500), link(1.25e7, 5_000)] {
        let without = goodput(&path, 0.0);
        for (loss, least) in [(0.01, 0.9), (0.1, 0.75)] {
            let share = goodput(&path, loss);
            println!(
                "{} bytes/s, {:?}, loss {loss}: {share:.3}, without {without:.3}",
                path.rate, path.delay
            );
            assert!(share > least * without, "{share} with {loss}, {without} without");
        }
    }
}

/// Packets that overtake each other are not lost, and no reason to send less.
#[test]
fn reordering_costs_little() {
    for path in [link(1.25e6, 5_000), link(1.25e7, 500)] {
        let without = goodput(&path, 0.0);
        for (part, loss) in [(1.0, 0.0), (0.2, 0.01)] {
            let share = goodput(&Path { jitter: path.delay.mul_f64(part), ..path.clone() }, loss);
            println!(
                "{} bytes/s, {:?}, up to {part} of it more, loss {loss}: {share:.3}, without {without:.3}",
                path.rate, path.delay
            );
            assert!(share > 0.9 * without, "{share} with {part} and {loss}, {without} without");
        }
    }
}

/// The rates of a TCP flow and a session on a link that they share, once the second has been there for a while.
fn beside_tcp(path: &Path, rule: Rule, session_first: bool) -> (f64, f64) {
    let mut network = Network::pair(17, path, |_| {});
    if session_first {
        network.run(SECOND / 10, |_| false);
        network.queue(0, 1, 10_000_000);
        network.run(SECOND * 3, |_| false);
        network.flows.push(Tcp::new(1, rule));
    } else {
        // The session has never seen the path without the queue of the flow.
        network.flows.push(Tcp::new(1, rule));
        network.hosts[1].down = true;
        network.run(SECOND * 3, |_| false);
        network.hosts[1].down = false;
        network.queue(0, 1, 10_000_000);
    }
    network.run(SECOND * 5, |_| false);
    let before = (network.flows[0].acked, network.hosts[1].got_bytes);
    network.run(SECOND * 12, |_| false);
    let tcp = (network.flows[0].acked - before.0) * SEGMENT as u64;
    let session = network.hosts[1].got_bytes - before.1;
    (tcp as f64 / (path.rate * 12.0), session as f64 / (path.rate * 12.0))
}

/// Queues of one round trip, of two, of ten, and of a fifth, in which no queue is seen.
#[test]
fn a_tcp_flow_beside_it_keeps_its_share() {
    let paths = [(5_000, 62_500), (5_000, 125_000), (500, 62_500), (5_000, 12_500)];
    let cubic = paths.into_iter().flat_map(|path| [true, false].map(|first| (Rule::Cubic, path, first)));
    let reno = paths.into_iter().map(|path| (Rule::Reno, path, true));
    for (rule, (delay_us, queue), session_first) in cubic.chain(reno) {
        let delay = Duration::from_micros(delay_us);
        let path = Path { rate: 6.25e6, delay, queue, ..Path::default() };
        let (tcp, session) = beside_tcp(&path, rule, session_first);
        println!("{rule:?}, {delay:?}, queue {queue}, first {session_first}: {tcp:.2} and {session:.2}");
        assert!(tcp > 0.3, "{tcp} of {path:?} beside {session}");
        assert!(session > 0.25 && session + tcp > 0.85, "{session} of {path:?} beside {tcp}");
    }
}

/// Slow start ends before it has overrun a queue of four round trips: that would lose 600 packets.
#[test]
fn slow_start_loses_little() {
    let mut network = Network::pair(18, &Path { queue: 500_000, ..link(1.25e7, 5_000) }, |_| {});
    network.run(SECOND / 10, |_| false);
    network.queue(0, 1, 10_000_000);
    network.run(SECOND, |_| false);
    let status = network.status(0, 1);
    assert!(status.lost < 150, "{status:?}");
    assert!(network.hosts[1].got_bytes as f64 > 0.8 * 1.25e7, "{}", network.hosts[1].got_bytes);
}

#[test]
fn marks_of_congestion_spare_losses() {
    let path = Path { marks: true, ..link(1.25e7, 2_000) };
    let mut network = Network::pair(12, &path, |_| {});
    network.queue(0, 1, 10_000_000);
    network.run(SECOND * 5, |_| false);
    let status = network.status(0, 1);
    assert!(status.congestion_events > 3, "{status:?}");
    let share = network.hosts[1].got_bytes as f64 / (path.rate * 5.0);
    assert!(share > 0.8, "{share}");
    // Only slow start, which doubles within a round trip, can overrun the half of a queue that is left.
    assert!((status.lost as f64) < 0.003 * status.sent as f64, "{status:?}");
}

#[test]
fn two_flows_share_a_link() {
    for (rate, delay_us) in [(6.25e6, 500), (6.25e6, 5_000)] {
        let mut network = Network::new(13);
        for host in 0..3 {
            network.add(config(host), link(rate, delay_us));
        }
        network.connect(0, 2);
        network.connect(1, 2);
        network.queue(0, 2, 10_000_000);
        // The second comes when the first has the link.
        network.run(SECOND * 3, |_| false);
        network.queue(1, 2, 10_000_000);
        network.run(SECOND * 10, |_| false);
        let came = |network: &Network, from: usize| network.status(from, 2).acked;
        let before = [came(&network, 0), came(&network, 1)];
        network.run(SECOND * 30, |_| false);
        let [a, b] = [came(&network, 0) - before[0], came(&network, 1) - before[1]];
        let ratio = a.min(b) as f64 / a.max(b) as f64;
        println!("{rate} bytes/s, {delay_us} us: {a} and {b} packets");
        assert!(ratio > 0.6, "{a} and {b} packets at {delay_us} us");
        assert!((a + b) as f64 * 1472.0 / (rate * 20.0) > 0.85, "together {a} + {b}");
    }
}

#[test]
fn a_link_that_dies_for_a_while_is_persistent_congestion() {
    let mut network = Network::pair(14, &link(1.25e7, 1_000), |_| {});
    network.queue(0, 1, 10_000_000);
    network.run(SECOND * 2, |_| false);
    network.cut.insert((0, 1));
    network.run(SECOND * 2, |_| false);
    network.cut.clear();
    network.run(SECOND * 2, |_| false);
    let status = network.status(0, 1);
    assert!(status.persistent_congestions > 0 && status.probes > 0, "{status:?}");
    assert!(network.hosts[0].disconnects().is_empty(), "shorter than the idle time-out");
    let before = network.hosts[1].got_bytes;
    network.run(SECOND * 2, |_| false);
    assert!(
        (network.hosts[1].got_bytes - before) as f64 > 0.8 * 2.0 * 1.25e7,
        "it is back at the rate of the link"
    );
}

/// Bursts are paced: a short queue is not overrun by a window sent at once.
#[test]
fn pacing_spares_a_short_queue() {
    let path = Path { rate: 1.25e7, delay: Duration::from_millis(5), queue: 100_000, ..Path::default() };
    let mut network = Network::pair(15, &path, |_| {});
    network.queue(0, 1, 10_000_000);
    network.run(SECOND * 4, |_| false);
    let status = network.status(0, 1);
    assert!((status.lost as f64) < 0.01 * status.sent as f64, "{status:?}");
}
