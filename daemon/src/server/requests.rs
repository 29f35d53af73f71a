//! Requests of clients, and their replies.
use super::Server;
use super::membership::Grant;
use super::replies::End;
use super::replies::Passed;
use crate::memory;
use crate::metrics::counts::COUNTS;
use crate::registry::{BroughtJob, ClientId, Registry};
use crate::truncated::Truncated;
use hectare_wire::{FrameError, Received, Refusal, Reply, Request, VERSION, check_job_name, decode};
use std::os::fd::OwnedFd;
use tracing::{debug, info, warn};

impl Server {
    /// Reads one message of a client and answers it. One at a time, so that nobody is kept waiting by a
    /// client that talks much. Returns why the client has to go, if it has.
    pub(super) fn read(&mut self, id: ClientId) -> Option<End> {
        let client = self.clients.get(&id)?;
        let mut descriptors = Vec::new();
        let received = client.socket.as_ref()?.receive_with(&mut descriptors);
        let request = match &received {
            Ok(Received::Message(bytes, _)) => Some(decode::<Request>(bytes)),
            _ => None,
        };
        // One descriptor comes with one kind of request. Others are closed where nobody waits for it. What a message of
        // another version may bring is not known.
        let takes = match &request {
            Some(Ok(Request::Adopt { .. })) => 1,
            Some(Err(FrameError::Version { .. })) => usize::MAX,
            _ => 0,
        };
        let (pid, count) = (client.pid, descriptors.len());
        let brought = if count == 1 && takes == 1 { descriptors.pop() } else { None };
        descriptors.into_iter().for_each(|descriptor| self.closer.close(descriptor));
        if count > takes {
            let what = format!("{count} descriptors came with it, and {takes} may: process {pid} sent them");
            return self.give_up(id, "descriptors", Refusal::Malformed { what });
        }
        let refused = match received {
            Ok(Received::Message(..)) => match request? {
                Ok(request) => return self.serve_or_park(id, request, brought),
                Err(FrameError::Version { theirs }) => {
                    if self.limiter.admits("version") {
                        warn!(
                            pid,
                            theirs,
                            ours = VERSION,
                            "closed the connection of a client of another version"
                        );
                    }
                    Refusal::Version { daemon: VERSION }
                }
                Err(error) => Refusal::Malformed { what: error.to_string() },
            },
            Ok(Received::TooLong) => Refusal::Malformed { what: "it is too long".into() },
            Ok(Received::Nothing) => return None,
            Ok(Received::Closed) | Err(_) => return Some(End::Closed),
        };
        self.give_up(id, refused.cause(), refused)
    }

    fn serve_or_park(&mut self, id: ClientId, request: Request, descriptor: Option<OwnedFd>) -> Option<End> {
        debug!(client = id, request = %Truncated(&request));
        COUNTS.requested();
        let refusal = match named(&request).map(check_job_name) {
            Some(Err(refusal)) => Some(refusal),
            _ if descriptor.as_ref().is_some_and(|brought| !memory::is_memfd(brought)) => {
                let job = named(&request).unwrap_or_default().into();
                Some(Refusal::NotAdopted { job, what: "what it brings is not a memfd".into() })
            }
            _ => self.has_no_room(id, &request).then(|| self.no_room()),
        };
        if let Some(refusal) = refusal {
            descriptor.into_iter().for_each(|descriptor| self.closer.close(descriptor));
            return self.reply(id, Err(refusal), Passed::Nothing);
        }
        if job_of(&request).is_some_and(|job| self.registry.is_awaited(job)) {
            debug!(client = id, "waits for the members of the job to come back");
            self.clients.get_mut(&id)?.parked = Some(request);
            return None;
        }
        self.serve_request(id, request, descriptor)
    }

    /// Whether the request would make a member of a visitor, for whom there is still no room.
    fn has_no_room(&mut self, id: ClientId, request: &Request) -> bool {
        use Request::{Adopt, Attach, Create, CreateOnHosts, Hold};
        if !self.clients.get(&id).is_some_and(|client| client.visitor)
            || !matches!(
                request,
                Create { .. } | CreateOnHosts { .. } | Attach { .. } | Hold { .. } | Adopt { .. }
            )
        {
            return false;
        }
        let full = self.is_full();
        if let Some(client) = self.clients.get_mut(&id) {
            client.visitor = full;
        }
        if full {
            COUNTS.refused_connection("max_clients");
        }
        full
    }

    /// Serves clients that waited for a job, which is back or whose members did not come back in time.
    pub(super) fn serve_parked(&mut self) {
        self.registry.stop_awaiting();
        let waiting: Vec<ClientId> =
            self.clients.iter().filter(|(_, it)| it.parked.is_some()).map(|(id, _)| *id).collect();
        for id in waiting {
            let Some(client) = self.clients.get_mut(&id) else { continue };
            let Some(request) = client.parked.take() else { continue };
            if job_of(&request).is_some_and(|job| self.registry.is_awaited(job)) {
                client.parked = Some(request);
            } else if let Some(end) = self.serve_request(id, request, None) {
                self.drop_client(id, end);
            }
        }
    }

    /// Tries to allocate something; if there is none left, releases what dead clients held, and tries again.
    fn if_room<T>(&mut self, ask: impl Fn(&mut Registry) -> Result<T, Refusal>) -> Result<T, Refusal> {
        match ask(&mut self.registry) {
            Err(Refusal::Quota { .. } | Refusal::RankTaken { .. }) => {
                self.bury();
                ask(&mut self.registry)
            }
            answer => answer,
        }
    }

