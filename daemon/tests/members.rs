//! Processes that share jobs through the daemon: what is promised between threads holds between them, and
//! nothing that one of them does, dying included, hurts the others.
//!
//! A test starts this very binary again as its members, with the name of a role in the environment.
use crate::common::process::{Member, ROLE, say, told};
use crate::common::{Host, WATCHDOG, role_here, until};
use hectare_dsm::{Error, Job, Worker};
use hectare_testing::skip;
use hectare_wire::{Connection, JobSettings, Refusal, Reply, Request, Socket};

/// The program of a started process; nothing when the tests themselves run.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("program") => program(),
        Ok("worker") => {
            let job = Job::connect("j").unwrap();
            let mut worker = job.worker().unwrap();
            say(&format!("{} {}", job.rank().unwrap(), worker.rank()));
            while told() {
                rounds(&mut worker, 10);
                say("served");
            }
        }
        Ok("two workers") => {
            let job = Job::connect("j").unwrap();
            let ranks = job.run(3, |worker| worker.rank()).unwrap();
            say(&format!("{ranks:?}"));
            told();
        }
        Ok("fork") => {
            let job = Job::connect("j").unwrap();
            let worker = job.worker().unwrap();
            // SAFETY: the child calls nothing but pause, which is safe after a fork of a process with threads.
            let child = unsafe {
                let child = libc::fork();
                if child == 0 {
                    loop {
                        libc::pause();
                    }
                }
                child
            };
            say(&format!("{child} {}", worker.rank()));
            told();
        }
        Ok("error") => match Job::connect("j") {
            Ok(_) => say("connected"),
            Err(Error::Daemon { source, .. }) => say(&format!("{source}")),
            Err(other) => say(&format!("another error: {other}")),
        },
        _ => {}
    }
}

/// Rounds that wait for nobody in particular.
fn rounds(worker: &mut Worker, count: u32) {
    for _ in 0..count {
        worker.sync().unwrap();
    }
}

/// One of three, as `hectare run` starts it.
fn program() {
    let job = Job::connect(&std::env::var("HECTARE_JOB").unwrap()).unwrap();
    let mut worker = job.worker().unwrap();
    let me = worker.rank();
    assert_eq!(me.to_string(), std::env::var("HECTARE_RANK").unwrap());
    worker.wait_for_workers(3, WATCHDOG).unwrap();
    let mut mine = worker.create::<u64>(format!("part/{me}"), 1000).unwrap();
    worker.barrier().unwrap();
    let all: Vec<_> = (0..3).map(|rank| worker.attach::<u64>(&format!("part/{rank}")).unwrap()).collect();
    for step in 1..=100 {
        mine.write(&worker).unwrap().fill(step * 10 + u64::from(me));
        worker.barrier().unwrap();
        for (rank, area) in (0..).zip(&all) {
            assert!(area.read(&worker).unwrap().iter().all(|value| *value == step * 10 + rank));
        }
    }
    say("all steps held");
}

#[test]
fn three_processes_are_one_job() {
    let host = Host::new();
    let daemon = host.daemon("");
    let exe = std::env::current_exe().unwrap();
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.env(ROLE, "program").args(["run", "-n", "3", "--"]).arg(exe);
    let output = command.args(["--exact", &role_here(), "--nocapture"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("all steps held").count(), 3, "{said}");
    assert!(host.jobs().is_empty());
    assert!(!daemon.log().contains("member died"));
}

#[test]
fn ranks_are_handed_out_and_come_back() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut first = Member::start(&host, "worker");
    assert_eq!(first.hear(), "0 0");
    let mut many = Member::start(&host, "two workers");
    assert_eq!(many.hear(), "[1, 2, 3]");
    let mut last = Member::start(&host, "worker");
    assert_eq!(last.hear(), "4 4");
    many.finish();
    until("three ranks to come back", || host.jobs()[0].ranks == 2);
    let mut again = Member::start(&host, "worker");
    assert_eq!(again.hear(), "1 1");
    let jobs = host.jobs();
    assert_eq!((jobs[0].members, jobs[0].deaths), (3, 0));

    let ps = host.hectare(&["ps", "j", "--json"]);
    let ps: serde_json::Value = serde_json::from_str(&ps.out).unwrap();
    let ranks: Vec<_> =
        ps.as_array().unwrap().iter().map(|line| line["workers"][0]["rank"].clone()).collect();
    assert_eq!(ranks, [0, 4, 1]);
    assert_eq!(ps[0]["pid"], first.child.id());
    [first, last, again].into_iter().for_each(Member::finish);
    until("the job to go", || host.jobs().is_empty());
    assert!(!daemon.log().contains("member died"), "{}", daemon.log());
}

