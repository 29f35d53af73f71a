//! Clients that send descriptors, take no answers, or take up all room: the daemon goes on, and its user is not locked
//! out.
use crate::common::{Daemon, Host, role_here, until};
use hectare_wire::{
    Connection, Error, JobSettings, Received, Refusal, Reply, Request, Socket, decode, encode,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use std::io::Write;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

const ROLE: &str = "HOSTILE_TEST_ROLE";
const SMALL: &str = "[defaults]\nbytes = 65536\n";

/// A message with any number of descriptors.
fn send(socket: &Socket, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    sendmsg(socket.as_fd(), &[rustix::io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

fn socket(host: &Host) -> Socket {
    Socket::connect_within(&host.dir.socket(), Some(Duration::from_secs(5))).unwrap().unwrap()
}

fn answers(host: &Host) {
    host.connect().ask(&Request::Ping).expect("the daemon answers");
}

/// A connection whose last descriptor takes an hour to close: it lingers over what its other end does not read.
fn lingering(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::from_secs(3600))).unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(&[0; 1 << 16]).is_ok() {}
    (stream, other)
}

#[test]
fn a_descriptor_that_blocks_in_close_freezes_nothing() {
    let host = Host::new();
    let daemon = host.daemon(SMALL);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Stopped while something is sent, so that its end of the descriptors is the last one.
    let pid = rustix::process::Pid::from_child(&daemon.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let mut others = Vec::new();
    let (ping, adopt) = (Request::Ping, Request::Adopt { job: "j".into(), keep: false, ranks: vec![] });
    // Alone and in numbers, where none belongs and where one does.
    for (request, count) in [(&ping, 1), (&ping, 20), (&adopt, 1), (&adopt, 20)] {
        let (streams, rest): (Vec<_>, Vec<_>) = (0..count).map(|_| lingering(&listener)).unzip();
        others.extend(rest);
        let socket = socket(&host);
        let fds: Vec<_> = streams.iter().map(AsFd::as_fd).collect();
        signal(Signal::STOP);
        send(&socket, &encode(request).unwrap(), &fds).unwrap();
        drop(streams);
        signal(Signal::CONT);
        answers(&host);
        assert!(matches!(socket.receive(), Ok(Received::Message(..))), "it is told why");
    }
    // In a message that is never read: its connection ends with the one before.
    let (stream, other) = lingering(&listener);
    others.push(other);
    let rude = socket(&host);
    signal(Signal::STOP);
    rude.send(b"no message", None).unwrap();
    send(&rude, &encode(&ping).unwrap(), &[stream.as_fd()]).unwrap();
    drop(stream);
    signal(Signal::CONT);
    answers(&host);
    // Memory that is no job's, and a file that is no memory.
    let connection = host.connect();
    let file = tempfile::tempfile().unwrap();
    let refused = connection.ask_with(&adopt, Some(file.as_fd()));
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotAdopted { .. }))), "{refused:?}");
    answers(&host);
    until("all to be closed", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).unwrap().flatten();
        !files.flat_map(|file| std::fs::read_link(file.path())).any(|to| is_tcp(&to))
    });
    assert!(daemon.terminate().success());
}

/// Whether a link of `/proc/PID/fd` is to a connection over TCP.
fn is_tcp(link: &std::path::Path) -> bool {
    let link = link.to_string_lossy();
    let Some(inode) = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) else {
        return false;
    };
    let tcp = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    tcp.lines().any(|line| line.split_whitespace().nth(9) == Some(inode))
}

#[test]
fn who_sends_descriptors_that_nobody_asked_for_is_named_and_given_up() {
    let host = Host::new();
    let daemon = host.daemon(SMALL);
    let null = std::fs::File::open("/dev/null").unwrap();
    let socket = socket(&host);
    send(&socket, &encode(&Request::Ping).unwrap(), &[null.as_fd(); 200]).unwrap();
    let Ok(Received::Message(bytes, _)) = socket.receive() else { panic!("no answer") };
    let Ok(Reply::Refused(refusal)) = decode::<Reply>(&bytes) else { panic!("{bytes:?}") };
    let said = refusal.to_string();
    let own = format!("200 descriptors came with it, and 0 may: process {} sent them", std::process::id());
    assert!(said.contains(&own), "{said}");
    assert!(matches!(socket.receive(), Ok(Received::Closed)));
    daemon.wait_for(&own);
    // A client of another release may bring what it likes: it is told that.
    let other = self::socket(&host);
    send(&other, b"Hc\xff\x00something new", &[null.as_fd(); 3]).unwrap();
    let Ok(Received::Message(bytes, _)) = other.receive() else { panic!("no answer") };
    assert!(matches!(decode(&bytes), Ok(Reply::Refused(Refusal::Version { .. }))), "{bytes:?}");
}

