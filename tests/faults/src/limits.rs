//! Faults 18, 46, 49 and 50: memory, descriptors and rights that run out.
use crate::constants::JOB;
use crate::host::{Host, descriptors, until};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use crate::system;
use anyhow::{Context, Result, bail, ensure};
use hectare_dsm::{AreaSpec, Error, Job, Tracking};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A memory control group below this process's own, version 1 or 2; removed when it is dropped.
#[derive(Debug)]
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has ended may be accounted for a moment longer.
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Group {
    /// A group with a limit in bytes; else why there is none.
    fn new(limit: u64) -> std::result::Result<Group, String> {
        let own = std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let path = |mark: &str| {
            own.lines().find_map(|line| line.split_once(mark).map(|(_, path)| path.trim_start_matches('/')))
        };
        let candidates = [
            ("/sys/fs/cgroup/memory", path(":memory:"), "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", path("0::"), "memory.max"),
        ];
        for (mount, path, file) in candidates {
            let Some(path) = path else { continue };
            let parent = Path::new(mount).join(path);
            if !parent.join("cgroup.procs").exists() {
                continue;
            }
            let group = Group(parent.join(format!("hectare-faults-{}", std::process::id())));
            let made = std::fs::create_dir(&group.0)
                .and_then(|()| std::fs::write(group.0.join(file), limit.to_string()));
            return made.map(|()| group).map_err(|error| format!("no limit for a control group: {error}"));
        }
        Err("no memory control group".into())
    }

    fn take_in(&self, pid: u32) -> Result<()> {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).context("moving into a control group")
    }

    /// Processes that the kernel killed in it.
    fn kills(&self) -> u64 {
        let files = ["memory.oom_control", "memory.events"];
        let text: String =
            files.iter().filter_map(|file| std::fs::read_to_string(self.0.join(file)).ok()).collect();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }
}

/// 18: out of memory: the kernel kills a worker, and a daemon.
pub(crate) fn killed(stage: &mut Stage) -> Result<Verdict> {
    const LIMIT: u64 = 64 << 20;
    let group = match Group::new(LIMIT) {
        Ok(group) => group,
        Err(why) => return Ok(Verdict::Skipped(why)),
    };
    let index = stage.any();
    let (before, deaths) = (stage.stats()?, stage.deaths()?);
    group.take_in(stage.load.members[index].pid())?;
    stage.load.members[index].order("eat")?;
    stage.load.members[index].wait()?;
    stage.survivors_go_on(Instant::now(), &[index])?;
    stage.seen_dead(&before, deaths)?;
    stage.replace(index)?;
    let workers = group.kills();
    ensure!(workers == 1, "{workers} processes were killed for memory");
    drop(group);

    // A daemon that may take no further page dies when it makes a job.
    let group = match Group::new(4096) {
        Ok(group) => group,
        Err(why) => return Ok(Verdict::Skipped(why)),
    };
    let host = Host::new()?;
    let mut daemon = host.daemon("")?;
    group.take_in(daemon.pid())?;
    let connection = host.connect()?;
    let make = |n: u32| hectare_wire::Request::Create {
        job: format!("j{n}"),
        settings: crate::stage::settings(),
        keep: true,
    };
    ensure!((0..50).any(|n| connection.order(&make(n)).is_err()), "the daemon found memory beyond its limit");
    daemon.ends()?;
    let next = host.daemon("")?;
    ensure!(next.terminate()?.success());
    Ok(Verdict::Held(format!(
        "{} killed by the kernel; the survivors and the next daemon went on",
        group.kills() + workers
    )))
}

/// Takes memory until there is none; the order of a worker.
pub(crate) fn eat() -> ! {
    let mut eaten = Vec::new();
    loop {
        eaten.push(vec![1u8; 1 << 20]);
        std::hint::black_box(&mut eaten);
    }
}

/// The role that asks for more than its control group has.
pub(crate) fn beyond_the_limit(group: &str) -> Result<()> {
    std::fs::write(Path::new(group).join("cgroup.procs"), std::process::id().to_string())?;
    let job = Job::connect(JOB)?;
    let mut worker = job.worker()?;
    worker.leave_clocks();
    let bare = |name: &str| AreaSpec::new(name).copies(0).tracking(Tracking::Whole);
    match worker.create::<u8>(bare("scratch/sea"), 40 << 20) {
        Err(Error::OutOfMemory { payer, .. }) if payer.contains("hectare-faults") => {}
        other => bail!("an area beyond the group's limit: {other:?}"),
    }
    let mut small = worker.create::<u8>(bare("scratch/pond"), 1 << 20)?;
    small.write(&worker)?.fill(1);
    small.delete(&mut worker)?;
    worker.sync()?;
    println!("refused");
    Ok(())
}

