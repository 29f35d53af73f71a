//! Requests of clients, and what is answered.
use super::Server;
use super::clients::End;
use crate::registry::ClientId;
use hectare_wire::{FrameError, Received, Refusal, Reply, Request, Result, Socket, VERSION, decode, encode};
use std::os::fd::BorrowedFd;
use tracing::{debug, info, warn};

impl Server {
    /// Reads one message of a client and answers it. One at a time, so that nobody is kept waiting by a
    /// client that talks much. Returns why the client has to go, if it has.
    pub(super) fn read(&mut self, id: ClientId) -> Option<End> {
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
        let _ = answer(&client.socket, &Reply::Refused(refused), None);
        Some(End::Refused)
    }

    fn serve_request(&mut self, id: ClientId, request: Request) -> Option<End> {
        debug!(client = id, ?request);
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
                made.map(|()| info!(job, pid, "job made")).map(|()| Reply::Done)
            }
            Request::Attach { job, rank } => {
                self.registry.attach(id, pid, &job, rank).map(|(rank, created)| {
                    info!(job, pid, rank, created, "member attached");
                    memory_of = Some(job);
                    Reply::Attached { rank, created }
                })
            }
            Request::Hold { job } => self.registry.hold(id, pid, &job).map(|()| Reply::Done),
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
                removed.map(|()| info!(job, pid, force, "job removed on request")).map(|()| Reply::Done)
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
            Reply::Refused(refusal)
        });
        let memory = memory_of.and_then(|job| self.registry.memory(&job).ok());
        let sent = answer(&self.clients.get(&id)?.socket, &reply, memory);
        self.tell_waiters();
        match sent {
            Ok(()) => None,
            Err(error) => {
                warn!(pid, %error, "gave a client up that takes no answer");
                Some(End::Closed)
            }
        }
    }
}

/// Sends an answer, with a descriptor if there is one to pass.
pub(super) fn answer(socket: &Socket, reply: &Reply, memory: Option<BorrowedFd<'_>>) -> Result<()> {
    socket.send(&encode(reply)?, memory)
}
