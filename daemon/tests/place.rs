//! Others remove or replace files of the run directory: there is one daemon, and it can be reached.
use crate::common::process::{Member, ROLE, say, told};
use crate::common::{Daemon, Host, until};
use hectare_dsm::Job;
use hectare_wire::{Connection, JobSettings, Reply, Request};
use std::path::Path;
use std::process::Stdio;

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    if std::env::var(ROLE).as_deref() == Ok("member") {
        let job = Job::connect("j").unwrap();
        say(&format!("{:?}", job.rank()));
        while told() {
            say(&format!("{:?}", job.membership().unwrap()));
        }
    }
}

/// Who answers.
fn daemon_at(host: &Host) -> Option<u32> {
    match Connection::open(&host.dir).ok()?.ask(&Request::Ping).ok()?.0 {
        Reply::Pong { pid, .. } => Some(pid),
        other => panic!("{other:?}"),
    }
}

/// A second daemon is refused, whatever was removed, and the first one goes on.
fn a_second_is_refused(host: &Host, first: &Daemon) {
    let mut second = host.command(env!("CARGO_BIN_EXE_hectared")).stderr(Stdio::piped()).spawn().unwrap();
    let mut ended = None;
    until("the second daemon to end", || {
        ended = second.try_wait().unwrap();
        // Whoever is there now is asked, so that a test that fails ends.
        ended.is_some() || daemon_at(host).is_some_and(|pid| pid == second.id())
    });
    let _ = second.kill();
    assert_eq!(ended.map(|status| status.code()), Some(Some(4)), "the second one runs");
    until("the first daemon", || daemon_at(host) == Some(first.child.id()));
}

#[test]
fn a_removed_file_lets_no_second_daemon_in() {
    let host = Host::new();
    let daemon = host.daemon("");
    let names =
        |dir: &Path| std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    // Everything that is there, the socket included; the daemon recreates it.
    for path in names(host.dir.path()) {
        let _ = std::fs::remove_file(path);
    }
    a_second_is_refused(&host, &daemon);
    daemon.wait_for("it is recreated");
    // Something else in its place.
    std::fs::remove_file(host.dir.socket()).unwrap();
    std::fs::write(host.dir.socket(), "no socket").unwrap();
    a_second_is_refused(&host, &daemon);
    assert!(daemon.terminate().success());
    assert_eq!(names(host.dir.path()), Vec::<std::path::PathBuf>::new(), "nothing is left behind");
}

#[test]
fn a_removed_run_directory_is_made_anew_and_members_stay() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut member = Member::start(&host, "member");
    member.hear();
    std::fs::remove_dir_all(host.dir.path()).unwrap();
    until("the first daemon", || daemon_at(&host) == Some(daemon.child.id()));
    assert_eq!((host.jobs().len(), host.jobs()[0].members), (1, 1));
    assert!(host.dir.path().join("jobs/j").exists(), "the next daemon will wait for the members");
    assert_eq!(member.ask(""), "Member");
    member.finish();
    assert!(daemon.terminate().success());
}

/// A mark of a job does not make the run directory: with the mode of the daemon's umask, the daemon would refuse it.
#[test]
fn a_job_that_is_made_while_the_run_directory_is_gone_keeps_nobody_out() {
    let host = Host::new();
    let daemon = host.daemon("");
    let connection = host.connect();
    std::fs::remove_dir_all(host.dir.path()).unwrap();
    // Within a second, that is before the daemon looks, unless the machine is busy.
    let create = Request::Create { job: "j".into(), settings: JobSettings::default(), keep: true };
    connection.order(&create).unwrap();
    until("the daemon", || daemon_at(&host) == Some(daemon.child.id()));
    assert_eq!(host.jobs().len(), 1);
    assert!(host.dir.path().join("jobs/j").exists());
}

/// The directory is replaced, and another daemon is in the new one: the first one gives way, and its members go to
/// the other.
#[test]
fn a_daemon_whose_directory_another_one_has_gives_way() {
    let host = Host::new();
    let mut first = host.daemon("");
    let mut member = Member::start(&host, "member");
    member.hear();
    // It cannot look meanwhile.
    let pid = rustix::process::Pid::from_child(&first.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    std::fs::rename(host.dir.path(), host.top.path().join("moved")).unwrap();
    let second = host.daemon("");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    until("the first to end", || first.child.try_wait().unwrap().is_some());
    assert!(first.child.wait().unwrap().success());
    assert_eq!(daemon_at(&host), Some(second.child.id()), "the first one's end leaves the second alone");
    until("the member to be there", || host.jobs().first().is_some_and(|job| job.members == 1));
    // The daemon knows it before it does itself.
    until("it to know", || member.ask("") == "Member");
    member.finish();
}

#[test]
fn a_hangup_loads_the_configuration_again() {
    let host = Host::new();
    let daemon = host.daemon("max_jobs = 1\n[defaults]\nbytes = 65536\n");
    let pid = rustix::process::Pid::from_child(&daemon.child);
    let hang_up = || rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    let create = |job: &str, workers| {
        let settings = hectare_wire::JobSettings { workers, ..Default::default() };
        host.connect().order(&Request::Create { job: job.into(), settings, keep: true })
    };
    create("a", None).unwrap();
    assert!(create("b", None).is_err());
    let file = host.top.path().join("hectared.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("max_jobs = 3\n[limits]\nworkers = 5\n[defaults]\nbytes = 131072\nworkers = 5\n");
    hang_up();
    daemon.wait_for("configuration loaded again");
    create("b", None).unwrap();
    let refused = create("c", Some(6)).unwrap_err().to_string();
    assert!(refused.contains("limits.workers"), "{refused}");
    let jobs = host.jobs();
    assert_eq!(jobs.iter().map(|job| job.reserve_bytes).collect::<Vec<_>>(), [65536, 131_072]);
    assert_eq!(jobs[1].max_workers, 5);
    // A setting that is wrong, or cannot change, is reported, and nothing ends.
    write("max_jbos = 3");
    hang_up();
    daemon.wait_for("unknown key `max_jbos`");
    create("c", None).unwrap();
    write("run_dir = \"/nowhere\"\nmax_clients = 1\n");
    hang_up();
    until("the new limit", || {
        let (one, two) = (Connection::open(&host.dir), Connection::open(&host.dir));
        let hold = |connection: Connection| connection.order(&Request::Hold { job: "a".into() }).is_ok();
        let two = two.map(hold);
        one.is_ok() && two.is_ok_and(|held| !held)
    });
    assert!(daemon.terminate().success());
}

/// Metrics come and go with the configuration; the socket in the run directory is the user's alone.
#[test]
fn metrics_in_the_run_directory() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new();
    let daemon = host.daemon("[metrics]\nsocket = true\n");
    let path = host.dir.path().join("metrics");
    let scrape = || {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        said.contains("hectare_daemon_jobs 0").then_some(())
    };
    until("a scrape", || scrape().is_some());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(&path).unwrap();
    until("a scrape", || scrape().is_some());
    // A killed daemon's files are in nobody's way.
    daemon.kill();
    assert!(path.exists());
    let daemon = host.daemon("[metrics]\nsocket = true\n");
    until("a scrape", || scrape().is_some());
    std::fs::write(host.top.path().join("hectared.toml"), "").unwrap();
    let pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    until("the socket to go", || !path.exists());
    std::fs::write(host.top.path().join("hectared.toml"), "[metrics]\nsocket = true\n").unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    until("a scrape", || scrape().is_some());
    assert!(daemon.terminate().success());
    assert!(!path.exists());
}
