//! Who writes which file of a checkpoint.
use crate::context::Context;
use crate::fabric::Fabric;

/// The first worker of each host, and the number of the file that it writes.
#[derive(Debug)]
pub(super) struct Writers {
    firsts: Vec<usize>,
    /// 0 for the host of worker 0, as ranks are in the order of hosts. Hosts without workers have no file.
    numbers: Vec<usize>,
    /// The host of this worker.
    host: usize,
    is_writer: bool,
    /// How many files there are.
    pub(super) files: usize,
}

impl Writers {
    pub(super) fn of(context: &Context<'_>) -> Writers {
        let (fabric, rank) = (&context.fabric, context.rank() as usize);
        let hosts = fabric.hosts();
        let has_workers = |host: &usize| (0..fabric.size()).any(|rank| fabric.host_of(rank) == *host);
        let before = |host: usize| (0..host).filter(has_workers).count();
        let firsts: Vec<usize> = (0..hosts).map(|host| fabric.first_of(host)).collect();
        let host = fabric.host_of(rank);
        let is_writer = firsts[host] == rank;
        Writers { firsts, numbers: (0..hosts).map(before).collect(), host, is_writer, files: before(hosts) }
    }

    /// The host of this worker.
    pub(super) fn host(&self) -> usize {
        self.host
    }

    /// The number of the file of a host.
    pub(super) fn file_of(&self, host: usize) -> usize {
        self.numbers[host]
    }

    /// The number of the file of this worker's host.
    pub(super) fn file(&self) -> usize {
        self.numbers[self.host]
    }

    /// Who writes that.
    pub(super) fn writer(&self) -> usize {
        self.firsts[self.host]
    }

    /// Whether this worker does.
    pub(super) fn is_writer(&self) -> bool {
        self.is_writer
    }
}
