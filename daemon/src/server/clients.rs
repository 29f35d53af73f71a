//! Clients: how they come, how long they are waited for, how they end.
use super::Server;
use super::requests::answer;
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::registry::ClientId;
use hectare_wire::{Error, Refusal, Reply, Request, Result, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tracing::{debug, info, warn};

#[derive(Debug)]
pub(super) struct Client {
    pub(super) socket: Socket,
    pub(super) pid: u32,
    /// The process; `None` where the kernel has no `SO_PEERPIDFD`.
    pub(super) process: Option<OwnedFd>,
    /// Its control page, once it asked for it.
    pub(super) page: Option<OwnedFd>,
    /// A request that waits for the members of a job to come back, or for the time in which they may to pass.
    pub(super) parked: Option<Request>,
    /// The job whose end the client waits for.
    pub(super) waits_for: Option<String>,
    /// Whether its socket is read no more. That is no proof of death: a process may close its descriptors and
    /// go on in its job. Its ranks are free when the kernel says that it is dead.
    pub(super) silent: bool,
}

/// Why a client is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Died,
    Refused,
}

impl Server {
    /// Sleeps until something happens: a signal, a connection, messages or ends of clients, deaths.
    pub(super) fn wait(&self, stop: &UnixStream) -> Result<(bool, bool, Vec<ClientId>, Vec<ClientId>)> {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        let mut whose = Vec::new();
        for (&id, client) in &self.clients {
            // Who waits for an answer has no more to say, and its end is seen when it is answered.
            if !client.silent && client.parked.is_none() {
                fds.push(PollFd::new(&client.socket, PollFlags::IN));
                whose.push((id, false));
            }
            if let Some(process) = &client.process {
                fds.push(PollFd::new(process, PollFlags::IN));
                whose.push((id, true));
            }
        }
        let time = self
            .registry
            .awaits_for()
            .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
        match poll(&mut fds, time.as_ref()) {
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

    pub(super) fn accept(&mut self) {
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
            self.bury();
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
        self.clients.insert(
            self.last_id,
            Client { socket, pid, process, page: None, parked: None, waits_for: None, silent: false },
        );
    }

    /// Looks who has died since the last wait, and lets go of what they had. For those who ask for it: a process that
    /// was seen dead by its parent may be replaced before this daemon has come to its death.
    pub(super) fn bury(&mut self) {
        // What the dead have still asked for may bring the daemon here again.
        if std::mem::replace(&mut self.burying, true) {
            return;
        }
        let dead = |client: &Client| client.process.as_ref().is_some_and(|process| !peer::is_alive(process));
        let dead: Vec<ClientId> =
            self.clients.iter().filter(|(_, client)| dead(client)).map(|(id, _)| *id).collect();
        dead.into_iter().for_each(|id| self.drop_dead(id));
        self.burying = false;
    }

    /// A client's process is dead. What it said before still counts: it may have left in good order.
    pub(super) fn drop_dead(&mut self, id: ClientId) {
        // A descendant that has the socket may go on talking; what is in the queue now is bounded.
        for _ in 0..16 {
            if self.read(id).is_some() {
                break;
            }
        }
        self.drop_client(id, End::Died);
    }

    /// Forgets a client, or, if it is a member that did not leave, waits for the death of its process.
    pub(super) fn drop_client(&mut self, id: ClientId, end: End) {
        let member = self.registry.is_member(id);
        let Some(client) = self.clients.get_mut(&id) else { return };
        debug!(client = id, pid = client.pid, member, ?end, "disconnected");
        if member && end != End::Died && client.process.is_some() {
            client.silent = true;
            client.waits_for = None;
            client.page = None;
            return;
        }
        self.forget_member(id, true);
        self.clients.remove(&id);
        self.tell_waiters();
    }

    pub(super) fn forget_member(&mut self, id: ClientId, died: bool) {
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
    pub(super) fn tell_waiters(&mut self) {
        for client in self.clients.values_mut() {
            if client.waits_for.as_ref().is_some_and(|job| !self.registry.has(job)) {
                client.waits_for = None;
                let _ = answer(&client.socket, &Reply::Done, None);
            }
        }
    }
}
