//! A job before its run: the areas of its hosts, who attaches to them, and when faults happen.
use super::{CLASHING, GROUPED, KEPT, LOCAL, What, World};
use crate::groups::GIVEN;
use crate::network::Cut;
use crate::options::MS;
use hectare_net::wire::Wanted;
use hectare_net::{AreaId, Description, ElementType, GroupId, HostId, LINE};

impl World {
    /// Which workers leave before the others are done, and when.
    pub(super) fn choose_leavers(&mut self) {
        let hosts = u64::from(self.options.hosts);
        for _ in 0..self.options.leavers.min(self.options.hosts - 1) {
            let (host, iterations) = (self.random.below(hosts), self.random.below(self.options.iterations));
            self.hosts[host as usize].memory.leaves_after(iterations);
        }
    }

    /// Whether a host's worker stays to the end.
    pub(super) fn stays(&self, host: u16) -> bool {
        self.hosts[usize::from(host)].memory.stays()
    }

    /// The hosts whose workers do.
    pub(super) fn staying(&self) -> Vec<u16> {
        (0..self.options.hosts).filter(|host| self.stays(*host)).collect()
    }

    pub(super) fn areas(&mut self) {
        let options = self.options.clone();
        let element = ElementType { kind: 1, size: 8, align: 8 };
        let (mut names, mut keepers) = (Vec::new(), Vec::new());
        for host in 0..options.hosts {
            for group in 0..options.groups {
                let id = GroupId::new(HostId(host), group);
                let members = self.random.between(1, options.members);
                let on_demand = members == 1 && self.options.is_on_demand(id);
                for member in 0..members {
                    let name = format!("h{host}g{group}m{member}");
                    // The last line may be short.
                    let bytes = self.random.between(1, options.lines) * LINE - self.random.below(7) * 8;
                    let (name, group) = (name.clone(), String::new());
                    let description = Description { name, group, element, bytes, row: 1, on_demand };
                    names.push((host, description.clone()));
                    let area = AreaId { group: id, member: member as u16 };
                    self.hosts[usize::from(host)].memory.create(area, description, options.copies);
                }
            }
            if options.handovers > 0 {
                let name = format!("given by {host}");
                let bytes = self.random.between(1, options.lines) * LINE;
                let area = AreaId { group: GroupId::new(HostId(host), GIVEN), member: 0 };
                let on_demand = self.options.is_on_demand(area.group);
                let description =
                    Description { name, group: String::new(), element, bytes, row: 1, on_demand };
                names.push((host, description.clone()));
                self.hosts[usize::from(host)].memory.create(area, description, options.copies);
            }
            // A name that all hosts want, for an area that nobody attaches to, and a group that all want.
            let of = |name: &str, group: &str| Description {
                name: name.into(),
                group: group.into(),
                element,
                bytes: 64,
                row: 1,
                on_demand: false,
            };
            let area = |serial| AreaId { group: GroupId::new(HostId(host), serial), member: 0 };
            let memory = &mut self.hosts[usize::from(host)].memory;
            if self.random.chance(300) {
                memory.create(area(CLASHING), of("wanted by all", ""), options.copies);
            }
            if self.random.chance(300) {
                memory.create(area(GROUPED), of(&format!("of {host}"), "group of all"), options.copies);
            }
            if self.random.chance(300) {
                memory.create_local(area(LOCAL), of(KEPT, ""));
                keepers.push(host);
            }
        }
        for host in 0..options.hosts {
            if keepers.iter().any(|keeper| *keeper != host) && self.random.chance(500) {
                let wanted = Wanted { name: KEPT.into(), element: None, bytes: None, asked: 0 };
                self.hosts[usize::from(host)].wanted.push((wanted, None));
            }
        }
        let renewing = if options.renewals > 0 { options.hosts } else { 0 };
        for (host, owner) in (0..renewing).flat_map(|host| (0..renewing).map(move |owner| (host, owner))) {
            if host != owner && self.stays(owner) && self.random.chance(options.attach) {
                let wanted = Wanted { name: World::renewed(owner), element: None, bytes: None, asked: 0 };
                self.hosts[usize::from(host)].wanted.push((wanted, None));
            }
        }
        for host in 0..options.hosts {
            for (owner, description) in &names {
                if *owner != host && self.random.chance(options.attach) {
                    let odd = self.random.chance(20);
                    let element = if odd { ElementType { kind: 9, ..element } } else { element };
                    let bytes = self.random.chance(500).then_some(description.bytes);
                    let wanted =
                        Wanted { name: description.name.clone(), element: Some(element), bytes, asked: 0 };
                    self.hosts[usize::from(host)].wanted.push((wanted, None));
                }
            }
        }
    }

