//! The daemon as a service: what it tells the service manager, and its unit file.
use crate::common::{Host, WATCHDOG};
use hectare_testing::skip;
use hectare_wire::{Cipher, JobHost, JobHosts, JobSettings, Request, TransportChoice};
use rustix::process::{Pid, Signal};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

#[test]
fn the_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    let host = Host::new();
    let path = host.top.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(WATCHDOG)).unwrap();
    let mut command = host.command(env!("CARGO_BIN_EXE_hectared"));
    let mut daemon = command.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let got = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..got]).into_owned()
    };
    assert_eq!(heard(), "READY=1");
    // Ready means that it can be reached.
    host.connect();
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    let reloading = heard();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(heard(), "READY=1");
    host.connect();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(heard(), "STOPPING=1");
    assert!(daemon.wait().unwrap().success());
}

fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn what_ends_a_daemon_in_a_shell_ends_no_agent() {
    let host = Host::new();
    let key = host.top.path().join("key");
    hectare_daemon::key_file::make(&key, "lab").unwrap();
    let daemon = host.daemon("");
    let of = |name: &str, port: u16| JobHost {
        name: name.into(),
        address: ([127, 0, 0, 1], port).into(),
        ranks: 1,
        dpdk: None,
    };
    let hosts = JobHosts {
        id: [4; 16],
        index: 0,
        hosts: vec![of("here", free_port()), of("there", 1)],
        key_file: key.to_str().unwrap().into(),
        silence_ms: JobHosts::SILENCE_MS,
        cipher: Cipher::default(),
        transport: TransportChoice::Udp,
    };
    let settings = JobSettings { bytes: Some(1 << 20), ..JobSettings::default() };
    let make = Request::CreateOnHosts { job: "j".into(), settings, keep: false, hosts: Box::new(hosts) };
    host.connect().order(&make).unwrap();
    daemon.wait_for("the agent is here");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("agent started")).unwrap();
    let agent = serde_json::from_str::<serde_json::Value>(line).unwrap()["pid"].as_u64().unwrap();
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{agent}/{file}")).unwrap();
    assert_eq!(read("comm").trim(), "hectare-agent");
    let pid = Pid::from_raw(agent as i32).unwrap();
    assert_eq!(rustix::process::getpgid(Some(pid)).unwrap(), pid, "it is in no group of a shell's");
    for signal in [Signal::INT, Signal::HUP] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    let ignored =
        read("status").lines().find_map(|line| Some(line.strip_prefix("SigIgn:")?.trim().to_owned()));
    let ignored = u64::from_str_radix(&ignored.unwrap(), 16).unwrap();
    assert_eq!(ignored & 0b11, 0b11, "SIGHUP and SIGINT");
    host.connect().order(&Request::Remove { job: "j".into(), force: true }).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert!(daemon.terminate().success());
}

#[test]
fn the_unit_file_is_one() {
    let unit = include_str!("../hectared.service");
    // Signals that others send count as a good end for systemd, so on-failure would leave it at that.
    for line in [
        "Restart=always",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "RestartPreventExitStatus=2 4 5 6",
        "KillMode=process",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    // Agents are in the service, too: as many as there are jobs, and some lock memory.
    for limit in ["TasksMax=", "LimitMEMLOCK="] {
        assert!(!unit.lines().any(|line| line.starts_with(limit)), "{limit}");
    }
    let families = unit.lines().find(|line| line.starts_with("RestrictAddressFamilies=")).unwrap();
    assert!(families.contains("AF_NETLINK"), "libibverbs finds devices by it: {families}");
    let host = Host::new();
    // The program of this build in place of the installed one, which is looked for, too.
    let program = format!("ExecStart={}", env!("CARGO_BIN_EXE_hectared"));
    let lines = unit.lines().map(|line| if line.starts_with("ExecStart=") { &program } else { line });
    let file = host.top.path().join("hectared.service");
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let verify = |more: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no"]).args(more).arg(&file).env("XDG_RUNTIME_DIR", host.top.path());
        command.output()
    };
    for more in [&[][..], &["--user"]] {
        match verify(more) {
            Err(error) => return skip("systemd-analyze", error),
            Ok(said) => {
                let err = String::from_utf8_lossy(&said.stderr);
                assert!(said.status.success() && err.is_empty(), "{more:?}: {err}");
            }
        }
    }
    // And it says no to what is wrong.
    std::fs::write(&file, unit.replace("Type=notify", "Type=notfiy")).unwrap();
    assert!(!verify(&["--user"]).unwrap().stderr.is_empty());
}
