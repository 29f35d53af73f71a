//! Faults of a job on several hosts in their short form: campaigns of one episode, by seeds that differ in what they try.
use hectare_testing::skip;
use std::process::{Command, Stdio};
use std::time::Duration;

fn campaign(hosts: usize, seed: u64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faults"));
    command.args(["--short", "--hosts", &hosts.to_string(), "--seed", &seed.to_string()]);
    command.stdin(Stdio::null());
    command
}

fn play(hosts: usize, seed: u64) {
    run(hosts, seed, &[]);
}

fn run(hosts: usize, seed: u64, more: &[&str]) {
    let output = campaign(hosts, seed).args(more).output().unwrap();
    let (said, words) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}{words}");
    match output.status.code() {
        Some(0) => {}
        Some(3) => skip(&format!("faults on {hosts} hosts"), said),
        _ => panic!("seed {seed} on {hosts} hosts:\n{said}{words}"),
    }
}

#[test]
fn two_hosts_with_faults() {
    play(2, 3);
}

#[test]
fn three_hosts_with_faults() {
    play(3, 9);
}

#[test]
fn a_lost_host_among_five() {
    play(5, 2);
}

/// Packets lost in rows and by size, paths that change, an address that changes, clocks that jump.
#[test]
fn ways_and_clocks_that_change() {
    run(3, 4, &["--only", "20,21,28,34,40"]);
}

/// Those who are no host of the job.
#[test]
fn garbage_floods_and_packets_that_come_again() {
    run(2, 5, &["--only", "57,58,59,60,61,62,63"]);
}

#[test]
fn faults_have_their_numbers() {
    let output = campaign(3, 1).arg("--list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for number in (19..=29).chain([33, 34, 40, 41]).chain(57..=63) {
        assert!(text.lines().any(|line| line.trim_start().starts_with(&format!("{number}  "))), "{text}");
    }
    let output = campaign(3, 1).args(["--only", "1"]).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("no fault 1;"));
}

fn namespaces_of(pid: u32) -> usize {
    let list = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
    String::from_utf8_lossy(&list).lines().filter(|line| line.starts_with(&format!("hectare-{pid}-"))).count()
}

#[test]
fn a_killed_campaign_leaves_nothing_for_long() {
    let mut killed = campaign(2, 1).stdout(Stdio::null()).spawn().unwrap();
    // Three namespaces, then daemons.
    while namespaces_of(killed.id()) < 3 {
        if let Some(status) = killed.try_wait().unwrap() {
            assert_eq!(status.code(), Some(3), "it ended before it was killed");
            return skip("a killed campaign", "no network namespaces");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let directory = std::env::temp_dir().join(format!("hectare-faults-hosts-{}", killed.id()));
    play(2, 1);
    assert_eq!(namespaces_of(killed.id()), 0);
    assert!(!directory.exists());
}

#[test]
fn one_host_is_not_several() {
    let output = campaign(1, 1).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("two at least"));
}