#[test]
fn a_killed_member_is_seen_dead_and_the_others_go_on() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut stays = Member::start(&host, "worker");
    assert_eq!(stays.hear(), "0 0");
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).unwrap().count();
    let before = open();
    for death in 1..=50 {
        let mut dies = Member::start(&host, "worker");
        assert_eq!(dies.hear(), "1 1");
        dies.kill();
        until("its death to be seen", || host.jobs()[0].deaths == death);
        assert_eq!(host.jobs()[0].ranks, 1);
        stays.tell();
        assert_eq!(stays.hear(), "served");
    }
    until("its descriptors to be closed", || open() <= before);
    stays.finish();
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn a_forked_child_that_keeps_the_socket_hides_no_death() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut parent = Member::start(&host, "fork");
    let said = parent.hear();
    let (child, rank) = said.split_once(' ').unwrap();
    assert_eq!(rank, "0");
    daemon.wait_for("\"death_notice\":");
    let notices = daemon.log().contains("\"death_notice\":true");
    parent.kill();
    if notices {
        until("the job to go with its only member", || host.jobs().is_empty());
    } else {
        skip("SO_PEERPIDFD", "half of the test: this kernel does not tell deaths of peers");
    }
    let child = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn errors_of_connect_say_what_to_do() {
    let host = Host::new();
    let hear = || {
        let mut member = Member::start(&host, "error");
        let said = member.hear();
        member.finish();
        said
    };
    assert!(hear().contains("start `hectared`"));
    host.dir.make().unwrap();
    assert!(hear().contains("start `hectared`"));
    let daemon = host.daemon("[defaults]\nworkers = 1\n");
    let holder = host.connect();
    holder.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    let said = hear();
    assert!(said.contains("quota exceeded: 2 workers") && said.contains("settings of job \"j\""), "{said}");
    drop(holder);
    daemon.terminate();

    // A daemon of another release.
    let listener = Socket::listen(&host.dir.socket()).unwrap();
    let other = std::thread::spawn(move || {
        let mut client = None;
        until("the client", || {
            client = listener.accept().unwrap();
            client.is_some()
        });
        let client = client.unwrap();
        until("its request", || !matches!(client.receive().unwrap(), hectare_wire::Received::Nothing));
        client.send(b"Hc\xff\x00something new", None).unwrap();
    });
    let said = hear();
    let ours = format!("this program version {}", hectare_wire::VERSION);
    assert!(said.contains("speaks version 255") && said.contains(&ours), "{said}");
    other.join().unwrap();
}

#[test]
fn what_was_published_can_be_read_from_outside() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let connection = Connection::open(&host.dir).unwrap();
    let attach = connection.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    let (Reply::Attached { .. }, Some(memory)) = attach else { panic!("{attach:?}") };
    let job = Job::from_descriptor(memory).unwrap();
    let mut worker = job.worker().unwrap();
    let mut area = worker.create::<f32>("weights", 3).unwrap();
    area.write(&worker).unwrap().as_mut_slice().copy_from_slice(&[1.5, 2.0, -3.25]);
    worker.barrier().unwrap();
    area.write(&worker).unwrap().fill(9.0); // not published
    let out = |args: &[&str]| {
        let said = host.hectare(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said.out
    };
    assert_eq!(out(&["read", "j", "weights"]), "1.5\n2\n-3.25\n");
    assert_eq!(out(&["read", "j", "weights", "--format", "json"]), "[1.5,2.0,-3.25]\n");
    assert_eq!(out(&["read", "j", "weights", "--format", "hex"]), "0000c03f00000040000050c0\n");
    let areas: serde_json::Value = serde_json::from_str(&out(&["areas", "j", "--json"])).unwrap();
    assert_eq!((&areas[0]["name"], &areas[0]["len"]), (&"weights".into(), &3.into()));
    let stat: serde_json::Value = serde_json::from_str(&out(&["stat", "j", "--json"])).unwrap();
    assert_eq!(stat["published"], 1);
    assert!(out(&["check", "j"]).contains("nothing found"));
    let missing = host.hectare(&["read", "j", "biases"]);
    assert_eq!((missing.code, missing.err.lines().count()), (4, 1), "{missing:?}");
    drop((area, worker));
    let found = host.hectare(&["check", "j"]);
    assert_eq!(found.code, 1);
    assert!(found.out.contains("\"weights\" has no owner"), "{found:?}");
}

