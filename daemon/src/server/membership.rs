//! Control pages of members, and members that come back.
use super::Server;
use super::clients::Client;
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::registry::{BroughtJob, ClientId, Gone};
use crate::truncated::Truncated;
use hectare_wire::{MemberState, Page, Refusal, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use tracing::{info, warn};

/// The rights that a reply grants to a client.
pub(super) enum Grant {
    Membership,
    Rank(u32),
}

impl Grant {
    pub(super) fn by(reply: &Result<Reply, Refusal>) -> Option<Grant> {
        match reply {
            Ok(Reply::Attached { .. }) => Some(Grant::Membership),
            Ok(Reply::Rank { rank }) => Some(Grant::Rank(*rank)),
            _ => None,
        }
    }
}

impl Server {
    /// Recreates the control page of a client; what to read it by.
    pub(super) fn make_page(&mut self, id: ClientId) -> Result<OwnedFd, Refusal> {
        let keep = self.registry.is_kept(id);
        let page = Page { boot: self.boot, client: id, state: MemberState::Member, keep };
        let failed = |error: hectare_wire::Error| Refusal::UnexpectedRequest {
            what: format!("no control page could be made: {error}"),
        };
        let (writer, reader) = page.make().map_err(failed)?;
        if let Some(client) = self.clients.get_mut(&id) {
            client.page = Some(writer);
        }
        Ok(reader)
    }

    /// Tells the members of a job that was removed on request.
    pub(super) fn tell_removed(&self, members: &BTreeSet<ClientId>) {
        for client in members.iter().filter_map(|id| self.clients.get(id)) {
            let told = client.page.as_ref().map(|page| Page::set_state(page, MemberState::Removed));
            if let Some(Err(error)) = told {
                warn!(pid = client.pid, %error, "a member could not be told that its job is removed");
            }
        }
    }

    /// Forgets jobs that nobody joined in time.
    pub(super) fn drop_unjoined(&mut self) {
        for job in self.registry.drop_unjoined() {
            info!(job, "job removed: nobody joined it in time");
            COUNTS.job_removed("nobody_joined");
        }
        self.tell_waiters();
    }

    /// Removes a job that was made for a client who was gone before it heard so: who gave up a start joins nothing.
    pub(super) fn take_back(&mut self, job: &str) {
        if self.registry.remove(job, false).is_ok() {
            info!(job, "job removed: who made it is gone");
            COUNTS.job_removed("nobody_joined");
            self.tell_waiters();
        }
    }

    /// Takes back what was granted to a client who was gone before it heard so: its rank, or its membership.
    pub(super) fn take_back_grant(&mut self, id: ClientId, grant: &Grant) {
        match grant {
            Grant::Membership => self.forget_member(id, false),
            // Of a job that was removed meanwhile, nothing is left to take back.
            Grant::Rank(rank) => drop(self.registry.give_back(id, *rank)),
        }
    }

    /// Makes a client a member of the job that it brings.
    pub(super) fn adopt(&mut self, id: ClientId, brought: BroughtJob) -> Result<Reply, Refusal> {
        let Some(pid) = self.clients.get(&id).map(|client| client.pid) else {
            return Err(Refusal::UnexpectedRequest { what: "this connection has ended".into() });
        };
        let job = brought.job.clone();
        let ranks = brought.ranks.clone();
        let clients = &self.clients;
        let adopted =
            self.registry.adopt(id, pid, brought, |other| is_earlier_connection(clients, other, pid))?;
        if adopted.new {
            info!(job, pid, "job of an earlier daemon taken on");
            COUNTS.job_adopted();
        }
        info!(job, pid, ranks = %Truncated(&ranks), missing = %Truncated(&adopted.missing), "member came back");
        COUNTS.member_back();
        adopted.replaced.into_iter().for_each(|(old, gone)| self.forget_earlier(pid, old, &gone));
        Ok(Reply::Adopted { missing: adopted.missing })
    }

    /// Gives a member a rank that an earlier connection of its process has, if one does: a daemon that stood still may have
    /// granted it to a connection that was closed meanwhile.
    pub(super) fn take_over(&mut self, id: ClientId, pid: u32, rank: u32) {
        let clients = &self.clients;
        let replaced = self.registry.take_over(id, rank, |other| is_earlier_connection(clients, other, pid));
        if let Some((old, gone)) = replaced {
            self.forget_earlier(pid, old, &gone);
        }
    }

    fn forget_earlier(&mut self, pid: u32, old: ClientId, gone: &Gone) {
        info!(job = gone.job, pid, client = old, ranks = %Truncated(&gone.ranks), "its earlier connection is forgotten");
        self.clients.remove(&old);
    }
}

/// Whether a client is a connection of this process that has ended. While the process lives, its id is not reused.
fn is_earlier_connection(clients: &BTreeMap<ClientId, Client>, other: ClientId, pid: u32) -> bool {
    let ended = clients.get(&other).filter(|client| client.socket.is_none() && client.pid == pid);
    pid != 0 && ended.is_some_and(|client| client.process.as_ref().is_some_and(peer::is_alive))
}
