//! Agents of jobs on several hosts: a process for each, started by the daemon, watched, and started again when it has died.
//!
//! The daemon never maps a job's memory: its agent does, in a process of its own, which has the memory as its standard input.
use crate::logging;
use crate::metrics::counts::COUNTS;
use hectare_agent::Order;
use hectare_wire::{AgentConnection, AgentReply, AgentRequest, Error, JobHosts, RunDir, remove_dead_agents};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// The first argument of the program when it runs as an agent; the second is the name of the job.
pub const WORD: &str = "agent";
/// The variable that holds its [`Order`], as JSON.
const ORDER: &str = "HECTARE_AGENT_ORDER";
/// The variable that holds how its daemon logs, as JSON.
const LOG: &str = "HECTARE_AGENT_LOG";
/// The exit code of an agent that is not to be started again.
const FOR_GOOD: [i32; 2] = [0, 2];
/// The exit code of an agent that found another one in the job, which is to be followed.
const TAKEN: i32 = 3;
/// The pause before a dead agent is replaced, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];
/// The time limit for answers of an agent that another daemon started, and the time between two checks whether the job is over.
const ANSWER: Duration = Duration::from_millis(500);
/// An agent that lived this long did not fail at its start.
const LONG: Duration = Duration::from_secs(10);
/// An agent that lived so many times the pause before it has worked: the next pause is the first one again.
const PAUSES_LIVED: u32 = 10;

/// The pause before the next agent is started, after one that lived so long; `last` is the pause before that one.
fn pause_after(lived: Duration, last: Option<Duration>, longest: Duration) -> Duration {
    match last {
        Some(last) if lived < last * PAUSES_LIVED => (last * 2).min(longest),
        _ => PAUSES[0],
    }
}

/// The longest pause before an agent is replaced, such that several in a row are no silence that ends the job.
fn longest_pause(hosts: &JobHosts) -> Duration {
    PAUSES[1].min(Duration::from_millis(hosts.silence_ms) / 10).max(PAUSES[0])
}

/// How long agents of a job may fail at their start before the last one is started: less than the time after which other hosts give
/// this one up, so that the job's members hear why.
fn longest_failing(hosts: &JobHosts) -> Duration {
    Duration::from_millis(hosts.silence_ms) / 2
}

/// Runs this process as the agent of a job, by an order of the daemon; for `hectared`.
pub fn run() -> ExitCode {
    // It was started by a link, whose name `ps` would show.
    let _ = rustix::thread::set_name(c"hectare-agent");
    ignore_terminal();
    // Without a log there is still an agent.
    let log = std::env::var(LOG).ok().and_then(|log| serde_json::from_str(&log).ok());
    let _ = logging::start(&log.unwrap_or_default());
    let code = hectare_agent::main_of(&std::env::var(ORDER).unwrap_or_default());
    logging::finish();
    ExitCode::from(code)
}

