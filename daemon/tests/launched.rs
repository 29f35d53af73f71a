//! Programs that a launcher has started on several hosts, by `hectare run --launched` for each rank: what srun, mpirun and torchrun
//! put into the environment is put there by hand.
use crate::areas_on_hosts::in_role;
use crate::common::Said;
use crate::common::cluster::{Cluster, HECTARE};
use std::process::{Command, Stdio};

pub(crate) type Variables = Vec<(&'static str, String)>;

/// Where a process is: its rank and that of the first on its host, its host, and how many there are in all and here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    rank: usize,
    local: usize,
    host: usize,
    size: usize,
    here: usize,
}

fn command(cluster: &Cluster, host: usize, args: &[&str], script: &str, variables: Variables) -> Command {
    let mut command = cluster.network.command(host, HECTARE);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["HECTARE_", "SLURM", "OMPI_", "PMI", "MPI_", "TORCH"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command.env("HOME", cluster.home(host)).env("HECTARE_RUN_DIR", cluster.dir(host).path());
    command.env("HECTARE_KEY_FILE", cluster.key(host)).envs(variables);
    command.args(["run", "--launched"]).args(args).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output of the processes of all ranks, of which each host has so many; in the order of their ranks.
pub(crate) fn launch(
    cluster: &Cluster,
    here: usize,
    args: &[&str],
    script: &str,
    variables: impl Fn(At) -> Variables,
) -> Vec<Said> {
    launch_on(cluster, cluster.network.hosts(), here, args, script, variables)
}

/// The same on the first hosts.
fn launch_on(
    cluster: &Cluster,
    hosts: usize,
    here: usize,
    args: &[&str],
    script: &str,
    variables: impl Fn(At) -> Variables,
) -> Vec<Said> {
    let start = |rank| {
        let at = At { rank, local: rank % here, host: rank / here, size: hosts * here, here };
        command(cluster, at.host, args, script, variables(at)).spawn().unwrap()
    };
    // The last rank comes first: it has to wait for the others.
    let mut children: Vec<_> = (0..hosts * here).rev().map(start).collect();
    children.reverse();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let end = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let code = output.status.code().unwrap();
        Said { code, out: text(&output.stdout), err: text(&output.stderr) }
    };
    children.into_iter().map(end).collect()
}

pub(crate) fn torchrun(cluster: &Cluster, at: At) -> Variables {
    vec![
        ("RANK", at.rank.to_string()),
        ("WORLD_SIZE", at.size.to_string()),
        ("LOCAL_RANK", at.local.to_string()),
        ("LOCAL_WORLD_SIZE", at.here.to_string()),
        ("MASTER_ADDR", cluster.network.address(0).to_string()),
        ("MASTER_PORT", "29500".into()),
        ("TORCHELASTIC_RUN_ID", "none".into()),
    ]
}

fn slurm(at: At) -> Variables {
    let hosts = at.size / at.here;
    vec![
        ("SLURM_PROCID", at.rank.to_string()),
        ("SLURM_STEP_NUM_TASKS", at.size.to_string()),
        ("SLURM_LOCALID", at.local.to_string()),
        ("SLURM_NODEID", at.host.to_string()),
        ("SLURM_STEP_TASKS_PER_NODE", format!("{}(x{hosts})", at.here)),
        ("SLURM_STEP_NODELIST", "10.77.0.1".into()),
        ("SLURMD_NODENAME", format!("node{}", at.host)),
        ("SLURM_JOB_ID", "4711".into()),
        ("SLURM_STEP_ID", "0".into()),
    ]
}

fn open_mpi(at: At) -> Variables {
    vec![
        ("OMPI_COMM_WORLD_RANK", at.rank.to_string()),
        ("OMPI_COMM_WORLD_SIZE", at.size.to_string()),
        ("OMPI_COMM_WORLD_LOCAL_RANK", at.local.to_string()),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", at.here.to_string()),
    ]
}

#[test]
fn a_program_that_srun_starts_on_each_node_is_one_job() {
    let Some(cluster) = Cluster::new(2) else { return };
    let all = launch(&cluster, 2, &["--timeout", "60"], &in_role("turns:50"), slurm);
    for said in &all {
        assert!(said.code == 0 && said.out.contains("all turns"), "{all:#?}");
    }
    cluster.assert_nothing_is_left();
}

#[test]
fn torchrun_and_mpirun_say_ranks_and_hosts_too() {
    let Some(cluster) = Cluster::new(3) else { return };
    let say = "echo $HECTARE_JOB $HECTARE_RANK of $HECTARE_SIZE";
    let all = launch(&cluster, 1, &["--timeout", "15"], say, |at| torchrun(&cluster, at));
    for (rank, said) in all.iter().enumerate() {
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, &*format!("torchrun-29500 {rank} of 3\n")),
            "{all:#?}"
        );
    }
    cluster.assert_nothing_is_left();
    let meet = format!("{}:29777", cluster.network.address(0));
    let args = ["--timeout", "15", "--job", "mpi", "--rendezvous", &meet, "--interface", "eth0"];
    let all = launch(&cluster, 2, &args, "exit $HECTARE_RANK", open_mpi);
    for (rank, said) in all.iter().enumerate() {
        assert_eq!(said.code, rank as i32, "{all:#?}");
    }
    cluster.assert_nothing_is_left();
    // One host needs no meeting.
    let alone = |at: At| At { size: at.here, rank: at.local, ..at };
    let said = launch_on(&cluster, 1, 2, &["--job", "alone"], "exit $HECTARE_RANK", |at| open_mpi(alone(at)));
    assert_eq!(said.iter().map(|said| said.code).collect::<Vec<_>>(), [0, 1], "{said:#?}");
    // Without a launcher's variables, or without a place to meet, nothing begins.
    let said = launch(&cluster, 1, &["--job", "mpi"], "true", open_mpi);
    assert!(
        said.iter()
            .all(|said| said.code == 2 && said.err.contains("say it by --rendezvous HOST or HOST:PORT")),
        "{said:#?}"
    );
    let wrong = ["--job", "mpi", "--rendezvous", "localhost:port"];
    let said = launch(&cluster, 1, &wrong, "true", open_mpi);
    assert!(said.iter().all(|said| said.code == 2 && said.err.contains("\"port\" is no port")), "{said:#?}");
    // A name that this host cannot look up is right on another one.
    let unknown = ["--job", "mpi", "--rendezvous", "no-such-host.invalid"];
    let said = launch(&cluster, 1, &unknown, "true", open_mpi);
    let parts = ["host ", "no-such-host.invalid is unknown here"];
    assert!(
        said.iter().all(|said| said.code == 8 && parts.iter().all(|part| said.err.contains(part))),
        "{said:#?}"
    );
    let said = launch(&cluster, 1, &["--job", "mpi"], "true", |_| Vec::new());
    assert!(said.iter().all(|said| said.err.contains("no launcher started this process")), "{said:#?}");
}

