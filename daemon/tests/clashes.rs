//! Areas of two hosts that cannot both be in a job: the owner of each hears it, with both hosts, and nothing hangs.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Error, Job};
use std::time::{Duration, Instant};

const ROLE: &str = "CLASH_ROLE";
const LONG: Duration = Duration::from_secs(60);

/// One of two ranks, each on a host of its own. Both create an area of one name, or of one group.
fn clash(over: &str) -> Result<(), Error> {
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

#[test]
fn role() {
    if let Ok(over) = std::env::var(ROLE) {
        clash(&over).unwrap();
        println!("went on");
    }
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