/// Unread messages in the connection of a member that broke the rules do not stay in flight; its ranks stay its own.
#[test]
fn a_member_that_is_dropped_has_no_queue() {
    let host = Host::new();
    let _daemon = host.daemon(SMALL);
    let socket = socket(&host);
    socket.send(&encode(&Request::Attach { job: "j".into(), rank: None }).unwrap(), None).unwrap();
    assert!(matches!(socket.receive(), Ok(Received::Message(_, Some(_)))));
    socket.send(b"no message", None).unwrap();
    assert!(matches!(socket.receive(), Ok(Received::Message(..))));
    until("the connection to end", || {
        let null = std::fs::File::open("/dev/null").unwrap();
        matches!(socket.send(b"more", Some(null.as_fd())), Err(Error::Closed))
    });
    assert_eq!((host.jobs()[0].members, host.jobs()[0].ranks), (1, 1));
}

#[test]
fn answers_with_descriptors_do_not_pile_up() {
    let host = Host::new();
    let daemon = host.daemon(SMALL);
    let create = Request::Create { job: "j".into(), settings: JobSettings::default(), keep: true };
    host.connect().order(&create).unwrap();
    let open = Request::Open { job: "j".into() };
    let socket = socket(&host);
    for _ in 0..30 {
        // The last ones find nobody there any more.
        let _ = socket.send(&encode(&open).unwrap(), None);
    }
    daemon.wait_for("closed the connection of a client that takes no answers");
    // Who takes each has as many as he likes.
    let connection = host.connect();
    (0..100).for_each(|_| drop(connection.ask(&open).unwrap()));
}

