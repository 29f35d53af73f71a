//! Control pages of members, and members that come back.
use super::Server;
use crate::metrics::counts::COUNTS;
use crate::peer;
use crate::registry::{BroughtJob, ClientId};
use crate::truncated::Truncated;
use hectare_wire::{MemberState, Page, Refusal, Reply};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use tracing::{info, warn};

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

    /// Makes a client a member of the job that it brings.
    pub(super) fn adopt(&mut self, id: ClientId, brought: BroughtJob) -> Result<Reply, Refusal> {
        let Some(pid) = self.clients.get(&id).map(|client| client.pid) else {
            return Err(Refusal::UnexpectedRequest { what: "this connection has ended".into() });
        };
        let job = brought.job.clone();
        // While the process of an earlier connection lives, its id is not reused.
        let is_stale = |other: ClientId| {
            let silent =
                self.clients.get(&other).filter(|client| client.socket.is_none() && client.pid == pid);
            pid != 0 && silent.is_some_and(|client| client.process.as_ref().is_some_and(peer::is_alive))
        };
        let ranks = brought.ranks.clone();
        let adopted = self.registry.adopt(id, pid, brought, is_stale)?;
        if adopted.new {
            info!(job, pid, "job of an earlier daemon taken on");
            COUNTS.job_adopted();
        }
        info!(job, pid, ranks = %Truncated(&ranks), missing = %Truncated(&adopted.missing), "member came back");
        COUNTS.member_back();
        for (old, gone) in adopted.replaced {
            info!(job, pid, client = old, ranks = %Truncated(&gone.ranks), "its earlier connection is forgotten");
            self.clients.remove(&old);
        }
        Ok(Reply::Adopted { missing: adopted.missing })
    }
}
