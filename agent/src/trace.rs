//! The steps of an area's versions through this agent, with times, for `hectare trace`: recorded in a ring, only while somebody asks.
use hectare_net::wire::Stage;
use hectare_net::{AreaId, GroupId, HostId, Version};
use hectare_wire::{TraceStep, TraceWhat};
use std::collections::{BTreeMap, VecDeque};

/// The most steps that are kept until they are fetched.
const STEPS: usize = 4096;
/// The most steps of one answer.
pub(crate) const STEPS_PER_ANSWER: usize = 256;
/// A step is given when it is so old: the packets of a version are one step.
const SETTLED_NS: u64 = 20_000_000;
/// How long it goes on after the last look.
const LOOK_WITHIN_NS: u64 = 2_000_000_000;
/// The most areas at once.
const AREAS: usize = 16;

/// The packets of a version on their way to a host.
#[derive(Debug)]
struct Way {
    version: Version,
    /// The step that tells of it.
    step: u64,
}

/// One area whose versions are followed.
#[derive(Debug)]
struct Followed {
    id: AreaId,
    until_ns: u64,
    ways: BTreeMap<HostId, Way>,
    /// The last report of each subscriber: the cut that it has whole, and the version that it has published.
    said: BTreeMap<HostId, (u64, Option<Version>)>,
    /// The last version of which was noted when it was published.
    published: Option<Version>,
}

/// The steps of the areas that somebody looks at.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    followed: Vec<Followed>,
    steps: VecDeque<(AreaId, TraceStep)>,
    /// The number of the next step.
    next: u64,
}

impl Trace {
    /// Whether anything is followed.
    pub(crate) fn is_on(&self) -> bool {
        !self.followed.is_empty()
    }

    /// Follows an area for a while, and gives its steps from number `after` on: the steps, the number after the last of them,
    /// and whether some were dropped.
    pub(crate) fn follow(&mut self, id: AreaId, now_ns: u64, after: u64) -> (Vec<TraceStep>, u64, bool) {
        self.forget_late(now_ns);
        let until_ns = now_ns + LOOK_WITHIN_NS;
        let place = self.followed.iter().position(|followed| followed.id == id);
        match place {
            Some(place) => self.followed[place].until_ns = until_ns,
            None if self.followed.len() < AREAS => self.followed.push(Followed {
                id,
                until_ns,
                ways: BTreeMap::new(),
                said: BTreeMap::new(),
                published: None,
            }),
            None => {}
        }
        let first = self.next - self.steps.len() as u64;
        let mut next = after.max(first);
        let mut found = Vec::new();
        for (area, step) in self.steps.iter().skip((next - first) as usize) {
            if found.len() == STEPS_PER_ANSWER || step.until_ns + SETTLED_NS > now_ns {
                break;
            }
            next += 1;
            if *area == id {
                found.push(step.clone());
            }
        }
        (found, next, after != 0 && after < first)
    }

    /// Stops following what nobody looks at any more.
    pub(crate) fn forget_late(&mut self, now_ns: u64) {
        self.followed.retain(|followed| followed.until_ns >= now_ns);
        if self.followed.is_empty() {
            self.steps.clear();
        }
    }

    fn add(&mut self, id: AreaId, step: TraceStep) -> u64 {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back((id, step));
        self.next += 1;
        self.next - 1
    }

    /// A step of all followed areas of a group of which `versions` are.
    pub(crate) fn note(&mut self, group: GroupId, versions: &[Version], at_ns: u64, what: TraceWhat) {
        for place in 0..self.followed.len() {
            let followed = &mut self.followed[place];
            let id = followed.id;
            let Some(version) = versions.get(usize::from(id.member)).filter(|_| id.group == group) else {
                continue;
            };
            // A state is pinned for each train.
            if what == TraceWhat::Published && followed.published.replace(*version) >= Some(*version) {
                continue;
            }
            self.add(id, step(*version, at_ns, what, None));
        }
    }

    /// A packet with bytes of an area, whose pinned states are these, goes to a host.
    pub(crate) fn note_sent(
        &mut self,
        group: GroupId,
        versions: &[Version],
        to: HostId,
        at_ns: u64,
        (member, bytes): (u16, u64),
    ) {
        let first = self.next - self.steps.len() as u64;
        let id = AreaId { group, member };
        let Some(place) = self.followed.iter().position(|followed| followed.id == id) else { return };
        let Some(version) = versions.get(usize::from(member)).copied() else { return };
        let way = self.followed[place].ways.get(&to).filter(|way| way.version == version);
        if let Some(way) = way {
            // It may have left the ring.
            let found = way.step.checked_sub(first).and_then(|place| self.steps.get_mut(place as usize));
            if let Some((_, step)) = found {
                (step.until_ns, step.packets, step.bytes) = (at_ns, step.packets + 1, step.bytes + bytes);
            }
            return;
        }
        let mut sent = step(version, at_ns, TraceWhat::Sent, Some(to));
        (sent.packets, sent.bytes) = (1, bytes);
        let number = self.add(id, sent);
        self.followed[place].ways.insert(to, Way { version, step: number });
    }

    /// Notes the reports of subscribers on the groups that are followed.
    pub(crate) fn note_said<'s>(
        &mut self,
        at_ns: u64,
        said: impl Fn(GroupId) -> Vec<(HostId, Stage, u64, &'s [Option<Version>])>,
    ) {
        for place in 0..self.followed.len() {
            let id = self.followed[place].id;
            for (host, stage, cut, have) in said(id.group) {
                let have = have.get(usize::from(id.member)).copied().flatten();
                let known = self.followed[place].said.insert(host, (cut, have));
                // The first look at a state tells nothing of when it began.
                let Some((known_cut, known_have)) = known else { continue };
                let version = self.followed[place].ways.get(&host).map(|way| way.version);
                if stage == Stage::Complete
                    && cut > known_cut
                    && let Some(version) = version
                {
                    self.add(id, step(version, at_ns, TraceWhat::CompleteThere, Some(host)));
                }
                if have > known_have
                    && let Some(version) = have
                {
                    self.add(id, step(version, at_ns, TraceWhat::VisibleThere, Some(host)));
                }
            }
        }
    }
}

fn step(version: Version, at_ns: u64, what: TraceWhat, host: Option<HostId>) -> TraceStep {
    let (term, counter, host) = (version.term, version.counter, host.map(|host| host.0));
    TraceStep { term, counter, what, host, at_ns, until_ns: at_ns, packets: 0, bytes: 0 }
}
