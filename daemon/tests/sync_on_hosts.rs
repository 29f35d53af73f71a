//! A worker asks again and again for what another host's owner has, who waits in a barrier meanwhile: it is answered each time, at once.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{Error, Job, Worker};
use std::time::Duration;

const ROLE: &str = "SYNC_ROLE";
const LONG: Duration = Duration::from_secs(60);
const AREAS: u64 = 150;

fn ask(worker: &mut Worker) -> Result<(), Error> {
    let mut owned = Vec::new();
    for value in 0..AREAS {
        let name = format!("asked/{value}");
        if worker.rank() == 0 {
            let mut area = worker.create::<u64>(&*name, 10)?;
            area.write(worker)?.fill(value);
            owned.push(area);
        }
        worker.barrier()?;
        if worker.rank() == 1 {
            let area = worker.attach::<u64>(&name)?;
            worker.sync_area(&area)?;
            assert_eq!(area.read(worker)?, [value; 10]);
        }
        worker.barrier()?;
    }
    Ok(())
}

#[test]
fn role() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let job = Job::connect(&launch.job).unwrap();
    let mut worker = job.worker().unwrap();
    worker.wait_for_workers(2, LONG).unwrap();
    ask(&mut worker).unwrap();
    println!("all answered");
}

#[test]
fn whoever_asks_for_what_is_clean_is_answered() {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = std::env::current_exe().unwrap();
    let program = format!("{ROLE}=1 exec {} --exact {} --nocapture", program.display(), role_here());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("all answered").count(), 2, "{said:?}");
    cluster.assert_nothing_is_left();
}
