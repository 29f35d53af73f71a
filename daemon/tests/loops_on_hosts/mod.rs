//! Programs of the loop layer, unchanged, on three hosts: the same passes as on threads of one, to the last bit.
mod program;

use crate::common::cluster::Cluster;
use crate::common::example;
use hectare_orion::relax::{Consistency, Sum};
use hectare_orion::{Context, Error, Result, parallel_for};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names what the processes of a run do.
const ROLE: &str = "LOOPS_ROLE";
/// A file for them.
const FILE: &str = "LOOPS_FILE";

/// The lines about passes, without the times.
fn passes(text: &str) -> Vec<String> {
    let of_a_pass = text.lines().filter_map(|line| line.find("pass ").map(|at| &line[at..]));
    of_a_pass.map(|line| line.rsplit_once("  ").map_or(line, |(all, _)| all).to_owned()).collect()
}

/// What a program says of its passes on as many threads, and what on three hosts.
fn compare(cluster: &Cluster, program: &str, per_host: u32, arguments: &str, expected: usize) {
    let path = example(program);
    let workers = 3 * per_host;
    let mut threads = Command::new("sh");
    threads.args(["-c", &format!("exec {} --workers {workers} {arguments}", path.display())]);
    let threads = threads.output().unwrap();
    let on_threads = passes(&String::from_utf8_lossy(&threads.stdout));
    assert_eq!(on_threads.len(), expected, "{threads:?}");
    let script = format!("exec {} --workers {workers} {arguments}", path.display());
    let said = cluster.run(&["--hosts", &cluster.list(per_host), "--timeout", "60"], &script);
    assert_eq!(said.code, 0, "{program}, {per_host} on each host: {said:?}");
    assert_eq!(passes(&said.out), on_threads, "{program}, {per_host} on each host: {said:?}");
}

fn ratings(path: &Path) {
    let line = |n: u32| {
        let (i, j) = (n * 7919 % 200, n * 104_729 % 131);
        format!("{i} {j} {}\n", 1 + (i * j + i + 3 * j) % 5)
    };
    std::fs::write(path, (0..4000).map(line).collect::<String>()).unwrap();
}

#[test]
fn factorize_learns_on_three_hosts_what_it_learns_on_one() {
    let Some(cluster) = Cluster::new(3) else { return };
    let data = cluster.top.path().join("ratings");
    ratings(&data);
    let data = data.display();
    let arguments = format!("--passes 3 --rank 8 --train {data} --test {data}");
    compare(&cluster, "factorize", 1, &arguments, 3);
    compare(&cluster, "factorize", 2, &arguments, 3);
    cluster.assert_nothing_is_left();
}

/// What each process of a run does: one worker, on one of three hosts.
fn act(w: &mut Context<'_>, role: &str, file: &Path) -> Result<()> {
    match role {
        "all" => {
            for line in program::all(w, file)? {
                println!("{line}");
            }
        }
        "serves" => {
            let sums = w.zeros::<f32, 1>([8])?.named("sums");
            let mut sums = w.served(sums, Sum)?;
            let served = parallel_for!(w, unordered, serve sums;
            for i in 0..100 {
                sums.add(i % 8, 1.0);
            });
            println!("refused: {}", served.unwrap_err());
            // Nothing has happened.
            assert_eq!(sums.array().to_vec(w)?, [0.0; 8]);
        }
        "panics relaxed" => {
            let mut a = w.zeros::<f32, 1>([90])?.named("a");
            let failed = parallel_for!(w, unordered, relax a, consistency = Consistency::Bsp;
            for i in 0..90 {
                assert!(i != 70, "an accident");
                a.add(i, 1.0);
            });
            println!("failed: {}", failed.unwrap_err());
            println!("afterwards {:?}", w.fill([3], 7u8)?.to_vec(w)?);
        }
        "panics" => {
            let mut a = w.zeros::<u64, 1>([90])?.named("a");
            let failed = parallel_for!(w, unordered, write a;
            for i in 0..90 {
                assert!(i != 70, "an accident");
                a[i] = i as u64;
            });
            println!("failed: {}", failed.unwrap_err());
            println!("poisoned: {}", a.to_vec(w).unwrap_err());
            // The program can go on.
            println!("afterwards {:?}", w.fill([3], 7u8)?.to_vec(w)?);
        }
        "fails" if w.rank() == 2 => return Err(Error::Invalid("no data on this host".into())),
        "fails" => {
            println!("told: {}", w.barrier().unwrap_err());
        }
        "ends early" if w.rank() == 1 => {}
        "ends early" => {
            println!("told: {}", w.zeros::<f32, 1>([5]).unwrap_err());
        }
        "differs" => {
            let made = match w.rank() {
                2 => w.zeros::<f32, 1>([5]).map(drop),
                _ => w.barrier(),
            };
            println!("told: {}", made.unwrap_err());
        }
        other => panic!("{other}"),
    }
    Ok(())
}

