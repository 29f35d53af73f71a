//! Areas of two hosts that cannot both be in a job: the owner of each hears it, with both hosts, and nothing hangs.
use crate::common::cluster::{Cluster, Running};
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Error, Job, Unshared, Worker};
use hectare_testing::MemoryGroup;
use std::time::{Duration, Instant};

const ROLE: &str = "CLASH_ROLE";
const LONG: Duration = Duration::from_secs(60);

/// One of two ranks, each on a host of its own. Both create an area of one name, or of one group.
fn conflict(over: &str) -> Result<(), Error> {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    worker.wait_for_workers(2, LONG)?;
    let me = worker.rank();
    let spec = match over {
        "name" => AreaSpec::new("both"),
        _ => AreaSpec::new(format!("part/{me}")).group("both"),
    };
    let mut mine = worker.create::<u64>(spec, 10)?;
    let since = Instant::now();
    let error = loop {
        if let Err(error) = worker.sync() {
            break error;
        }
        assert!(since.elapsed() < LONG, "nobody says so");
    };
    let is_known = match &error {
        Error::NameClash { name, is_known, .. } if over == "name" && name == "both" => *is_known,
        Error::GroupClash { name, group, is_known, .. }
            if over == "group" && group == "both" && *name == format!("part/{me}") =>
        {
            *is_known
        }
        other => panic!("{other}"),
    };
    for part in ["both", "10.77.0.1", "10.77.0.2"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    println!("known: {is_known}");
    // It is said once, and the job goes on with what it has.
    mine.write(&worker)?.fill(u64::from(me) + 1);
    worker.barrier()?;
    let own = worker.attach_here::<u64>(mine.name())?;
    assert_eq!(own.read(&worker)?, [u64::from(me) + 1; 10]);
    if over == "group" {
        match worker.attach::<u64>(&format!("part/{}", 1 - me)) {
            Ok(area) => assert!(!is_known && area.read(&worker)? == [2 - u64::from(me); 10]),
            Err(error) => assert!(is_known && matches!(error, Error::NoSuchArea { .. }), "{error}"),
        }
    }
    worker.barrier()
}

/// The owner's next complaint.
fn complaint(worker: &mut Worker) -> Error {
    let since = Instant::now();
    loop {
        if let Err(error) = worker.sync() {
            return error;
        }
        assert!(since.elapsed() < LONG, "nobody says so");
    }
}

fn names(error: &Error, parts: &[&str]) {
    for part in parts {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

/// One of two ranks, each on a host of its own. The first has areas that the second cannot have, and one that the second takes for
/// two of other elements.
fn misfit() -> Result<(), Error> {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    worker.wait_for_workers(2, LONG)?;
    let me = worker.rank();
    if me == 0 {
        let _kept = worker.create::<u64>(AreaSpec::new("kept").copies(0), 10)?;
        let _all = worker.create::<u64>("for all", 10)?;
        let spec = |at| AreaSpec::new(format!("group/{at}")).group("large");
        let large: Vec<_> = (0..33).map(|at| worker.create::<u64>(spec(at), 1)).collect::<Result<_, _>>()?;
        worker.tick()?;
        let mut said: Vec<Error> = (0..3).map(|_| complaint(&mut worker)).collect();
        said.sort_by_key(|error| (matches!(error, Error::TypeClash { .. }), error.to_string()));
        assert!(matches!(said[0], Error::NotShared { why: Unshared::Members, .. }), "{said:?}");
        names(&said[0], &["group/32", "10.77.0.1"]);
        assert!(matches!(said[1], Error::TypeClash { .. }), "{said:?}");
        // Each of the types as which it was taken, however soon one came after the other.
        assert!(matches!(said[2], Error::TypeClash { .. }), "{said:?}");
        for (error, asked) in said[1..].iter().zip(["f32", "i64"]) {
            names(error, &["for all", "10.77.0.1", "10.77.0.2", "u64", asked]);
        }
        drop(large);
        return worker.barrier();
    }
    // Before the other host has created it, for all that is known.
    let error = worker.attach_within::<u64>("kept", LONG).unwrap_err();
    assert!(matches!(error, Error::NotShared { why: Unshared::Local, .. }), "{error}");
    names(&error, &["kept", "10.77.0.1", "copies(1)"]);
    worker.barrier()?;
    let error = worker.attach::<u64>("kept").unwrap_err();
    assert!(matches!(error, Error::NotShared { why: Unshared::Local, .. }), "{error}");
    let error = worker.attach::<u64>("group/32").unwrap_err();
    assert!(matches!(error, Error::NotShared { why: Unshared::Members, .. }), "{error}");
    names(&error, &["group/32", "10.77.0.1"]);
    assert_eq!(worker.attach::<u64>("group/31")?.len(), 1);
    let wrong = [worker.attach::<f32>("for all").unwrap_err(), worker.attach::<i64>("for all").unwrap_err()];
    for error in &wrong {
        assert!(matches!(error, Error::WrongType { .. }), "{error}");
        names(error, &["for all", "10.77.0.1"]);
    }
    // Nothing is lost.
    assert_eq!(worker.attach::<u64>("for all")?.len(), 10);
    worker.barrier()
}

/// One of two ranks, each on a host of its own. The first has an area for which its host has no memory to send it.
fn short() -> Result<(), Error> {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    worker.wait_for_workers(2, LONG)?;
    if worker.rank() == 0 {
        let mut large = worker.create::<u64>("large", LARGE)?;
        large.write(&worker)?.fill(7);
        worker.barrier()?;
        return worker.barrier();
    }
    worker.barrier()?;
    for _ in 0..2 {
        let error = worker.attach::<u64>("large").unwrap_err();
        assert!(matches!(error, Error::NotShared { why: Unshared::Memory, .. }), "{error}");
        names(&error, &["large", "10.77.0.1", "no memory"]);
    }
    println!("refused");
    let since = Instant::now();
    let large = loop {
        match worker.attach::<u64>("large") {
            Err(Error::NotShared { .. }) if since.elapsed() < LONG => {}
            other => break other?,
        }
    };
    assert!(large.read(&worker)?.iter().all(|element| *element == 7));
    worker.barrier()
}

#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("short") => short().unwrap(),
        Ok("misfit") => misfit().unwrap(),
        Ok(over) => conflict(over).unwrap(),
        Err(_) => return,
    }
    println!("went on");
}

#[test]
fn whoever_cannot_have_an_area_is_told_so() {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}=misfit exec {} --exact {} --nocapture", program.display(), role_here());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &role);
    assert_eq!((said.code, said.out.matches("went on").count()), (0, 2), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// Elements of an area that needs more for copies for others than the daemon and the agent of the first host may have.
const LARGE: usize = 5 << 20;

#[test]
fn a_host_without_memory_for_what_it_would_send_is_named() {
    let group = match MemoryGroup::new(64 << 20) {
        Ok(group) => group,
        Err(error) => return hectare_testing::skip("cgroup", error),
    };
    let Some(mut cluster) = Cluster::new(2) else { return };
    cluster.restart_daemon_in(0, &group);
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}=short exec {} --exact {} --nocapture", program.display(), role_here());
    let mut run = Running::start(cluster.command(&["--hosts", &cluster.list(1), "--timeout", "20"], &role));
    while !run.lines(1)[0].contains("refused") {}
    let log = || cluster.daemons[0].log.lock().unwrap().clone();
    assert!(log().contains("no memory for the copies"), "{}", log());
    std::fs::write(group.limit_file(), (1_u64 << 30).to_string()).unwrap();
    assert_eq!(run.end(), Some(0), "{} {}", run.said(), log());
    cluster.assert_nothing_is_left();
}

fn both_sides_hear_of_it(over: &str) {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}={over} exec {} --exact {} --nocapture", program.display(), role_here());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &role);
    assert_eq!(said.code, 0, "{said:?}");
    for (part, count) in [("known: true", 1), ("known: false", 1), ("went on", 2)] {
        assert_eq!(said.out.matches(part).count(), count, "{part}: {said:?}");
    }
    cluster.assert_nothing_is_left();
}

#[test]
fn two_areas_of_one_name() {
    both_sides_hear_of_it("name");
}

#[test]
fn a_group_with_owners_on_two_hosts() {
    both_sides_hear_of_it("group");
}
