//! Areas of a job on several hosts: barriers, faults of the network, and deaths of agents and hosts. The hosts are network
//! namespaces, the programs are this test program in another role.
use crate::common::cluster::{Cluster, Running};
use crate::common::{role_here, until};
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Error, Job, Rank, Worker};
use hectare_hosts::Fault;
use std::io::{BufRead, Read};
use std::time::Duration;

const ROLE: &str = "AREAS_ROLE";
const LONG: Duration = Duration::from_secs(60);

/// The command that is this program in a role.
pub(crate) fn in_role(role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("{ROLE}={role} exec {} --exact {} --nocapture", program.display(), role_here())
}

/// The worker of this process, and how many there are.
fn worker() -> (Worker, Rank) {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let mut worker = Job::connect(&launch.job).unwrap().worker().unwrap();
    worker.wait_for_workers(launch.size as usize, LONG).unwrap();
    (worker, launch.size)
}

/// In the area of the first worker, behind what a turn changes: the turn that is the last.
const LAST: usize = 2999;

/// Barriers: after each, every worker sees what all have written before it, whole, and nothing of what they write later. The first
/// worker says of each turn whether it is the last.
fn exchange(is_last: impl Fn(u64) -> bool, mut at: impl FnMut(u64)) -> Result<(), Error> {
    let (mut worker, size) = worker();
    let name = |rank: Rank| format!("count/{rank}");
    let mut spec = AreaSpec::new(name(worker.rank()));
    if worker.rank() % 2 == 1 {
        // A version published before a barrier waits for no interval.
        spec = spec.external_interval(10 * LONG);
    }
    let mut mine = worker.create::<u64>(spec, 3000)?;
    let mut all = Vec::new();
    for rank in 0..size {
        all.push(worker.attach_within::<u64>(&name(rank), LONG)?);
    }
    worker.barrier()?;
    for turn in 1.. {
        // A part of it each time, so that what is sent is a difference.
        let first = (turn as usize * 617) % 2000;
        mine.write(&worker)?.range_mut(first..first + 1000).fill(turn);
        mine.write(&worker)?.set(0, turn);
        if worker.rank() == 0 && is_last(turn) {
            mine.write(&worker)?.set(LAST, turn);
        }
        worker.barrier()?;
        for (rank, area) in all.iter().enumerate() {
            let seen = area.read(&worker)?;
            assert_eq!(seen[0], turn, "rank {rank}, {}", area.version(&worker)?);
            assert!(
                seen[first..first + 1000].iter().skip(1).all(|value| *value == turn),
                "rank {rank}, turn {turn}"
            );
        }
        at(turn);
        if all[0].read(&worker)?[LAST] == turn {
            break;
        }
    }
    worker.barrier()
}

/// A barrier that is passed: it may say that another host took an area of this worker for one of other elements.
fn passed(barrier: Result<(), Error>) -> Result<(), Error> {
    match barrier {
        Err(Error::TypeClash { asked, .. }) if asked.starts_with("f32") => Ok(()),
        other => other,
    }
}

/// As in a program of one host, areas that were created before a barrier are there after it, with what was published of
/// them; those that nobody created are not.
fn attach_after_a_barrier() -> Result<(), Error> {
    let (mut worker, size) = worker();
    let name = |turn: u64, rank: Rank| format!("turn/{turn}/{rank}");
    for turn in 0..20 {
        let mut mine = worker.create::<u64>(AreaSpec::new(name(turn, worker.rank())), 3000)?;
        mine.write(&worker)?.fill(turn + 1);
        // In every other turn, everybody asks before it is there, too.
        if turn % 2 == 1 {
            let missing = worker.attach::<u64>(&name(turn + 1, 0)).unwrap_err();
            assert!(matches!(missing, Error::NoSuchArea { .. }), "{missing}");
        }
        passed(worker.barrier())?;
        for rank in 0..size {
            let area = worker.attach::<u64>(&name(turn, rank))?;
            assert_eq!(area.read(&worker)?, [turn + 1; 3000], "rank {rank}");
        }
        let other = worker.attach::<f32>(&name(turn, (worker.rank() + 1) % size)).unwrap_err();
        assert!(matches!(other, Error::WrongType { .. }), "{other}");
        passed(worker.barrier())?;
    }
    Ok(())
}

