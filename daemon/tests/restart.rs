//! The daemon dies and comes back: members go on meanwhile, and bring their job to the next one.
use crate::common::process::{Member, ROLE, as_role, say, told_word};
use crate::common::{Host, until};
use hectare_dsm::{Area, AreaSpec, Job, Membership, Worker};
use hectare_wire::{JobSettings, Reply, Request};
use rustix::process::Signal;

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("beat") => beat(),
        Ok("busy") => busy(),
        _ => {}
    }
}

/// Publishes the next number in its own area whenever it is told to, and looks at all areas.
fn beat() {
    let job = Job::connect("j").unwrap();
    let mut worker = job.worker().unwrap();
    say(&format!("{} {}", job.rank().unwrap(), worker.rank()));
    // Enough reader copies for everybody who stands at an old version while he is told nothing.
    let spec = AreaSpec::new(format!("of/{}", worker.rank())).copies(8);
    let mut mine = worker.create::<u64>(spec, 1000).unwrap();
    let (mut number, mut last) = (0, None);
    let mut more = Vec::new();
    while let Some(word) = told_word() {
        match word.as_str() {
            "beat" => {
                number += 1;
                mine.write(&worker).unwrap().fill(number);
                worker.sync().unwrap();
                let version = mine.area().version(&worker).unwrap();
                assert!(last < Some(version), "{last:?} is not before {version:?}");
                last = Some(version);
                say(&number.to_string());
            }
            "look" => {
                let names = job.areas().unwrap().into_iter().map(|area| area.name);
                let mut seen: Vec<String> = names.map(|name| look(&mut worker, &job, &name)).collect();
                seen.sort();
                say(&seen.join(" "));
            }
            "more" => {
                let (job, made) = (job.clone(), std::sync::mpsc::channel());
                more.push(std::thread::spawn(move || {
                    let worker = job.worker();
                    made.0
                        .send(worker.as_ref().map(Worker::rank).map_err(|error| error.to_string()))
                        .unwrap();
                    std::thread::park();
                }));
                say(&format!("{:?}", made.1.recv().unwrap()));
            }
            "standing" => say(&format!("{:?}", job.membership().unwrap())),
            other => panic!("{other}"),
        }
    }
    more.iter().for_each(|thread| thread.thread().unpark());
    more.into_iter().for_each(|thread| thread.join().unwrap());
}

fn look(worker: &mut Worker, job: &Job, name: &str) -> String {
    worker.sync().unwrap();
    let area = job.attach::<u64>(name).unwrap();
    let values = area.read(worker).unwrap();
    assert!(values.iter().all(|value| *value == values[0]));
    format!("{name}={}", values[0])
}

/// One of two that publish as fast as they can and look at each other, until it is told to stop.
fn busy() {
    let job = Job::connect("j").unwrap();
    let mut worker = job.worker().unwrap();
    let (me, other) = (worker.rank(), 1 - worker.rank());
    let mut mine = worker.create::<u64>(format!("of/{me}"), 1000).unwrap();
    say("begins");
    let stop = std::thread::spawn(told_word);
    let (mut number, mut seen, mut rounds): (u64, _, u64) = (0, None, 0);
    let mut theirs: Option<Area<u64>> = None;
    while !stop.is_finished() {
        number += 1;
        mine.write(&worker).unwrap().fill(number);
        worker.sync().unwrap();
        rounds += 1;
        if theirs.is_none() {
            theirs = job.attach(&format!("of/{other}")).ok();
        }
        let Some(theirs) = &theirs else { continue };
        let Ok(version) = theirs.version(&worker) else { continue };
        let values = theirs.read(&worker).unwrap();
        assert!(values.iter().all(|value| *value == values[0]), "a torn version");
        let now = Some((version, values[0]));
        assert!(seen <= now, "{now:?} came after {seen:?}");
        seen = now;
    }
    assert!(rounds > 0 && seen.is_some());
    say(&format!("{rounds} rounds"));
    told_word();
}

fn standing(member: &mut Member, expected: &Membership) {
    let expected = format!("{expected:?}");
    until(&expected, || member.ask("standing") == expected);
}

#[test]
fn members_bring_their_job_to_the_next_daemon() {
    // A busy machine may keep members away for longer than the daemon keeps the name of their job for them.
    assert!((0..20).any(|_| members_came_back_in_time()), "no members ever came back in time");
}

