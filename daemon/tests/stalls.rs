//! Members that stand still (SIGSTOP) in the middle of rounds, under each stall policy of a job of the daemon;
//! stopped, dead and half-dead processes told apart.
use crate::common::process::{Member, ROLE, say, told};
use crate::common::{Host, until};
use hectare_dsm::{AreaSpec, Error, Job, Stats, Version, WorkerState};
use hectare_testing::skip;
use hectare_wire::{Reply, Request};
use rustix::process::Signal;
use std::time::Duration;

/// Elements of an area: large enough that whoever is stopped often stands in the middle of a copy.
const LEN: usize = 400_000;

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    if let Ok("companion") = std::env::var(ROLE).as_deref() {
        companion();
    }
}

/// Publishes as fast as it can in an area of its own and reads all others whole, until it is told to stop.
fn companion() {
    let job = Job::connect("j").unwrap();
    let mut worker = job.worker().unwrap();
    let me = worker.rank();
    let name = format!("of/{me}");
    // An area that a dead member of this rank left is claimed.
    let mut mine = match worker.create::<u64>(AreaSpec::new(&name).copies(4), LEN) {
        Err(Error::NameTaken { .. }) => worker.claim(&name).unwrap().owned,
        made => made.unwrap(),
    };
    say(&me.to_string());
    let stop = std::thread::spawn(told);
    let mut seen = [(Version::default(), 0); 4];
    let mut number = 0;
    while !stop.is_finished() {
        number += 1;
        fill(mine.write(&worker).unwrap().as_mut_slice(), number);
        worker.sync().unwrap();
        for (rank, last) in seen.iter_mut().enumerate().filter(|(rank, _)| *rank as u32 != me) {
            let Ok(area) = job.attach::<u64>(&format!("of/{rank}")) else { continue };
            let Ok(version) = area.version(&worker) else { continue };
            let values = area.read(&worker).unwrap();
            assert!(values[1..] == values[..LEN - 1], "a torn version");
            assert!(*last <= (version, values[0]), "{last:?} came after {version:?} {}", values[0]);
            *last = (version, values[0]);
        }
    }
    say(&format!("{number} rounds"));
}

/// Fills by doubling: without optimization, too, most of the time goes into rounds.
fn fill(values: &mut [u64], number: u64) {
    values[0] = number;
    let mut done = 1;
    while done < values.len() {
        let more = done.min(values.len() - done);
        values.copy_within(..more, done);
        done += more;
    }
}

/// A job with a policy, and two members that publish in it.
fn begin(host: &Host, policy: &[&str]) -> (Job, [Member; 2]) {
    let create =
        [&["job", "create", "j", "--bytes", "268435456", "--round-timeout-ms", "5"], policy].concat();
    let made = host.hectare(&create);
    assert_eq!(made.code, 0, "{made:?}");
    let members = ["0", "1"].map(|rank| {
        let mut member = Member::start(host, "companion");
        assert_eq!(member.hear(), rank);
        member
    });
    (open(host), members)
}

/// The job, to look at it.
fn open(host: &Host) -> Job {
    match host.connect().ask(&Request::Open { job: "j".into() }).unwrap() {
        (Reply::Opened, Some(memory)) => Job::from_descriptor(memory).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Stops a member, for longer than the policy waits, again and again until something is so.
fn stop_until(what: &str, stopped_ms: u64, job: &Job, member: &Member, mut so: impl FnMut(Stats) -> bool) {
    until(what, || {
        std::thread::sleep(Duration::from_millis(7));
        member.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(stopped_ms));
        member.signal(Signal::CONT);
        so(job.stats().unwrap())
    });
}

fn published(job: &Job, area: &str) -> Version {
    job.attach::<u64>(area).unwrap().newest_version().unwrap()
}

fn end(members: impl IntoIterator<Item = Member>) {
    for mut member in members {
        member.tell();
        assert!(member.hear().ends_with("rounds"));
        member.finish();
    }
}

#[test]
fn by_default_rounds_wait_for_who_stands_in_them() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let (job, members) = begin(&host, &[]);
    let mut times = 0;
    stop_until("ten stops", 100, &job, &members[1], |stats| {
        assert_eq!((stats.kills, stats.pinned_copies, stats.deaths), (0, 0, 0));
        times += 1;
        times == 10
    });
    let before = ["of/0", "of/1"].map(|area| published(&job, area));
    until("both to go on", || published(&job, "of/0") > before[0] && published(&job, "of/1") > before[1]);
    assert_eq!((host.jobs()[0].members, host.jobs()[0].deaths), (2, 0));
    end(members);
}

