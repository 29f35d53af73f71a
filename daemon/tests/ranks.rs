//! Certain ranks, from the daemon and without one.
use crate::common::process::{Member, ROLE, say, told_word};
use crate::common::{Host, until};
use hectare_dsm::{Error, Job};
use hectare_wire::{Refusal, Request};

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    if let Ok("certain") = std::env::var(ROLE).as_deref() {
        certain();
    }
}

/// Becomes the worker of each rank that it is told, in a thread of its own each.
fn certain() {
    let job = Job::connect("j").unwrap();
    say(&job.rank().unwrap().to_string());
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        while let Some(word) = told_word() {
            let (made, job) = (std::sync::mpsc::channel(), &job);
            threads.push(scope.spawn(move || {
                let worker = job.worker_at(word.parse().unwrap());
                made.0
                    .send(match &worker {
                        Ok(worker) => format!("has {}", worker.rank()),
                        Err(Error::RankTaken { rank, .. }) => format!("a worker has {rank}"),
                        Err(Error::Daemon { source: hectare_wire::Error::Refused(why), .. }) => match why {
                            Refusal::RankTaken { rank, .. } => format!("a process has {rank}"),
                            Refusal::Quota { limit, .. } => format!("there are {limit}"),
                            other => format!("another refusal: {other}"),
                        },
                        Err(error) => format!("another error: {error}"),
                    })
                    .unwrap();
                std::thread::park();
            }));
            say(&made.1.recv().unwrap());
        }
        threads.iter().for_each(|thread| thread.thread().unpark());
    });
}

#[test]
fn a_worker_gets_the_rank_that_it_asks_for_or_hears_who_has_it() {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nworkers = 9\n");
    let mut one = Member::start(&host, "certain");
    assert_eq!(one.hear(), "0");
    let mut two = Member::start(&host, "certain");
    assert_eq!(two.hear(), "1");
    assert_eq!(one.ask("5"), "has 5");
    assert_eq!(one.ask("5"), "a worker has 5");
    assert_eq!(two.ask("5"), "a process has 5");
    assert_eq!(one.ask("0"), "has 0");
    assert_eq!(two.ask("9"), "there are 9");
    assert_eq!((host.jobs()[0].members, host.jobs()[0].ranks), (2, 3));
    let wanted = host.connect().ask(&Request::Attach { job: "j".into(), rank: Some(5) });
    assert!(matches!(wanted, Err(hectare_wire::Error::Refused(Refusal::RankTaken { rank: 5, .. }))));

    // Without a daemon, the memory says who has which; the next daemon is told.
    daemon.kill();
    assert_eq!(two.ask("7"), "has 7");
    assert_eq!(one.ask("7"), "a worker has 7");
    let _daemon = host.daemon("");
    until("both to be back", || host.jobs().first().is_some_and(|job| (job.members, job.ranks) == (2, 4)));
    // The daemon knows it before it does itself, and until then its memory answers.
    until("the daemon to be asked", || one.ask("7") == "a process has 7");
    assert_eq!(one.ask("3"), "has 3");
    [one, two].into_iter().for_each(Member::finish);
    until("the job to go", || host.jobs().is_empty());
}