fn members_came_back_in_time() -> bool {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut members = ["0 0", "1 1"].map(|place| {
        let mut member = Member::start(&host, "beat");
        assert_eq!(member.hear(), place);
        member
    });
    for number in ["1", "2"] {
        members.iter_mut().for_each(|member| assert_eq!(member.ask("beat"), number));
    }
    daemon.kill();
    for member in &mut members {
        standing(member, &Membership::Away);
        assert_eq!(member.ask("beat"), "3");
        assert_eq!(member.ask("look").split(' ').count(), 2);
    }
    // Without a daemon, the memory says which rank is free; the next daemon is told.
    assert_eq!(members[0].ask("more"), "Ok(2)");

    let daemon = host.daemon("");
    // Whoever comes before the members do waits for them: there is one job.
    let mut new = Member::start(&host, "beat");
    if new.hear() != "3 3" {
        daemon.wait_for("did not come back");
        return false;
    }
    // Ranks that it was handed before whoever has them came back, and gave back, are asked for again.
    until("the members to be back", || host.jobs()[0].members == 3 && host.jobs()[0].ranks == 4);
    assert_eq!((host.jobs().len(), host.jobs()[0].deaths), (1, 0));
    members.iter_mut().for_each(|member| standing(member, &Membership::Member));
    assert_eq!(new.ask("look"), "of/0=3 of/1=3 of/3=0");
    assert_eq!(members[0].ask("beat"), "4");
    assert_eq!(members[0].ask("more"), "Ok(4)");
    let ps = host.hectare(&["ps", "j", "--json"]);
    let ps: serde_json::Value = serde_json::from_str(&ps.out).unwrap();
    let mut ranks: Vec<(u64, Vec<u64>)> = Vec::new();
    for line in ps.as_array().unwrap() {
        let held = line["workers"].as_array().unwrap().iter().map(|worker| worker["rank"].as_u64().unwrap());
        ranks.push((line["pid"].as_u64().unwrap(), held.collect()));
    }
    ranks.sort_by_key(|(_, held)| held[0]);
    let pid = |member: &Member| u64::from(member.child.id());
    let expected = [(&members[0], vec![0, 2, 4]), (&members[1], vec![1]), (&new, vec![3])];
    assert_eq!(ranks, expected.map(|(member, held)| (pid(member), held)));

    // And deaths are seen as before.
    members[1].kill();
    until("a death", || host.jobs()[0].deaths == 1);
    let [first, _] = members;
    [first, new].into_iter().for_each(Member::finish);
    until("the job to go", || host.jobs().is_empty());
    assert!(daemon.terminate().success());
    assert!(!host.dir.path().join("jobs").exists());
    true
}

#[test]
fn a_daemon_in_a_crash_loop_disturbs_nobody() {
    let times = if std::env::var_os("HECTARE_LONG").is_some() { 100 } else { 20 };
    let host = Host::new();
    let mut daemon = host.daemon("");
    let mut members = [Member::start(&host, "busy"), Member::start(&host, "busy")];
    members.iter_mut().for_each(|member| assert_eq!(member.hear(), "begins"));
    let before = members.each_ref().map(Member::descriptors);
    let both = || matches!(&host.jobs()[..], [job] if (job.members, job.ranks) == (2, 2));
    for time in 0..times {
        // By turns cleanly and by SIGKILL, which leaves the socket and the marks.
        if time % 4 == 3 {
            assert!(daemon.terminate().success());
        } else {
            daemon.kill();
        }
        daemon = host.daemon("");
        // Some restarts come while members are on their way.
        if time % 3 != 2 {
            until("both to be back", both);
        }
    }
    until("both to be back", both);
    until("their descriptors to be closed", || members.each_ref().map(Member::descriptors) == before);
    for mut member in members {
        assert!(member.ask("stop").ends_with("rounds"));
        member.finish();
    }
    until("the job to go", || host.jobs().is_empty());
    assert!(!daemon.log().contains("member died"));
}

