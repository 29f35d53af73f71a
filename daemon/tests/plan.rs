//! `hectare plan`: what it says of a program here and on hosts, and its errors.
use crate::common::cluster::Cluster;
use crate::common::{Host, Said, example};
use serde_json::Value;
use std::path::Path;

const LINKS: [&str; 4] = ["--latency", "50us", "--bandwidth", "1Gbit"];

fn ratings(path: &Path) {
    let line = |n: u32| {
        let (i, j) = (n * 7919 % 200, n * 104_729 % 131);
        format!("{i} {j} {}\n", 1 + (i * j + i + 3 * j) % 5)
    };
    std::fs::write(path, (0..4000).map(line).collect::<String>()).unwrap();
}

/// The loop of the report that trains, of those of `factorize`.
fn training(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{said:?}");
    let report: Value = serde_json::from_str(&said.out).expect("JSON alone on standard output");
    let rotates = |one: &&Value| one["forecasts"][1]["schedule"].as_str().unwrap().starts_with("rotation");
    let found = report["loops"].as_array().unwrap().iter().find(rotates).cloned();
    found.unwrap_or_else(|| panic!("no rotation: {report}"))
}

#[test]
fn a_program_is_planned_from_a_run_on_one_host() {
    let (host, program) = (Host::new(), example("factorize"));
    let _daemon = host.daemon("");
    let data = host.top.path().join("ratings");
    ratings(&data);
    let [program, data] = [&program, &data].map(|path| path.to_str().unwrap());
    let plan = |more: &[&str], passes: &str| {
        let mut args = vec!["plan"];
        args.extend(LINKS.iter().chain(&["--workers-per-host", "2", "--hosts", "4,1,2"]).chain(more));
        args.extend(["--", program, "--train", data, "--test", data, "--rank", "8", "--passes", passes]);
        host.hectare(&args)
    };
    let found = training(&plan(&["--json"], "4"));
    let forecasts = found["forecasts"].as_array().unwrap();
    let of = |what: &str| forecasts.iter().map(|one| one[what].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("hosts"), of("workers"), of("steps")), (vec![1, 2, 4], vec![2, 4, 8], vec![4, 8, 16]));
    assert_eq!((&found["iterations"], &found["passes"]), (&4000.0.into(), &4.into()));
    assert_eq!(found["compute_ns"].as_array().unwrap().len(), 2);
    let number = |at: usize, what: &str| forecasts[at][what].as_f64().unwrap();
    let part = |at: usize, what: &str| forecasts[at]["time"][what].as_f64().unwrap();
    // One host sends nothing, and two hosts of equal workers share the same work.
    assert_eq!((number(0, "sent_bytes"), part(0, "link_ns")), (0.0, 0.0));
    assert!((part(0, "compute_ns") / part(1, "compute_ns") - 2.0).abs() < 1e-6, "{found}");
    // Of the array that goes around, a quarter of the blocks begins at each worker: the ways of half of them cross once between the hosts,
    // those of the others twice. Those that end where they did not begin go back. The rows of the other array stay where they are.
    let rows = |rows: f64| rows * 8.0 * 4.0;
    let (sent, handed) = (number(1, "sent_bytes"), number(1, "handed_bytes"));
    assert!(handed >= rows(131.0) * 0.75 * 0.99 && handed < rows(131.0) * 1.1, "{handed}");
    assert!(sent >= handed && sent < rows(131.0) * 1.5, "{sent}, {handed}");
    // Two passes are enough, and one.
    assert_eq!(training(&plan(&["--json"], "1"))["passes"], 1);
    let said = plan(&[], "2");
    assert!(said.code == 0 && said.out.contains("SPEEDUP") && said.out.contains("pay off"), "{said:?}");
    assert!(said.err.contains("RMSE"), "the program's own words: {said:?}");
}

#[test]
fn what_cannot_be_planned_is_said() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let plan = |words: &[&str]| {
        let mut args = vec!["plan", "--workers-per-host", "1"];
        args.extend(words);
        host.hectare(&args)
    };
    let with_links = |words: &[&str]| plan(&[&LINKS[..], words].concat());
    let fails = |said: &Said, code: i32, part: &str| {
        assert!(said.code == code && said.err.contains(part) && said.out.is_empty(), "{part}: {said:?}");
    };
    fails(&plan(&["--on", "a:0", "--", "true"]), 2, "--on: column 3: a host with room for no rank");
    fails(&plan(&["--on", "a,a", "--", "true"]), 2, "--on: column 3: a is there twice");
    let lonely = Host::new();
    let said = lonely.hectare(&[&["plan"], &LINKS[..], &["--", "true"]].concat());
    fails(&said, 3, "no daemon runs for ");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    fails(&plan(&["--", "true"]), 2, "Give --latency and --bandwidth, or --on");
    fails(&plan(&["--latency", "5ms", "--", "true"]), 2, "--bandwidth");
    fails(&with_links(&["--hosts", "0", "--", "true"]), 2, "--hosts");
    fails(&with_links(&["--", "true"]), 1, "runs no loop of the loop layer");
    fails(&with_links(&["--", "false"]), 1, "the program failed");
    fails(&with_links(&["--", "/nonexistent"]), 1, "the program failed");
    let file = host.top.path().join("record");
    let file = file.to_str().unwrap();
    let writes = |text: &str| {
        let script = format!("echo '{text}' > {file}");
        with_links(&["--record", file, "--", "sh", "-c", &script])
    };
    fails(&writes("{}"), 1, "cannot be read");
    fails(&writes(r#"{"version": 7, "workers": 1, "hosts": 1, "link": null, "loops": []}"#), 1, "version 7");
    fails(
        &writes(r#"{"version": 1, "workers": 1, "hosts": 1, "link": null, "loops": []}"#),
        1,
        "no predictions",
    );
    // A record from before is not taken for the program's.
    fails(&with_links(&["--record", file, "--", "true"]), 1, "has left no record");
    let elsewhere = host.top.path().join("nowhere/record");
    let (program, data) = (example("factorize"), host.top.path().join("ratings"));
    ratings(&data);
    let [program, data, elsewhere] = [&program, &data, &elsewhere].map(|path| path.to_str().unwrap());
    let said =
        with_links(&["--record", elsewhere, "--", program, "--train", data, "--test", data, "--passes", "1"]);
    fails(&said, 1, "nowhere/record");
}

#[test]
fn a_program_on_hosts_measures_their_links() {
    let Some(cluster) = Cluster::new(2) else { return };
    let (program, data) = (example("factorize"), cluster.top.path().join("ratings"));
    ratings(&data);
    let [program, data] = [&program, &data].map(|path| path.to_str().unwrap());
    let (on, rsh) = (cluster.list(1), cluster.rsh());
    let said = cluster.hectare(
        0,
        &[
            "plan", "--on", &on, "--rsh", &rsh, "--hosts", "1,2", "--json", "--", program, "--train", data,
            "--test", data, "--passes", "4", "--rank", "8",
        ],
    );
    let found = training(&said);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["workers_per_host"], &report["measured_hosts"]), (&1.into(), &2.into()));
    let link = |what: &str| report["link"][what].as_f64().unwrap();
    assert!(link("barrier_ns") > 0.0 && link("hand_over_ns") > 0.0, "{report}");
    assert!(link("bytes_per_ns") > 0.0, "{report}");
    assert!(found["measured_ns"].as_f64().unwrap() > 0.0, "{found}");
    cluster.assert_nothing_is_left();
}
