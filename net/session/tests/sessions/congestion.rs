//! How much of a link is used, and how it is shared. Time is virtual: nothing here depends on the machine.
use super::network::*;
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

/// CUBIC with loss p carries at least what Reno does, about 1.22 / sqrt(p) packets per round trip (Mathis et al. 1997).
#[test]
fn random_loss_leaves_what_the_formula_says() {
    let path = link(1.25e7, 500);
    // With a tenth lost, the window is so small that the formula says too much: it knows no time-outs.
    for (loss, least) in [(0.01, 0.6), (0.1, 0.3)] {
        let share = goodput(&path, loss);
        let packets = 1.22 / f64::sqrt(loss);
        let formula = (packets * 1472.0 / 0.001 / path.rate).min(1.0);
        println!("loss {loss}: {share:.3} of the link, the formula says {formula:.3}");
        assert!(share > least * formula, "{share} with {loss}, the formula says {formula}");
    }
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
