//! A program on one host: in a job with an agent, as one on several hosts has it, and in a job of this host alone.
use crate::common::cluster::Cluster;
use crate::local::{hold, start};
use crate::{ROUNDS, figure, median};
use hectare_wire::{Cipher, Connection, JobHost, JobHosts, JobSettings, Request, TransportChoice};

const RANKS: u32 = 2;
const JOB: &str = "alone";

/// Rounds per second, in turn.
pub(crate) fn measure(cluster: &Cluster) {
    let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..4 * ROUNDS {
        // Each is first in every other turn.
        let first = of_job(cluster, round % 2 == 0);
        let second = of_job(cluster, round % 2 != 0);
        let (one, other) = if round % 2 == 0 { (first, second) } else { (second, first) };
        with.push(one);
        without.push(other);
        ratios.push(one / other);
    }
    println!("\nrounds of two workers of one host, 16 KiB written by each");
    println!("{:<40} {:>9} {:>9}", "rounds/s", "median", "best");
    let most = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    let (most_with, most_without) = (most(&with), most(&without));
    println!("{:<40} {:>9.0} {most_with:>9.0}", "with an agent, and no other host", median(&mut with));
    println!("{:<40} {:>9.0} {most_without:>9.0}", "without", median(&mut without));
    println!(
        "{:<40} {:>9.3} {:>9.3}   (at least 0.99)",
        "with / without",
        median(&mut ratios),
        most_with / most_without
    );
}

fn of_job(cluster: &Cluster, has_agent: bool) -> f64 {
    let dir = cluster.dir(0);
    let (job, settings) = (JOB.to_owned(), JobSettings::default());
    let request = if has_agent {
        let address = (cluster.network.address(0), 7400).into();
        let hosts = vec![JobHost { name: "a".into(), address, ranks: RANKS, dpdk: None }];
        let key_file = cluster.key(0).to_str().expect("a path").to_owned();
        let (silence_ms, cipher) = (JobHosts::SILENCE_MS, Cipher::default());
        let transport = TransportChoice::default();
        let hosts = JobHosts { id: [7; 16], index: 0, hosts, key_file, silence_ms, cipher, transport };
        Request::CreateOnHosts { job, settings, keep: false, hosts: Box::new(hosts) }
    } else {
        Request::Create { job, settings, keep: false }
    };
    Connection::open(&dir).expect("a daemon").order(&request).expect("a job");
    let member = hold(cluster, 0, JOB);
    let ranks: Vec<_> = (0..RANKS).map(|rank| start(cluster, 0, JOB, (rank, RANKS), &["alone"])).collect();
    let said = ranks.into_iter().map(|rank| rank.wait_with_output().expect("its end"));
    let said: String = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).collect();
    if has_agent {
        assert_eq!(cluster.agents(0).len(), 1, "the agent ran");
    }
    drop(member);
    crate::common::until("the job to go", || cluster.jobs(0).is_empty() && cluster.agents(0).is_empty());
    figure(&said)
}
