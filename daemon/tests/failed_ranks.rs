//! Ranks that fail while others go on: what workers of other hosts hear of them, and when somebody takes their rank again. The hosts
//! are network namespaces, the programs are this test program in another role.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use crate::launched::{launch, torchrun};
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Error, Job, Rank, Worker, WorkerState};
use rustix::process::{Signal, getpid, kill_process};
use std::time::{Duration, Instant};

const ROLE: &str = "FAILED_RANKS_ROLE";
const LONG: Duration = Duration::from_secs(60);

fn program(role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("{ROLE}={role} {} --exact {} --nocapture", program.display(), role_here())
}

fn state_of(worker: &Worker, rank: Rank) -> Option<WorkerState> {
    let all = worker.job().workers().unwrap();
    all.iter().find(|other| other.rank == rank).map(|other| other.state)
}

/// Serves rounds until another worker is in a state; worker 2 never is dead meanwhile.
fn until_state(worker: &mut Worker, rank: Rank, state: WorkerState) {
    let since = Instant::now();
    while state_of(worker, rank) != Some(state) {
        assert!(since.elapsed() < LONG, "worker {rank} is {:?}", state_of(worker, rank));
        worker.sync().unwrap();
        assert_ne!(state_of(worker, 2), Some(WorkerState::Dead));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!()
}

/// Tells the script of this host.
fn leave_file(name: &str) {
    std::fs::write(std::path::Path::new(&std::env::var_os("HOME").unwrap()).join(name), b"").unwrap();
}

/// Waits until worker 0 says that all is seen. In the clocks: else nobody of this host could come again.
fn until_over(worker: &mut Worker) {
    worker.attach_within::<u64>("over", LONG).unwrap();
}

/// Worker 3 of four, on the second of two hosts, has an area and dies; the first says what it hears of it.
fn watch(worker: &mut Worker, comes_again: bool) -> Result<(), Error> {
    let area = worker.attach_within::<u64>("of the dead", LONG)?;
    worker.create::<u64>(AreaSpec::new("go"), 1)?;
    worker.barrier()?;
    until_state(worker, 3, WorkerState::Dead);
    let failed = worker.wait_for_workers(4, LONG);
    assert!(matches!(failed, Err(Error::WorkerFailed { rank: 3 })), "{failed:?}");
    let since = Instant::now();
    let gone = area.take_within(worker, LONG).map(drop).unwrap_err();
    assert!(matches!(gone, Error::OwnerGone { host: Some(_), .. }), "{gone}");
    for part in ["of the dead", "10.77.0.2", "(worker 3 there has failed)"] {
        assert!(gone.to_string().contains(part), "{gone}");
    }
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    println!("it is dead");
    if comes_again {
        let _come = worker.create::<u64>(AreaSpec::new("come again"), 1)?;
        until_state(worker, 3, WorkerState::Remote);
        worker.wait_for_workers(4, Duration::ZERO)?;
        println!("it is there again");
    }
    let _over = worker.create::<u64>(AreaSpec::new("over"), 1)?;
    // It is on its way.
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        worker.sync()?;
    }
    Ok(())
}

#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let job = Job::connect(&launch.job).unwrap();
    let mut worker = job.worker().unwrap();
    if role == "again" {
        return until_over(&mut worker);
    }
    worker.wait_for_workers(launch.size as usize, LONG).unwrap();
    match worker.rank() {
        0 => watch(&mut worker, role == "comes again").unwrap(),
        3 => {
            let _owned = worker.create::<u64>(AreaSpec::new("of the dead"), 8).unwrap();
            worker.attach_within::<u64>("go", LONG).unwrap();
            worker.barrier().unwrap();
            die();
        }
        rank => {
            worker.barrier().unwrap();
            if rank == 2 && role == "comes again" {
                leave_file("joined");
                worker.attach_within::<u64>("come again", LONG).unwrap();
                leave_file("again");
            }
            until_over(&mut worker);
        }
    }
}

/// The process that was started for rank 2 fails, and its worker lives on in another. That of rank 3 is killed, and somebody starts
/// another one for its rank.
#[test]
fn other_hosts_hear_who_has_failed_and_who_comes_again() {
    let Some(cluster) = Cluster::new(2) else { return };
    let wait = |file: &str| format!("while [ ! -e $HOME/{file} ]; do sleep 0.05; done");
    let (runs, again) = (program("comes\\ again"), program("again"));
    let script = format!(
        "[ $HECTARE_RANK = 2 ] && {{ {runs} & {}; exit 1; }}; \
         [ $HECTARE_RANK = 3 ] && {{ {}; sleep 1; {again}; }} & {runs}",
        wait("joined"),
        wait("again")
    );
    let args = ["--hosts", &cluster.list(2), "--timeout", "60", "--keep-going"];
    let said = cluster.run(&args, &script);
    assert_ne!(said.code, 0, "{said:?}");
    for part in ["it is dead", "it is there again"] {
        assert_eq!(said.out.matches(part).count(), 1, "{part}: {said:?}");
    }
    cluster.assert_nothing_is_left();
}

/// The same of a launcher that starts a command for each rank, and lets the others go on.
#[test]
fn other_hosts_hear_who_has_failed_under_another_launcher() {
    let Some(cluster) = Cluster::new(2) else { return };
    let all = launch(&cluster, 2, &["--timeout", "60"], &program("once"), |at| torchrun(&cluster, at));
    let codes: Vec<i32> = all.iter().map(|said| said.code).collect();
    assert_eq!(codes, [0, 0, 0, 137], "{all:#?}");
    assert!(all[0].out.contains("it is dead"), "{all:#?}");
    assert!(all[3].err.contains("hectare: rank 3 failed: "), "{all:#?}");
    cluster.assert_nothing_is_left();
}
