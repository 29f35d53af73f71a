//! A worker that is killed between two loops over an array in place, before which nobody meets: the others hear of it.
use crate::common::{Host, role_here};
use hectare_orion::{Context, DistArray, Result, parallel_for};
use std::sync::atomic::{AtomicBool, Ordering};

const ROLE: &str = "KILLED_IN_PLACE_ROLE";
const N: usize = 1200;

fn sweep(w: &mut Context<'_>, a: &mut DistArray<u64, 1>) -> Result<()> {
    parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 1] = a[2 * i].wrapping_mul(31) ^ a[2 * i + 2]; })
}

fn sweep_back(w: &mut Context<'_>, a: &mut DistArray<u64, 1>) -> Result<()> {
    parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 2] = a[2 * i + 1].wrapping_mul(31) ^ a[2 * i + 3]; })
}

/// Whether this process dies. What a body captured would be compared with the others'.
static DIES: AtomicBool = AtomicBool::new(false);

fn die_if_told() {
    if DIES.load(Ordering::Relaxed) {
        std::process::abort();
    }
}

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let in_loop = role == "in the loop";
    let ended = hectare_orion::run(1, |w| {
        let mut a = w.from_fn([2 * N + 3], |[i]| i as u64)?;
        // The plans are made.
        sweep(w, &mut a)?;
        sweep_back(w, &mut a)?;
        DIES.store(w.rank() == 1, Ordering::Relaxed);
        if !in_loop {
            die_if_told();
        }
        parallel_for!(w, unordered, write a; for i in 0..N {
            die_if_told();
            a[2 * i + 1] = a[2 * i].wrapping_mul(31) ^ a[2 * i + 2];
        })?;
        sweep_back(w, &mut a)
    });
    println!("ended: {}", ended.map_or_else(|error| error.to_string(), |_| "well".into()));
}

#[test]
fn the_others_hear_of_a_worker_that_was_killed() {
    for role in ["between the loops", "in the loop"] {
        let host = Host::new();
        let _daemon = host.daemon("");
        let program = std::env::current_exe().unwrap();
        let script =
            format!("{ROLE}='{role}' exec {} --exact {} --nocapture", program.display(), role_here());
        let said = host.hectare(&["run", "-n", "3", "--keep-going", "--", "sh", "-c", &script]);
        assert_ne!(said.code, 0, "{said:?}");
        let ended: Vec<&str> = said.out.lines().filter(|line| line.contains("ended: ")).collect();
        assert_eq!(ended.len(), 2, "{role}: {said:?}");
        assert!(ended.iter().all(|line| line.contains("worker 1")), "{role}: {said:?}");
        assert!(host.jobs().is_empty());
    }
}
