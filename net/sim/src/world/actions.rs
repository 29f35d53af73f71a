//! A node's actions: packets go on their way, and the judge hears what workers would be told.
use super::{CLASHING, GROUPED, KEPT, LOCAL, What, World};
use crate::groups::{is_given, is_renewed};
use crate::judge::Promise;
use crate::options::MS;
use hectare_net::{Action, AreaId, Counters, Description, ElementType, Event, GroupId, HostId, NameError};

impl World {
    pub(super) fn act(&mut self, host: u16, action: Action) {
        // An agent that ends may be the only one that knows what somebody asked for.
        let is_calm = self.options.crashes == 0;
        let this = &mut self.hosts[usize::from(host)];
        match action {
            Action::Send(packet) => self.send(host, &packet),
            Action::Accepted { area } if this.memory.kept.contains_key(&area) => {
                this.memory.kept.get_mut(&area).expect("just seen").1 = true;
            }
            Action::Accepted { area } => {
                let member = usize::from(area.member);
                let description = match this.memory.own.get_mut(&area.group) {
                    Some(own) => {
                        own.members[member].accepted = true;
                        &own.members[member].description
                    }
                    // It was given away at once.
                    None => match this.memory.remote.get(&area.group) {
                        Some(remote) => &remote.members[member].description,
                        // Or deleted.
                        None => return,
                    },
                };
                let Description { name, group, .. } = description;
                self.judge.borrow_mut().named(name, group, area);
            }
            Action::Refused { area, error } => {
                // It is still there: each uses its own, and a new agent says it again.
                let own = this.memory.own.get(&area.group);
                let serial = area.group.0 & 0xffff_ffff;
                if matches!(error, NameError::Taken { .. } | NameError::Group { .. }) {
                    // It hears of the clash by that, whichever of the two directories before this one let have the name.
                    self.judge.borrow_mut().refused(area);
                }
                match error {
                    NameError::Taken { by } if serial == CLASHING => {
                        let holder = AreaId { group: GroupId::new(by, CLASHING), member: 0 };
                        self.judge.borrow_mut().must_hear(holder, HostId(host));
                    }
                    NameError::Group { by } if serial == GROUPED => {
                        let holder = AreaId { group: GroupId::new(by, GROUPED), member: 0 };
                        self.judge.borrow_mut().must_hear(holder, HostId(host));
                    }
                    _ => {
                        let what = format!("{area:?} was refused: {error}, {own:?}");
                        self.judge.borrow_mut().broke(Promise::Names, what);
                    }
                }
            }
            // Nobody is there who asked.
            Action::Attached { .. } if this.memory.has_left() => {}
            // It is answered again when there is one.
            Action::Attached { result: Err(NameError::Unknown), .. } => {}
            Action::Attached { ticket, result: Err(NameError::Deleted), found: Some(area) }
                if self.judge.borrow().is_deleted(area.group) || this.memory.failed.contains(&area.group) =>
            {
                self.at(self.now + 20 * MS, What::Attach(host, ticket));
            }
            // It went after that was said, and before anybody heard it.
            Action::Attached { ticket, result: Ok(area), .. }
                if this.memory.failed.contains(&area.group) || self.judge.borrow().is_deleted(area.group) =>
            {
                self.at(self.now + 20 * MS, What::Attach(host, ticket));
            }
            Action::Attached { ticket, result: Err(NameError::Unsent { by }), .. } => {
                if !self.hosts[usize::from(by.0)].memory.was_short(self.now) {
                    let what = format!("{by} has memory for its copies, and said that it has none");
                    return self.judge.borrow_mut().broke(Promise::Names, what);
                }
                let again = self.now + 20 * MS;
                self.at(again, What::Attach(host, ticket));
            }
            Action::Attached { ticket, result, .. } => {
                let (wanted, answer) = &mut this.wanted[ticket as usize];
                let odd = wanted.element.is_some_and(|element| element.kind == 9);
                match result {
                    Err(NameError::Local { by }) if wanted.name == KEPT && by.0 != host => {
                        let kept = AreaId { group: GroupId::new(by, LOCAL), member: 0 };
                        if is_calm {
                            self.judge.borrow_mut().must_hear(kept, HostId(host));
                        }
                    }
                    Ok(area) if !odd => {
                        // Somebody there takes it for something else.
                        if self.random.chance(100) {
                            let element = ElementType { kind: 8, size: 8, align: 8 };
                            this.memory.events.push_back(Event::TakenFor { area, element });
                            // Not if the group has come to this host meanwhile: there is no other owner to hear of it. Nor if it is here
                            // before its data: it may be deleted before the owner is told; or let go, where a state fails.
                            let may_go = self.options.failing > 0
                                || is_renewed(area.group) && self.options.is_on_demand(area.group);
                            if is_calm && !is_given(area.group) && !may_go {
                                self.judge.borrow_mut().must_hear(area, HostId(host));
                            }
                        }
                        // It may have been given to this host by now.
                        if let Some(remote) = this.memory.remote.get_mut(&area.group) {
                            remote.attached = true;
                            remote.interval_us = self.options.interval_us;
                            let shows = remote
                                .members
                                .get(usize::from(area.member))
                                .is_some_and(|it| it.version.is_some());
                            let (round, lowest) = (remote.round, this.memory.lowest);
                            let is_covered = self.judge.borrow().covers(area.group, round, lowest);
                            if !(remote.is_on_demand() || shows && is_covered) {
                                let what = format!(
                                    "host {host} attaches to {area:?} at clock {lowest} and shows round {round:?} of it, data of it: {shows}"
                                );
                                self.judge.borrow_mut().broke(Promise::Barrier, what);
                            }
                        } else if !this.memory.own.contains_key(&area.group) {
                            let what = format!("{area:?} has no copies, and is attached to");
                            self.judge.borrow_mut().broke(Promise::Contract, what);
                        }
                    }
                    Err(NameError::Type { .. }) if odd => {
                        let mut judge = self.judge.borrow_mut();
                        // It may have been accepted a moment ago, and its host not have heard so.
                        if let Some(area) = judge.only_area_of(&wanted.name)
                            && is_calm
                        {
                            judge.must_hear(area, HostId(host));
                        }
                    }
                    other => self
                        .judge
                        .borrow_mut()
                        .broke(Promise::Names, format!("{} was answered {other:?}", wanted.name)),
                }
                *answer = Some(result);
                let needed = &this.wanted[..this.needed];
                this.memory.worker.started |= needed.iter().all(|(_, answer)| answer.is_some());
            }
            Action::Conflict { area, by, .. } => self.judge.borrow_mut().heard(area, by),
            Action::Deleted { area } if self.judge.borrow().is_deleted(area.group) => {
                self.attach_again(host, |gone| gone == area);
            }
            Action::Deleted { area } => {
                self.judge.borrow_mut().broke(Promise::Names, format!("{area:?} counts as deleted"));
            }
            Action::Card { .. } => {
                self.judge.borrow_mut().broke(Promise::Contract, "a card that nobody sent".into());
            }
            Action::Place { peer, id, cut, pin, lines, is_last } => {
                self.place(host, peer.0, (id, cut, pin), lines, is_last);
            }
            Action::PeerRefused { peer, error } => {
                self.judge.borrow_mut().broke(Promise::Contract, format!("{peer} was refused: {error}"));
            }
            Action::End(failed) => self.judge.borrow_mut().ended(HostId(host), failed, self.dead),
        }
    }
}

pub(super) fn add(to: &mut Counters, more: &Counters) {
    to.malformed += more.malformed;
    to.violations += more.violations;
    to.cuts += more.cuts;
    to.arrivals += more.arrivals;
    to.cuts_refused += more.cuts_refused;
    to.cuts_overtaken += more.cuts_overtaken;
    to.cuts_held += more.cuts_held;
    to.cuts_ahead += more.cuts_ahead;
    to.cuts_joined += more.cuts_joined;
    to.skipped_labels += more.skipped_labels;
    to.pins_refused += more.pins_refused;
    to.lines_sent += more.lines_sent;
    to.lines_placed += more.lines_placed;
    to.lines_resent += more.lines_resent;
    to.lines_received += more.lines_received;
    to.stale_lines += more.stale_lines;
    to.left += more.left;
    to.taken += more.taken;
    to.names_refused += more.names_refused;
    to.conflicts += more.conflicts;
}
