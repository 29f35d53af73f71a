//! A program that calls `run` twice: on threads it may; as one of several processes it is told that it may not.
use crate::common::{Host, role_here};

const ROLE: &str = "RUN_AGAIN_ROLE";

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    for turn in ["first", "second"] {
        let ranks = hectare_orion::run(2, |w| {
            let mut a = w.zeros::<u64, 1>([10])?;
            hectare_orion::parallel_for!(w, unordered, write a; for i in 0..10 { a[i] += i as u64; })?;
            Ok(a.to_vec(w)?.iter().sum::<u64>())
        });
        println!("{turn}: {}", ranks.map_or_else(|error| error.to_string(), |sums| format!("{sums:?}")));
    }
}

#[test]
fn a_second_program_in_a_process_is_refused() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}=1 exec {} --exact {} --nocapture", program.display(), role_here());
    let said = host.hectare(&["run", "-n", "2", "--", "sh", "-c", &role]);
    let told = |text: &str| said.out.lines().filter(|line| line.contains(text)).count();
    assert_eq!((said.code, told("first: [45]")), (0, 2), "{said:?}");
    assert_eq!(told("second: a second `run` in one process of a program of several"), 2, "{said:?}");
    // The same on threads.
    let alone = std::process::Command::new(program)
        .args(["--exact", &role_here(), "--nocapture"])
        .env(ROLE, "1")
        .env_remove("HECTARE_JOB")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&alone.stdout);
    assert!(out.contains("first: [45, 45]") && out.contains("second: [45, 45]"), "{out}");
}
