//! The host memory that the node sees; calls against the contract are reported to the judge.
use super::handover::Owner;
use super::{HostMemory, Remote, RemoteArea};
use crate::groups::is_given;
use crate::judge::Promise;
use crate::options::Mode;
use hectare_net::wire::Handover;
use hectare_net::{
    AreaId, Arrival, Description, Event, GroupId, HostId, LINE, Lines, Memory, NameError, PinId, Pinned,
    Place, Run, Version,
};
use std::collections::BTreeSet;

impl Memory for HostMemory {
    fn pin(&mut self, group: GroupId, label: Option<u64>) -> Result<Option<Pinned>, NameError> {
        if !self.works() {
            return Ok(None);
        }
        if self.judge.borrow().now < self.short_until {
            return Err(NameError::Unsent { by: self.host });
        }
        Ok(self.pin_state(group, label))
    }

    fn unpin(&mut self, pin: PinId) {
        if self.works() {
            let all = self.own.values_mut().chain(&mut self.gone);
            let copy = all.flat_map(|own| &mut own.copies).find(|copy| copy.pin == Some(pin));
            copy.expect("it is pinned").pin = None;
        }
    }

    fn changed(&mut self, pin: PinId, member: u16, base: Option<Version>) -> Lines {
        let own = self.own.values().find(|own| own.copies.iter().any(|copy| copy.pin == Some(pin)));
        let Some(area) = own.map(|own| &own.members[usize::from(member)]) else { return Lines::default() };
        let base = base.filter(|base| base.term == area.version.term).map(|base| base.counter);
        let lines =
            area.changed.iter().enumerate().filter(|(_, changed)| base.is_none_or(|base| **changed > base));
        let mut runs: Vec<Run> = Vec::new();
        for (line, _) in lines {
            match runs.last_mut() {
                Some(run) if run.first + run.count == line as u32 => run.count += 1,
                _ => runs.push(Run { first: line as u32, count: 1 }),
            }
        }
        runs.into_iter().collect()
    }

    fn reserve(&mut self, area: AreaId, description: &Description) -> Result<Option<Version>, NameError> {
        if !self.works() {
            return Err(NameError::Memory);
        }
        let remote = self.remote.entry(area.group).or_insert_with(|| Remote::of(Owner::home(area.group)));
        if let Some(member) = remote.members.get(usize::from(area.member)) {
            return Ok(member.version);
        }
        if remote.members.len() != usize::from(area.member) {
            self.broke(Promise::Contract, format!("{area:?} is reserved out of order"));
            return Err(NameError::Memory);
        }
        let bytes = vec![0; description.bytes as usize];
        remote.members.push(RemoteArea {
            description: description.clone(),
            writer: bytes.clone(),
            log: BTreeSet::new(),
            reader: bytes,
            version: None,
            is_ownerless: false,
        });
        Ok(None)
    }

    fn restore(&mut self, group: GroupId) {
        if !self.works() {
            return;
        }
        self.end_writes(group);
        let Some(remote) = self.remote.get_mut(&group) else { return };
        for member in &mut remote.members {
            member.writer.clone_from(&member.reader);
            member.log.clear();
        }
        if remote.arrival.is_some() {
            self.broke(Promise::Contract, format!("{group:?} is restored after its commit"));
        }
    }

    fn begin(&mut self, group: GroupId, versions: &[Version]) {
        if !self.works() {
            return;
        }
        let Some(remote) = self.remote.get(&group) else { return };
        if self.is_steady && remote.is_on_demand() {
            let is_open = !remote.requests.are_answered();
            // The sender may not know yet that it came, and have sent it again.
            let mut pairs = remote.members.iter().zip(versions);
            let has_all = pairs.all(|(member, version)| member.version == Some(*version));
            // Who has left it may have asked for another host, before it heard that it was taken.
            let may_have_asked = remote.requests.were_any() || self.left.contains(&group);
            let asked = is_open || has_all || (!self.is_sent_once && may_have_asked);
            self.judge.borrow_mut().sent(self.host, group, asked);
        }
        if remote.arrival.is_some() || versions.len() > remote.members.len() {
            let what = format!("a cut of {group:?} begins that cannot be received: {versions:?}");
            self.broke(Promise::Contract, what);
        }
    }