    fn serve_request(&mut self, id: ClientId, request: Request, descriptor: Option<OwnedFd>) -> Option<End> {
        let client = self.clients.get_mut(&id)?;
        let pid = client.pid;
        match request {
            Request::Leave => {
                self.forget_member(id, false);
                self.tell_waiters();
                None
            }
            Request::Wait { job } if self.registry.has(&job) => {
                client.waits_for = Some(job);
                None
            }
            request => {
                let made = made_by(&request);
                let (reply, passed) = match self.answer(id, pid, request, descriptor) {
                    Ok((reply, passed)) => (Ok(reply), passed),
                    Err(refusal) => (Err(refusal), Passed::Nothing),
                };
                let made = made.filter(|_| reply.is_ok());
                let grant = Grant::by(&reply);
                let end = self.reply(id, reply, passed)?;
                // Who did not hear of it does not have it.
                grant.iter().for_each(|grant| self.take_back_grant(id, grant));
                made.into_iter().for_each(|job| self.take_back(&job));
                Some(end)
            }
        }
    }

    /// Handles a request that is answered at once.
    fn answer(
        &mut self,
        id: ClientId,
        pid: u32,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Result<(Reply, Passed), Refusal> {
        let alone = |reply| (reply, Passed::Nothing);
        match request {
            Request::Ping => Ok(alone(Reply::Pong {
                pid: std::process::id(),
                release: env!("CARGO_PKG_VERSION").into(),
                age_s: self.since.elapsed().as_secs(),
            })),
            Request::Create { job, settings, keep } => {
                self.registry.create(&job, settings, keep)?;
                info!(job, pid, "job made");
                COUNTS.job_made();
                Ok(alone(Reply::Done))
            }
            Request::CreateOnHosts { job, settings, keep, hosts } => {
                let (index, count) = (hosts.index, hosts.hosts.len());
                self.registry.create_on_hosts(&job, settings, keep, *hosts)?;
                info!(job, pid, host = index, hosts = count, "job on several hosts made");
                COUNTS.job_made();
                Ok(alone(Reply::Done))
            }
            Request::Attach { job, rank } => {
                let (rank, created) = self.if_room(|registry| registry.attach(id, pid, &job, rank))?;
                info!(job, pid, rank, created, "member attached");
                if created {
                    COUNTS.job_made();
                }
                Ok((Reply::Attached { rank, created }, Passed::Memory(job)))
            }
            Request::Hold { job } => {
                let created = !self.registry.has(&job);
                self.if_room(|registry| registry.hold(id, pid, &job))?;
                if created {
                    info!(job, pid, "job made");
                    COUNTS.job_made();
                }
                Ok(alone(Reply::Done))
            }
            Request::Rank => {
                let rank = self.if_room(|registry| registry.rank(id, None))?;
                Ok(alone(Reply::Rank { rank }))
            }
            Request::RankAt { rank } => {
                self.take_over(id, pid, rank);
                self.if_room(|registry| registry.rank(id, Some(rank)))?;
                Ok(alone(Reply::Done))
            }
            Request::ReleaseRank { rank } => self.registry.give_back(id, rank).map(|()| alone(Reply::Done)),
            Request::Page => Ok((Reply::Page, Passed::Page(self.make_page(id)?))),
            Request::Adopt { job, keep, ranks } => match descriptor {
                Some(memory) => self.adopt(id, BroughtJob { job, memory, keep, ranks }).map(alone),
                None => Err(Refusal::NotAdopted { job, what: "no descriptor came with the request".into() }),
            },
            Request::Open { job } => {
                self.registry.memory(&job)?;
                Ok((Reply::Opened, Passed::Memory(job)))
            }
            Request::Jobs { after } => {
                let (jobs, more) = self.registry.jobs_after(&after);
                Ok(alone(Reply::Jobs { jobs, more }))
            }
            Request::Clients { after } => {
                let (clients, more) = self.registry.clients_after(after);
                Ok(alone(Reply::Clients { clients, more }))
            }
            Request::Remove { job, force } => {
                let members = self.registry.remove(&job, force)?;
                info!(job, pid, force, members = members.len(), "job removed on request");
                COUNTS.job_removed("request");
                self.tell_removed(&members);
                Ok(alone(Reply::Done))
            }
            // The client has ended, or the request has no reply.
            Request::Wait { .. } | Request::Leave => Ok(alone(Reply::Done)),
        }
    }
}

/// The job that a request makes, if that does not stay without members.
fn made_by(request: &Request) -> Option<String> {
    match request {
        Request::Create { job, keep: false, .. } | Request::CreateOnHosts { job, keep: false, .. } => {
            Some(job.clone())
        }
        _ => None,
    }
}

/// The job that a request names.
fn named(request: &Request) -> Option<&str> {
    match request {
        Request::Adopt { job, .. } => Some(job),
        other => job_of(other),
    }
}

/// The job that a request requires.
fn job_of(request: &Request) -> Option<&str> {
    match request {
        Request::Create { job, .. }
        | Request::CreateOnHosts { job, .. }
        | Request::Attach { job, .. }
        | Request::Hold { job }
        | Request::Open { job }
        | Request::Remove { job, .. }
        | Request::Wait { job } => Some(job),
        _ => None,
    }
}
