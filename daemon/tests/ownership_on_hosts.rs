//! Ownership between hosts: areas are given from worker to worker wherever these are, readers see each owner's versions in order,
//! and what cannot leave its host is refused at once, with the other host's name.
use crate::common::cluster::{Cluster, Running, join};
use crate::common::role_here;
use hectare_dsm::{AreaSpec, Error, Job, Worker};
use std::time::Duration;

const ROLE: &str = "OWNERSHIP_ROLE";
const LONG: Duration = Duration::from_secs(60);

#[track_caller]
fn names(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
}

/// One of two ranks, each on a host of its own, which try what is refused.
fn try_all(worker: &mut Worker, job: &Job) -> Result<(), Error> {
    let other = 1 - worker.rank();
    let address = format!("10.77.0.{}", other + 1);
    let mine = worker.create::<u64>(AreaSpec::new(format!("of/{}", worker.rank())), 10)?;
    let _unseen = worker.create::<u64>(AreaSpec::new(format!("unseen/{}", worker.rank())), 10)?;
    let grouped = AreaSpec::new(format!("grouped/{}", worker.rank())).group(format!("g{}", worker.rank()));
    let grouped = worker.create::<u64>(grouped, 10)?;
    let bare = worker.create::<u64>(AreaSpec::new(format!("bare/{}", worker.rank())).copies(0), 10)?;
    worker.barrier()?;
    let name = format!("of/{other}");
    let theirs = worker.attach::<u64>(&name)?;

    let wrong = worker.attach::<f32>(&name).unwrap_err();
    assert!(matches!(wrong, Error::WrongType { .. }), "{wrong}");
    names(&wrong, &[&name, &address, "u64", "f32"]);
    for claimed in [&name, &format!("unseen/{other}")] {
        let error = worker.claim::<u64>(claimed).map(drop).unwrap_err();
        assert!(matches!(error, Error::OwnerElsewhere { .. }), "{error}");
        names(&error, &[&address, "read"]);
    }
    let deleted = worker.job().delete(&name).unwrap_err();
    assert!(matches!(deleted, Error::OwnerElsewhere { .. }), "{deleted}");
    names(&deleted, &[&address, "deleted"]);
    // Nobody gives it.
    assert!(theirs.try_take(worker)?.is_none());
    let late = theirs.take_within(worker, Duration::from_millis(100)).map(drop).unwrap_err();
    assert!(matches!(late, Error::TimedOut { .. }), "{late}");
    for (kept, why) in [(grouped, "group"), (bare, "copies")] {
        let refused = kept.give(worker, other).unwrap_err();
        assert!(matches!(refused.error, Error::CannotLeave { .. }), "{}", refused.error);
        names(&refused.error, &[&address, why, refused.owned.name()]);
        assert!(refused.owned.read(worker).is_ok(), "it is its owner's as before");
    }
    assert_eq!(job.stats()?.refused_handovers, 4);
    // One of them says what the other host took the area for, when it has done what it does.
    let passed = [worker.barrier(), worker.barrier(), worker.barrier()];
    for passed in passed {
        match passed {
            Err(Error::TypeClash { name, .. }) if name == mine.name() => {}
            other => other?,
        }
    }
    Ok(())
}

