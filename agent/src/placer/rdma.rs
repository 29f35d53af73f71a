//! The placer of a program with RDMA.
use super::places::{NoRegion, Places};
use super::way::{Theirs, Way};
use super::{Lines, NO_PAIR, News, RdmaDevice, RdmaError, Standing, no_card};
use crate::own::Own;
use hectare_dsm as dsm;
use hectare_dsm::agent::Agent;
use hectare_net::{HostId, Place};
use hectare_rdma::{Broken, Device, Domain, Write};
use hectare_session::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use tracing::{info, warn};

/// Writes lines into the memory of peers, and lets them write here.
#[derive(Debug)]
pub struct Placer {
    /// Or why it does not open; no reason if none is configured.
    device: Result<Device, Option<RdmaError>>,
    // Before the regions, which must not go while they are written.
    ways: BTreeMap<HostId, Way>,
    places: Places,
    /// Peers without, and why.
    without: BTreeMap<HostId, String>,
    news: VecDeque<News>,
    /// When this was called last with the time.
    now: Time,
    writes: u64,
    bytes: u64,
    broken: u64,
    closed: u64,
}

impl Default for Placer {
    fn default() -> Placer {
        Placer::none(None)
    }
}

impl Placer {
    fn with(device: Result<Device, Option<RdmaError>>) -> Placer {
        Placer {
            device,
            ways: BTreeMap::new(),
            places: Places::default(),
            without: BTreeMap::new(),
            news: VecDeque::new(),
            now: Time::ZERO,
            writes: 0,
            bytes: 0,
            broken: 0,
            closed: 0,
        }
    }

    /// Places nothing: no device is configured, or it does not open, for this reason.
    pub fn none(why: Option<RdmaError>) -> Placer {
        Placer::with(Err(why))
    }

    /// Places by this device; `at` is the agent's address.
    ///
    /// # Errors
    /// [`RdmaError::Device`], which says what to do.
    pub fn open(device: &RdmaDevice, at: IpAddr) -> Result<Placer, RdmaError> {
        let opened = Device::open(device.device.as_deref(), (!at.is_unspecified()).then_some(at))?;
        info!(device = opened.name(), gid = %opened.address(), "an RDMA device");
        Ok(Placer::with(Ok(opened)))
    }

    /// A session with a peer has begun: it is told of a new queue pair, or why there is none.
    pub(crate) fn connected(&mut self, peer: HostId) {
        self.without.remove(&peer);
        let why = match &self.device {
            Err(None) => "there is no [rdma] in its configuration".into(),
            Err(Some(error)) => format!("its agent has no RDMA device: {error}"),
            Ok(device) => match Domain::new(device) {
                Ok(domain) => {
                    self.ways.insert(peer, Way::new(domain));
                    return self.renew(peer);
                }
                Err(error) => error.to_string(),
            },
        };
        self.news.push_back(News::Card(peer, no_card(&why)));
    }

    /// The session with a peer has ended: nothing of it is written here any more.
    pub(crate) fn disconnected(&mut self, peer: HostId) {
        self.ways.remove(&peer);
        self.places.forget_peer(peer);
        self.without.remove(&peer);
        self.news.retain(|news| !matches!(news, News::Card(host, _) | News::Places(host, _) | News::Wrote(host, _) | News::Placed(host, _) if *host == peer));
    }

    /// Opens a queue pair to a peer, in place of the one that there may be, and tells it.
    fn renew(&mut self, peer: HostId) {
        let Some(way) = self.ways.get_mut(&peer).filter(|way| !way.is_given_up()) else { return };
        if let Err(error) = way.open() {
            return self.fail(peer, error.to_string());
        }
        self.tell(peer);
    }

    /// Tells a peer of the queue pair, and this host of whether it works.
    fn tell(&mut self, peer: HostId) {
        let Some(way) = self.ways.get_mut(&peer) else { return };
        if let Some(card) = way.card() {
            self.news.push_back(News::Card(peer, card));
        }
        if way.comes_up() {
            info!(%peer, "lines are placed by RDMA");
            self.news.push_back(News::Places(peer, true));
        }
    }

    /// A queue pair to a peer has failed.
    fn fail(&mut self, peer: HostId, why: String) {
        let Some(way) = self.ways.get_mut(&peer) else { return };
        warn!(%peer, why, "an RDMA queue pair is replaced");
        self.broken += 1;
        way.fail(self.now, why);
        self.news.push_back(News::Places(peer, false));
    }

