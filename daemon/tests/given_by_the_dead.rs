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
/// Takes a while to send.
const LARGE: usize = 1_000_000;

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

/// One of three ranks, each on a host of its own. The first gives an area, and may be killed then; the third has copies, and leaves
/// after a while, whether or not it has received what was written last.
fn with_a_third(worker: &mut Worker, kind: &str) -> Result<(), Error> {
    let rank = worker.rank();
    let mine = if rank == 0 { Some(worker.create::<u64>("large", LARGE)?) } else { None };
    worker.barrier()?;
    let area = worker.attach::<u64>("large")?;
    worker.barrier()?;
    let (nap, is_killed) = kind.split_once(' ').expect("how it goes");
    if let Some(mut owned) = mine {
        owned.write(worker)?.fill(7);
        owned.give(worker, 1)?;
        if is_killed == "killed" {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        // Until the next owner has left.
        return worker.barrier();
    }
    if rank == 1 {
        let owned = area.take_within(worker, LONG)?;
        assert!(owned.read(worker)?.iter().all(|value| *value == 7));
        println!("taken: large");
        return Ok(());
    }
    std::thread::sleep(Duration::from_millis(nap.parse().expect("a number")));
    worker.service().map(drop)
}

#[test]
fn it_comes_though_a_third_host_with_copies_leaves() {
    let Some(cluster) = Cluster::new(3) else { return };
    let (list, program) = (cluster.list(1), std::env::current_exe().unwrap());
    for (nap, end) in [(0, "alive"), (0, "killed"), (60, "alive"), (200, "killed"), (1500, "killed")] {
        let script = format!(
            "{ROLE}='three {nap} {end}' exec {} --exact {} --nocapture",
            program.display(),
            role_here()
        );
        let said = cluster.run(&["--hosts", &list, "--timeout", "90", "--keep-going"], &script);
        assert_eq!(said.out.matches("taken: large\n").count(), 1, "{nap} ms, {end}: {said:?}");
        cluster.assert_nothing_is_left();
    }
}

#[test]
fn role() {
    let Ok(giver) = std::env::var(ROLE) else { return };
    if let Some(kind) = giver.strip_prefix("three ") {
        return with_a_third(&mut join(3).1, kind).unwrap();
    }
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