/// Ctrl-C, or the end of the terminal, ends a daemon that was started in a shell, but no agent: jobs go on without a daemon.
fn ignore_terminal() {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: ignoring a signal runs no code, and nothing here handles these.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The agent of a job, as long as this value is there.
#[derive(Debug)]
pub(crate) struct Agent {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    order: Order,
    /// Of the job.
    memory: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    /// The other end of the agent's standard output: the agent goes on as long as it is open.
    pipe: Option<ChildStdout>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process, unless the job is over. Agents have failed at their start for so long.
    fn spawn(&self, failing: Duration) -> io::Result<Option<Child>> {
        let mut state = self.lock();
        if state.ended {
            return Ok(None);
        }
        let is_last_try = failing > longest_failing(&self.order.hosts);
        let order = Order { is_last_try, ..self.order.clone() };
        let mut command = Command::new("/proc/self/exe");
        // Listings of processes show the job; its order is for the process alone.
        command
            .arg0("hectared")
            .args([WORD, &self.order.job])
            // A terminal signals the daemon's group.
            .process_group(0)
            .env(ORDER, serde_json::to_string(&order)?)
            .env(LOG, serde_json::to_string(&logging::running())?)
            .stdin(Stdio::from(self.memory.try_clone()?));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        state.pipe = child.stdout.take();
        info!(job = self.order.job, pid = child.id(), "agent started");
        Ok(Some(child))
    }

    fn watch(&self, mut child: Child) {
        let longest = longest_pause(&self.order.hosts);
        let mut pause = None;
        let mut failing: Option<Instant> = None;
        loop {
            let since = Instant::now();
            let status = child.wait();
            let ended = self.lock().ended;
            if ended && status.as_ref().is_ok_and(|status| status.success()) {
                return;
            }
            match &status {
                Ok(status) if status.code().is_some_and(|code| FOR_GOOD.contains(&code)) => {
                    warn!(job = self.order.job, %status, "the agent has ended for good");
                    COUNTS.agent_ended("for_good");
                    // Those of agents before it, that were killed.
                    return self.clear();
                }
                Ok(status) if ended => {
                    warn!(
                        job = self.order.job,
                        %status,
                        "the job is over, and its agent did not end in order: agents of other hosts may wait for it"
                    );
                    COUNTS.agent_ended("for_good");
                    return self.clear();
                }
                Ok(status) => {
                    warn!(job = self.order.job, %status, "the agent has ended and is started again")
                }
                Err(error) => warn!(job = self.order.job, %error, "the agent is lost and is started again"),
            }
            COUNTS.agent_ended("started_again");
            let mut lived = since.elapsed();
            let is_taken = status.as_ref().is_ok_and(|status| status.code() == Some(TAKEN));
            if lived > LONG || is_taken {
                failing = None;
            }
            let failing = *failing.get_or_insert_with(Instant::now);
            child = loop {
                let next = pause_after(lived, pause, longest);
                std::thread::sleep(next);
                (pause, lived) = (Some(next), Duration::ZERO);
                // Its socket may have been removed by somebody; then it makes it again.
                if is_taken && !self.follow() {
                    return self.clear();
                }
                match self.spawn(failing.elapsed()) {
                    Ok(Some(child)) => break child,
                    Ok(None) => return self.clear(),
                    Err(error) => error!(job = self.order.job, %error, "the agent cannot be started"),
                }
            };
        }
    }

    /// The agent that an earlier daemon started; none if there is none, or the job is over.
    fn find(&self) -> Option<AgentConnection> {
        let mut is_told = false;
        loop {
            match AgentConnection::open(&RunDir::at(&self.order.run_dir), &self.order.job, Some(ANSWER)) {
                Ok(agent) => return agent,
                // It may be there: another one could not take its place. Most likely, it is stopped.
                Err(error) if !is_told => {
                    is_told = true;
                    warn!(job = self.order.job, %error, "the agent of an earlier daemon cannot be asked yet");
                }
                Err(_) => {}
            }
            if self.lock().ended {
                return None;
            }
            std::thread::sleep(ANSWER);
        }
    }

    /// Waits for the end of an agent that an earlier daemon started; whether another has to follow.
    fn follow(&self) -> bool {
        let Some(agent) = self.find() else { return true };
        let mut reply = agent.ask(&AgentRequest::Stay);
        info!(job = self.order.job, "the agent of an earlier daemon goes on");
        loop {
            match reply {
                Ok(AgentReply::EndsForGood) => {
                    warn!(job = self.order.job, "the agent has ended for good");
                    COUNTS.agent_ended("for_good");
                    return false;
                }
                Ok(_) => {}
                Err(Error::Os { source, .. }) if source.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    warn!(job = self.order.job, %error, "the agent has ended and is started again");
                    COUNTS.agent_ended("started_again");
                    return true;
                }
            }
            if self.lock().ended {
                return false;
            }
            reply = agent.next();
        }
    }

    /// Another agent does not follow: those that did not end in order leave nothing behind.
    fn clear(&self) {
        remove_dead_agents(&RunDir::at(&self.order.run_dir), &self.order.job);
    }

    /// Starts an agent, until there is one or the job is over.
    fn start(&self) -> Option<Child> {
        let longest = longest_pause(&self.order.hosts);
        let mut pause = None;
        loop {
            match self.spawn(Duration::ZERO) {
                Ok(child) => return child,
                Err(error) => error!(job = self.order.job, %error, "the agent cannot be started"),
            }
            let next = pause_after(Duration::ZERO, pause, longest);
            std::thread::sleep(next);
            pause = Some(next);
        }
    }
}

impl Agent {
    /// Starts the agent of a job whose memory this is.
    pub(crate) fn start(order: Order, memory: OwnedFd) -> io::Result<Agent> {
        let agent = Agent::new(order, memory);
        match agent.shared.spawn(Duration::ZERO)? {
            Some(child) => agent.in_thread(|shared| shared.watch(child)),
            None => Ok(agent),
        }
    }