    pub(super) fn begin(&mut self) {
        let hosts = self.options.hosts;
        for host in 0..hosts {
            let at = self.random.below(20 * MS);
            self.at(at, What::Start(host));
            self.at(at, What::Round(host));
            for peer in host + 1..hosts {
                let at = self.random.below(30 * MS);
                self.at(at, What::Connect(host, peer));
            }
        }
        let until = self.options.faults_until;
        for _ in 0..self.options.partitions {
            let (from, start, len) = (
                self.random.below(hosts.into()) as u16,
                self.random.below(until),
                self.random.between(1, 500 * MS),
            );
            let to = (from + 1 + self.random.below(u64::from(hosts) - 1) as u16) % hosts;
            let end = (start + len).min(until);
            self.network.cuts.push(Cut { from, to, start, end });
            // One way, or both.
            if self.random.chance(500) {
                self.network.cuts.push(Cut { from: to, to: from, start, end });
            }
        }
        for _ in 0..self.options.pauses {
            let (host, at, len) = (
                self.random.below(hosts.into()) as u16,
                self.random.below(until),
                self.random.between(1, 250 * MS),
            );
            self.at(at, What::Pause(host, at + len));
        }
        for _ in 0..self.options.crashes {
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
            let in_the_middle = self.random.chance(700).then(|| self.random.below(40) as u32);
            self.at(at, What::Crash(host, in_the_middle));
        }
        if self.options.death {
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
            self.at(at, What::Die(host));
        }
        for host in 0..usize::from(hosts) {
            if self.options.short > 0 && self.random.chance(self.options.short) {
                self.hosts[host].memory.short_until = self.random.below(until);
            }
        }
        if self.options.renewals > 0 {
            for host in self.staying() {
                // An odd number: it is there at the end.
                for _ in 0..2 * self.random.between(0, self.options.renewals) + 1 {
                    let at = self.random.below(until);
                    self.at(at, What::Renew(host));
                }
            }
        }
        if self.options.handovers > 0 {
            for _ in 0..self.options.handovers * u64::from(hosts) {
                let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
                let to = self.random.below(hosts.into()) as u16;
                self.at(at, What::Give(host, to));
            }
        }
        // A later agent does not know of what was deleted and not said yet.
        let is_whole = self.options.handovers > 0 && self.options.crashes == 0;
        let deletions = if is_whole { self.options.deletions } else { 0 };
        for _ in 0..deletions * u64::from(hosts) {
            // Some while the workers run.
            let by = self.random.pick(&[until, until / 6]);
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(by));
            self.at(at, What::Delete(host));
        }
        self.plan_growth();
        for _ in 0..self.options.drops * u64::from(hosts) {
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
            self.at(at, What::Drop(host));
        }
        for _ in 0..self.options.worker_deaths * u64::from(hosts) {
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
            self.at(at, What::Fail(host));
        }
        for _ in 0..self.options.gives_here * u64::from(hosts) {
            let (host, at) = (self.random.below(hosts.into()) as u16, self.random.below(until));
            self.at(at, What::GiveHere(host));
        }
        if self.options.impostor && hosts > 2 {
            for _ in 0..40 {
                let at = self.random.below(until);
                self.at(at, What::Impostor);
            }
        }
    }
}