/// One of three ranks, each on a host of its own, among whom an area goes round.
fn go_round(worker: &mut Worker, rounds: u64) -> Result<(), Error> {
    const LEN: usize = 1000;
    let (rank, next) = (worker.rank(), (worker.rank() + 1) % 3);
    if rank == 0 {
        let mut area = worker.create::<u64>("round", LEN)?;
        area.write(worker)?.fill(0);
        worker.barrier()?;
        area.give(worker, next)?;
    } else {
        worker.barrier()?;
    }
    let area = worker.attach::<u64>("round")?;
    let mut seen = (area.version(worker)?, 0);
    for round in 0..rounds {
        let mut owned = area.take_within(worker, LONG)?;
        let hops = 3 * round + u64::from(if rank == 0 { 3 } else { rank });
        // All writes of the owner before are here, whether or not they were published.
        assert_eq!(owned.read(worker)?, [hops - 1; LEN], "before hand {hops}");
        owned.write(worker)?.fill(hops);
        println!("hand {hops}");
        if hops == 3 * rounds {
            worker.barrier()?;
            worker.barrier()?;
            return Ok(());
        }
        match round % 2 {
            0 => owned.give(worker, next)?,
            _ => owned.give_published(worker, next)?,
        }
        let data = area.read(worker)?;
        let now = (area.version(worker)?, data[0]);
        assert!(now >= seen && data.iter().all(|value| *value == data[0]), "{seen:?}, then {now:?}");
        seen = now;
    }
    // Writes before a barrier are seen after it, whoever made them.
    worker.barrier()?;
    assert_eq!(area.read(worker)?, [3 * rounds; LEN]);
    worker.barrier()
}

/// One of three ranks, of which the first drops an area for which the second waits. The third one's host has it, too; then a worker of
/// the first host claims it, and gives it after all.
fn waits_for_what_is_dropped(worker: &mut Worker) -> Result<(), Error> {
    let rank = worker.rank();
    let mine = if rank == 0 { Some(worker.create::<u64>("dropped", 8)?) } else { None };
    worker.barrier()?;
    let area = worker.attach::<u64>("dropped")?;
    worker.barrier()?;
    if rank == 1 {
        // It waits when the owner drops it.
        println!("it waits");
        let gone = area.take_within(worker, LONG).map(drop).unwrap_err();
        assert!(matches!(gone, Error::OwnerGone { rank: 1, host: Some(_), .. }), "{gone}");
        names(&gone, &["dropped", "10.77.0.1"]);
        // Nor does it wait any more.
        let gone = area.take(worker).map(drop).unwrap_err();
        assert!(matches!(gone, Error::OwnerGone { .. }), "{gone}");
        println!("it is told");
    } else if rank == 0 {
        let since = std::time::Instant::now();
        while since.elapsed() < Duration::from_millis(500) {
            worker.service()?;
        }
        drop(mine);
    }
    worker.barrier()?;
    if rank == 0 {
        let mut owned = worker.claim::<u64>("dropped")?.owned;
        owned.write(worker)?.fill(5);
        owned.give(worker, 1)?;
    }
    worker.barrier()?;
    if rank == 1 {
        let owned = loop {
            match area.take_within(worker, LONG) {
                // The claim is on its way.
                Err(Error::OwnerGone { .. }) => {}
                taken => break taken?,
            }
        };
        assert_eq!(owned.read(worker)?, [5; 8]);
        println!("it has it");
    }
    worker.barrier()
}

/// One of two ranks, the first of which gives an area at once: the other may not have come yet.
fn pair(worker: &mut Worker) -> Result<(), Error> {
    let (own, other) = (worker.rank(), 1 - worker.rank());
    if own == 0 {
        worker.create::<u64>("handed", 8)?.give(worker, 1)?;
    }
    let area = worker.attach_within::<u64>("handed", LONG)?;
    for turn in 0..300 {
        let mut owned = area.take_within(worker, LONG)?;
        let hand = 2 * turn + u64::from(other);
        assert_eq!(owned.read(worker)?, [hand; 8]);
        owned.write(worker)?.fill(hand + 1);
        owned.give(worker, other)?;
    }
    worker.barrier()
}

#[test]
fn a_worker_that_has_just_come_takes_what_it_was_given() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let args = ["--hosts", &list, "--timeout", "20"];
    for checked in [&[][..], &["-x", "HECTARE_CHECK=1"]] {
        let said = cluster.run(&[&args[..], checked].concat(), &program("pair"));
        assert_eq!(said.code, 0, "{said:?}");
    }
    let said = cluster.run(&[&args[..], &["-x", "HECTARE_CHECK=1"]].concat(), &program("unlogged"));
    assert!(said.out.contains("found: worker 1") && said.out.contains("elements 0..8"), "{said:?}");
    let said = cluster.run(&[&args[..], &["-x", "HECTARE_CHECK=1"]].concat(), &program("complete"));
    assert!(
        said.code == 0 && said.out.contains("rank 0: 10 of 30") && said.out.contains("rank 1: 10 of 30"),
        "{said:?}"
    );
}