/// The work of a rank: so many turns, or turns until the job ends.
/// Nobody publishes anything unless somebody asks for it: the first worker counts, the others count after it.
fn ask(turns: u64) -> Result<(), Error> {
    let (mut worker, size) = worker();
    let mut mine = worker.create::<u64>(AreaSpec::new(format!("count/{}", worker.rank())), 3000)?;
    // The order of events.
    let before = (worker.rank() + size - 1) % size;
    let area = worker.attach_within::<u64>(&format!("count/{before}"), LONG)?;
    worker.barrier()?;
    for turn in 1..=turns {
        let wanted = if worker.rank() == 0 { turn - 1 } else { turn };
        while area.read(&worker)?[0] != wanted {
            if turn % 2 == 0 {
                // An owner that does not come in time is passed over, as on one host.
                worker.sync_area(&area)?;
            } else {
                worker.service()?;
                worker.wait_fresher_than(&area, Duration::from_millis(50), LONG)?;
            }
            let seen = area.read(&worker)?;
            assert!(seen.iter().all(|value| *value == seen[0]) && seen[0] <= wanted, "{:?}", &seen[..4]);
        }
        mine.write(&worker)?.fill(turn);
    }
    // The last one is seen by nobody's asking.
    worker.barrier()
}

#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let say = |turn| {
        if turn % 20 == 0 {
            println!("turn {turn}");
        }
    };
    match role.split_once(':') {
        Some(("attach", _)) => {
            attach_after_a_barrier().unwrap();
            println!("all turns");
        }
        Some(("keep", _)) => keep().unwrap(),
        Some(("ask", turns)) => {
            ask(turns.parse().unwrap()).unwrap();
            println!("all turns");
        }
        Some(("until", file)) => exchange(|_| std::path::Path::new(file).exists(), say).unwrap(),
        Some((_, turns)) => {
            let turns: u64 = turns.parse().unwrap();
            exchange(|turn| turn == turns, say).unwrap();
            println!("all turns");
        }
        None => match exchange(
            |_| false,
            |turn| {
                if turn == 20 {
                    say(turn)
                }
            },
        ) {
            Err(error @ Error::PeerFailed { .. }) => println!("ended: {error}"),
            other => panic!("{other:?}"),
        },
    }
}

fn run_turns(cluster: &Cluster, ranks: u32, role: &str) {
    let said = cluster.run(&["--hosts", &cluster.list(ranks), "--timeout", "20"], role);
    assert_eq!(said.code, 0, "{said:?}");
    let all = ranks as usize * cluster.network.hosts();
    assert_eq!(said.out.matches("all turns").count(), all, "{said:?}");
    cluster.assert_nothing_is_left();
}

/// On three hosts with a rank each, and on two with two.
fn run_on_hosts(role: &str) {
    for (hosts, ranks) in [(3, 1), (2, 2)] {
        if let Some(cluster) = Cluster::new(hosts) {
            run_turns(&cluster, ranks, role);
        }
    }
}

#[test]
fn a_barrier_means_on_three_hosts_what_it_means_on_one() {
    run_on_hosts(&in_role("turns:200"));
}

#[test]
fn five_hosts_keep_together() {
    let role = in_role("turns:100");
    let Some(cluster) = Cluster::new(5) else { return };
    run_turns(&cluster, 1, &role);
}

#[test]
fn what_was_created_before_a_barrier_is_found_after_it() {
    run_on_hosts(&in_role("attach:"));
}

#[test]
fn who_asks_for_what_an_area_is_now_gets_it() {
    run_on_hosts(&in_role("ask:40"));
}