    fn write(&mut self, area: AreaId, run: Run, bytes: &[u8]) {
        if !self.works() {
            return;
        }
        self.end_writes(area.group);
        let Some(remote) = self.remote.get_mut(&area.group) else { return };
        let member = &mut remote.members[usize::from(area.member)];
        member.log.extend(run.first..run.first + run.count);
        let start = run.first as usize * LINE as usize;
        member.writer[start..start + bytes.len()].copy_from_slice(bytes);
        if remote.arrival.is_some() {
            self.broke(Promise::Contract, format!("{area:?} is written after its commit"));
        }
    }

    fn grant(&mut self, group: GroupId, to: HostId, members: usize) -> Option<Vec<Place>> {
        self.works().then(|| self.grant_group(group, to, members)).flatten()
    }

    fn announce(&mut self, area: AreaId, run: Run) {
        if self.works() {
            self.announce_lines(area, run);
        }
    }

    fn placed(&mut self, group: GroupId) {
        if self.works() {
            self.written.remove(&group);
        }
    }

    fn commit(&mut self, group: GroupId, arrival: Arrival) -> bool {
        if !self.works() {
            return true;
        }
        self.end_writes(group);
        let Some(remote) = self.remote.get_mut(&group) else { return true };
        // Publishing may not fail for groups that this host has left, as they stay known here.
        let may_fail = !self.left.contains(&group) && self.judge.borrow().now < self.fails_until;
        let is_new = |(member, version): (&RemoteArea, &Version)| member.version < Some(*version);
        let fails = may_fail && self.random.chance(self.failing);
        if fails && remote.members.iter().zip(&arrival.versions).any(is_new) {
            self.failed.push(group);
            // With its areas go the requests of their workers.
            self.events.retain(|event| !matches!(event, Event::Force { group: of, .. } if *of == group));
            return false;
        }
        if remote.arrival.replace(arrival).is_some() {
            self.broke(Promise::Contract, format!("{group:?} is committed twice"));
        }
        true
    }

    fn set_clock(&mut self, host: HostId, clock: u64) {
        if !self.works() {
            return;
        }
        let known = self.clocks.get_mut(&host).expect("another host");
        *known = clock.max(*known);
        // Nobody reads where nobody is.
        if self.has_left() {
            return;
        }
        for (group, remote) in &self.remote {
            let shows = remote.attached && remote.members.iter().any(|member| member.version.is_some());
            let may_own = group.home() == host || is_given(*group);
            if may_own
                && shows
                && !remote.is_on_demand()
                && !self.judge.borrow().covers_of(host, *group, remote.round, clock)
            {
                let what = format!(
                    "{} counts clock {clock} of {host} and shows round {:?} of {group:?}",
                    self.host, remote.round
                );
                self.broke(Promise::Clocks, what);
            }
        }
    }

    fn force(&mut self, group: GroupId) {
        // Every round here publishes all that is dirty.
        if self.works() && !self.forcing.insert(group) {
            self.broke(Promise::Contract, format!("{group:?} is forced twice"));
        }
    }

    /// Nothing is lent here, and each question is answered as if something had been.
    fn show(&mut self, group: GroupId) -> bool {
        if self.works() {
            self.events.push_back(Event::Forced { group, postponed: false });
        }
        false
    }

    fn answer(&mut self, group: GroupId, request: u32, as_of_ns: Option<u64>, postponed: bool) {
        if !self.works() {
            return;
        }
        let free = self.mode == Mode::Free;
        let Some(remote) = self.remote.get_mut(&group) else { return };
        let Some(newest) = remote.requests.answer(request) else {
            return self.broke(Promise::Contract, format!("{group:?} is answered, and nobody asked"));
        };
        let on_demand = remote.is_on_demand();
        // Workers read it where it arrived.
        let arrived = remote.arrival.as_ref().filter(|_| on_demand).and_then(|arrival| {
            let bytes = &remote.members[0].writer;
            self.judge.borrow_mut().arrived(self.host, group, &arrival.versions, bytes)
        });
        let shows = remote.round.max(arrived);
        let is_older = !self.judge.borrow().has(group, shows, newest);
        // Where clocks keep what is newer, an answer says so.
        let is_undated = free && as_of_ns.is_none() && !postponed && !on_demand;
        let is_late = is_older && (as_of_ns.is_some() || free || (on_demand && !postponed));
        if is_late || is_undated {
            let what = format!(
                "{} is answered {request} (as of {as_of_ns:?}, postponed {postponed}) and shows round {shows:?} of {group:?}: it was at {newest} when it asked",
                self.host
            );
            self.broke(Promise::Requests, what);
        }
    }