#[test]
fn nothing_is_given_to_a_worker_that_has_left() {
    let Some(cluster) = Cluster::new(2) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(2), "--timeout", "20"], &program("left"));
    assert!(said.code == 0 && said.out.contains("refused") && said.out.contains("taken: 3"), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// One of four ranks, two on each host. The last one leaves, so that the first can give it nothing, and comes again.
fn leaves(worker: Worker, job: &Job) -> Result<(), Error> {
    let mut worker = worker;
    let rank = worker.rank();
    let mut flag = if rank == 0 { Some(worker.create::<u64>("flag", 1)?) } else { None };
    worker.barrier()?;
    let seen = worker.attach::<u64>("flag")?;
    worker.barrier()?;
    match &mut flag {
        Some(flag) => {
            let mut probe = 0;
            let refused = loop {
                probe += 1;
                assert!(probe < 10_000, "it has not heard that worker 3 has left");
                let area = worker.create::<u64>(AreaSpec::new(format!("probe/{probe}")), 1)?;
                match area.give(&worker, 3) {
                    Ok(()) => drop(worker.sync()?),
                    Err(refused) => break refused,
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            assert!(matches!(refused.error, Error::NoSuchWorker { rank: 3 }), "{}", refused.error);
            println!("refused");
            flag.write(&worker)?.set(0, 1);
            let mut last = refused.owned;
            last.write(&worker)?.set(0, 3);
            while let Err(refused) = last.give(&worker, 3) {
                last = refused.owned;
                worker.sync()?;
            }
        }
        None if rank == 3 => {
            let observer = job.observer()?;
            drop(worker);
            while observer.read(&seen)?[0] == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            worker = job.worker_at(3)?;
            // Of those that were given before the first host heard that it had left, there is none: they have other names.
            let mut probe = 1;
            let owned = loop {
                let name = format!("probe/{probe}");
                match worker.attach_within::<u64>(&name, LONG)?.take_within(&mut worker, LONG) {
                    Ok(owned) if owned.read(&worker)?[0] == 3 => break owned,
                    // Nobody's, since it came when this one was away, or of those.
                    Ok(_) | Err(Error::OwnerGone { .. }) => probe += 1,
                    Err(error) => return Err(error),
                }
            };
            println!("taken: {}", owned.read(&worker)?[0]);
        }
        None => {}
    }
    worker.barrier()
}

#[test]
fn what_is_given_waits_for_no_interval() {
    let Some(cluster) = Cluster::new(2) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program("paced"));
    assert!(said.code == 0 && said.out.contains("taken: 2"), "{said:?}");
}

/// Two versions of an area follow each other, and the second is given away.
fn paced(worker: &mut Worker) -> Result<(), Error> {
    if worker.rank() == 0 {
        let spec = AreaSpec::new("paced").external_interval(100 * LONG);
        let mut owned = worker.create::<u64>(spec, 8)?;
        owned.write(worker)?.fill(1);
        worker.barrier()?;
        worker.barrier()?;
        owned.write(worker)?.fill(2);
        owned.give(worker, 1)?;
    } else {
        worker.barrier()?;
        let area = worker.attach_within::<u64>("paced", LONG)?;
        worker.barrier()?;
        let owned = area.take_within(worker, LONG)?;
        println!("taken: {}", owned.read(worker)?[0]);
    }
    worker.barrier()
}

/// A barrier that says what check mode has found has done all that it does.
fn complete(worker: &mut Worker) -> Result<(), Error> {
    let me = worker.rank();
    let mut mine = worker.create::<u64>(AreaSpec::new(format!("of/{me}")), 1000)?;
    worker.barrier()?;
    let other = worker.attach::<u64>(&format!("of/{}", 1 - me))?;
    let mut found = 0;
    for round in 1..=30u64 {
        mine.write(worker)?.set(0, round);
        if round % 3 == 0 {
            let area = mine.as_mut_ptr(worker)?;
            // SAFETY: the area has a thousand elements, and the worker owns it and is at no synchronization point.
            unsafe { area.add(500).write(round) };
        }
        match worker.barrier() {
            Err(Error::Unlogged { .. }) => found += 1,
            result => result?,
        }
        assert_eq!(other.read(worker)?[0], round);
        // Nobody writes on before the other one has looked.
        worker.barrier()?;
    }
    println!("rank {me}: {found} of 30");
    Ok(())
}

/// Who takes an area from another host writes to it behind the log's back, which `HECTARE_CHECK=1` finds.
fn unlogged(worker: &mut Worker) -> Result<(), Error> {
    if worker.rank() == 0 {
        let mut owned = worker.create::<u64>(AreaSpec::new("handed"), 8)?;
        owned.write(worker)?.fill(7);
        owned.give(worker, 1)?;
        return worker.barrier();
    }
    let mut owned = worker.attach_within::<u64>("handed", LONG)?.take_within(worker, LONG)?;
    let area = owned.as_mut_ptr(worker)?;
    // SAFETY: the area has eight elements, and the worker owns it and is at no synchronization point.
    unsafe { area.add(3).write(8) };
    match worker.barrier() {
        Err(error) => println!("found: {error}"),
        Ok(()) => println!("nothing found"),
    }
    Ok(())
}

#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let ranks = match role.as_str() {
        "refused" | "pair" | "unlogged" | "complete" | "paced" => 2,
        "left" => 4,
        _ => 3,
    };
    let (job, mut worker) = join(ranks);
    match role.as_str() {
        "refused" => try_all(&mut worker, &job).unwrap(),
        "pair" => pair(&mut worker).unwrap(),
        "unlogged" => unlogged(&mut worker).unwrap(),
        "complete" => complete(&mut worker).unwrap(),
        "paced" => paced(&mut worker).unwrap(),
        "left" => leaves(worker, &job).unwrap(),
        "dropped" => waits_for_what_is_dropped(&mut worker).unwrap(),
        rounds => go_round(&mut worker, rounds.parse().unwrap()).unwrap(),
    }
    println!("done: {role}");
}

