//! Jobs whose agents place large cuts by RDMA, on daemons of one machine. `net/rdma/guest/run` runs this where there are devices.
use crate::areas_on_hosts::in_role;
use crate::common::cluster::Running;
use crate::common::flat::{DEVICE, Flat};
use crate::common::{Host, example};
use crate::matrix_completion::ratings_in;
use hectare_wire::AgentStatus;
use std::process::Command;

fn counted(standing: &AgentStatus, name: &str, cause: &str) -> u64 {
    let found = standing.counters.iter().find(|(n, c, _)| (n.as_str(), c.as_str()) == (name, cause));
    found.unwrap_or_else(|| panic!("no {name} {cause} in {standing:?}")).2
}

/// A run that goes on until it is told to end.
fn exchange(flat: &Flat, args: &[&str]) -> Running {
    Running::start(flat.command(args, &in_role(&format!("until:{}", flat.enough().display()))))
}

#[test]
fn a_job_runs_over_rdma_and_it_is_said_why() {
    for transport in ["auto", "rdma"] {
        let Some(flat) = Flat::new(&[DEVICE, DEVICE]) else { return };
        let args = ["--job", "seen", "--transport", transport];
        let mut run = exchange(&flat, &args);
        for host in 0..2 {
            let it = flat.standing(&mut run, host, |it| counted(it, "lines", "placed") > 0);
            assert_eq!(it.transport, transport);
            let peer = &it.peers[0];
            assert_eq!(
                (peer.link.as_str(), peer.link_reason.contains("both have an RDMA device")),
                ("rdma", true),
                "{peer:?}"
            );
            assert!(counted(&it, "rdma", "bytes") > 0, "{it:?}");
        }
        flat.end(run);
    }
}

fn kill(process: u32) {
    let pid = rustix::process::Pid::from_raw(process as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A daemon that is killed leaves the agent its queue pairs; the next daemon follows it, also when that was killed while there was none.
#[test]
fn a_killed_daemon_leaves_the_agent_its_queue_pairs_over_rdma() {
    let Some(mut flat) = Flat::new(&[DEVICE, DEVICE]) else { return };
    let mut run = exchange(&flat, &["--job", "seen"]);
    let before = flat.standing(&mut run, 0, |it| counted(it, "lines", "placed") > 0);
    let seen = flat.standing(&mut run, 1, |it| counted(it, "lines", "placed") > 0);
    flat.daemons.remove(0).kill();
    // Of the other host, as there is no daemon to ask here.
    let placed = counted(&seen, "lines", "placed");
    flat.standing(&mut run, 1, |it| counted(it, "lines", "placed") > placed && it.peers[0].link == "rdma");
    flat.daemons.insert(0, flat.daemon(0));
    let placed = counted(&before, "lines", "placed");
    let after = flat.standing(&mut run, 0, |it| counted(it, "lines", "placed") > placed);
    assert_eq!((after.pid, counted(&after, "rdma", "broken")), (before.pid, 0), "{after:?}");
    flat.daemons.remove(0).kill();
    kill(after.pid);
    flat.daemons.insert(0, flat.daemon(0));
    flat.standing(&mut run, 0, |it| it.pid != after.pid && counted(it, "lines", "placed") > 0);
    flat.end(run);
}

#[test]
fn a_killed_agent_is_followed_by_one_that_places_again_over_rdma() {
    let Some(flat) = Flat::new(&[DEVICE, DEVICE]) else { return };
    let mut run = exchange(&flat, &["--job", "seen"]);
    for host in [0, 1] {
        let killed = flat.standing(&mut run, host, |it| counted(it, "lines", "placed") > 0).pid;
        kill(killed);
        flat.standing(&mut run, host, |it| it.pid != killed && counted(it, "lines", "placed") > 0);
    }
    flat.end(run);
}

#[test]
fn a_host_without_rdma_is_reached_by_udp_or_named() {
    let Some(flat) = Flat::new(&[DEVICE, ""]) else { return };
    let mut run = exchange(&flat, &["--job", "seen"]);
    let it = flat.standing(&mut run, 0, |it| it.peers[0].link_reason.contains("no RDMA: the peer says"));
    assert_eq!(it.peers[0].link, "udp");
    flat.end(run);
    // A device that is not there, and without which the job is not to run.
    let Some(flat) = Flat::new(&[DEVICE, "[rdma]\ndevice = \"rxe7\"\n"]) else { return };
    let said = flat.run(&["--transport", "rdma"], &in_role("turns:10"));
    assert!(
        said.code != 0 && said.err.contains("there is no RDMA device rxe7: name one of rxe0, rxe1"),
        "{said:?}"
    );
    let mut run = exchange(&flat, &["--job", "seen"]);
    let it =
        flat.standing(&mut run, 1, |it| it.peers[0].link_reason.contains("there is no RDMA device rxe7"));
    assert_eq!(it.peers[0].link, "udp");
    flat.end(run);
}

/// The application, on three hosts, learns to the last digit what three threads learn.
#[test]
fn three_hosts_learn_over_rdma_what_three_threads_do() {
    let Some(flat) = Flat::new(&[DEVICE; 3]) else { return };
    let (host, program) = (Host::new(), example("matrix_completion"));
    let data = ratings_in(flat.top.path());
    let common = |out: &str| {
        let out = flat.top.path().join(out);
        let (data, out) = (data.display(), out.display());
        format!("--ratings {data} --rank 64 --batch 150 --mode areas --epochs 2 --quiet --out {out}")
    };
    let losses = |out: &str| {
        let text = std::fs::read_to_string(flat.top.path().join(out).join("loss.csv")).unwrap();
        // The fourth is a time.
        let fields = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
        text.lines().skip(1).map(fields).collect::<Vec<String>>()
    };
    let mut alone: Command = host.command(program.to_str().unwrap());
    let status = alone.args(common("threads").split(' ')).args(["--workers", "3"]).status().unwrap();
    assert!(status.success());
    let script = format!("exec {} {}", program.display(), common("hosts"));
    let said = flat.run(&["--transport", "rdma"], &script);
    assert_eq!(said.code, 0, "{said:?}");
    for daemon in &flat.daemons {
        assert!(daemon.log().contains("lines are placed by RDMA"));
    }
    let expected = losses("threads");
    assert_eq!((expected.len(), losses("hosts")), (2, expected));
}