#[test]
fn role() {
    if let Ok(role) = std::env::var(ROLE) {
        let file = PathBuf::from(std::env::var_os(FILE).unwrap());
        if let Err(error) = hectare_orion::run(1, |w| act(w, &role, &file)) {
            println!("ended: {error}");
        }
    }
}

/// Runs a role with so many workers on each host of the cluster; what they print.
fn run(cluster: &Cluster, role: &str, per_host: u32) -> String {
    let script = format!(
        "{ROLE}='{role}' {FILE}={} exec {} --exact {} --nocapture",
        cluster.top.path().join("checkpoint").display(),
        std::env::current_exe().unwrap().display(),
        "loops_on_hosts::role"
    );
    let said = cluster.run(&["--hosts", &cluster.list(per_host), "--timeout", "60"], &script);
    assert_eq!(said.code, 0, "{role}: {said:?}");
    said.out
}

#[test]
fn loops_of_every_kind_have_the_bits_of_one_host() {
    let Some(cluster) = Cluster::new(3) else { return };
    for per_host in [1, 2] {
        let file = cluster.top.path().join("of one host");
        let workers = 3 * per_host as usize;
        let on_threads = hectare_orion::run(workers, |w| program::all(w, &file)).unwrap();
        assert!(on_threads.iter().all(|lines| *lines == on_threads[0]));
        let said = run(&cluster, "all", per_host);
        for line in &on_threads[0] {
            let kind = line.split(' ').next().unwrap();
            assert_eq!(said.matches(line.as_str()).count(), workers, "{kind}, {per_host} on each host");
        }
    }
    cluster.assert_nothing_is_left();
}

#[test]
fn what_goes_wrong_on_one_host_is_told_on_all() {
    let Some(cluster) = Cluster::new(3) else { return };
    // How many workers print a line that begins so, with all the parts in it.
    let told = |said: &str, count: usize, head: &str, parts: &[&str]| {
        let lines = said.lines().filter_map(|line| line.split_once("] ")).map(|(_, line)| line);
        let fits = |line: &&str| line.starts_with(head) && parts.iter().all(|part| line.contains(part));
        assert_eq!(lines.filter(fits).count(), count, "{head}{parts:?}\n{said}");
    };
    told(&run(&cluster, "serves", 1), 3, "refused: ", &["sums", "several", "loops_on_hosts"]);
    let said = run(&cluster, "panics relaxed", 1);
    told(&said, 3, "failed: ", &["worker 2", "i = 70", "an accident"]);
    told(&said, 3, "afterwards [7, 7, 7]", &[]);
    let said = run(&cluster, "panics", 1);
    told(&said, 3, "failed: ", &["worker 2", "i = 70", "an accident"]);
    told(&said, 3, "poisoned: ", &["array \"a\""]);
    told(&said, 3, "afterwards [7, 7, 7]", &[]);
    let said = run(&cluster, "fails", 1);
    told(&said, 2, "told: ", &["worker 2", "no data on this host"]);
    told(&said, 1, "ended: ", &["no data on this host"]);
    told(&run(&cluster, "ends early", 1), 2, "told: ", &["the end of its program"]);
    told(&run(&cluster, "differs", 1), 3, "told: ", &["loops_on_hosts"]);
    cluster.assert_nothing_is_left();
}

#[test]
fn a_tensor_is_learned_on_three_hosts() {
    let Some(cluster) = Cluster::new(3) else { return };
    compare(&cluster, "tensor", 1, "--passes 2 --rank 4", 2);
    cluster.assert_nothing_is_left();
}