    /// There is to be none to a peer any more.
    fn give_up(&mut self, peer: HostId, why: String) {
        let Some(way) = self.ways.get_mut(&peer) else { return };
        warn!(%peer, why, "no RDMA");
        self.news.push_back(News::Card(peer, no_card(&why)));
        self.news.push_back(News::Places(peer, false));
        way.give_up(why);
        self.places.forget_peer(peer);
    }

    /// A peer has sent a card.
    pub(crate) fn card(&mut self, now: Time, peer: HostId, bytes: &[u8]) {
        self.now = now;
        if bytes.first() == Some(&NO_PAIR) {
            let why = String::from_utf8_lossy(&bytes[1..]).into_owned();
            if let Some(way) = self.ways.get_mut(&peer) {
                way.give_up(why.clone());
                self.news.push_back(News::Places(peer, false));
                self.places.forget_peer(peer);
            }
            self.without.insert(peer, why);
            return;
        }
        let (Some(way), Some(theirs)) = (self.ways.get_mut(&peer), Theirs::from_bytes(bytes)) else { return };
        if way.hear(theirs) {
            self.news.push_back(News::Places(peer, false));
            return self.renew(peer);
        }
        let before = way.card();
        if let Err(error) = way.meet() {
            return self.fail(peer, error.to_string());
        }
        if way.card() != before {
            self.tell(peer);
        } else if way.comes_up() {
            info!(%peer, "lines are placed by RDMA");
            self.news.push_back(News::Places(peer, true));
        }
    }

    /// Writes what there is, and looks what has come.
    pub(crate) fn poll(&mut self, now: Time) {
        self.now = now;
        let peers: Vec<HostId> = self.ways.keys().copied().collect();
        for peer in peers {
            let way = self.ways.get_mut(&peer).expect("just listed");
            if way.again().is_some_and(|at| at <= now) {
                self.renew(peer);
                continue;
            }
            if let Some(broken) = self.look(peer) {
                self.fail(peer, broken.to_string());
            }
        }
    }

    /// Looks at a way; how it broke, if it has.
    fn look(&mut self, peer: HostId) -> Option<Broken> {
        let came = self.ways.get_mut(&peer)?.look();
        self.writes += came.written as u64;
        self.news.extend(came.wrote.map(|id| News::Wrote(peer, id)));
        self.news.extend(came.words.into_iter().map(|word| News::Placed(peer, word)));
        came.broken
    }

    pub(crate) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Lets a peer write areas; none of them if one cannot be.
    pub(crate) fn grant(
        &mut self,
        agent: &Agent,
        peer: HostId,
        areas: &[Option<dsm::AreaId>],
    ) -> Option<Vec<Place>> {
        let domain = self.ways.get(&peer).filter(|way| way.is_up())?.domain.clone();
        let mut places = Vec::with_capacity(areas.len());
        for area in areas {
            let place = match *area {
                None => Ok(Place { address: 0, key: 0 }),
                Some(area) => self.places.writer(agent, (peer, &domain), area),
            };
            match place {
                Ok(place) => places.push(place),
                Err(NoRegion::Area) => return None,
                Err(NoRegion::Device(error)) => {
                    self.give_up(peer, error.to_string());
                    return None;
                }
            }
        }
        Some(places)
    }

    /// Writes lines of a pinned state into a peer's memory; after the last it is told the cut.
    pub(crate) fn place(&mut self, own: &Own, peer: HostId, Lines { id, cut, pin, lines, is_last }: Lines) {
        let Some(way) = self.ways.get_mut(&peer).filter(|way| way.is_up()) else { return };
        let (last, mut writes) = (lines.len().saturating_sub(1), Vec::with_capacity(lines.len()));
        for (at, line) in lines.into_iter().enumerate() {
            // The area is gone: nobody waits for it.
            let Some(held) = own.held(pin, line.member) else { return way.write(Vec::new(), id) };
            let from = match self.places.copy((peer, &way.domain), held) {
                Ok(region) => region,
                Err(NoRegion::Area) => return way.write(Vec::new(), id),
                Err(NoRegion::Device(error)) => return self.give_up(peer, error.to_string()),
            };
            let start = line.offset as usize;
            self.bytes += u64::from(line.len);
            writes.push(Write {
                from,
                bytes: start..start + line.len as usize,
                to: hectare_rdma::Place { address: line.to.address, key: line.to.key },
                at: line.offset,
                word: (is_last && at == last).then_some(cut),
            });
        }
        way.write(writes, id);
    }