#[test]
fn who_cannot_take_part_is_named_on_all_hosts() {
    let Some(cluster) = Cluster::new(2) else { return };
    let begun = |said: &[Said]| said.iter().any(|said| said.out.contains("begun"));
    let says = |said: &[Said], rank: usize, parts: &[&str]| {
        let it = &said[rank];
        assert!(it.code == 8 && parts.iter().all(|part| it.err.contains(part)), "{parts:?}: {said:#?}");
    };
    // Ranks that do not follow each other.
    let cyclic = |at: At| slurm(At { rank: at.host + 2 * at.local, ..at });
    let said = launch(&cluster, 2, &["--timeout", "5"], "echo begun", cyclic);
    assert!(!begun(&said));
    says(&said, 0, &["node1 (10.77.0.2)", "--distribution=block"]);
    says(&said, 2, &["node1 (10.77.0.2)", "--distribution=block"]);
    // One rank on two hosts, and twice on one.
    let thrice = |at: At| torchrun(&cluster, At { rank: at.host.min(1), size: 3, ..at });
    let Some(three) = Cluster::new(3) else { return };
    let said = launch(&three, 1, &["--timeout", "5"], "echo begun", thrice);
    assert!(!begun(&said));
    (0..3).for_each(|rank| says(&said, rank, &["it has rank 1, and so has", "10.77.0.2", "10.77.0.3"]));
    three.assert_nothing_is_left();
    drop(three);
    let twice = |at: At| torchrun(&cluster, At { rank: at.host * 2, ..at });
    let said = launch(&cluster, 2, &["--timeout", "5"], "echo begun", twice);
    assert!(!begun(&said));
    for (rank, it) in said.iter().enumerate() {
        let part = format!("of this host both have rank {}:", rank / 2 * 2);
        assert!(it.code != 0 && it.err.contains(&part), "{part}: {said:#?}");
    }
    let twice_on_one = |at: At| torchrun(&cluster, At { rank: at.host * at.rank, ..at });
    let said = launch(&cluster, 2, &["--timeout", "60"], "echo begun", twice_on_one);
    assert!(!begun(&said), "{said:#?}");
    assert!(said.iter().all(|it| it.code != 0 && it.err.contains("both have rank 0:")), "{said:#?}");
    // Another key.
    std::fs::remove_file(cluster.key(1)).unwrap();
    hectare_daemon::key_file::make(&cluster.key(1), "lab").unwrap();
    let said = launch(&cluster, 1, &["--timeout", "5"], "echo begun", slurm);
    assert!(!begun(&said));
    says(&said, 0, &["10.77.0.2", "another cluster key"]);
    says(&said, 1, &["10.77.0.1", "another cluster key"]);
    std::fs::copy(cluster.key(0), cluster.key(1)).unwrap();
    // A host whose daemon refuses the job after all have met; on each host all processes hear it.
    assert_eq!(cluster.hectare(1, &["job", "create", "taken"]).code, 0);
    let said = launch(&cluster, 2, &["--timeout", "600", "--job", "taken"], "echo begun", slurm);
    assert!(!begun(&said));
    says(&said, 0, &["node1", "job \"taken\" exists already"]);
    assert!(said.iter().all(|said| said.code != 0 && said.err.contains("exists already")), "{said:#?}");
    assert_eq!(cluster.hectare(1, &["job", "remove", "taken"]).code, 0);
    // Long before the time-out after which an agent gives up one that is not there.
    cluster.assert_nothing_is_left();
    // A host that does not come, and a meeting place where nobody is.
    for (rank, parts) in [
        (0, ["of 2 ranks, only those of 1 host came", "port 62813"]),
        (1, ["10.77.0.1:62813", "rank 0 does not answer"]),
    ] {
        let at = At { rank, local: 0, host: rank, size: 2, here: 1 };
        let output = command(&cluster, rank, &["--timeout", "2"], "echo begun", slurm(at)).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap();
        let it = Said { code, out: text(&output.stdout), err: text(&output.stderr) };
        assert!(
            it.code == 8 && parts.iter().all(|part| it.err.contains(part)) && it.out.is_empty(),
            "{it:?}"
        );
    }
    cluster.assert_nothing_is_left();
}