#[test]
fn loss_duplicates_and_corruption_lose_nothing() {
    let role = in_role("turns:100");
    let Some(mut cluster) = Cluster::new(2) else { return };
    let both = [(0, 1), (1, 0)];
    let lose = both.map(|(from, to)| Fault::Lose { from, to, share: 0.05 });
    let duplicate = both.map(|(from, to)| Fault::Duplicate { from, to, share: 0.05 });
    let corrupt = both.map(|(from, to)| Fault::Corrupt { from, to, share: 0.02 });
    cluster.network.set(&[&lose[..], &duplicate, &corrupt].concat()).unwrap();
    run_turns(&cluster, 1, &role);
}

/// Reads what a run says until a line has this in it.
pub(crate) fn read_until(run: &mut Running, part: &str) {
    while !run.lines(1)[0].contains(part) {}
}

/// Both ranks come to their last turn, and nothing is left.
pub(crate) fn ends_well(mut run: Running, cluster: &Cluster) {
    read_until(&mut run, "all turns");
    read_until(&mut run, "all turns");
    assert_eq!(run.end(), Some(0));
    cluster.assert_nothing_is_left();
}

#[test]
fn a_killed_agent_is_followed_by_another_and_nothing_is_lost() {
    let role = in_role("turns:400");
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let mut run = Running::start(cluster.command(&["--hosts", &list, "--timeout", "20"], &role));
    for host in [0, 1, 0] {
        read_until(&mut run, "turn ");
        let agents = cluster.agents(host);
        assert_eq!(agents.len(), 1, "{agents:?}");
        let pid = rustix::process::Pid::from_raw(agents[0]).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        until("another agent", || cluster.agents(host).first().is_some_and(|other| *other != agents[0]));
    }
    ends_well(run, &cluster);
}

