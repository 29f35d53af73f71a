//! Clients: how they come, how long they are waited for, how they end.
use super::Server;
use super::replies::{End, answer};
use crate::closer::Closer;
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::registry::ClientId;
use crate::truncated::Truncated;
use hectare_wire::{Error, Refusal, Reply, Request, Result, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tracing::{debug, info, warn};

#[derive(Debug)]
pub(super) struct Client {
    /// `None` once it is read no more. That is no proof of death: a process may close its descriptors and go on in its
    /// job. Its ranks are free when the kernel says that it is dead.
    pub(super) socket: Option<Socket>,
    closer: Closer,
    pub(super) pid: u32,
    /// The process; `None` where the kernel has no `SO_PEERPIDFD`.
    pub(super) process: Option<OwnedFd>,
    /// Its control page, once it asked for it.
    pub(super) page: Option<OwnedFd>,
    /// A request that waits for the members of a job to come back, or for the time in which they may to pass.
    pub(super) parked: Option<Request>,
    /// The job whose end the client waits for.
    pub(super) waits_for: Option<String>,
    /// Whether it came when `max_clients` were there: it may look, and remove, but become no member.
    pub(super) visitor: bool,
    /// Descriptors in answers to it that it may not have taken yet.
    pub(super) in_flight: u32,
}

impl Client {
    /// Ends the connection. What lies unread in it, descriptors included, is closed with it, elsewhere.
    pub(super) fn hang_up(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.closer.hang_up(socket);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// Connections beyond `max_clients` that may look: the user's own `hectare` always finds one of them.
const VISITORS: usize = 8;

/// The pause after a connection that cannot be taken: out of descriptors, most likely.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);

/// The reason why a sleep ended.
#[derive(Debug)]
pub(super) struct Woken {
    /// The daemon is to stop.
    pub(super) stop: bool,
    /// The configuration is to be loaded again.
    pub(super) reload: bool,
    /// Somebody connects.
    pub(super) connection: bool,
    /// Clients that have said something, or have ended.
    pub(super) busy: Vec<ClientId>,
    /// Clients whose process is dead.
    pub(super) dead: Vec<ClientId>,
}

/// One more than a limit allows.
fn over(what: &str, limit: usize, by: &str) -> Refusal {
    let limit = limit as u64;
    Refusal::Quota { what: what.into(), asked: limit + 1, limit, by: by.into() }
}

impl Server {
    /// Sleeps until something happens.
    pub(super) fn wait(&self, stop: &UnixStream) -> Result<Woken> {
        let reload = self.reload.as_ref().map_or(stop, |reload| &reload.asked);
        let mut fds = vec![
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(reload, PollFlags::IN),
            PollFd::new(&self.place.listener, PollFlags::IN),
        ];
        let own = fds.len();
        let mut whose = Vec::new();
        for (&id, client) in &self.clients {
            // Who waits for an answer has no more to say, and its end is seen when it is answered.
            if let (Some(socket), None) = (&client.socket, &client.parked) {
                fds.push(PollFd::new(socket, PollFlags::IN));
                whose.push((id, false));
            }
            if let Some(process) = &client.process {
                fds.push(PollFd::new(process, PollFlags::IN));
                whose.push((id, true));
            }
        }
        let dues = [self.registry.awaits_for(), self.limiter.due(), Some(self.place.due())];
        let time = dues.into_iter().flatten().min().unwrap_or_default();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::Os { call: "poll", source: error.into() }),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let of = |death: bool| {
            let hit =
                whose.iter().zip(&happened[own..]).filter(|((_, is_death), hit)| **hit && *is_death == death);
            hit.map(|((id, _), _)| *id).collect()
        };
        let (stop, reload) = (happened[0], happened[1] && self.reload.is_some());
        Ok(Woken { stop, reload, connection: happened[2], busy: of(false), dead: of(true) })
    }

    pub(super) fn accept(&mut self) {
        let socket = match self.place.listener.accept() {
            Ok(Some(socket)) => socket,
            Ok(None) => return,
            Err(error) => {
                self.refused_connection("accept", || warn!(%error, "no connection can be taken"));
                // The connection waits, and this must not spin on it.
                return std::thread::sleep(OUT_OF_DESCRIPTORS);
            }
        };
        let (user, own) = (socket.peer_user(), rustix::process::geteuid().as_raw());
        match user {
            Ok(user) if user == own => {}
            Ok(user) => {
                let line = || warn!(user, "refused a connection of another user");
                return self.refuse_connection(socket, "other_user", None, line);
            }
            Err(error) => {
                let line = || warn!(%error, "refused a connection without credentials");
                return self.refuse_connection(socket, "other_user", None, line);
            }
        }
        let process = match peer::process_of(&socket) {
            Ok(process) => process,
            Err(error) => {
                // It comes again. Admitted without this, it would count as dead as soon as its connection ended.
                let line =
                    || warn!(%error, "refused a connection: the death of its process could not be seen");
                self.refuse_connection(socket, "accept", None, line);
                return std::thread::sleep(OUT_OF_DESCRIPTORS);
            }
        };
        let pid = socket.peer_process().unwrap_or(0);
        if self.is_full() || self.of_process(pid) >= self.max_clients_per_process {
            self.bury();
        }
        let (own, limit) = (self.of_process(pid), self.max_clients_per_process);
        if own >= limit {
            let line = || warn!(pid, limit, "refused a connection: its process has as many as it may");
            let what = format!("connections of process {pid}");
            let refusal = over(&what, limit, "max_clients_per_process of the daemon");
            return self.refuse_connection(socket, "max_clients_per_process", Some(refusal), line);
        }
        let visitor = self.is_full();
        if visitor {
            self.make_room_for_visitor();
        }
        COUNTS.connected();
        self.last_id += 1;
        debug!(client = self.last_id, pid, visitor, death_notice = process.is_some(), "connected");
        let (socket, closer) = (Some(socket), self.closer.clone());
        let (page, parked, waits_for, in_flight) = (None, None, None, 0);
        let client = Client { socket, closer, pid, process, page, parked, waits_for, visitor, in_flight };
        self.clients.insert(self.last_id, client);
    }

    /// Whether there are as many clients as there may be, visitors aside.
    pub(super) fn is_full(&self) -> bool {
        self.clients.values().filter(|client| !client.visitor).count() >= self.max_clients
    }

    fn of_process(&self, pid: u32) -> usize {
        // Processes of other PID namespaces all have the id 0 here: nothing tells them apart.
        if pid == 0 { 0 } else { self.clients.values().filter(|client| client.pid == pid).count() }
    }

    /// Gives the oldest visitor up if there is one too many: who looks does so in a moment.
    fn make_room_for_visitor(&mut self) {
        let mut visitors = self.clients.iter().filter(|(_, client)| client.visitor).map(|(id, _)| *id);
        let oldest = visitors.next();
        if visitors.count() + 1 < VISITORS {
            return;
        }
        let Some(id) = oldest else { return };
        COUNTS.refused_connection("max_clients");
        if self.limiter.admits("max_clients") {
            warn!(
                limit = self.max_clients,
                "closed the oldest connection without a job: max_clients are connected"
            );
        }
        if let Some(socket) = self.clients.get(&id).and_then(|client| client.socket.as_ref()) {
            let _ = answer(socket, &Reply::Refused(self.no_room()), None);
        }
        self.drop_client(id, End::Refused);
    }

    /// Why a visitor can become no member.
    pub(super) fn no_room(&self) -> Refusal {
        over("connections", self.max_clients, "max_clients of the daemon")
    }

    /// Refuses a connection, and closes it elsewhere: it may hold descriptors already.
    fn refuse_connection(
        &mut self,
        socket: Socket,
        cause: &'static str,
        refusal: Option<Refusal>,
        line: impl FnOnce(),
    ) {
        self.refused_connection(cause, line);
        if let Some(refusal) = refusal {
            let _ = answer(&socket, &Reply::Refused(refusal), None);
        }
        self.closer.hang_up(socket);
    }

    /// Counts a connection that is refused, and writes its line if there are not too many.
    fn refused_connection(&mut self, cause: &'static str, line: impl FnOnce()) {
        COUNTS.refused_connection(cause);
        if self.limiter.admits(cause) {
            line();
        }
    }

    /// Looks who has died since the last wait, and lets go of what they had. For those who ask for it: a process that
    /// was seen dead by its parent may be replaced before this daemon has come to its death.
    pub(super) fn bury(&mut self) {
        // Requests of the dead may bring the daemon here again.
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
            client.hang_up();
            client.parked = None;
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
            true => warn!(job = gone.job, pid, ranks = %Truncated(&gone.ranks), "member died"),
            false => info!(job = gone.job, pid, ranks = %Truncated(&gone.ranks), "member left"),
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
                let _ = client.socket.as_ref().map(|socket| answer(socket, &Reply::Done, None));
            }
        }
    }
}