#[test]
fn a_restart_that_torchrun_counts_on_one_host_alone_is_one_start() {
    let Some(cluster) = Cluster::new(2) else { return };
    let variables = |at: At| {
        let restarts = [("TORCHELASTIC_RESTART_COUNT", (1 - at.host).to_string())];
        torchrun(&cluster, at).into_iter().chain(restarts).collect()
    };
    let all = launch(&cluster, 1, &["--timeout", "15"], "echo $HECTARE_JOB", variables);
    assert!(all.iter().all(|said| said.code == 0 && said.out == "torchrun-29500\n"), "{all:#?}");
    cluster.assert_nothing_is_left();
}

#[test]
fn several_starts_at_a_time_meet_at_one_host() {
    let Some(cluster) = Cluster::new(2) else { return };
    let place = cluster.network.address(0).to_string();
    // Step 1 of a job, and step 0 of the next one; and two of another launcher.
    let step = |job: u32, step: u32| {
        move |at| {
            let own = [("SLURM_JOB_ID", job.to_string()), ("SLURM_STEP_ID", step.to_string())];
            slurm(at).into_iter().chain(own).collect::<Variables>()
        }
    };
    let mpi = |name: &'static str| {
        let args = ["--job", name, "--rendezvous", place.as_str(), "--timeout", "30"].map(str::to_owned);
        (args.to_vec(), open_mpi as fn(At) -> Variables)
    };
    let cluster = &cluster;
    let begin = |args: &[String], variables: &dyn Fn(At) -> Variables| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = launch(cluster, 1, &args, "sleep 2; echo $HECTARE_JOB", variables);
        assert!(said.iter().all(|said| said.code == 0), "{said:#?}");
        said.into_iter().map(|said| said.out).collect::<Vec<_>>()
    };
    let timeout = ["--timeout", "30"].map(str::to_owned);
    std::thread::scope(|scope| {
        let begin = &begin;
        let timeout = &timeout;
        let slurms = [(50, 1), (51, 0)].map(|(job, number)| {
            scope.spawn(move || (begin(timeout, &step(job, number)), format!("slurm-{job}-{number}\n")))
        });
        let mpis = ["one", "two"].map(|name| {
            let (args, variables) = mpi(name);
            scope.spawn(move || (begin(&args, &variables), format!("{name}\n")))
        });
        for start in slurms.into_iter().chain(mpis) {
            let (said, name) = start.join().expect("both hosts have met");
            assert_eq!(said, [name.clone(), name]);
        }
    });
    cluster.assert_nothing_is_left();
}

#[test]
fn a_host_without_a_daemon_is_told_so() {
    let mut command = Command::new(HECTARE);
    command.env("HECTARE_RUN_DIR", "/nonexistent/run").args(["run", "--launched", "--", "true"]);
    command.envs(slurm(At { rank: 0, local: 0, host: 0, size: 2, here: 1 }));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no daemon runs for /nonexistent/run"), "{said}");
}