/// 46: no memory behind the segment, no room in the run directory's file system: an error, never SIGBUS.
pub(crate) fn full(stage: &mut Stage) -> Result<Verdict> {
    let group = match Group::new(32 << 20) {
        Ok(group) => group,
        Err(why) => return Ok(Verdict::Skipped(why)),
    };
    let (status, said, error) = stage.host.ask(&["beyond", &group.0.to_string_lossy()])?;
    ensure!(status.success() && said == "refused", "{status}: {said} {error}");
    drop(group);
    stage.survivors_go_on(Instant::now(), &[])?;

    let host = Host::new()?;
    let place = host.dir.path();
    std::fs::create_dir(place)?;
    // Room for the directory itself, and for no socket.
    let mount = |args: &[&str]| {
        let mut command = Command::new("mount");
        command.args(args).arg(place).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=4k,nr_inodes=1,mode=0700", "tmpfs"]) {
        return Ok(Verdict::Held(
            "an area beyond a control group's limit refused; no tmpfs can be mounted".into(),
        ));
    }
    let refused = host.begin_daemon("").and_then(crate::daemon::refusal);
    let roomy = mount(&["-o", "remount,size=1m,nr_inodes=20"]);
    let begun = if roomy { host.daemon("").and_then(|daemon| daemon.terminate()) } else { bail!("remount") };
    let unmounted = Command::new("umount").arg(place).status();
    let said = refused?;
    ensure!(said.contains("No space left"), "{said}");
    ensure!(begun?.success() && unmounted?.success());
    Ok(Verdict::Held("an area and a daemon refused; with room both begin".into()))
}

/// The role that has few descriptors, or may lock no memory.
pub(crate) fn limited(what: &str) -> Result<()> {
    match what {
        "descriptors" => {
            let _taken: Vec<_> =
                (0..20).map(|_| std::fs::File::open("/dev/null")).collect::<Result<_, _>>()?;
            system::limit(libc::RLIMIT_NOFILE, descriptors(std::process::id()) as u64 - 1)?;
            let error = match Job::connect(JOB) {
                Err(error) => error.to_string(),
                Ok(_) => bail!("connected without descriptors"),
            };
            ensure!(error.contains("Too many open files") || error.contains("os error 24"), "{error}");
        }
        _ => {
            system::limit(libc::RLIMIT_MEMLOCK, 0)?;
            let job = Job::connect(JOB)?;
            let mut worker = job.worker()?;
            worker.leave_clocks();
            let mut owned = worker.create::<u64>("scratch/unlocked", 100_000)?;
            owned.write(&worker)?.fill(3);
            worker.sync()?;
            ensure!(owned.area().read(&worker)?.iter().all(|value| *value == 3));
            owned.delete(&mut worker)?;
            worker.sync()?;
        }
    }
    println!("held");
    Ok(())
}

/// 49: limits of descriptors and of locked memory, of a client and of the daemon.
pub(crate) fn limits(stage: &mut Stage) -> Result<Verdict> {
    for what in ["descriptors", "locked"] {
        let (status, said, error) = stage.host.ask(&["limited", what])?;
        ensure!(status.success() && said == "held", "{what}: {status}: {said} {error}");
    }
    stage.survivors_go_on(Instant::now(), &[])?;
    let host = Host::new()?;
    let file = host.top().join("hectared.toml");
    std::fs::write(&file, "")?;
    let mut command = host.role(&["daemon", &file.to_string_lossy()])?;
    system::before_exec(&mut command, || system::limit(libc::RLIMIT_NOFILE, 24));
    let mut child = command.spawn()?;
    let log = crate::host::Log::of(child.stderr.take().context("standard error")?);
    let daemon = crate::host::Daemon { child, log };
    until("the daemon", || host.answers().is_ok())?;
    // Connections beyond its descriptors wait in the queue, and it does not end.
    let before = descriptors(daemon.pid());
    let many: Vec<_> = (0..60).filter_map(|_| host.connect().ok()).collect();
    until("the limit", || daemon.log.count("no connection can be taken") > 0)
        .map_err(|_| Violation::new(Promise::G, daemon.log.text()))?;
    drop(many);
    until("descriptors to be free again", || host.answers().is_ok() && descriptors(daemon.pid()) <= before)?;
    ensure!(daemon.terminate()?.success());
    Ok(Verdict::Held("a client gets an error, a daemon lets clients wait, nobody locks memory".into()))
}

/// The role of somebody whom the daemon does not serve.
pub(crate) fn stranger() -> Result<()> {
    match Job::connect(JOB) {
        Err(error) => println!("{error}"),
        Ok(_) => println!("connected"),
    }
    Ok(())
}

/// 50: no permission, and another user.
pub(crate) fn rights(stage: &mut Stage) -> Result<Verdict> {
    const NOBODY: u32 = 65534;
    if rustix::process::geteuid().as_raw() != 0 {
        return Ok(Verdict::Skipped("only root can be two users".into()));
    }
    // The program may lie where nobody else can reach it.
    let program = stage.host.top().join("faults");
    std::fs::copy(std::env::current_exe()?, &program)?;
    let open = |mode: u32| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(stage.host.top(), open(0o755))?;
    let ask = || -> Result<String> {
        let mut command = Command::new(&program);
        command.args(["role", "stranger"]).env("HECTARE_RUN_DIR", stage.host.dir.path());
        let output = command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    };
    let closed = ask()?;
    ensure!(!closed.is_empty() && closed != "connected", "another user got in: {closed}");
    ensure!(closed.lines().count() == 1, "{closed}");
    // As if somebody had opened the directory and the socket: the daemon asks who it is.
    std::fs::set_permissions(stage.host.dir.path(), open(0o755))?;
    std::fs::set_permissions(stage.host.dir.socket(), open(0o666))?;
    let opened = ask();
    std::fs::set_permissions(stage.host.dir.socket(), open(0o600))?;
    std::fs::set_permissions(stage.host.dir.path(), open(0o700))?;
    let opened = opened?;
    ensure!(opened != "connected", "another user got in");
    std::fs::remove_file(&program)?;
    stage.survivors_go_on(Instant::now(), &[])?;
    Ok(Verdict::Held(
        "another user is refused by the directory and by what both sides know of each other".into(),
    ))
}