    fn leave(&mut self, group: GroupId, to: HostId, handover: Handover, versions: &[Version]) -> bool {
        self.works() && self.leave_group(group, to, handover.epoch, versions)
    }

    fn take(&mut self, group: GroupId, handover: Handover) -> bool {
        // The worker may not have come yet.
        if self.works() {
            self.end_writes(group);
        }
        self.works() && !self.random.chance(200) && self.take_group(group, handover.rank, handover.epoch)
    }

    fn moved(&mut self, group: GroupId, owner: HostId, epoch: u64) {
        if !self.works() {
            return;
        }
        if self.own.get(&group).is_some_and(|own| own.is_left) {
            self.gone.extend(self.own.remove(&group));
        }
        // It is kept with the copies.
        let Some(remote) = self.remote.get_mut(&group).filter(|remote| !remote.members.is_empty()) else {
            return;
        };
        remote.members.iter_mut().for_each(|member| member.is_ownerless = false);
        // Of a later hand-over alone, or of that by which this host has left it.
        if remote.owner.epoch < epoch || (remote.owner.epoch == epoch && remote.owner.given.is_some()) {
            remote.owner = Owner { host: owner, epoch, given: None };
        }
    }

    fn unsubscribed(&mut self, _: GroupId, _: HostId) {
        self.works();
    }

    fn workers(&mut self, host: HostId, first: u32, failed: u64, left: u64) {
        if !self.works() {
            return;
        }
        if first != 64 * u32::from(host.0) {
            self.broke(Promise::Told, format!("{host} says how workers from {first} on stand"));
        }
        self.workers.insert(host, (failed, left));
    }

    fn ownerless(&mut self, area: AreaId, is: bool) {
        if !self.works() {
            return;
        }
        if is && !self.judge.borrow().was_dropped(area.group) {
            self.broke(Promise::Told, format!("{} is told that {area:?} was dropped", self.host));
        }
        let members = self.remote.get_mut(&area.group).map(|remote| &mut remote.members);
        match members.and_then(|members| members.get_mut(usize::from(area.member))) {
            Some(member) => member.is_ownerless = is,
            None => self.broke(Promise::Contract, format!("{area:?} has no place, and is ownerless")),
        }
    }

    fn release(&mut self, group: GroupId) {
        self.end_writes(group);
        if self.works() && self.remote.remove(&group).is_some_and(|remote| remote.arrival.is_some()) {
            self.broke(Promise::Contract, format!("{group:?} is released after its commit"));
        }
    }
}

impl HostMemory {
    /// Pins the newest state of a group, or the last one of a label.
    fn pin_state(&mut self, group: GroupId, label: Option<u64>) -> Option<Pinned> {
        let own = self.own.get_mut(&group)?;
        let index = match label {
            None => own.newest?,
            Some(label) => {
                let round = |index: &usize| {
                    own.copies[*index]
                        .published
                        .as_ref()
                        .filter(|published| published.state.label == label)
                        .map(|published| published.state.round)
                };
                (0..own.copies.len()).filter(|index| round(index).is_some()).max_by_key(round)?
            }
        };
        let is_free = |other: &usize| {
            *other != index
                && own.newest != Some(*other)
                && own.copies[*other].pin.is_none()
                && !own.copies[*other].dead
        };
        if own.copies[index].pin.is_none() && !(0..own.copies.len()).any(|other| is_free(&other)) {
            return None;
        }
        self.last_pin += 1;
        let copy = &mut own.copies[index];
        let pin = *copy.pin.get_or_insert(PinId(self.last_pin));
        let state = copy.published.as_ref().expect("just seen").state.clone();
        Some(Pinned { pin, state, published_ns: copy.published_ns })
    }
}
