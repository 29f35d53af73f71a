//! Predictions of `hectare plan` beside measured passes on two hosts, over links of several rates.
use super::{Cluster, median, program};
use serde_json::Value;

const ROUNDS: usize = 3;
/// Bits a second; 0 for as many as there are.
const RATES: [u64; 4] = [0, 1_000_000_000, 200_000_000, 50_000_000];

/// Has packets of each host wait in a queue before its device.
pub(crate) fn limit(cluster: &Cluster, rate: u64) {
    for host in 0..cluster.network.hosts() {
        let rate = format!("{rate}bit");
        let words = [
            "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", &rate, "burst", "64kb", "latency",
            "50ms",
        ];
        let status = cluster.network.command(host, "tc").args(words).status().expect("tc");
        assert!(status.success(), "tc");
    }
}

/// The report of `hectare plan` on the loop.
fn plan(cluster: &Cluster, words: &[&str]) -> Value {
    let rsh = cluster.rsh();
    let mut args = vec!["plan", "--rsh", &rsh, "--hosts", "1,2", "--workers-per-host", "1", "--json"];
    args.extend(words);
    let program = program();
    args.extend(["--", &program, "role", "loop"]);
    let said = cluster.hectare(0, &args);
    assert_eq!(said.code, 0, "{said:?}");
    if std::env::var_os("HOSTS_DETAILS").is_some() {
        eprintln!("{}", said.out);
    }
    serde_json::from_str(&said.out).expect("a report")
}

fn total_ms(forecast: &Value) -> f64 {
    let parts = ["compute_ns", "balance_ns", "steps_ns", "link_ns"];
    parts.iter().map(|part| forecast["time"][part].as_f64().expect("a time")).sum::<f64>() / 1e6
}

pub(crate) fn measure(cluster: &Cluster) {
    println!(
        "\nthe same loop, ms a pass: measured on two hosts; predicted from passes there, with measured links;"
    );
    println!(
        "predicted from passes of one worker on one host, with the rate of the link as it was set, or measured"
    );
    println!(
        "{:<12} {:>9} {:>18} {:>18}   {:>12} {:>12} {:>10}",
        "Gbit/s", "measured", "from two hosts", "from one", "barrier, us", "hand-over", "Gbit/s"
    );
    let (two, one) = (cluster.list(1), cluster.list(1));
    let one = one.split(',').next().expect("a host").to_owned();
    for rate in RATES {
        if rate > 0 {
            limit(cluster, rate);
        }
        let bandwidth = (rate > 0).then(|| format!("{}Mbit", rate / 1_000_000));
        let mut figures: [Vec<f64>; 6] = Default::default();
        for _ in 0..ROUNDS {
            let there = plan(cluster, &["--on", &two]);
            let measured = there["link"]["bytes_per_ns"].as_f64().expect("a rate") * 8e3;
            let bandwidth = bandwidth.clone().unwrap_or_else(|| format!("{measured:.0}Mbit"));
            let here = plan(cluster, &["--on", &one, "--latency", "10us", "--bandwidth", &bandwidth]);
            let link = |what: &str| there["link"][what].as_f64().expect("a figure");
            let found = [
                there["loops"][0]["measured_ns"].as_f64().expect("a time") / 1e6,
                total_ms(&there["loops"][0]["forecasts"][1]),
                total_ms(&here["loops"][0]["forecasts"][1]),
                link("barrier_ns") / 1e3,
                link("hand_over_ns") / 1e3,
                link("bytes_per_ns") * 8.0,
            ];
            figures.iter_mut().zip(found).for_each(|(all, figure)| all.push(figure));
        }
        let [measured, there, here, barrier, hand_over, gbit] = figures.map(|mut all| median(&mut all));
        let set = if rate > 0 { format!("{}", rate as f64 / 1e9) } else { "as it is".into() };
        let against = |predicted: f64| format!("{predicted:.1} ({:.2})", predicted / measured);
        println!(
            "{set:<12} {measured:>9.1} {:>18} {:>18}   {barrier:>12.0} {hand_over:>12.0} {gbit:>10.2}",
            against(there),
            against(here)
        );
    }
}
