//! Replies, and clients that do not receive them.
use super::{Server, in_flight};
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::registry::ClientId;
use hectare_wire::{Error, Refusal, Reply, Socket, encode};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tracing::warn;

/// Answers with a descriptor that a client may leave untaken. It is to take each before it asks again; those that it
/// does not take count against what the kernel allows this user in flight.
const MOST_UNTAKEN: u32 = 4;

/// The descriptor that goes with an answer.
pub(super) enum Passed {
    Nothing,
    /// That of the memory of this job.
    Memory(String),
    Page(OwnedFd),
}

/// Reasons for which a client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Died,
    Refused,
}

impl Server {
    /// Refuses a message that is the last of its connection.
    pub(super) fn give_up(&mut self, id: ClientId, cause: &'static str, refusal: Refusal) -> Option<End> {
        let client = self.clients.get(&id)?;
        if !matches!(refusal, Refusal::Version { .. }) && self.limiter.admits(cause) {
            warn!(pid = client.pid, why = %refusal, "gave a client up");
        }
        COUNTS.evicted(cause);
        let _ = client.socket.as_ref().map(|socket| answer(socket, &Reply::Refused(refusal), None));
        Some(End::Refused)
    }

    /// Answers a request. Returns why the client has to go, if it has.
    pub(super) fn reply(
        &mut self,
        id: ClientId,
        reply: Result<Reply, Refusal>,
        passed: Passed,
    ) -> Option<End> {
        let client = self.clients.get(&id)?;
        let pid = client.pid;
        let reply = reply.unwrap_or_else(|refusal| {
            COUNTS.refused(&refusal);
            if self.limiter.admits(refusal.cause()) {
                warn!(pid, why = %refusal, "refused a request");
            }
            Reply::Refused(refusal)
        });
        let passed = match &passed {
            Passed::Nothing => None,
            Passed::Memory(job) => self.registry.memory(job).ok(),
            Passed::Page(page) => Some(page.as_fd()),
        };
        let socket = client.socket.as_ref()?;
        let untaken = match passed {
            Some(_) if peer::unread(socket) == 0 => 0,
            _ => client.in_flight,
        };
        if passed.is_some() && untaken >= MOST_UNTAKEN {
            return self.takes_no_answer(id, &format!("{untaken} descriptors are untaken"));
        }
        let in_flight = untaken + u32::from(passed.is_some());
        let sent = answer(socket, &reply, passed);
        if let Err(Error::Os { source, .. }) = &sent
            && source.raw_os_error() == Some(libc::ETOOMANYREFS)
        {
            return self.too_many_in_flight(id, &reply);
        }
        if let Some(client) = self.clients.get_mut(&id) {
            client.in_flight = in_flight;
        }
        self.tell_waiters();
        match sent {
            Ok(()) => None,
            Err(error) => self.takes_no_answer(id, &error.to_string()),
        }
    }

    fn takes_no_answer(&mut self, id: ClientId, why: &str) -> Option<End> {
        let pid = self.clients.get(&id)?.pid;
        if self.limiter.admits("takes_no_answer") {
            warn!(pid, why, "closed the connection of a client that takes no answers");
        }
        COUNTS.evicted("takes_no_answer");
        Some(End::Closed)
    }

    /// The kernel passes no descriptor on: this user has too many in flight between processes already.
    fn too_many_in_flight(&mut self, id: ClientId, reply: &Reply) -> Option<End> {
        // A client with a rank but without the memory could not join.
        if matches!(reply, Reply::Attached { .. }) {
            self.forget_member(id, false);
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(0);
        if self.limiter.admits("in_flight") {
            in_flight::name_holders(limit);
        }
        let refusal = Refusal::Quota {
            what: "descriptors in flight between this user's processes".into(),
            asked: limit + 1,
            limit,
            by: "the kernel (RLIMIT_NOFILE of the daemon); the daemon's log names the processes that have them".into(),
        };
        self.reply(id, Err(refusal), Passed::Nothing)
    }
}

/// Sends an answer, with a descriptor if there is one to pass.
pub(super) fn answer(
    socket: &Socket,
    reply: &Reply,
    memory: Option<BorrowedFd<'_>>,
) -> hectare_wire::Result<()> {
    socket.send(&encode(reply)?, memory)
}
