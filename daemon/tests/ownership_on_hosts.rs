//! Ownership does not leave a host: what would have it do so is refused at once, with the other host's name, and nothing is lost.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Error, Job};
use std::time::Duration;

const ROLE: &str = "OWNERSHIP_ROLE";
const LONG: Duration = Duration::from_secs(60);

#[track_caller]
fn names(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
}

/// One of two ranks, each on a host of its own, which try to have each other's areas.
fn try_all() -> Result<(), Error> {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let job = Job::connect(&launch.job)?;
    let mut worker = job.worker()?;
    worker.wait_for_workers(2, LONG)?;
    let other = 1 - worker.rank();
    let address = format!("10.77.0.{}", other + 1);
    let mut mine = worker.create::<u64>(AreaSpec::new(format!("of/{}", worker.rank())), 10)?;
    let _unseen = worker.create::<u64>(AreaSpec::new(format!("unseen/{}", worker.rank())), 10)?;
    worker.barrier()?;
    let name = format!("of/{other}");
    let theirs = worker.attach::<u64>(&name)?;

    let wrong = worker.attach::<f32>(&name).unwrap_err();
    assert!(matches!(wrong, Error::WrongType { .. }), "{wrong}");
    names(&wrong, &[&name, &address, "u64", "f32"]);

    let unseen = format!("unseen/{other}");
    for refused in [
        worker.claim::<u64>(&name).map(drop),
        worker.claim::<u64>(&unseen).map(drop),
        theirs.take(&mut worker).map(drop),
        theirs.take_within(&mut worker, LONG).map(drop),
        theirs.try_take(&worker).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::OwnerElsewhere { .. }), "{error}");
        names(&error, &[&address, "read"]);
    }

    let refused = mine.give(&worker, other).unwrap_err();
    assert!(matches!(refused.error, Error::WorkerElsewhere { .. }), "{}", refused.error);
    names(&refused.error, &[&address]);
    let refused = refused.owned.give_published(&mut worker, other).unwrap_err();
    assert!(matches!(refused.error, Error::WorkerElsewhere { .. }), "{}", refused.error);
    mine = refused.owned;
    assert_eq!(job.stats()?.refused_handovers, 7);

    // Everything is as it was.
    mine.write(&worker)?.fill(7);
    // One of them says what the other host took the area for, when it has done what it does.
    let passed = [worker.barrier(), worker.barrier()];
    assert_eq!(theirs.read(&worker)?, [7; 10]);
    let [one, two] = passed.map(|barrier| match barrier {
        Err(Error::TypeClash { name, .. }) if name == mine.name() => Ok(()),
        other => other,
    });
    one.and(two).and(match worker.barrier() {
        Err(Error::TypeClash { .. }) => Ok(()),
        other => other,
    })
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        try_all().unwrap();
        println!("refused all");
    }
}

#[test]
fn ownership_does_not_leave_a_host() {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = std::env::current_exe().unwrap();
    let role = format!("{ROLE}=1 exec {} --exact {} --nocapture", program.display(), role_here());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &role);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("refused all").count(), 2, "{said:?}");
    cluster.assert_nothing_is_left();
}
