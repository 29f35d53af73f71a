//! A worker that is killed on one host, under `--keep-going`: the workers of the others say which it was, and none of them waits for
//! its time-out.
use super::{Cluster, Context, Result, script};
use crate::common::Host;
use hectare_orion::parallel_for;
use hectare_orion::relax::{Apply, Consistency, Sum};
use hectare_orion::schedule::Rotation;
use rustix::process::{Signal, getpid, kill_process};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Less than any time-out of the loop layer, on a busy machine.
const LONGEST: Duration = Duration::from_secs(8);

/// Whether the worker of this process dies of the rule below. Rules that differ from worker to worker would be told apart.
static DIES: AtomicBool = AtomicBool::new(false);

/// A rule whose worker dies when a loop begins to use the array.
#[derive(Debug)]
struct Deadly;

impl Apply<f32> for Deadly {
    type State = f32;
    type Snapshot = f32;

    fn snapshot(&self, state: &f32) -> f32 {
        if DIES.load(Relaxed) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        *state
    }

    fn apply(&self, target: &mut f32, _: &mut f32, update: f32, _: f32) {
        *target += update;
    }
}

/// Passes that fail, on those that live, because the last worker is killed in the second one.
pub(super) fn die(w: &mut Context<'_>, place: &str) -> Result<()> {
    let victim = w.size() as u32 - 1;
    let rank = w.rank();
    let die_if = move |here: bool| {
        if here && rank == victim {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    };
    let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], k))?.named("ratings");
    let mut users = w.zeros::<f32, 1>([40])?.named("users");
    let mut films = w.zeros::<f32, 1>([30])?.named("films");
    let mut sums = w.zeros::<f32, 1>([90])?.named("sums");
    let deadly = w.zeros::<f32, 1>([90])?.named("deadly");
    let mut deadly = w.buffered(deadly, Deadly)?;
    let later = w.zeros::<f32, 1>([90])?.named("later");
    let mut later = w.buffered(later, Sum)?;
    DIES.store(rank == victim, Relaxed);
    let mut since = Instant::now();
    let passes = (0..3).try_for_each(|pass| {
        since = Instant::now();
        match place {
            "dies at a call" => {
                die_if(pass == 1);
                w.barrier()
            }
            "dies while an array is made" => {
                die_if(pass == 1);
                w.zeros::<f32, 1>([50]).map(drop)
            }
            // The others wait for what it would make next.
            "dies between two arrays" => {
                parallel_for!(w, unordered, buffer [deadly, later], consistency = Consistency::Bsp;
                for i in 0..90 {
                    deadly.add(i, 1.0);
                    later.add(i, 1.0);
                })
            }
            "dies in a rotation" => parallel_for!(w, unordered, read ratings, write [users, films],
            schedule = Rotation::over(vec![0, 1]);
            for ((user, film), _k) in ratings {
                die_if(pass == 1 && film > 7);
                users[user] += 1.0;
                films[film] += 1.0;
            }),
            _ => parallel_for!(w, unordered, relax sums, consistency = Consistency::Bsp;
            for i in 0..90 {
                die_if(pass == 1 && i > 70);
                sums.add(i, 1.0);
            }),
        }
    });
    let error = passes.expect_err("one is dead");
    println!("after {} ms: {error}", since.elapsed().as_millis());
    Ok(())
}