    /// Ends the queue pair to a peer, so that nothing of it is written here any more, and opens another.
    pub(crate) fn close(&mut self, peer: HostId, why: &str) {
        let Some(way) = self.ways.get_mut(&peer).filter(|way| !way.is_given_up()) else { return };
        info!(%peer, why, "an RDMA queue pair is closed");
        self.closed += 1;
        if way.shut() {
            self.news.push_back(News::Places(peer, false));
        }
        self.renew(peer);
    }

    /// An area is gone, or changes hands: what is registered of it is no more.
    pub(crate) fn forget(&mut self, area: dsm::AreaId) {
        self.places.forget(area);
    }

    /// A peer has no copies of an area any more.
    pub(crate) fn forget_sent(&mut self, peer: HostId, area: dsm::AreaId) {
        self.places.forget_sent(peer, area);
    }

    /// Whether there is nothing to do until the device or the next time-out says so.
    pub(crate) fn may_sleep(&mut self) -> bool {
        let Ok(device) = &self.device else { return true };
        device.take_events();
        let are_armed = self.ways.values_mut().all(Way::arm);
        // Completions that came before they were armed raise no event.
        let peers: Vec<HostId> = self.ways.keys().copied().collect();
        let are_whole = peers.into_iter().all(|peer| self.look(peer).is_none());
        are_armed && are_whole && self.news.is_empty()
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.ways.values().filter_map(Way::again).min()
    }

    /// Readable when something happens.
    pub(crate) fn event_descriptor(&self) -> Option<OwnedFd> {
        self.device.as_ref().ok()?.event_descriptor().ok()
    }

    /// Why a peer has no RDMA, if it has said so, or this host has none.
    pub(crate) fn has_none(&self, peer: HostId) -> Option<String> {
        self.without.get(&peer).cloned()
    }

    /// How it stands with a peer.
    pub(crate) fn standing(&self, peer: HostId) -> Standing {
        let way = self.ways.get(&peer);
        let is_up = way.is_some_and(Way::is_up);
        let why = match (&self.device, self.without.get(&peer), way) {
            _ if is_up => "both have an RDMA device".into(),
            (Err(None), ..) => String::new(),
            (Err(Some(error)), ..) => format!("no RDMA: this agent has no device: {error}"),
            (_, Some(why), _) => format!("no RDMA: the peer says: {why}"),
            (_, _, Some(way)) => format!("no RDMA: {}", way.why),
            (_, _, None) => String::new(),
        };
        Standing { is_up, why }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        if self.device.is_err() {
            return Vec::new();
        }
        vec![
            ("rdma", "writes", self.writes),
            ("rdma", "bytes", self.bytes),
            ("rdma", "broken", self.broken),
            ("rdma", "closed", self.closed),
            ("rdma", "registered", self.places.count() as u64),
        ]
    }
}

/// On real devices, which there are in the guest (`net/rdma/guest/test`).
#[cfg(test)]
mod tests {
    use super::super::way::PAIR;
    use super::*;
    use crate::memory::SegmentMemory;
    use hectare_dsm::{AreaSpec, ElementType, Job};
    use hectare_net::{AreaId, Description, GroupId, Memory, Version};

    const US: HostId = HostId(1);
    const THEM: HostId = HostId(0);

    fn job() -> Job {
        Job::builder().hosts(&[1, 1, 1], 1).reserve(1 << 26).embedded().unwrap()
    }

    fn open(device: &str) -> Option<Placer> {
        if std::env::var_os("HECTARE_RDMA_GUEST").is_none() {
            hectare_testing::skip("RDMA devices", "placers run in the guest with devices");
            return None;
        }
        let device = RdmaDevice { device: Some(device.into()) };
        Some(Placer::open(&device, [127, 0, 0, 1].into()).unwrap())
    }

