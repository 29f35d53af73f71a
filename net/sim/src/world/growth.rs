//! Areas that are added to groups while the workers run. Some look for them before they are there.
use super::{What, World};
use crate::options::MS;
use hectare_net::wire::Wanted;
use hectare_net::{AreaId, Description, ElementType, GroupId, HostId, LINE};

/// The most areas of a group, with those that are added.
const MOST: usize = 8;

impl World {
    /// Plans which areas are added, and when.
    pub(super) fn plan_growth(&mut self) {
        let element = ElementType { kind: 1, size: 8, align: 8 };
        let (hosts, until) = (self.options.hosts, self.options.faults_until);
        let growths = self.options.growths;
        for (host, number) in
            self.staying().into_iter().flat_map(|host| (0..growths).map(move |it| (host, it)))
        {
            let group = GroupId::new(HostId(host), self.random.below(self.options.groups));
            let name: String = format!("added by {host}, {number}");
            let bytes = self.random.between(1, self.options.lines) * LINE - self.random.below(7) * 8;
            // Some while the workers run.
            let before = self.random.pick(&[until, until / 6]);
            let at = self.random.below(before);
            let wanted = Wanted { name: name.clone(), element: Some(element), bytes: Some(bytes), asked: 0 };
            let description =
                Description { name, group: String::new(), element, bytes, row: 1, on_demand: false };
            self.at(at, What::Grow(host, group, description));
            for other in (0..hosts).filter(|other| *other != host) {
                if self.random.chance(self.options.attach) {
                    self.hosts[usize::from(other)].later.push(wanted.clone());
                    let asks = (at + self.random.below(30 * MS)).saturating_sub(10 * MS);
                    self.at(asks, What::Ask(other, wanted.clone()));
                }
            }
        }
    }

    /// A worker adds an area to a group of its host, or creates it alone where that group is dropped, sent on demand, or has many.
    pub(super) fn grow(&mut self, host: u16, group: GroupId, description: Description) {
        let copies = self.options.copies;
        let this = &mut self.hosts[usize::from(host)];
        this.renewals += 1;
        let alone = GroupId::new(HostId(host), crate::groups::ALONE + this.renewals);
        let memory = &mut this.memory;
        let has_room =
            |own: &&crate::memory::Own| !own.is_on_demand() && !own.is_dropped && own.members.len() < MOST;
        match memory.own.get(&group).filter(has_room).map(|own| own.members.len()) {
            Some(member) => memory.create(AreaId { group, member: member as u16 }, description, copies),
            None => memory.create(AreaId { group: alone, member: 0 }, description, copies),
        }
        self.serve(host);
    }

    /// A worker looks for an area that is added, or will be.
    pub(super) fn ask(&mut self, host: u16, wanted: Wanted) {
        let this = &mut self.hosts[usize::from(host)];
        this.later.retain(|later| *later != wanted);
        this.wanted.push((wanted, None));
        let ticket = this.wanted.len() as u64 - 1;
        self.attach(host, ticket);
    }
}