/// The program of a started process, as another user; nothing when the tests themselves run.
#[test]
fn role() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // More in flight than the daemon may have open.
    let (ours, _theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [null.as_fd(); 100];
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(&ours, &[rustix::io::IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
    println!("SAYS in flight");
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// The kernel counts descriptors in flight per user. One process can use all of them up; the daemon says so, and who.
#[test]
fn too_many_descriptors_in_flight_are_named() {
    use std::os::unix::process::CommandExt;
    if rustix::process::geteuid().as_raw() != 0 {
        return println!("skipped: only root can start a daemon of a user who has no other processes");
    }
    // The system's users are not that many.
    let user = 61_234;
    let host = Host::new();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(host.top.path(), open).unwrap();
    host.dir.make().unwrap();
    std::os::unix::fs::chown(host.dir.path(), Some(user), Some(user)).unwrap();
    // Copies that the other user may run, wherever the build directory is.
    let copy = |name: &str, from: &std::path::Path| {
        let to = host.top.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let hectared = copy("hectared", env!("CARGO_BIN_EXE_hectared").as_ref());
    let hectare = copy("hectare", env!("CARGO_BIN_EXE_hectare").as_ref());
    let test = copy("test", &std::env::current_exe().unwrap());
    let as_user = |program: &std::path::Path| {
        let mut command = host.command(program.to_str().unwrap());
        command.uid(user).gid(user).current_dir("/");
        command
    };
    let mut limited = host.command("sh");
    limited.uid(user).gid(user).args(["-c", "ulimit -n 64; exec \"$0\" --log-format json"]).arg(&hectared);
    let mut child = limited.stderr(Stdio::piped()).spawn().unwrap();
    let log = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let (mut from, to) = (child.stderr.take().unwrap(), log.clone());
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(got @ 1..) = std::io::Read::read(&mut from, &mut piece) {
            to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..got]));
        }
    });
    let daemon = Daemon { child, log };
    daemon.wait_for("\"message\":\"ready\"");
    let run = |args: &[&str]| as_user(&hectare).args(args).output().unwrap();
    assert!(run(&["job", "create", "j", "--keep", "--bytes", "65536"]).status.success());
    assert!(run(&["areas", "j"]).status.success());

    let mut holder = as_user(&test);
    holder
        .env(ROLE, "1")
        .args(["--exact", &role_here(), "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut holder = Kept(holder.spawn().unwrap());
    let mut says = std::io::BufReader::new(holder.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("SAYS in flight") {
        assert!(std::io::BufRead::read_line(&mut says, &mut line).unwrap() > 0, "{line}");
    }
    let output = run(&["areas", "j"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("descriptors in flight") && said.contains("64 allowed"), "{said}");
    daemon.wait_for("this process leaves some untaken");
    assert!(daemon.log().contains(&format!("\"pid\":{}", holder.0.id())), "{}", daemon.log());
    // It had not become a member: what was granted is taken back.
    assert!(!run(&["run", "-n", "1", "--job", "j", "--", "true"]).status.success());
    drop(holder);
    assert!(run(&["areas", "j"]).status.success());
    let ping = run(&["ps"]);
    assert!(ping.status.success() && String::from_utf8_lossy(&ping.stdout).lines().count() == 1, "{ping:?}");
}

struct Kept(std::process::Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quota_by(result: Result<(Reply, Option<std::os::fd::OwnedFd>), Error>, part: &str) {
    match result {
        Err(Error::Refused(Refusal::Quota { by, .. })) => assert!(by.contains(part), "{by}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_user_looks_although_all_connections_are_taken() {
    let host = Host::new();
    let _daemon = host.daemon(&format!("max_clients = 3\n{SMALL}"));
    let hold = |job: &str| {
        let connection = host.connect();
        connection.order(&Request::Hold { job: job.into() }).unwrap();
        connection
    };
    let members = [hold("a"), hold("b"), hold("c")];
    // Others that came first and say nothing do not keep the user out either.
    let first = host.connect();
    let mut idle: Vec<Connection> = Vec::new();
    for _ in 0..40 {
        idle.push(host.connect());
        let said = host.hectare(&["jobs"]);
        assert_eq!((said.code, said.out.lines().count()), (0, 4), "{said:?}");
    }
    assert_eq!(host.hectare(&["ps"]).code, 0);
    let said = host.hectare(&["run", "-n", "1", "--", "true"]);
    assert!(said.code == 4 && said.err.contains("max_clients of the daemon"), "{said:?}");
    quota_by(first.ask(&Request::Ping), "max_clients of the daemon");
    assert_eq!(host.hectare(&["job", "remove", "--force", "a"]).code, 0);
    // Who came when there was no room has it when there is some.
    let late = host.connect();
    quota_by(late.ask(&Request::Hold { job: "d".into() }), "max_clients of the daemon");
    drop(members);
    until("room", || late.order(&Request::Hold { job: "d".into() }).is_ok());
}

#[test]
fn one_process_has_not_all_connections() {
    let host = Host::new();
    let _daemon = host.daemon(&format!("max_clients_per_process = 3\n{SMALL}"));
    let own = [host.connect(), host.connect(), host.connect()];
    own.iter().for_each(|connection| drop(connection.ask(&Request::Ping).unwrap()));
    for _ in 0..200 {
        quota_by(host.connect().ask(&Request::Ping), "max_clients_per_process of the daemon");
    }
    assert_eq!(host.hectare(&["jobs"]).code, 0, "other processes have their own");
    drop(own);
    until("room", || host.connect().ask(&Request::Ping).is_ok());
}

#[test]
fn a_job_that_nobody_joins_goes() {
    let host = Host::new();
    let daemon = host.daemon(&format!("max_jobs = 3\njoin_within_s = 1\n{SMALL}"));
    let create = |job: &str, keep| {
        host.connect().order(&Request::Create { job: job.into(), settings: JobSettings::default(), keep })
    };
    create("kept", true).unwrap();
    create("joined", false).unwrap();
    let member = host.connect();
    member.order(&Request::Hold { job: "joined".into() }).unwrap();
    create("forgotten", false).unwrap();
    assert!(create("another", false).is_err(), "max_jobs");
    let waiter = host.connect();
    waiter.order(&Request::Wait { job: "forgotten".into() }).unwrap();
    // Who waited for its end is told.
    daemon.wait_for("nobody joined it in time");
    let names: Vec<String> = host.jobs().into_iter().map(|line| line.job).collect();
    assert_eq!(names, ["joined", "kept"]);
    create("another", false).unwrap();
}

/// The daemon's own control group is charged for the parts of a job's memory that the daemon touches: the worker table,
/// which has a mutex per rank. Tables of areas are touched by who creates areas.
/// per rank. Tables of areas are touched by who creates areas.
#[test]
fn what_the_daemon_is_charged_for_a_job_is_little() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let settings =
        JobSettings { workers: Some(4096), areas: Some(1 << 20), bytes: Some(1 << 40), ..Default::default() };
    let create = Request::Create { job: "j".into(), settings, keep: true };
    host.connect().order(&create).unwrap();
    let huge =
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    // 128 bytes a worker, as much again for the rest; on some hosts in pages of 2 MiB.
    let most = if huge.contains("[always]") || huge.contains("[force]") { 4 << 20 } else { 4096 * 256 };
    assert!(host.jobs()[0].resident_bytes <= most, "{} bytes", host.jobs()[0].resident_bytes);
}
