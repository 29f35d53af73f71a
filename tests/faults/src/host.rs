//! A run directory with a daemon in it: this program, started again as `hectared`.
use anyhow::{Context, Result, bail};
use hectare_dsm::Job;
use hectare_wire::{Connection, JobLine, Reply, Request, RunDir};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long anything is waited for before the campaign calls it missing.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(120);

/// The standard error of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Collects the lines of a stream until it ends.
    pub(crate) fn of(stream: impl std::io::Read + Send + 'static) -> Log {
        let log = Log::default();
        let copy = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(std::result::Result::ok) {
                let mut text = copy.0.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&line);
                text.push('\n');
            }
        });
        log
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How often the log has `part`.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).matches(part).count()
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, so: impl FnMut() -> bool) -> Result<Duration> {
    within(WATCHDOG, what, so)
}

/// Waits until something is so, but not for longer than `limit`.
pub(crate) fn within(limit: Duration, what: &str, mut so: impl FnMut() -> bool) -> Result<Duration> {
    let since = Instant::now();
    while !so() {
        if since.elapsed() > limit {
            bail!("waited in vain for {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(since.elapsed())
}

/// Descriptors that a process has open.
pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) log: Log,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ends(&mut self) -> Result<ExitStatus> {
        let mut status = None;
        until("the daemon's end", || {
            status = self.child.try_wait().unwrap_or_default();
            status.is_some()
        })?;
        status.context("the daemon's status")
    }

    pub(crate) fn terminate(mut self) -> Result<ExitStatus> {
        crate::system::signal(self.pid(), libc::SIGTERM)?;
        self.ends()
    }

    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of this campaign, removed with it.
#[derive(Debug)]
pub(crate) struct Host {
    top: PathBuf,
    pub(crate) dir: RunDir,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.top);
    }
}

impl Host {
    pub(crate) fn new() -> Result<Host> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("hectare-faults-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&top).with_context(|| format!("making {}", top.display()))?;
        let dir = RunDir::at(top.join("run"));
        Ok(Host { top, dir })
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// This program in another role, which finds this host's daemon.
    pub(crate) fn role(&self, role: &[&str]) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe().context("where this program is")?);
        command.arg("role").args(role);
        for name in ["HECTARE_CONFIG", "HECTARE_JOB", "HECTARE_RANK", "HECTARE_SIZE", "XDG_CONFIG_HOME"] {
            command.env_remove(name);
        }
        command.env("HECTARE_RUN_DIR", self.dir.path()).env("HOME", &self.top);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs a role to its end; what it said on standard output, and what on standard error.
    pub(crate) fn ask(&self, role: &[&str]) -> Result<(ExitStatus, String, String)> {
        let output = self.role(role)?.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Ok((output.status, text(&output.stdout), text(&output.stderr)))
    }

    /// Starts a daemon with this configuration, without waiting for it.
    pub(crate) fn begin_daemon(&self, config: &str) -> Result<Daemon> {
        let file = self.top.join("hectared.toml");
        std::fs::write(&file, config)?;
        let mut child = self.role(&["daemon", &file.to_string_lossy()])?.spawn()?;
        let log = Log::of(child.stderr.take().context("standard error")?);
        Ok(Daemon { child, log })
    }

    /// Starts a daemon and waits until it answers.
    pub(crate) fn daemon(&self, config: &str) -> Result<Daemon> {
        let mut daemon = self.begin_daemon(config)?;
        let pid = daemon.pid();
        let mut ended = false;
        until("the daemon", || {
            ended = daemon.child.try_wait().is_ok_and(|status| status.is_some());
            ended || self.answers().is_ok_and(|answering| answering == pid)
        })?;
        if ended {
            bail!("the daemon ended: {}", daemon.log.text());
        }
        Ok(daemon)
    }

    pub(crate) fn connect(&self) -> Result<Connection> {
        Ok(Connection::open(&self.dir)?)
    }

    /// The process of the daemon that answers.
    pub(crate) fn answers(&self) -> Result<u32> {
        match self.connect()?.ask(&Request::Ping)?.0 {
            Reply::Pong { pid, .. } => Ok(pid),
            other => bail!("{other:?} instead of a pong"),
        }
    }

    pub(crate) fn jobs(&self) -> Result<Vec<JobLine>> {
        match self.connect()?.ask(&Request::Jobs { after: String::new() })?.0 {
            Reply::Jobs { jobs, .. } => Ok(jobs),
            other => bail!("{other:?} instead of jobs"),
        }
    }

    /// The daemon's report on a job.
    pub(crate) fn job_line(&self, job: &str) -> Result<JobLine> {
        let mut lines = self.jobs()?.into_iter();
        lines.find(|line| line.job == job).with_context(|| format!("the daemon has no job {job:?}"))
    }

    /// Looks at a job from outside, as `hectare stat` does.
    pub(crate) fn open(&self, job: &str) -> Result<Job> {
        let (_, descriptor) = self.connect()?.ask(&Request::Open { job: job.into() })?;
        Ok(Job::from_descriptor(descriptor.context("the job's memory")?)?)
    }
}

/// The role of the daemon: what `hectared` does.
pub(crate) fn serve(config: &str) -> Result<()> {
    use hectare_daemon::{config::Config, logging, server::Server};
    let config = Config::load(Some(config.into()))?;
    logging::start(&config.log)?;
    let (stop, signalled) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, signalled)?;
    Ok(Server::start(&config)?.serve(stop)?)
}
