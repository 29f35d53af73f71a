//! Jobs and members, page by page.
use super::members::Member;
use super::{ClientId, Entry, Registry};
use crate::memory;
use hectare_wire::{ClientLine, JobLine};

/// Jobs of one page of a listing.
const JOBS_PER_PAGE: usize = 128;
/// Members of one page of a listing, and ranks that are listed of one member.
const CLIENTS_PER_PAGE: usize = 32;
const RANKS_PER_CLIENT: usize = 256;

impl Registry {
    /// A page of jobs, and whether there are more.
    pub fn jobs_after(&self, after: &str) -> (Vec<JobLine>, bool) {
        use std::ops::Bound;
        let mut rest = self.jobs.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let line = |(name, entry): (&String, &Entry)| JobLine {
            job: name.clone(),
            members: entry.members.len() as u32,
            ranks: entry.ranks.len() as u32,
            max_workers: entry.max_workers,
            max_areas: entry.max_areas,
            reserve_bytes: entry.reserve_bytes,
            resident_bytes: memory::resident_bytes(&entry.memory),
            age_s: entry.made.elapsed().as_secs(),
            keep: entry.keep,
            deaths: entry.deaths,
        };
        let page = rest.by_ref().take(JOBS_PER_PAGE).map(line).collect();
        (page, rest.next().is_some())
    }

    /// A page of members, and whether there are more.
    pub fn clients_after(&self, after: ClientId) -> (Vec<ClientLine>, bool) {
        let mut rest = self.members.range(after.saturating_add(1)..);
        let line = |(&id, member): (&ClientId, &Member)| {
            let entry = self.jobs.get(&member.job).filter(|entry| entry.serial == member.serial);
            let held = entry.into_iter().flat_map(|entry| &entry.ranks).filter(|(_, holder)| **holder == id);
            let ranks: Vec<u32> = held.map(|(rank, _)| *rank).collect();
            ClientLine {
                id,
                pid: member.pid,
                job: member.job.clone(),
                held: ranks.len() as u32,
                ranks: ranks.into_iter().take(RANKS_PER_CLIENT).collect(),
                age_s: member.since.elapsed().as_secs(),
            }
        };
        let page = rest.by_ref().take(CLIENTS_PER_PAGE).map(line).collect();
        (page, rest.next().is_some())
    }
}
