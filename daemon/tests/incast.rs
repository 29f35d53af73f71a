//! 24 hosts send to one at once, more than its link carries: what finds the link's queue full is lost, and everything comes.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{Error, Job};
use std::time::Duration;

const ROLE: &str = "INCAST_ROLE";
const LONG: Duration = Duration::from_secs(120);
/// With more hosts, the table of neighbours that a kernel has for all namespaces together may be full (1,024 entries).
const SENDERS: usize = 24;
/// Elements of each sender's area, all of which it writes in each pass.
const LEN: usize = 16 << 10;
const PASSES: u64 = 4;

/// One of the ranks, each on a host of its own. The first reads what the others wrote.
fn send_or_receive() -> Result<(), Error> {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    let ranks = SENDERS + 1;
    worker.wait_for_workers(ranks, LONG)?;
    let me = worker.rank() as usize;
    if me > 0 {
        let mut mine = worker.create::<u64>(format!("of/{me}"), LEN)?;
        worker.barrier()?;
        for pass in 1..=PASSES {
            mine.write(&worker)?.fill(pass << 32 | me as u64);
            worker.barrier()?;
            worker.barrier()?;
        }
        return worker.barrier();
    }
    worker.barrier()?;
    let theirs: Vec<_> =
        (1..ranks).map(|of| worker.attach::<u64>(&format!("of/{of}"))).collect::<Result<_, _>>()?;
    for pass in 1..=PASSES {
        worker.barrier()?;
        for (of, area) in (1..ranks).zip(&theirs) {
            let expected = pass << 32 | of as u64;
            assert!(area.read(&worker)?.iter().all(|element| *element == expected), "{of} in pass {pass}");
        }
        worker.barrier()?;
    }
    println!("all came");
    worker.barrier()
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        send_or_receive().unwrap();
    }
}

#[test]
fn many_send_to_one_at_once() {
    let Some(mut cluster) = Cluster::new(SENDERS + 1) else { return };
    // A pass is 3 MiB: five times what the queue holds.
    cluster.network.limit(0, 100_000_000).unwrap();
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}=1 exec {} --exact {} --nocapture", program.display(), role_here());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "60"], &role);
    assert_eq!((said.code, said.out.matches("all came").count()), (0, 1), "{said:?}");
    cluster.assert_nothing_is_left();
}
