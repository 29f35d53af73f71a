//! Daemons that end and are started again while jobs on several hosts run: their agents go on, and are found again.
use crate::areas_on_hosts::{ends_well, in_role, read_until};
use crate::common::cluster::{Cluster, Running};
use crate::common::until;
use crate::peers::standing;
use rustix::process::Signal;
use std::time::Duration;

/// Starts the next daemon of host 0 in the place of one that was killed.
fn start_daemon(cluster: &mut Cluster) {
    cluster.start_daemon(0);
    let daemon = cluster.daemons.pop().unwrap();
    cluster.daemons.insert(0, daemon);
}

/// A host leaves a job for good, so that its agent must not think that the job is over because the daemon is, and no worker has come.
#[test]
fn a_program_that_has_no_worker_yet_outlives_its_daemon() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let (go, list) = (cluster.top.path().join("go"), cluster.list(1));
    let waits = format!("echo waits; until [ -e {} ]; do sleep 0.05; done;", go.display());
    let all = ["--hosts", &list, "--timeout", "20", "--job", "seen"];
    let mut run = Running::start(cluster.command(&all, &format!("{waits} {}", in_role("turns:50"))));
    run.lines(2);
    until("the agent", || cluster.hectare(0, &["peers", "seen"]).code == 0);
    let first = standing(&cluster, 0);
    cluster.daemons.remove(0).kill();
    // The agent looks five times a second. Without this pause, it may not have looked: then nothing is tried.
    std::thread::sleep(Duration::from_secs(1));
    start_daemon(&mut cluster);
    cluster.daemons[0].wait_for("the agent of an earlier daemon goes on");
    assert_eq!(standing(&cluster, 0).pid, first.pid);
    std::fs::write(go, "").unwrap();
    ends_well(run, &cluster);
}

/// If the agent's socket is removed from the run directory, the agent makes it again, and the next daemon finds it.
#[test]
fn an_agent_whose_socket_was_removed_is_found_by_the_next_daemon() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let all = ["--hosts", &list, "--timeout", "20", "--job", "seen"];
    let mut run = Running::start(cluster.command(&all, &in_role("turns:1000000")));
    read_until(&mut run, "turn ");
    let first = standing(&cluster, 0);
    std::fs::remove_dir_all(cluster.dir(0).path()).unwrap();
    until("the agent's socket", || cluster.hectare(0, &["peers", "seen"]).out.contains("connected"));
    assert_eq!(standing(&cluster, 0).pid, first.pid);
    cluster.daemons.remove(0).kill();
    // Only just gone when the daemon comes.
    std::fs::remove_dir_all(cluster.dir(0).path().join("agents")).unwrap();
    start_daemon(&mut cluster);
    cluster.daemons[0].wait_for("the agent of an earlier daemon goes on");
    assert_eq!((standing(&cluster, 0).pid, cluster.agents(0)), (first.pid, vec![first.pid as i32]));
    run.signal(Signal::INT);
    run.end();
    cluster.assert_nothing_is_left();
}