    /// Connects them; what else they have to say is dropped.
    fn meet(ours: &mut Placer, theirs: &mut Placer) {
        ours.connected(THEM);
        theirs.connected(US);
        for _ in 0..10 {
            while let Some(news) = ours.next_news() {
                if let News::Card(_, card) = news {
                    theirs.card(Time::ZERO, US, &card);
                }
            }
            while let Some(news) = theirs.next_news() {
                if let News::Card(_, card) = news {
                    ours.card(Time::ZERO, THEM, &card);
                }
            }
        }
        assert!(ours.standing(THEM).is_up && theirs.standing(US).is_up);
    }

    fn registered(placer: &Placer) -> u64 {
        placer.counters().iter().find(|(_, what, _)| *what == "registered").expect("it is counted").2
    }

    #[test]
    fn a_peer_that_gives_up_may_write_nothing_any_more() {
        let (Some(mut ours), Some(mut theirs)) = (open("rxe0"), open("rxe1")) else { return };
        meet(&mut ours, &mut theirs);
        let job = job();
        let agent = job.agent().unwrap();
        let area = agent.create(&AreaSpec::new("a").copies(3), ElementType::of::<u64>(), 100).unwrap();
        assert!(ours.grant(&agent, THEM, &[Some(area)]).is_some());
        assert_eq!(registered(&ours), 1);
        ours.card(Time::ZERO, THEM, &no_card("it has too little memory"));
        assert_eq!(registered(&ours), 0);
        assert!(!ours.standing(THEM).is_up);
    }

    #[test]
    fn what_was_given_up_is_not_opened_again() {
        let (Some(mut ours), Some(mut theirs)) = (open("rxe0"), open("rxe1")) else { return };
        meet(&mut ours, &mut theirs);
        ours.give_up(THEM, "too little memory".into());
        while let Some(news) = ours.next_news() {
            assert!(!matches!(&news, News::Card(_, card) if card[0] == PAIR), "{news:?}");
        }
        ours.close(THEM, "a cut was given up");
        ours.poll(Time::from_nanos(1 << 40));
        assert_eq!(ours.next_news(), None);
        assert!(ours.next_timeout().is_none());
    }

    #[test]
    fn a_copy_is_pinned_for_those_who_subscribe() {
        let (Some(mut ours), Some(mut theirs)) = (open("rxe0"), open("rxe1")) else { return };
        meet(&mut ours, &mut theirs);
        let job = job();
        let (agent, mut worker) = (job.agent().unwrap(), job.worker().unwrap());
        let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(3), 100).unwrap();
        owned.write(&worker).unwrap().fill(1);
        worker.sync().unwrap();
        let area = agent.find("a").unwrap();
        agent.complete(area).unwrap();
        let held = agent.hold(&[area]).unwrap();
        let domain = ours.ways[&THEM].domain.clone();
        for peer in [THEM, HostId(2)] {
            drop(ours.places.copy((peer, &domain), &held[0]).unwrap());
        }
        assert_eq!(registered(&ours), 2);
        ours.forget_sent(THEM, area);
        assert_eq!(registered(&ours), 1, "the other's stays");
        ours.forget_sent(HostId(2), area);
        assert_eq!(registered(&ours), 0);
    }

    /// On a host that neither gives nor takes the area.
    #[test]
    fn what_the_last_owners_host_may_write_ends_with_the_transfer() {
        let (Some(ours), Some(mut theirs)) = (open("rxe0"), open("rxe1")) else { return };
        let job = job();
        let mut memory = SegmentMemory::with_ranks(job.agent().unwrap(), US, job.hosts()).with_placer(ours);
        meet(memory.placer_mut(), &mut theirs);
        let [size, align, kind] = ElementType::of::<u64>().to_parts();
        let area = AreaId { group: GroupId::new(THEM, 7), member: 0 };
        let description = Description {
            name: "a".into(),
            group: String::new(),
            element: hectare_net::ElementType { kind, size, align },
            bytes: 800,
            row: 1,
            on_demand: false,
        };
        assert_eq!(memory.reserve(area, &description), Ok(None));
        memory.begin(area.group, &[Version { term: 1, counter: 1 }]);
        assert!(memory.grant(area.group, THEM, 1).is_some());
        memory.placed(area.group);
        assert_eq!(registered(memory.placer()), 1);
        memory.moved(area.group, HostId(2), 2);
        assert_eq!(registered(memory.placer()), 0);
    }
}