#[test]
fn no_message_does_harm() {
    let host = Host::new();
    let daemon = host.daemon("max_jobs = 4\n[defaults]\nbytes = 65536\n");
    let holder = host.connect();
    holder.ask(&Request::Attach { job: "held".into(), rank: None }).unwrap();
    let mut random = hectare_testing::Random(7);
    let mut random = move || random.next();
    for input in 0..4000 {
        let socket = Socket::connect(&host.dir.socket()).unwrap().unwrap();
        let len = random() as usize % 60 + 1;
        let mut bytes: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        // Most begin as messages do, and many have small numbers where there are variants and lengths.
        if input % 8 != 0 {
            bytes.splice(0..0, hectare_wire::encode(&Request::Ping).unwrap()[..4].iter().copied());
            bytes[4] %= 16;
            bytes.iter_mut().skip(5).for_each(|byte| *byte %= 40);
        }
        let file = (input % 16 == 0).then(|| std::fs::File::open("/dev/null").unwrap());
        let _ = socket.send(&bytes, file.as_ref().map(std::os::fd::AsFd::as_fd));
        if input % 3 == 0 {
            let _ = socket.send(&bytes, None);
        }
        if input % 500 == 0 {
            assert!(holder.ask(&Request::Ping).is_ok());
        }
    }
    let refused = Socket::connect(&host.dir.socket()).unwrap().unwrap();
    refused.send(&vec![1; hectare_wire::MAX_MESSAGE + 1], None).unwrap();
    assert!(matches!(
        holder.ask(&Request::Attach { job: "held".into(), rank: None }),
        Err(hectare_wire::Error::Refused(Refusal::UnexpectedRequest { .. }))
    ));
    let held = |line: &hectare_wire::JobLine| line.job == "held" && line.members == 1;
    assert!(host.jobs().iter().any(held));
    assert!(!daemon.log().contains("panicked"));
    drop(refused);
    assert!(daemon.terminate().success());
}

/// Whoever replaces a dead process has its room, however late the daemon comes to the death.
#[test]
fn the_room_of_the_dead_is_free_for_whoever_asks_next() {
    let host = Host::new();
    let daemon = host.daemon("");
    let settings = JobSettings { workers: Some(1), ..JobSettings::default() };
    let create = Request::Create { job: "j".into(), settings, keep: true };
    Connection::open(&host.dir).unwrap().order(&create).unwrap();
    let attach = Request::Attach { job: "j".into(), rank: None };
    let stopped =
        |signal| rustix::process::kill_process(rustix::process::Pid::from_child(&daemon.child), signal);
    for _ in 0..10 {
        let mut dies = Member::start(&host, "worker");
        assert_eq!(dies.hear(), "0 0");
        let next = Connection::open(&host.dir).unwrap();
        assert!(matches!(next.ask(&attach), Err(hectare_wire::Error::Refused(Refusal::Quota { .. }))));
        stopped(rustix::process::Signal::STOP).unwrap();
        dies.kill();
        let answer = std::thread::scope(|scope| {
            let asked = scope.spawn(|| next.ask(&attach));
            std::thread::sleep(std::time::Duration::from_millis(20));
            stopped(rustix::process::Signal::CONT).unwrap();
            asked.join().unwrap()
        });
        assert!(matches!(answer, Ok((Reply::Attached { rank: 0, .. }, _))), "{answer:?}");
        drop(next);
        until("the rank to come back", || host.jobs()[0].ranks == 0);
    }
}