#[test]
fn a_cut_link_that_heals_costs_time_and_nothing_else() {
    let role = in_role("turns:200");
    let Some(mut cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let mut run = Running::start(cluster.command(&["--hosts", &list, "--timeout", "20"], &role));
    for faults in [
        &[Fault::Cut { from: 0, to: 1 }][..],
        &[Fault::Cut { from: 0, to: 1 }, Fault::Cut { from: 1, to: 0 }],
    ] {
        read_until(&mut run, "turn ");
        cluster.network.set(faults).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        cluster.network.set(&[]).unwrap();
    }
    ends_well(run, &cluster);
}

#[test]
fn a_host_that_is_lost_ends_the_job_and_is_named() {
    // A program that ends with an error then, as most do.
    let role = format!("({}); exit 1", in_role("endless"));
    let Some(mut cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let mut run = Running::start(cluster.command(&["--hosts", &list, "--timeout", "3"], &role));
    read_until(&mut run, "turn 20");
    cluster.network.set(&[Fault::Cut { from: 0, to: 1 }, Fault::Cut { from: 1, to: 0 }]).unwrap();
    // Each host names the other one, unless it was ended before it knew.
    let lines = run.out.by_ref().lines().map_while(Result::ok);
    let ended: Vec<String> = lines.filter(|line| line.contains("ended: ")).collect();
    assert!(!ended.is_empty());
    for line in &ended {
        let other = usize::from(line.starts_with("[0]"));
        let named = format!("host {} ({}:", cluster.name(other), cluster.network.address(other));
        assert!(line.contains(&named), "{ended:?}");
    }
    let (code, said) = (run.end(), run.said());
    let lost = "hectare: host ";
    let last = said.lines().filter(|line| line.starts_with("hectare: ")).collect::<Vec<_>>();
    assert!(code == Some(8) && last.len() == 1 && last[0].starts_with(lost), "{code:?} {said}");
    assert!(last[0].contains(" is lost, says host ") && last[0].contains("silent for longer"), "{said}");
    assert!([0, 1].iter().all(|host| last[0].contains(&cluster.name(*host))), "{said}");
    cluster.network.set(&[]).unwrap();
    cluster.assert_nothing_is_left();
}

/// Of a worker that stands still on another host, this one knows that the host's clock does.
#[test]
fn a_worker_that_is_stopped_on_another_host_is_told_of() {
    let Some(cluster) = Cluster::new(2) else { return };
    // With another worker on its host, who waits, and for whom other hosts wait just as well.
    [1, 2].into_iter().for_each(|per_host| stop_on_the_other_host(&cluster, per_host));
    cluster.assert_nothing_is_left();
}

/// A worker waits for an area that one of another host does not give. No clock says so.
#[test]
fn a_worker_that_waits_for_an_area_of_another_host_is_told_of() {
    let Some(cluster) = Cluster::new(2) else { return };
    let args = ["--hosts", &cluster.list(1), "--job", "still"];
    let mut run = Running::start(cluster.command(&args, &in_role("keep:")));
    read_until(&mut run, "it waits");
    let finding = "worker 0 (process ";
    let mut said = String::new();
    until("the finding", || {
        said = cluster.hectare(0, &["check", "still"]).out;
        said.contains(finding)
    });
    let parts = [
        "waits for more than 1s for a worker of another host",
        &cluster.name(1),
        "`hectare check still` there",
    ];
    assert!(said.lines().count() == 1 && parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(cluster.hectare(1, &["check", "still"]).out.contains("nothing found"));
    run.signal(rustix::process::Signal::TERM);
    run.end();
    cluster.assert_nothing_is_left();
}

fn keep() -> hectare_dsm::Result<()> {
    let (mut worker, _) = worker();
    if worker.rank() == 1 {
        let _kept = worker.create::<u64>("kept", 8)?;
        worker.barrier()?;
        std::thread::sleep(LONG);
        return Ok(());
    }
    worker.barrier()?;
    let kept = worker.attach::<u64>("kept")?;
    println!("it waits");
    kept.take_within(&mut worker, LONG).map(drop)
}

fn stop_on_the_other_host(cluster: &Cluster, per_host: u32) {
    let args = ["--hosts", &cluster.list(per_host), "--job", "still"];
    let mut run = Running::start(cluster.command(&args, &in_role("endless")));
    read_until(&mut run, "turn 20");
    let said = cluster.hectare(0, &["top", "still", "--once", "--interval", "0.1"]);
    assert!(said.out.contains(&format!(" on {}", cluster.name(1))), "{said:?}");
    let ps = cluster.hectare(1, &["ps", "still", "--json"]).out;
    let ps: serde_json::Value = serde_json::from_str(&ps).unwrap();
    let works =
        |process: &&serde_json::Value| process["workers"].as_array().is_some_and(|all| !all.is_empty());
    let pid = ps.as_array().unwrap().iter().find(works).unwrap()["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let stands = format!(" on {}, whose clock stands for ", cluster.name(1));
    until("its clock to stand", || {
        cluster.hectare(0, &["top", "still", "--once", "--interval", "0.5"]).out.contains(&stands)
    });
    let said = cluster.hectare(0, &["check", "still"]);
    let finding = format!("wait for host {} ({}", cluster.name(1), cluster.network.address(1));
    assert!(
        said.code == 1 && said.out.contains(&finding) && said.out.contains("whose clock stands at "),
        "{said:?}"
    );
    let said = cluster.hectare(1, &["check", "still"]);
    let named = format!("(process {pid}) is stopped, by a signal or a debugger: `kill -CONT {pid}`");
    assert!(said.code == 1 && said.out.contains(&named), "{said:?}");
    assert!(!said.out.contains("wait for host") && said.out.lines().count() == 1, "{said:?}");
    let said = cluster.hectare(1, &["top", "still", "--once", "--interval", "0.1"]);
    assert_eq!(said.out.matches(" stopped ").count(), 1, "{said:?}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    run.signal(rustix::process::Signal::TERM);
    run.end();
}
