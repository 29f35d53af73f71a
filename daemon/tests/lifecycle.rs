//! The daemon begins, stops, dies and begins again.
use crate::common::{Host, until};
use hectare_wire::{Connection, Error, JobSettings, Refusal, Reply, Request};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn it_starts_answers_and_stops_on_sigterm() {
    let host = Host::new();
    let daemon = host.daemon("");
    let (reply, _) = host.connect().ask(&Request::Ping).unwrap();
    assert!(matches!(reply, Reply::Pong { pid, .. } if pid == daemon.child.id()));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(host.dir.path()), mode(&host.dir.socket())), (0o700, 0o600));
    assert!(daemon.terminate().success());
    assert!(!host.dir.socket().exists());
    assert!(matches!(Connection::open(&host.dir), Err(Error::NoDaemon { .. })));
}

#[test]
fn a_second_daemon_is_refused_and_the_first_goes_on() {
    let host = Host::new();
    let daemon = host.daemon("");
    let second = host.command(env!("CARGO_BIN_EXE_hectared")).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said.contains("another daemon runs"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    host.connect().ask(&Request::Ping).unwrap();
    assert!(daemon.terminate().success());
}

#[test]
fn a_killed_one_leaves_nothing_in_the_way_of_the_next() {
    let host = Host::new();
    for _ in 0..20 {
        let daemon = host.daemon("");
        host.connect().ask(&Request::Ping).unwrap();
        daemon.kill();
        assert!(host.dir.socket().exists());
        assert!(matches!(Connection::open(&host.dir), Err(Error::NoDaemon { .. })));
    }
    let daemon = host.daemon("");
    daemon.wait_for("removed the socket of a daemon that was killed");
    assert!(daemon.terminate().success());
}

#[test]
fn a_wrong_run_directory_or_configuration_is_one_line() {
    let host = Host::new();
    host.dir.make().unwrap();
    std::fs::set_permissions(host.dir.path(), PermissionsExt::from_mode(0o750)).unwrap();
    let run = |config: &str, code: i32| {
        let file = host.top.path().join("config.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = host.command(env!("CARGO_BIN_EXE_hectared"));
        let output = command.arg("--config").arg(file).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    assert!(run("", 6).contains("0750"));
    assert!(run("max_jbos = 1", 5).contains("line 1: unknown key `max_jbos`; did you mean `max_jobs`?"));
    assert!(run("max_jobs = ", 5).contains("line 1"));
}

#[test]
fn quotas_are_refused_by_the_setting_that_set_them() {
    let host = Host::new();
    let config = "max_jobs = 2\nmax_clients = 3\n[limits]\nbytes = 1000000\nareas = 16\nworkers = 4\n[defaults]\nworkers = 2\nareas = 8\nbytes = 65536\n";
    let daemon = host.daemon(config);
    let create = |job: &str, settings: JobSettings| {
        host.connect().order(&Request::Create { job: job.into(), settings, keep: true })
    };
    let with = |bytes, workers| JobSettings { bytes, workers, ..Default::default() };
    let refused = |result: Result<(), Error>, part: &str| match result {
        Err(Error::Refused(Refusal::Quota { by, .. })) => assert!(by.contains(part), "{by}"),
        other => panic!("{other:?}"),
    };
    refused(create("a", with(Some(2_000_000), None)), "limits.bytes");
    refused(create("a", with(None, Some(5))), "limits.workers");
    let areas = JobSettings { areas: Some(17), ..Default::default() };
    refused(create("a", areas), "limits.areas");
    create("a", with(None, None)).unwrap();
    create("b", with(None, Some(4))).unwrap();
    refused(create("c", with(None, None)), "max_jobs");
    assert!(matches!(create("a", with(None, None)), Err(Error::Refused(Refusal::JobExists { .. }))));
    assert!(matches!(create("../a", with(None, None)), Err(Error::Refused(Refusal::InvalidName { .. }))));

    let attach = |rank| {
        let connection = host.connect();
        let answer = connection.ask(&Request::Attach { job: "a".into(), rank });
        answer.map(|(reply, memory)| (connection, reply, memory))
    };
    let (one, reply, memory) = attach(None).unwrap();
    assert!(memory.is_some() && matches!(reply, Reply::Attached { rank: 0, created: false }));
    assert!(matches!(attach(Some(0)), Err(Error::Refused(Refusal::RankTaken { .. }))));
    assert_eq!(one.ask(&Request::Rank).unwrap().0, Reply::Rank { rank: 1 });
    assert!(matches!(
        one.ask(&Request::Rank),
        Err(Error::Refused(Refusal::Quota { asked: 3, limit: 2, .. }))
    ));
    assert!(matches!(
        one.ask(&Request::Attach { job: "b".into(), rank: None }),
        Err(Error::Refused(Refusal::UnexpectedRequest { .. }))
    ));
    // Connections: one is open, two more fit once the ones above are seen gone. Others may only look.
    until("the connections above to end", || {
        let _two = [host.connect(), host.connect()];
        let third = host.connect();
        let hold = third.order(&Request::Hold { job: "a".into() });
        let is_full =
            matches!(&hold, Err(Error::Refused(Refusal::Quota { by, .. })) if by.contains("max_clients"));
        is_full && third.ask(&Request::Ping).is_ok()
    });
    assert_eq!(daemon.log().matches("panicked").count(), 0);
}

/// The quotas of a job hold in its memory, too: whoever reaches one gets an error that names it.
#[test]
fn limits_below_the_defaults_cut_them() {
    let host = Host::new();
    let _daemon = host.daemon("[limits]\nareas = 1\nworkers = 1\n");
    let member = host.connect();
    let (_, memory) = member.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    let job = hectare_dsm::Job::from_descriptor(memory.unwrap()).unwrap();
    let mut worker = job.worker().unwrap();
    let _one = worker.create::<u8>("one", 10).unwrap();
    let second = worker.create::<u8>("two", 10);
    assert!(matches!(second, Err(hectare_dsm::Error::TooManyAreas { .. })), "{second:?}");
}

#[test]
fn a_job_is_as_large_as_its_quotas_say() {
    let host = Host::new();
    let _daemon = host.daemon("[limits]\nbytes = 1048576\n[defaults]\nareas = 3\nworkers = 2\n");
    let member = host.connect();
    let (_, memory) = member.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    let job = hectare_dsm::Job::from_descriptor(memory.unwrap()).unwrap();
    // Without a wish, the job has what the daemon allows, rounded up to whole huge pages.
    assert_eq!(host.jobs()[0].reserve_bytes, 1 << 20);
    assert!(job.free_bytes().unwrap() <= (1 << 20) + (2 << 20));
    let mut worker = job.worker().unwrap();
    let large = worker.create::<u8>("large", 3 << 20);
    assert!(matches!(large, Err(hectare_dsm::Error::OutOfMemory { .. })), "{large:?}");
    let areas: Vec<_> = (0..3).map(|n| worker.create::<u8>(format!("{n}"), 10).unwrap()).collect();
    let fourth = worker.create::<u8>("3", 10);
    assert!(matches!(fourth, Err(hectare_dsm::Error::TooManyAreas { .. })), "{fourth:?}");
    let others = std::thread::scope(|scope| {
        let join = || {
            let _one = job.worker().unwrap();
            job.worker().map(|worker| worker.rank())
        };
        scope.spawn(join).join().unwrap()
    });
    assert!(matches!(others, Err(hectare_dsm::Error::TooManyWorkers { max: 2, .. })), "{others:?}");
    // A deleted name can be used again.
    drop(areas);
    job.delete("1").unwrap();
    worker.sync().unwrap();
    worker.create::<u8>("4", 10).unwrap();
}

#[test]
fn jobs_go_with_their_last_member_or_on_request() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let attach = || {
        let connection = host.connect();
        connection.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
        connection
    };
    let (one, two) = (attach(), attach());
    let remove = |force| host.connect().order(&Request::Remove { job: "j".into(), force });
    assert!(matches!(remove(false), Err(Error::Refused(Refusal::JobInUse { members: 2, .. }))));
    let jobs = host.jobs();
    assert_eq!((jobs.len(), jobs[0].members, jobs[0].ranks, jobs[0].reserve_bytes), (1, 2, 2, 65536));

    // Somebody waits for its end.
    let waiter = host.connect();
    let waiting = std::thread::spawn(move || waiter.order(&Request::Wait { job: "j".into() }));
    drop(one);
    until("one to be seen gone", || host.jobs()[0].members == 1);
    assert!(!waiting.is_finished());
    drop(two);
    waiting.join().unwrap().unwrap();
    assert!(host.jobs().is_empty());

    // By force, its members stay what they are, but a job of the same name is another one.
    let old = attach();
    remove(true).unwrap();
    let new = attach();
    assert!(matches!(old.ask(&Request::Rank), Err(Error::Refused(Refusal::NoSuchJob { .. }))));
    drop(old);
    assert_eq!(new.ask(&Request::Rank).unwrap().0, Reply::Rank { rank: 1 });
    assert_eq!(host.jobs()[0].members, 1);
}

#[test]
fn listings_come_in_pages() {
    let host = Host::new();
    let _daemon = host.daemon("max_jobs = 300\n[defaults]\nbytes = 4096\nworkers = 2\nareas = 2\n");
    let connection = host.connect();
    let name = |n: u32| format!("job-{n:03}");
    for n in 0..300 {
        let create = Request::Create { job: name(n), settings: JobSettings::default(), keep: true };
        connection.order(&create).unwrap();
    }
    let (mut after, mut seen) = (String::new(), Vec::new());
    loop {
        let Reply::Jobs { jobs, more } = connection.ask(&Request::Jobs { after }).unwrap().0 else {
            panic!()
        };
        seen.extend(jobs.into_iter().map(|line| line.job));
        if !more {
            break;
        }
        after = seen.last().unwrap().clone();
    }
    assert_eq!(seen, (0..300).map(name).collect::<Vec<_>>());
}

/// The configuration comes through a pipe, so that the daemon is at its start as long as nobody writes it.
#[test]
fn a_hangup_at_the_start_loads_the_configuration_again() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let host = Host::new();
    let pipe = host.top.path().join("config");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = host.command(env!("CARGO_BIN_EXE_hectared"));
    let mut daemon = command.arg("--config").arg(&pipe).stderr(Stdio::piped()).spawn().unwrap();
    // Opening ends when the other side opens it, too.
    let first = std::fs::File::options().write(true).open(&pipe).unwrap();
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    drop(first);
    let is_done = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        // Whoever reads it finds it empty, also when it is read again.
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                let _ = std::fs::File::options().write(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let mut lines = BufReader::new(daemon.stderr.take().unwrap()).lines().map_while(Result::ok);
        let ended = !lines.any(|line| line.contains("configuration loaded again"));
        is_done.store(true, Relaxed);
        ended
    });
    assert!(!ended, "{:?}", daemon.wait());
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(daemon.wait().unwrap().success());
}

/// A member without a pidfd would count as dead when its connection ends. Two limits: a client takes two descriptors, and either may be
/// the first that is lacking.
#[test]
fn nobody_is_admitted_whose_death_could_not_be_seen() {
    let host = Host::new();
    for limit in [64, 65] {
        let mut command = host.command("sh");
        let limited = format!("ulimit -n {limit}; exec {} \"$@\"", env!("CARGO_BIN_EXE_hectared"));
        command.args(["-c", &limited, "hectared", "--log-format", "json", "--log-level", "debug"]);
        let daemon = crate::common::Daemon::start(command);
        let clients: Vec<Connection> = (0..limit).map(|_| host.connect()).collect();
        let lacking =
            |text: &str| text.contains("no connection can be taken") || text.contains("could not be seen");
        until("a descriptor to be lacking", || lacking(&daemon.log()));
        drop(clients);
        until("room", || host.connect().ask(&Request::Ping).is_ok());
        let log = daemon.log();
        if !log.contains("\"death_notice\":true") {
            return hectare_testing::skip("SO_PEERPIDFD", "this kernel does not tell deaths of peers");
        }
        assert!(!log.contains("\"death_notice\":false"), "{log}");
        assert!(daemon.terminate().success());
    }
}