fn program(role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("{ROLE}={role} exec {} --exact {} --nocapture", program.display(), role_here())
}

#[test]
fn what_cannot_leave_its_host_is_refused() {
    let Some(cluster) = Cluster::new(2) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program("refused"));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("done: refused").count(), 2, "{said:?}");
    cluster.assert_nothing_is_left();
}

#[test]
fn who_waits_for_an_area_is_told_when_its_owner_drops_it_on_another_host() {
    let Some(cluster) = Cluster::new(3) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program("dropped"));
    assert_eq!(said.code, 0, "{said:?}");
    for part in ["it waits", "it is told", "it has it"] {
        assert_eq!(said.out.matches(part).count(), 1, "{part}: {said:?}");
    }
    cluster.assert_nothing_is_left();
}

#[test]
fn an_area_goes_round_three_hosts() {
    let Some(cluster) = Cluster::new(3) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program("40"));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("done: 40").count(), 3, "{said:?}");
    assert_eq!(said.out.matches("hand ").count(), 120, "{said:?}");
    cluster.assert_nothing_is_left();
}

#[test]
fn it_goes_on_when_agents_are_killed() {
    let Some(cluster) = Cluster::new(3) else { return };
    let list = cluster.list(1);
    let mut running = Running::start(cluster.command(&["--hosts", &list, "--timeout", "20"], &program("60")));
    for kill in 0..9 {
        running.lines(15);
        cluster.kill_agent(kill % 3);
    }
    let mut done = 0;
    while done < 3 {
        // After what the harness of tests says on the same line, perhaps.
        done += usize::from(running.lines(1)[0].ends_with("done: 60"));
    }
    assert_eq!(running.end(), Some(0), "{}", running.said());
    cluster.assert_nothing_is_left();
}