/// Its launcher has found one a moment ago.
#[test]
fn a_launched_program_waits_for_a_daemon_that_is_started_again() {
    let host = Host::new();
    host.daemon("").kill();
    let mut command = as_role(&host, "beat");
    command.envs([("HECTARE_JOB", "j"), ("HECTARE_RANK", "0"), ("HECTARE_SIZE", "1")]);
    let mut member = Member::of(command);
    // Most often it has looked for the daemon by now.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let daemon = host.daemon("");
    assert_eq!(member.hear(), "0 0");
    assert_eq!(member.ask("beat"), "1");
    member.finish();
    daemon.terminate();
}

#[test]
fn a_job_that_was_made_anew_meanwhile_is_another_one() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut old = [Member::start(&host, "beat"), Member::start(&host, "beat")];
    old.iter_mut().for_each(|member| drop(member.hear()));
    daemon.kill();
    // Longer away than the daemon waits.
    old.iter().for_each(Member::stop);
    let daemon = host.daemon("");
    let mut new = Member::start(&host, "beat");
    assert_eq!(new.hear(), "0 0");
    daemon.wait_for("did not come back");
    old.iter().for_each(|member| member.signal(Signal::CONT));
    for member in &mut old {
        until("the refusal", || member.ask("standing").contains("has another job"));
        assert_eq!(member.ask("beat"), "1");
    }
    daemon.wait_for("the daemon has another job \\\"j\\\"");
    assert_eq!(new.ask("look"), "of/0=0");
    assert_eq!(host.jobs()[0].members, 1);
    // A rank that no daemon hands out is taken from the memory.
    assert_eq!(old[0].ask("more"), "Ok(2)");
    // When the other job goes, they come back.
    new.finish();
    until("the old members", || host.jobs().first().is_some_and(|job| job.members == 2 && job.ranks == 3));
    old.iter_mut().for_each(|member| standing(member, &Membership::Member));
    old.into_iter().for_each(Member::finish);
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn a_removed_job_is_not_brought_back() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut member = Member::start(&host, "beat");
    member.hear();
    host.connect().order(&Request::Remove { job: "j".into(), force: true }).unwrap();
    standing(&mut member, &Membership::Removed);
    daemon.kill();
    let _daemon = host.daemon("");
    assert_eq!(member.ask("beat"), "1");
    assert_eq!(member.ask("more"), "Ok(1)");
    // Its thread is done with daemons, so that a job of the name is a new one at once.
    until("its thread to end", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", member.child.id())).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        !threads.flatten().any(|task| name(task).is_ok_and(|name| name.trim() == "hectare-member"))
    });
    let mut new = Member::start(&host, "beat");
    assert_eq!(new.hear(), "0 0");
    assert_eq!(member.ask("standing"), format!("{:?}", Membership::Removed));
    assert_eq!(host.jobs()[0].members, 1);
    [member, new].into_iter().for_each(Member::finish);
}

#[test]
fn a_kept_job_stays_kept() {
    let host = Host::new();
    let daemon = host.daemon("");
    let settings =
        JobSettings { workers: Some(7), areas: Some(9), bytes: Some(1 << 20), ..Default::default() };
    host.connect().order(&Request::Create { job: "j".into(), settings, keep: true }).unwrap();
    let mut member = Member::start(&host, "beat");
    member.hear();
    daemon.kill();
    let _daemon = host.daemon("");
    until("the member", || host.jobs().first().is_some_and(|job| job.members == 1));
    member.finish();
    until("the member to leave", || host.jobs()[0].members == 0);
    let job = host.jobs().remove(0);
    assert!(job.keep);
    assert_eq!((job.max_workers, job.max_areas, job.reserve_bytes), (7, 9, 1 << 20));
}

#[test]
fn a_stopped_daemon_is_dropped_in_time() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut member = Member::start(&host, "beat");
    member.hear();
    let pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    assert!(matches!(host.connect().ask(&Request::Ping), Err(hectare_wire::Error::NoAnswer { .. })));
    // It asks, waits, and goes on without.
    assert_eq!(member.ask("more"), "Ok(1)");
    assert_eq!(member.ask("beat"), "1");
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    standing(&mut member, &Membership::Member);
    // Work that the daemon found when it woke up does not count twice.
    until("one member with two ranks", || {
        let jobs = host.jobs();
        (jobs.len(), jobs[0].members, jobs[0].ranks) == (1, 1, 2)
    });
    member.finish();
    until("the job to go", || host.jobs().is_empty());
}

