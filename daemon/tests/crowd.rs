//! Many members, and many that die: nothing of them stays.
use crate::common::process::{Member, ROLE, say, told};
use crate::common::{Host, until};
use hectare_dsm::{AreaSpec, Error, Job};
use hectare_wire::{Reply, Request};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Workers beside the one that is killed.
const OTHERS: u32 = 63;

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("crowd") => crowd(),
        Ok("victim") => victim(),
        _ => {}
    }
}

/// Sixty-three workers that serve rounds until they are told to stop.
fn crowd() {
    let job = Job::connect("j").unwrap();
    let (stop, joined) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ranks = job.run(OTHERS as usize, |worker| {
                worker.leave_clocks();
                joined.store(true, Ordering::Relaxed);
                while !stop.load(Ordering::Relaxed) {
                    worker.service().unwrap();
                    std::thread::sleep(Duration::from_millis(1));
                }
                worker.rank()
            });
            assert_eq!(ranks.unwrap(), (0..OTHERS).collect::<Vec<_>>());
        });
        while !joined.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        say("serves");
        while told() {}
        stop.store(true, Ordering::Relaxed);
    });
}

/// Takes over what the one before left, and publishes until it is killed.
fn victim() {
    let job = Job::connect("j").unwrap();
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    let mut area = match worker.create::<u64>(AreaSpec::new("victim").copies(2), 32_768) {
        Err(Error::NameTaken { .. }) => worker.claim("victim").unwrap().owned,
        made => made.unwrap(),
    };
    say(&worker.rank().to_string());
    for number in 0.. {
        area.write(&worker).unwrap().fill(number);
        worker.sync().unwrap();
    }
}

#[test]
fn one_of_64_workers_killed_again_and_again_leaves_nothing_behind() {
    let (times, warm) = if std::env::var_os("HECTARE_LONG").is_some() { (1000, 20) } else { (100, 20) };
    let host = Host::new();
    let daemon = host.daemon("");
    let mut crowd = Member::start(&host, "crowd");
    assert_eq!(crowd.hear(), "serves");
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).unwrap().count();
    let mut before = None;
    for death in 1..=times {
        let mut victim = Member::start(&host, "victim");
        assert_eq!(victim.hear(), OTHERS.to_string());
        std::thread::sleep(Duration::from_millis(death % 7));
        victim.kill();
        until("its death to be seen", || host.jobs()[0].deaths == death);
        let job = host.jobs().remove(0);
        assert_eq!((job.members, job.ranks), (1, OTHERS));
        // By then nearly every page that is ever touched has been.
        if death == warm {
            before = Some((job.resident_bytes, crowd.descriptors(), descriptors()));
        }
    }
    let job = host.jobs().remove(0);
    until("descriptors to be closed", || before.unwrap().2 >= descriptors());
    until("those of the crowd to be closed", || before.unwrap().1 >= crowd.descriptors());
    // Less than a page for every other death: one that is touched late may be a table's.
    let most = before.unwrap().0 + (times - warm) * 2048;
    assert!(job.resident_bytes < most, "{} bytes, {:?}", job.resident_bytes, before);
    crowd.finish();
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn sixty_four_members_come_at_once_and_go_at_once() {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nbytes = 65536\nworkers = 64\n");
    for _ in 0..3 {
        let attach = || {
            let connection = host.connect();
            match connection.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap().0 {
                Reply::Attached { rank, .. } => (connection, rank),
                other => panic!("{other:?}"),
            }
        };
        let members: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(attach)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let ranks: BTreeSet<u32> = members.iter().map(|(_, rank)| *rank).collect();
        assert_eq!(ranks, (0..64).collect());
        assert_eq!((host.jobs()[0].members, host.jobs()[0].ranks), (64, 64));
        let more = host.connect().ask(&Request::Attach { job: "j".into(), rank: None });
        assert!(matches!(more, Err(hectare_wire::Error::Refused(hectare_wire::Refusal::Quota { .. }))));
        drop(members);
        until("the job to go", || host.jobs().is_empty());
    }
    assert!(!daemon.log().contains("member died"));
}
