//! A worker, the only one of its host, gives an area to a worker of another host and is killed at once: the area comes there, with all
//! that was written. The hosts are network namespaces.
use crate::common::cluster::{Cluster, join};
use crate::common::role_here;
use hectare_dsm::{AreaSpec, Error, Worker};
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;

const ROLE: &str = "GIVEN_BY_THE_DEAD_ROLE";
const LONG: Duration = Duration::from_secs(60);
const LEN: usize = 5000;

/// How the area is had where it is given to.
const KINDS: [&str; 3] = ["attached", "on demand", "attached late"];

fn give_and_die(worker: &mut Worker) -> Result<(), Error> {
    let to = 1 - worker.rank();
    let mut owned = Vec::new();
    for kind in KINDS {
        let spec = AreaSpec::new(kind);
        let spec = if kind == "on demand" { spec.on_demand() } else { spec };
        owned.push(worker.create::<u64>(spec, LEN)?);
    }
    for area in &mut owned {
        area.write(worker)?.fill(1);
    }
    worker.barrier()?;
    worker.barrier()?;
    for (area, value) in owned.iter_mut().zip(2..) {
        area.write(worker)?.fill(value);
    }
    for area in owned {
        area.give(worker, to)?;
    }
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!()
}

fn take(worker: &mut Worker) -> Result<(), Error> {
    worker.barrier()?;
    for kind in &KINDS[..2] {
        worker.attach::<u64>(kind)?;
    }
    worker.barrier()?;
    for (kind, value) in KINDS.into_iter().zip(2..) {
        let area = worker.attach_within::<u64>(kind, LONG)?;
        let mut owned = area.take_within(worker, LONG)?;
        assert_eq!(owned.read(worker)?, [value; LEN], "{kind}");
        owned.write(worker)?.fill(value + 1);
        worker.sync()?;
        assert_eq!(area.read(worker)?, [value + 1; LEN], "{kind}");
        println!("taken: {kind}");
    }
    Ok(())
}

#[test]
fn role() {
    let Ok(giver) = std::env::var(ROLE) else { return };
    let (_job, mut worker) = join(2);
    match giver == worker.rank().to_string() {
        true => give_and_die(&mut worker).unwrap(),
        false => take(&mut worker).unwrap(),
    }
}

#[test]
fn what_a_worker_gave_comes_though_it_was_killed() {
    let Some(cluster) = Cluster::new(2) else { return };
    let (list, program) = (cluster.list(1), std::env::current_exe().unwrap());
    for giver in [0, 1] {
        let script = format!("{ROLE}={giver} exec {} --exact {} --nocapture", program.display(), role_here());
        let said = cluster.run(&["--hosts", &list, "--timeout", "90", "--keep-going"], &script);
        for kind in KINDS {
            assert_eq!(said.out.matches(&format!("taken: {kind}\n")).count(), 1, "giver {giver}: {said:?}");
        }
        // The giver was killed.
        assert_eq!(said.code, 128 + 9, "giver {giver}: {said:?}");
        cluster.assert_nothing_is_left();
    }
}