    /// The same for a job that an earlier daemon made. Its agent goes on; if it has ended, or when it ends, another is started.
    pub(crate) fn adopt(order: Order, memory: OwnedFd) -> io::Result<Agent> {
        Agent::new(order, memory).in_thread(|shared| match shared.follow().then(|| shared.start()) {
            Some(Some(child)) => shared.watch(child),
            _ => shared.clear(),
        })
    }

    fn new(order: Order, memory: OwnedFd) -> Agent {
        Agent { shared: Arc::new(Shared { order, memory, state: Mutex::default() }) }
    }

    /// Looks after the agent in a thread of its own.
    fn in_thread(self, look_after: impl FnOnce(&Shared) + Send + 'static) -> io::Result<Agent> {
        let shared = self.shared.clone();
        std::thread::Builder::new().name("agent".into()).spawn(move || look_after(&shared))?;
        Ok(self)
    }
}

impl Drop for Agent {
    /// The job is over, or goes on among its members. The agent is not killed: it sends what others lack, and ends when nobody is in
    /// the job.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        state.pipe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_wire::Received;

    #[test]
    fn pauses_grow_while_agents_die_at_once() {
        let [first, longest] = PAUSES;
        let after = |lived| {
            let mut pause = None;
            std::iter::repeat_with(|| *pause.insert(pause_after(lived, pause, longest)))
                .take(20)
                .collect::<Vec<_>>()
        };
        let pauses = after(Duration::from_millis(5));
        assert_eq!(pauses[..3], [first, first * 2, first * 4]);
        assert_eq!(pauses[19], longest);
        // Those that are killed again and again did work.
        assert_eq!(after(Duration::from_millis(500)), [first; 20]);
    }

    #[test]
    fn pauses_between_agents_are_short_beside_the_time_out() {
        let longest = |silence_ms| {
            let key_file = "/k".into();
            let (hosts, cipher, transport) = (Vec::new(), Default::default(), Default::default());
            longest_pause(&JobHosts { id: [1; 16], index: 0, hosts, key_file, silence_ms, cipher, transport })
        };
        assert_eq!(longest(JobHosts::SILENCE_MS), PAUSES[1]);
        assert_eq!(longest(6_000), Duration::from_millis(600));
        assert_eq!(longest(100), PAUSES[0]);
    }

    /// The knowledge of a job whose agent is looked for in a run directory.
    fn shared(run_dir: &std::path::Path) -> Shared {
        let host = hectare_wire::JobHost {
            name: "here".into(),
            address: ([127, 0, 0, 1], 7117).into(),
            ranks: 1,
            dpdk: None,
        };
        let (silence_ms, cipher, transport) = (1000, Default::default(), Default::default());
        let hosts = vec![host];
        let hosts =
            JobHosts { id: [1; 16], index: 0, hosts, key_file: "/k".into(), silence_ms, cipher, transport };
        let (run_dir, dpdk, rdma) = (run_dir.to_owned(), None, None);
        let order = Order { job: "j".into(), hosts, run_dir, dpdk, rdma, is_last_try: false };
        let memory = std::fs::File::open("/dev/null").unwrap().into();
        Shared { order, memory, state: Mutex::default() }
    }

    fn until_something(socket: &hectare_wire::Socket) -> Received {
        loop {
            match socket.receive().unwrap() {
                Received::Nothing => std::thread::sleep(Duration::from_millis(1)),
                something => return something,
            }
        }
    }

    /// Nobody takes connections of a stopped process, and when as many wait as may, the next one fails.
    #[test]
    fn an_agent_that_takes_no_connection_is_still_there() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        let (listener, _place) = hectare_wire::listen_as_agent(&dir, "j", 1).unwrap();
        let open = || AgentConnection::open(&dir, "j", Some(Duration::from_millis(1)));
        let waiting: Vec<AgentConnection> = std::iter::from_fn(|| open().ok().flatten()).collect();
        let shared = shared(top.path());
        std::thread::scope(|scope| {
            let follows = scope.spawn(|| shared.follow());
            std::thread::sleep(2 * ANSWER);
            assert!(!follows.is_finished(), "it takes a stopped agent for one that has ended");
            drop(waiting);
            // It goes on, and hears that it is to stay, from the only one who has not gone.
            let (socket, asked) = loop {
                assert!(!follows.is_finished());
                let Some(socket) = listener.accept().unwrap() else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                match until_something(&socket) {
                    Received::Message(bytes, _) => break (socket, bytes),
                    _ => continue,
                }
            };
            assert_eq!(hectare_wire::decode::<AgentRequest>(&asked).unwrap(), AgentRequest::Stay);
            shared.lock().ended = true;
            drop(socket);
            follows.join().unwrap();
        });
    }
}
