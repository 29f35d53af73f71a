//! The daemon itself: one thread that waits for connections, messages and deaths.
use crate::config::Config;
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::ready;
use crate::registry::{ClientId, Registry};
use hectare_wire::{
    Error, FrameError, Received, Refusal, Reply, Request, Result, RunDir, Socket, VERSION, decode, encode,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

#[derive(Debug)]
struct Client {
    socket: Socket,
    pid: u32,
    /// The process; `None` where the kernel has no `SO_PEERPIDFD`.
    process: Option<OwnedFd>,
    /// The job whose end the client waits for.
    waits_for: Option<String>,
    /// Whether its socket is read no more. That is no proof of death: a process may close its descriptors and
    /// go on in its job. Its ranks are free when the kernel says that it is dead.
    silent: bool,
}

/// Why a client is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Died,
    Refused,
}

/// A daemon that has its run directory to itself and listens.
#[derive(Debug)]
pub struct Server {
    dir: RunDir,
    _lock: OwnedFd,
    listener: Socket,
    clients: BTreeMap<ClientId, Client>,
    max_clients: usize,
    last_id: ClientId,
    registry: Registry,
    since: Instant,
}

/// Why a daemon could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another daemon has the run directory.
    #[error("another daemon runs for {dir}; stop it, or choose another run directory with --run-dir")]
    Running {
        /// The run directory.
        dir: String,
    },
    /// The run directory or the socket.
    #[error(transparent)]
    Wire(#[from] Error),
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Server {
    /// Takes the run directory, removes what a killed daemon left in it, and listens.
    ///
    /// # Errors
    /// [`StartError::Running`], [`StartError::Wire`], [`StartError::Os`].
    pub fn start(config: &Config) -> Result<Server, StartError> {
        let dir = config.run_dir();
        dir.make()?;
        let running = || StartError::Running { dir: dir.path().display().to_string() };
        let lock = dir.lock()?.ok_or_else(running)?;
        let path = dir.socket();
        let os = |what: &str, source| StartError::Os { what: format!("{what} {}", path.display()), source };
        // Whoever has the lock is the only daemon: a socket that is there belongs to one that was killed.
        match std::fs::remove_file(&path) {
            Ok(()) => info!("removed the socket of a daemon that was killed"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(os("removing", error)),
        }
        let listener = Socket::listen(&path)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).map_err(|error| os("setting the mode of", error))?;
        raise_descriptor_limit();
        Ok(Server {
            dir,
            _lock: lock,
            listener,
            clients: BTreeMap::new(),
            max_clients: config.max_clients,
            last_id: 0,
            registry: Registry::new(config),
            since: Instant::now(),
        })
    }

    /// Serves until a byte comes through `stop`, or its other end is closed. Then removes the socket. Jobs go
    /// on among their members.
    ///
    /// # Errors
    /// [`Error::Os`] if waiting fails.
    pub fn serve(mut self, mut stop: UnixStream) -> Result<()> {
        info!(dir = %self.dir.path().display(), pid = std::process::id(), protocol = VERSION, "ready");
        ready::notify("READY=1");
        loop {
            let (stopped, new, busy, dead) = self.wait(&stop)?;
            for id in busy {
                if let Some(end) = self.read(id) {
                    self.drop_client(id, end);
                }
            }
            for id in dead {
                self.drop_dead(id);
            }
            if new {
                self.accept();
            }
            if stopped {
                let _ = stop.read(&mut [0]);
                break;
            }
        }
        ready::notify("STOPPING=1");
        info!(clients = self.clients.len(), "stopping");
        if let Err(error) = std::fs::remove_file(self.dir.socket()) {
            warn!(%error, "the socket could not be removed");
        }
        Ok(())
    }

    /// Sleeps until something happens: a signal, a connection, messages or ends of clients, deaths.
    fn wait(&self, stop: &UnixStream) -> Result<(bool, bool, Vec<ClientId>, Vec<ClientId>)> {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        let mut whose = Vec::new();
        for (&id, client) in &self.clients {
            if !client.silent {
                fds.push(PollFd::new(&client.socket, PollFlags::IN));
                whose.push((id, false));
            }
            if let Some(process) = &client.process {
                fds.push(PollFd::new(process, PollFlags::IN));
                whose.push((id, true));
            }
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::Os { call: "poll", source: error.into() }),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let of = |death: bool| {
            let hit =
                whose.iter().zip(&happened[2..]).filter(|((_, is_death), hit)| **hit && *is_death == death);
            hit.map(|((id, _), _)| *id).collect()
        };
        Ok((happened[0], happened[1], of(false), of(true)))
    }

    fn accept(&mut self) {
        let socket = match self.listener.accept() {
            Ok(Some(socket)) => socket,
            Ok(None) => return,
            Err(error) => {
                warn!(%error, "no connection can be taken");
                COUNTS.refused_connection("accept");
                // Out of descriptors, most likely: the connection waits, and this must not spin on it.
                std::thread::sleep(Duration::from_millis(20));
                return;
            }
        };
        let (user, own) = (socket.peer_user(), rustix::process::geteuid().as_raw());
        match user {
            Ok(user) if user == own => {}
            Ok(user) => {
                COUNTS.refused_connection("other_user");
                return warn!(user, "refused a connection of another user");
            }
            Err(error) => {
                COUNTS.refused_connection("other_user");
                return warn!(%error, "refused a connection of nobody");
            }
        }
        if self.clients.len() >= self.max_clients {
            warn!(limit = self.max_clients, "refused a connection: max_clients are connected");
            COUNTS.refused_connection("max_clients");
            let (limit, by) = (self.max_clients as u64, "max_clients of the daemon".to_owned());
            let refusal = Refusal::Quota { what: "connections".into(), asked: limit + 1, limit, by };
            let _ = answer(&socket, &Reply::Refused(refusal), None);
            return;
        }
        let pid = socket.peer_process().unwrap_or(0);
        let process = peer::process_of(&socket);
        COUNTS.connected();
        self.last_id += 1;
        debug!(client = self.last_id, pid, death_notice = process.is_some(), "connected");
        self.clients.insert(self.last_id, Client { socket, pid, process, waits_for: None, silent: false });
    }

    /// Reads one message of a client and answers it. One at a time, so that nobody is kept waiting by a
    /// client that talks much. Returns why the client has to go, if it has.
    fn read(&mut self, id: ClientId) -> Option<End> {
        let client = self.clients.get_mut(&id)?;
        let refused = match client.socket.receive() {
            Ok(Received::Message(bytes, _)) => match decode::<Request>(&bytes) {
                Ok(request) => return self.serve_request(id, request),
                Err(FrameError::Version { theirs }) => {
                    warn!(pid = client.pid, theirs, ours = VERSION, "refused a client of another version");
                    Refusal::Version { daemon: VERSION }
                }
                Err(error) => Refusal::Malformed { what: error.to_string() },
            },
            Ok(Received::TooLong) => Refusal::Malformed { what: "it is too long".into() },
            Ok(Received::Nothing) => return None,
            Ok(Received::Closed) | Err(_) => return Some(End::Closed),
        };
        warn!(pid = client.pid, why = %refused, "gave a client up");
        COUNTS.evicted(refused.cause());
        let _ = answer(&client.socket, &Reply::Refused(refused), None);
        Some(End::Refused)
    }

    fn serve_request(&mut self, id: ClientId, request: Request) -> Option<End> {
        debug!(client = id, ?request);
        COUNTS.requested();
        let pid = self.clients.get(&id)?.pid;
        let mut memory_of = None;
        let reply = match request {
            Request::Ping => Ok(Reply::Pong {
                pid: std::process::id(),
                release: env!("CARGO_PKG_VERSION").into(),
                age_s: self.since.elapsed().as_secs(),
            }),
            Request::Create { job, settings, keep } => {
                let made = self.registry.create(&job, settings, keep);
                made.map(|()| {
                    info!(job, pid, "job made");
                    COUNTS.job_made();
                    Reply::Done
                })
            }
            Request::Attach { job, rank } => {
                self.registry.attach(id, pid, &job, rank).map(|(rank, created)| {
                    info!(job, pid, rank, created, "member attached");
                    if created {
                        COUNTS.job_made();
                    }
                    memory_of = Some(job);
                    Reply::Attached { rank, created }
                })
            }
            Request::Hold { job } => {
                let created = !self.registry.has(&job);
                self.registry.hold(id, pid, &job).map(|()| {
                    if created {
                        info!(job, pid, "job made");
                        COUNTS.job_made();
                    }
                    Reply::Done
                })
            }
            Request::Rank => self.registry.rank(id).map(|rank| Reply::Rank { rank }),
            Request::Open { job } => {
                let found = self.registry.memory(&job).map(|_| Reply::Opened);
                memory_of = Some(job);
                found
            }
            Request::Jobs { after } => {
                let (jobs, more) = self.registry.jobs_after(&after);
                Ok(Reply::Jobs { jobs, more })
            }
            Request::Clients { after } => {
                let (clients, more) = self.registry.clients_after(after);
                Ok(Reply::Clients { clients, more })
            }
            Request::Remove { job, force } => {
                let removed = self.registry.remove(&job, force);
                removed.map(|()| {
                    info!(job, pid, force, "job removed on request");
                    COUNTS.job_removed("request");
                    Reply::Done
                })
            }
            Request::Leave => {
                self.forget_member(id, false);
                self.tell_waiters();
                return None;
            }
            Request::Wait { job } => {
                if self.registry.has(&job) {
                    self.clients.get_mut(&id)?.waits_for = Some(job);
                    return None;
                }
                Ok(Reply::Done)
            }
        };
        let reply = reply.unwrap_or_else(|refusal| {
            warn!(pid, why = %refusal, "refused a request");
            COUNTS.refused(&refusal);
            Reply::Refused(refusal)
        });
        let memory = memory_of.and_then(|job| self.registry.memory(&job).ok());
        let sent = answer(&self.clients.get(&id)?.socket, &reply, memory);
        self.tell_waiters();
        match sent {
            Ok(()) => None,
            Err(error) => {
                warn!(pid, %error, "gave a client up that takes no answer");
                COUNTS.evicted("takes_no_answer");
                Some(End::Closed)
            }
        }
    }

    /// A client's process is dead. What it said before still counts: it may have left in good order.
    fn drop_dead(&mut self, id: ClientId) {
        // A descendant that has the socket may go on talking; what is in the queue now is bounded.
        for _ in 0..16 {
            if self.read(id).is_some() {
                break;
            }
        }
        self.drop_client(id, End::Died);
    }

    /// Forgets a client, or, if it is a member that did not leave, waits for the death of its process.
    fn drop_client(&mut self, id: ClientId, end: End) {
        let member = self.registry.is_member(id);
        let Some(client) = self.clients.get_mut(&id) else { return };
        debug!(client = id, pid = client.pid, member, ?end, "disconnected");
        if member && end != End::Died && client.process.is_some() {
            client.silent = true;
            client.waits_for = None;
            return;
        }
        self.forget_member(id, true);
        self.clients.remove(&id);
        self.tell_waiters();
    }

    fn forget_member(&mut self, id: ClientId, died: bool) {
        let pid = self.clients.get(&id).map_or(0, |client| client.pid);
        let Some(gone) = self.registry.leave(id, died) else { return };
        COUNTS.member_gone(died);
        match died {
            true => warn!(job = gone.job, pid, ranks = ?gone.ranks, "member died"),
            false => info!(job = gone.job, pid, ranks = ?gone.ranks, "member left"),
        }
        if gone.removed {
            info!(job = gone.job, "job removed: its last member is gone");
            COUNTS.job_removed("last_member");
        }
    }

    /// Answers those who wait for jobs that are gone.
    fn tell_waiters(&mut self) {
        for client in self.clients.values_mut() {
            if client.waits_for.as_ref().is_some_and(|job| !self.registry.has(job)) {
                client.waits_for = None;
                let _ = answer(&client.socket, &Reply::Done, None);
            }
        }
    }
}

fn answer(socket: &Socket, reply: &Reply, memory: Option<std::os::fd::BorrowedFd<'_>>) -> Result<()> {
    socket.send(&encode(reply)?, memory)
}

/// Two descriptors per client and one per job have to fit.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "the limit of descriptors could not be raised");
    }
}