#[test]
fn the_death_of_a_worker_is_known_on_the_other_host() {
    let Some(cluster) = Cluster::new(2) else { return };
    for per_host in [1, 2] {
        let victim = 2 * per_host - 1;
        for place in [
            "dies at a call",
            "dies while an array is made",
            "dies between two arrays",
            "dies in a rotation",
            "dies in clocks",
        ] {
            let args = ["--hosts", &cluster.list(per_host), "--timeout", "60", "--keep-going"];
            let said = cluster.run(&args, &script(&cluster, place));
            assert_eq!(said.code, 137, "{place}, {per_host} on each host: {said:?}");
            let there =
                format!("worker {victim} on host {} ({}:", cluster.name(1), cluster.network.address(1));
            let here = format!("worker {victim} is gone");
            for rank in 0..victim {
                let gone = if rank < per_host { &there } else { &here };
                let head = format!("[{rank}] after ");
                let line = said.out.lines().find_map(|line| line.strip_prefix(&head));
                let (ms, error) = line.and_then(|line| line.split_once(" ms: ")).unwrap_or_default();
                let took = Duration::from_millis(ms.parse().unwrap_or(u64::MAX));
                assert!(
                    error.contains(gone) && took < LONGEST,
                    "{place}, {per_host} on each host, {head}: {said:?}"
                );
            }
        }
    }
    cluster.assert_nothing_is_left();
}

/// The worker whose loop panics is named as the first to fail, not those who hear of it, though its process ends long after theirs, and
/// with the same code.
#[test]
fn who_panicked_is_named_before_who_failed_because_of_it() {
    let Some(cluster) = Cluster::new(2) else { return };
    let host = Host::new();
    let _daemon = host.daemon("");
    for (role, code) in [("returns", 1), ("unwraps", 101)] {
        let ends_late = "code=$?; [ $HECTARE_RANK = 1 ] && sleep 0.5; exit $code";
        let script = format!("({}); {ends_late}", script(&cluster, role));
        for more in [&[][..], &["--keep-going"]] {
            let on_hosts = cluster.run(&[&["--hosts", &cluster.list(1)], more].concat(), &script);
            let here = host.hectare(&[&["run", "-n", "2"], more, &["--", "sh", "-c", &script]].concat());
            for said in [on_hosts, here] {
                let named = said.err.lines().find(|line| line.starts_with("hectare: ")).unwrap_or_default();
                let is_named = named.starts_with("hectare: rank 1 ") && named.contains(" failed first");
                assert!(said.code == code && is_named, "{role}: {said:?}");
            }
        }
    }
    cluster.assert_nothing_is_left();
}

/// The program with a loop of each kind, of which the last worker is killed after so many microseconds.
pub(super) fn die_anywhere(w: &mut Context<'_>, after: &str, file: &Path) -> Result<()> {
    let after = Duration::from_micros(after.parse().unwrap());
    let died_at = Instant::now() + after;
    if w.rank() as usize == w.size() - 1 {
        std::thread::spawn(move || {
            std::thread::sleep(after);
            let _ = kill_process(getpid(), Signal::KILL);
        });
    }
    let error = loop {
        if let Err(error) = super::program::all(w, file) {
            break error;
        }
    };
    println!("after {} ms: {error}", died_at.elapsed().as_millis());
    Ok(())
}

/// Wherever it is: each worker that lives says which one is gone, and none of them waits for a time-out.
#[test]
fn the_death_of_a_worker_at_any_time_is_known_on_the_other_host() {
    let Some(cluster) = Cluster::new(2) else { return };
    for run in 0..6 {
        let per_host = 1 + run as u32 % 2;
        let after = run * 7919 % 40 * 50_000 + run * 1931;
        let args = ["--hosts", &cluster.list(per_host), "--timeout", "60", "--keep-going"];
        let said = cluster.run(&args, &script(&cluster, &format!("dies after {after}")));
        let victim = 2 * per_host - 1;
        for rank in 0..victim {
            let head = format!("[{rank}] after ");
            let line = said.out.lines().find_map(|line| line.strip_prefix(&head));
            let (ms, error) = line.and_then(|line| line.split_once(" ms: ")).unwrap_or_default();
            let took = Duration::from_millis(ms.parse().unwrap_or(u64::MAX));
            assert!(
                error.contains(&format!("worker {victim} ")) && error.contains("is gone") && took < LONGEST,
                "after {after} us, {per_host} on each host, {head}: {said:?}"
            );
        }
    }
    cluster.assert_nothing_is_left();
}