/// The daemon stands still while this process asks it for a rank, gives up, and asks to be taken back. Ranks that the process takes,
/// and gives back, before it is answered are not in that question.
#[test]
fn ranks_taken_while_a_daemon_takes_a_member_back_are_told_to_it() {
    let host = Host::new();
    let daemon = host.daemon("");
    let (member, rank, _memory) = hectare_wire::Member::attach(&host.dir, "j", None).unwrap();
    assert_eq!((rank, member.rank().unwrap()), (0, 1));
    let pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    assert!(matches!(member.rank(), Err(hectare_wire::Error::NoAnswer { .. })));
    until("the loss to be seen", || member.state() == Membership::Away);
    // Its question is on its way now, or soon. Without this pause, it may come after what follows: then nothing is tried.
    std::thread::sleep(std::time::Duration::from_secs(1));
    member.took(2);
    member.give_back(0);
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    until("one member with ranks 1 and 2", || {
        let Ok((Reply::Clients { clients, .. }, _)) = host.connect().ask(&Request::Clients { after: 0 })
        else {
            panic!("no clients");
        };
        clients.iter().map(|client| client.ranks.clone()).eq([vec![1, 2]])
    });
    assert_eq!(member.state(), Membership::Member);
    drop(member);
    until("the job to go", || host.jobs().is_empty());
}

/// A command that looks on; nothing outlives a test that failed.
struct Watcher(std::process::Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Those who look on go on looking when the daemon is another one.
#[test]
fn top_and_wait_outlive_the_daemon() {
    // As above: who is kept away for too long finds the name of its job given up.
    assert!((0..20).any(|_| watchers_went_on()), "no member ever came back in time");
}

fn watchers_went_on() -> bool {
    use std::io::BufRead;
    use std::process::Stdio;
    let host = Host::new();
    let daemon = host.daemon("");
    let mut member = Member::start(&host, "beat");
    member.hear();
    let start = |args: &[&str]| {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        Watcher(command.args(args).stdout(Stdio::piped()).spawn().unwrap())
    };
    let patient = ["--daemon-timeout", "10000"];
    let with = |args: &[&'static str]| [args, &patient].concat();
    let mut end = start(&with(&["wait", "j"]));
    let mut timed = start(&with(&["wait", "j", "--timeout", "100000"]));
    let mut version = start(&with(&["wait", "j", "of/0", "--version", "3"]));
    let mut top = start(&with(&["top", "j", "--json", "--interval", "0.05"]));
    let mut ticks = std::io::BufReader::new(top.0.stdout.take().unwrap()).lines();
    let mut rounds = move || {
        let tick: serde_json::Value = serde_json::from_str(&ticks.next()?.unwrap()).unwrap();
        assert_eq!(tick["jobs"][0]["job"], "j", "{tick}");
        tick["jobs"][0]["rounds"].as_u64()
    };
    assert_eq!(member.ask("beat"), "1");
    until("a tick", || rounds() >= Some(1));
    // They are there before the daemon goes.
    daemon.wait_for("Wait {");
    let went_on = |watcher: &mut Watcher| watcher.0.try_wait().unwrap().is_none();
    daemon.kill();
    standing(&mut member, &Membership::Away);
    let daemon = host.daemon("");
    until("the member to be back", || host.jobs().first().is_some_and(|job| job.members == 1));
    if daemon.log().contains("did not come back") {
        return false;
    }
    assert!([&mut end, &mut timed, &mut version, &mut top].into_iter().all(went_on));
    assert_eq!(member.ask("beat"), "2");
    until("a tick of the next daemon", || rounds() >= Some(2));
    assert!(daemon.terminate().success());
    standing(&mut member, &Membership::Away);
    // The memory is there without a daemon.
    assert_eq!(member.ask("beat"), "3");
    assert!(version.0.wait().unwrap().success());
    let daemon = host.daemon("");
    until("the member to be back", || host.jobs().first().is_some_and(|job| job.members == 1));
    if daemon.log().contains("did not come back") {
        return false;
    }
    until("a tick of the last daemon", || rounds() >= Some(3));
    assert!([&mut end, &mut timed, &mut top].into_iter().all(went_on));
    member.finish();
    assert!(end.0.wait().unwrap().success() && timed.0.wait().unwrap().success());
    // Its job is gone, which is no failure.
    while rounds().is_some() {}
    assert!(top.0.wait().unwrap().success());
    true
}