#[test]
fn a_copy_that_a_stalled_member_was_writing_is_pinned() {
    let host = Host::new();
    let daemon = host.daemon("");
    let (job, members) = begin(&host, &["--pin-after-ms", "20"]);
    stop_until("a copy to be pinned", 150, &job, &members[1], |stats| stats.pinned_copies > 0);
    // Nobody was hurt, and the one that stood still is back.
    let before = ["of/0", "of/1"].map(|area| published(&job, area));
    until("both to go on", || published(&job, "of/0") > before[0] && published(&job, "of/1") > before[1]);
    let stats = job.stats().unwrap();
    assert_eq!((stats.kills, stats.deaths), (0, 0));
    end(members);
    assert!(!daemon.log().contains("member died"));
}

#[test]
fn a_member_that_stalls_for_long_is_killed_seen_dead_and_passed() {
    let host = Host::new();
    let daemon = host.daemon("");
    let (job, mut members) = begin(&host, &["--kill-after-ms", "400"]);
    stop_until("a member to be killed", 900, &job, &members[1], |stats| stats.kills > 0);
    until("its death to be seen", || host.jobs()[0].deaths == 1);
    daemon.wait_for("member died");
    // The one that was stopped, or, on a busy machine, the other, which was held up inside a round for as long.
    let mut ended = None;
    until("its end", || {
        let status = |member: &mut Member| member.child.try_wait().unwrap();
        ended = members.iter_mut().enumerate().find_map(|(rank, member)| Some((rank, status(member)?)));
        ended.is_some()
    });
    let (dead, status) = ended.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    // The other goes on, the dead one's area stays readable, and its rank is handed out again.
    let alive = format!("of/{}", 1 - dead);
    let before = published(&job, &alive);
    until("the other to go on", || published(&job, &alive) > before);
    let checked = host.hectare(&["check", "j"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    let left = host.hectare(&["read", "j", &format!("of/{dead}"), "--format", "hex"]);
    assert_eq!(left.code, 0, "{left:?}");
    let digits: Vec<u8> = left.out.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut words = digits.chunks(16);
    assert!(digits.len() == LEN * 16 && words.all(|word| *word == digits[..16]));
    end(members.into_iter().enumerate().filter(|(rank, _)| *rank != dead).map(|(_, member)| member));
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn stopped_zombie_and_dead_are_told_apart() {
    let host = Host::new();
    let daemon = host.daemon("");
    let (job, mut members) = begin(&host, &[]);
    // Stopped for long, wherever it stands: alive for the daemon and for the job.
    members[1].signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((host.jobs()[0].members, host.jobs()[0].deaths), (2, 0));
    let state = |rank: usize| job.workers().unwrap().get(rank).map(|worker| worker.state);
    assert_ne!(state(1), Some(WorkerState::Dead));
    members[1].signal(Signal::CONT);
    let before = published(&job, "of/1");
    until("it to go on", || published(&job, "of/1") > before);
    // Killed and not waited for: a zombie, which is dead.
    members[1].signal(Signal::KILL);
    until("its death to be seen", || host.jobs()[0].deaths == 1);
    // Its connection closes a little before that.
    until("a zombie", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", members[1].child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('Z')
    });
    until("the job to see it", || state(1) == Some(WorkerState::Dead));
    assert_eq!((host.jobs()[0].members, host.jobs()[0].ranks), (1, 1));
    let mut next = Member::start(&host, "companion");
    assert_eq!(next.hear(), "1");
    members[1].child.wait().unwrap();
    assert_eq!(host.jobs()[0].members, 2);
    let [first, _] = members;
    end([first, next]);
    until("one death in the log", || daemon.log().matches("member died").count() == 1);
}

/// Needs a kernel and rights by which the next process id can be chosen.
#[test]
fn a_reused_process_id_is_another_process() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut first = Member::start(&host, "companion");
    assert_eq!(first.hear(), "0");
    let id = first.child.id();
    // The daemon sleeps while the member dies and another process gets its id, and then sees both at once.
    let daemon_pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(daemon_pid, Signal::STOP).unwrap();
    first.kill();
    let mut second = None;
    for _ in 0..100 {
        if let Err(error) = std::fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()) {
            return skip("chosen process ids", error);
        }
        let member = Member::start(&host, "companion");
        if member.child.id() == id {
            second = Some(member);
            break;
        }
    }
    let Some(mut second) = second else {
        return skip("free process id", format!("others took the process id {id} a hundred times"));
    };
    // It has asked by the time that the daemon goes on.
    std::thread::sleep(Duration::from_millis(200));
    rustix::process::kill_process(daemon_pid, Signal::CONT).unwrap();
    let rank = second.hear();
    until("the first to be seen dead", || daemon.log().matches("member died").count() == 1);
    let jobs = host.jobs();
    assert_eq!((jobs.len(), jobs[0].members, jobs[0].ranks), (1, 1, 1));
    let ps = host.hectare(&["ps", "j", "--json"]);
    let ps: serde_json::Value = serde_json::from_str(&ps.out).unwrap();
    assert_eq!(
        (&ps[0]["pid"], &ps[0]["workers"][0]["rank"]),
        (&id.into(), &rank.parse::<u32>().unwrap().into())
    );
    end([second]);
    until("the job to go", || host.jobs().is_empty());
}
