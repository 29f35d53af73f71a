//! Areas that are deleted, and others that are created under their names.
use super::{What, World};
use crate::groups::{GIVEN, RENEWED, is_renewed};
use crate::options::{MS, Mode};
use hectare_net::{AreaId, Description, ElementType, GroupId, HostId};

impl World {
    /// The name of the area that a host deletes and creates again.
    pub(super) fn renewed(host: u16) -> String {
        format!("renewed by {host}")
    }

    /// A host deletes its area of that name, or creates it.
    pub(super) fn renew(&mut self, host: u16) {
        let memory = &mut self.hosts[usize::from(host)].memory;
        if let Some(group) = memory.own.keys().copied().find(|group| is_renewed(*group)) {
            memory.delete(group);
            return self.serve(host);
        }
        let element = ElementType { kind: 1, size: 8, align: 8 };
        let (name, group) = (World::renewed(host), String::new());
        self.create(
            host,
            RENEWED,
            Description { name, group, element, bytes: 200, row: 1, on_demand: false },
        );
    }

    /// A worker deletes an area that goes from host to host. One of that name is created at once, or by a worker of another host, where
    /// it may after a barrier.
    pub(super) fn delete(&mut self, host: u16) {
        let this = &mut self.hosts[usize::from(host)];
        let Some(description) = this.memory.delete_given() else { return };
        let clock = this.memory.worker.clock;
        let by = self.random.below(self.options.hosts.into()) as u16;
        // Whoever attaches to it at first would hold up the barrier.
        let all_run = self.hosts.iter().all(|host| host.memory.worker.started);
        let waits = self.options.mode != Mode::Free && all_run && clock < self.options.iterations;
        if by != host && waits && self.stays(by) {
            self.serve(host);
            return self.recreate(by, description, clock);
        }
        self.create(host, GIVEN, description);
    }

    /// A worker creates an area when this clock is past.
    pub(super) fn recreate(&mut self, host: u16, description: Description, clock: u64) {
        if self.hosts[usize::from(host)].memory.lowest > clock {
            return self.create(host, GIVEN, description);
        }
        self.at(self.now + MS, What::Recreate(host, description, clock));
    }

    /// Creates an area in a group whose number is not below `first`, and that no other had.
    fn create(&mut self, host: u16, first: u64, description: Description) {
        let copies = self.options.copies;
        let this = &mut self.hosts[usize::from(host)];
        this.renewals += 1;
        let group = GroupId::new(HostId(host), first + this.renewals);
        let on_demand = self.options.is_on_demand(group);
        this.memory.create(AreaId { group, member: 0 }, Description { on_demand, ..description }, copies);
        self.serve(host);
    }
}
