//! The daemon as a service: what it tells the service manager, and its unit file.
use crate::common::{Host, WATCHDOG};
use hectare_testing::skip;
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
