//! Hosts, links and faults on virtual time.
mod actions;
mod growth;
mod links;
mod placing;
mod renewals;
mod setup;

use self::actions::add;
use self::placing::{Pair, Placement};

use crate::judge::{Broken, Judge, Promise};
use crate::memory::HostMemory;
use crate::network::Network;
use crate::options::{MS, Options};
use crate::random::Random;
use fnv::FnvHasher;
use hectare_net::wire::{self, Frame, Wanted};
use hectare_net::{AreaId, Config, Counters, Description, Event, GroupId, HostId, NameError, Node};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::rc::Rc;

/// After the faults, everybody has the newest version within this.
const BOUND: u64 = 5000 * MS;
/// Groups of areas whose names conflict, whose groups do, and that their hosts keep.
const CLASHING: u64 = 1 << 20;
const GROUPED: u64 = 1 << 21;
const LOCAL: u64 = 1 << 22;
/// The name of those that their hosts keep.
const KEPT: &str = "kept by all";
/// A host that is silent for so long has failed.
const SILENCE: u64 = 1500 * MS;

#[derive(Debug)]
enum What {
    Round(u16),
    /// The agent handles what its memory has to say.
    Agent(u16),
    Timeout(u16, u64),
    Connect(u16, u16),
    /// One side of a new link learns of it.
    Connected {
        at: u16,
        peer: u16,
        session: u64,
        boot: u64,
        of: u64,
    },
    Deliver {
        from: u16,
        to: u16,
        session: u64,
        bytes: Vec<u8>,
        packet: u64,
        told: Option<(u64, bool)>,
    },
    Told {
        at: u16,
        peer: u16,
        session: u64,
        packet: u64,
        acked: bool,
    },
    /// A worker that was refused an area asks for it again.
    Attach(u16, u64),
    /// A host deletes an area, or creates it again.
    Renew(u16),
    /// A worker adds an area to a group.
    Grow(u16, GroupId, Description),
    /// A worker looks for such an area.
    Ask(u16, Wanted),
    /// A worker gives an area to the worker of another host.
    Give(u16, u16),
    /// A worker deletes an area that goes from host to host.
    Delete(u16),
    /// A worker creates an area of the name of one that was deleted, when this clock is past.
    Recreate(u16, Description, u64),
    /// A worker drops an area, or claims one that was dropped.
    Drop(u16),
    /// A worker hands an area to another of its host.
    GiveHere(u16),
    /// A worker fails, or somebody takes its rank again.
    Fail(u16),
    Crash(u16, Option<u32>),
    Start(u16),
    Pause(u16, u64),
    Die(u16),
    Impostor,
    /// A host learns of the queue pair to a peer.
    Pair {
        at: u16,
        peer: u16,
        number: u64,
        is_up: bool,
    },
    /// Lines are written into a host's memory.
    Placed(Placement),
    /// A host learns of what it wrote.
    Wrote {
        at: u16,
        peer: u16,
        pair: u64,
        id: u64,
    },
}

impl What {
    /// Whether a host's worker does it.
    fn is_of_worker(&self) -> bool {
        matches!(
            self,
            What::Attach(..)
                | What::Renew(_)
                | What::Grow(..)
                | What::Ask(..)
                | What::Give(..)
                | What::Delete(_)
                | What::Recreate(..)
                | What::Drop(_)
                | What::GiveHere(_)
                | What::Fail(_)
        )
    }
}

#[derive(Debug)]
struct Host {
    memory: HostMemory,
    node: Option<Node>,
    boot: u64,
    paused_until: u64,
    dead: bool,
    /// Names that it attaches to, and answers so far.
    wanted: Vec<(Wanted, Option<Result<AreaId, NameError>>)>,
    /// So many of them its worker has before it begins.
    needed: usize,
    /// Names that it will attach to.
    later: Vec<Wanted>,
    next_timeout: u64,
    counters: Counters,
    /// How often it created an area while the workers ran.
    renewals: u64,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Promises that were not kept.
    pub broken: Vec<Broken>,
    /// Of all that happened.
    pub trace: u64,
    /// Virtual time.
    pub ended_ns: u64,
    /// Events.
    pub events: u64,
    /// Of all agents together.
    pub counters: Counters,
    /// The number of things that an agent remembers for other hosts at the end: the highest of all agents.
    pub remembered: usize,
}

/// A run.
#[derive(Debug)]
pub struct World {
    options: Options,
    judge: Rc<RefCell<Judge>>,
    hosts: Vec<Host>,
    network: Network,
    pairs: BTreeMap<(u16, u16), Pair>,
    queue: BTreeMap<(u64, u64), What>,
    last_event: u64,
    last_session: u64,
    now: u64,
    random: Random,
    trace: u64,
    events: u64,
    dead: Option<HostId>,
}

impl World {
    /// The run of these options.
    #[must_use]
    pub fn new(options: Options) -> World {
        let judge = Rc::new(RefCell::new(Judge::default()));
        judge.borrow_mut().hosts = options.hosts;
        let mut random = Random::new(options.seed ^ 0x5eed);
        let mut hosts = Vec::new();
        for host in 0..options.hosts {
            let host = HostId(host);
            let random = Random::new(random.next());
            let mut memory =
                HostMemory::new(host, options.hosts, options.mode, options.iterations, judge.clone(), random);
            memory.requests = options.requests;
            memory.awaits = options.awaits;
            memory.is_whole = options.crashes == 0;
            memory.is_steady = options.is_steady();
            (memory.failing, memory.fails_until) = (options.failing, options.faults_until);
            memory.is_sent_once = options.is_sent_once();
            let wanted = Vec::new();
            hosts.push(Host {
                memory,
                node: None,
                boot: 0,
                paused_until: 0,
                dead: false,
                wanted,
                needed: 0,
                later: Vec::new(),
                next_timeout: u64::MAX,
                counters: Counters::default(),
                renewals: 0,
            });
        }
        let network = Network::new(&options, Random::new(random.next()));
        let mut world = World {
            options,
            judge,
            hosts,
            network,
            pairs: BTreeMap::new(),
            queue: BTreeMap::new(),
            last_event: 0,
            last_session: 0,
            now: 0,
            random,
            trace: FnvHasher::default().finish(),
            events: 0,
            dead: None,
        };
        world.choose_leavers();
        world.areas();
        for host in &mut world.hosts {
            host.needed = host.wanted.len();
            host.memory.worker.started = host.needed == 0;
        }
        world.begin();
        world
    }

    fn at(&mut self, time: u64, what: What) {
        self.last_event += 1;
        self.queue.insert((time.max(self.now), self.last_event), what);
    }

    fn note(&mut self, bytes: &[u8]) {
        let mut trace = FnvHasher::with_key(self.trace);
        trace.write(bytes);
        self.trace = trace.finish();
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(mut self) -> Outcome {
        let deadline = self.options.faults_until + BOUND + self.slowness();
        while let Some(((time, _), what)) = self.queue.pop_first() {
            self.now = time;
            self.judge.borrow_mut().now = time;
            self.events += 1;
            if self.events.is_multiple_of(64) && self.is_over() {
                break;
            }
            if time > deadline {
                self.is_late();
                break;
            }
            if !self.judge.borrow().broken.is_empty() {
                break;
            }
            self.handle(what);
        }
        let (mut counters, mut remembered) = (Counters::default(), 0);
        for host in &mut self.hosts {
            if let Some(node) = host.node.take() {
                remembered = node.remembered().max(remembered);
                add(&mut host.counters, &node.counters());
            }
            add(&mut counters, &host.counters);
        }
        let broken = std::mem::take(&mut self.judge.borrow_mut().broken);
        Outcome { broken, trace: self.trace, ended_ns: self.now, events: self.events, counters, remembered }
    }

    /// A bound on the time that the iterations that remain may take: each several ways, with rounds and held copies between.
    fn slowness(&self) -> u64 {
        let way = self.options.delay_ns + self.options.jitter_ns;
        let bytes =
            self.options.hosts as u64 * self.options.groups * self.options.members * self.options.lines * 70;
        let through = (bytes * MS).checked_div(self.options.rate).unwrap_or(0);
        let window = bytes / self.options.window as u64 * 4 * way;
        let placing = bytes / 70 / self.options.place_most * 4 * way;
        self.options.iterations
            * (12 * way
                + 10 * MS
                + self.options.interval_us.max(9000) * 1000
                + 2 * through
                + window
                + placing)
    }

    fn is_over(&self) -> bool {
        if self.dead.is_some() {
            let judge = self.judge.borrow();
            return self.hosts.iter().all(|host| host.dead || judge.has_ended(host.memory.host));
        }
        let answered = |host: &Host| {
            host.memory.has_left()
                || host.later.is_empty() && host.wanted.iter().all(|(_, answer)| answer.is_some())
        };
        self.now > self.options.faults_until
            && self.is_told()
            && self.hosts.iter().all(|host| answered(host) && host.memory.is_done())
    }

    /// Whether all have heard of all that conflicts with what is theirs.
    fn is_told(&self) -> bool {
        self.judge.borrow().unheard().is_empty()
    }

    /// The time is over.
    fn is_late(&self) {
        if self.dead.is_none() && !self.is_told() {
            let what = format!("not heard: {:?}", self.judge.borrow().unheard());
            return self.judge.borrow_mut().broke(Promise::Told, what);
        }
        let mut what = String::from("not done in time:");
        for host in &self.hosts {
            what += "\n  ";
            what += &host.memory.stands();
            let open = host.wanted.iter().filter(|(_, answer)| answer.is_none());
            let open: Vec<&str> = open.map(|(wanted, _)| wanted.name.as_str()).collect();
            what += &format!(" names not answered: {open:?}; done {}", host.memory.is_done());
            if !host.later.is_empty() {
                what += &format!("; {} areas are still to come", host.later.len());
            }
        }
        if let Some(dead) = self.dead {
            what += &format!("\n  {dead} died, and not all have ended");
        }
        self.judge.borrow_mut().broke(Promise::Progress, what);
    }

    /// Prints what happens, with the frames of packets.
    fn say(&self, what: &What) {
        let short = |frame| match frame {
            Frame::Data(data) => format!("Data of cut {} from {}", data.cut, data.position),
            frame => format!("{frame:?}"),
        };
        match what {
            What::Round(_) | What::Agent(_) | What::Timeout(..) | What::Connect(..) => {}
            What::Deliver { from, to, bytes, .. } => {
                let frames: Vec<String> =
                    wire::decode(bytes).unwrap_or_default().into_iter().map(short).collect();
                println!("{} host {from} to host {to}: {}", self.now, frames.join("; "));
            }
            what => println!("{} {what:?}", self.now),
        }
    }

    fn handle(&mut self, what: What) {
        if self.options.verbose {
            self.say(&what);
        }
        let of = match &what {
            What::Round(host) | What::Agent(host) | What::Timeout(host, _) | What::Start(host) => Some(*host),
            What::Attach(host, _)
            | What::Renew(host)
            | What::Grow(host, ..)
            | What::Ask(host, _)
            | What::Give(host, _)
            | What::Delete(host)
            | What::Recreate(host, ..)
            | What::Drop(host)
            | What::GiveHere(host)
            | What::Fail(host) => Some(*host),
            What::Connected { at, .. } | What::Told { at, .. } => Some(*at),
            What::Deliver { to, .. } => Some(*to),
            What::Pair { at, .. } | What::Wrote { at, .. } => Some(*at),
            // A device writes, whoever stands still.
            What::Placed(_) => None,
            What::Crash(host, _) | What::Pause(host, _) | What::Die(host) => Some(*host),
            What::Connect(..) | What::Impostor => None,
        };
        if let Some(host) = of {
            let host = &self.hosts[usize::from(host)];
            if host.dead || (what.is_of_worker() && host.memory.has_left()) {
                return;
            }
            if host.paused_until > self.now {
                let until = host.paused_until;
                return self.at(until, what);
            }
            self.note(&[
                host.memory.host.0 as u8,
                self.now as u8,
                (self.now >> 8) as u8,
                (self.now >> 16) as u8,
            ]);
        }
        match what {
            What::Round(host) => self.round(host),
            What::Agent(host) => self.serve(host),
            What::Timeout(host, boot) => {
                if self.hosts[usize::from(host)].boot == boot {
                    self.hosts[usize::from(host)].next_timeout = u64::MAX;
                    self.tell(host, Event::Timeout);
                }
            }
            What::Connect(a, b) => self.connect(a, b),
            What::Connected { at, peer, session, boot, of } => self.connected(at, peer, session, boot, of),
            What::Deliver { from, to, session, bytes, packet, told } => {
                let end = self.network.ends.get_mut(&(to, from)).expect("there is such a link");
                let comes = end.session == Some(session);
                // Where there is no such session, nothing is acknowledged.
                if let Some((then, acked)) = told {
                    let acked = acked && comes;
                    self.at(then, What::Told { at: from, peer: to, session, packet, acked });
                }
                if comes {
                    self.network.ends.get_mut(&(to, from)).expect("just seen").heard = self.now;
                    self.note(&bytes);
                    self.tell(to, Event::Received { peer: HostId(from), packet: &bytes });
                }
            }
            What::Told { at, peer, session, packet, acked } => {
                let window = self.options.window;
                let end = self.network.ends.get_mut(&(at, peer)).expect("there is such a link");
                if end.session == Some(session) {
                    end.under_way.remove(&packet);
                    end.heard = if acked { self.now } else { end.heard };
                    let (peer, bytes) = (HostId(peer), end.room(window));
                    self.tell(
                        at,
                        if acked { Event::Acked { peer, packet } } else { Event::Lost { peer, packet } },
                    );
                    self.tell(at, Event::Writable { peer, bytes });
                }
            }
            What::Attach(host, ticket) => self.attach(host, ticket),
            What::Renew(host) => self.renew(host),
            What::Grow(host, group, description) => self.grow(host, group, description),
            What::Ask(host, wanted) => self.ask(host, wanted),
            What::Give(host, to) => {
                let at_once = self.random.chance(500);
                let memory = &mut self.hosts[usize::from(host)].memory;
                match at_once {
                    true => memory.give(HostId(to)),
                    false => memory.gives_written = Some(HostId(to)),
                }
                self.serve(host);
            }
            What::Delete(host) => self.delete(host),
            What::Recreate(host, description, clock) => self.recreate(host, description, clock),
            What::Drop(host) => {
                self.hosts[usize::from(host)].memory.drop_or_claim();
                self.serve(host);
            }
            What::GiveHere(host) => self.hosts[usize::from(host)].memory.give_here(),
            What::Fail(host) => {
                self.hosts[usize::from(host)].memory.fail_or_live();
                self.serve(host);
            }
            What::Crash(host, fuel) => match fuel {
                Some(fuel) => self.hosts[usize::from(host)].memory.fuel = Some(fuel),
                None => self.crash(host),
            },
            What::Start(host) => self.start(host),
            What::Pause(host, until) => self.hosts[usize::from(host)].paused_until = until,
            What::Die(host) => {
                self.dead = Some(HostId(host));
                self.hosts[usize::from(host)].dead = true;
            }
            What::Impostor => self.impostor(),
            What::Pair { at, peer, number, is_up } => self.hear_of_pair(at, peer, number, is_up),
            What::Placed(placement) => self.placed(placement),
            What::Wrote { at, peer, pair, id } => self.wrote(at, peer, pair, id),
        }
    }

    fn round(&mut self, host: u16) {
        let now = self.now;
        let memory = &mut self.hosts[usize::from(host)].memory;
        memory.round(now);
        let has_news = !memory.events.is_empty();
        let (next, soon) = (self.random.between(MS / 5, 2 * MS), self.random.below(MS / 2));
        self.at(now + next, What::Round(host));
        if has_news {
            self.at(now + soon, What::Agent(host));
        }
    }

    fn serve(&mut self, host: u16) {
        while let Some(event) = self.hosts[usize::from(host)].memory.events.pop_front() {
            if self.hosts[usize::from(host)].node.is_none() {
                return;
            }
            self.tell(host, event);
        }
    }

    fn start(&mut self, host: u16) {
        let this = &mut self.hosts[usize::from(host)];
        if this.node.is_some() {
            return;
        }
        this.boot += 1;
        this.next_timeout = u64::MAX;
        let config = Config {
            place_lines: 1,
            place_most: self.options.place_most,
            job: 7,
            host: HostId(host),
            hosts: self.options.hosts,
            segment: 100 + u64::from(host),
            boot: this.boot,
            max_payload: self.options.max_payload,
            alive_ns: 50 * MS,
            silence_ns: SILENCE,
            mutant: self.options.mutant,
        };
        this.node = Some(Node::new(config, self.now));
        this.memory.start_agent();
        self.serve(host);
        let this = &self.hosts[usize::from(host)];
        let open: Vec<_> = this
            .wanted
            .iter()
            .enumerate()
            .filter(|(_, (_, answer))| answer.is_none())
            .map(|(ticket, _)| ticket as u64)
            .collect();
        for ticket in open {
            self.attach(host, ticket);
        }
        self.tell(host, Event::Ready);
        self.hosts[usize::from(host)].memory.agent_is_ready();
    }

    /// A worker attaches to an area, or asks again.
    fn attach(&mut self, host: u16, ticket: u64) {
        let wanted = self.hosts[usize::from(host)].wanted[ticket as usize].0.clone();
        self.tell(host, Event::Attach { ticket, wanted, interval_us: self.options.interval_us });
    }

    /// Workers find that areas are deleted, and ask for them again.
    fn attach_again(&mut self, host: u16, is_gone: impl Fn(AreaId) -> bool) {
        let wanted = self.hosts[usize::from(host)].wanted.iter().enumerate();
        let gone = wanted.filter(|(_, (_, answer))| matches!(answer, Some(Ok(area)) if is_gone(*area)));
        for ticket in gone.map(|(ticket, _)| ticket).collect::<Vec<_>>() {
            self.hosts[usize::from(host)].wanted[ticket].1 = None;
            self.at(self.now + 20 * MS, What::Attach(host, ticket as u64));
        }
    }

    /// The agent ends; it is started again.
    fn crash(&mut self, host: u16) {
        let this = &mut self.hosts[usize::from(host)];
        let Some(node) = this.node.take() else { return };
        add(&mut this.counters, &node.counters());
        this.memory.fuel = None;
        for peer in (0..self.options.hosts).filter(|peer| *peer != host) {
            self.end_pair(host, peer);
            *self.network.ends.get_mut(&(host, peer)).expect("there is such a link") =
                crate::network::End::default();
        }
        let again = self.random.between(1, 150 * MS);
        self.at(self.now + again, What::Start(host));
    }

    /// Hands an event to a host's node, and does what it says.
    fn tell(&mut self, host: u16, event: Event<'_>) {
        let this = &mut self.hosts[usize::from(host)];
        let Some(node) = &mut this.node else { return };
        let mut actions = Vec::new();
        node.handle(self.now, event, &mut this.memory, &mut actions);
        let next = node.next_timeout();
        self.end_wanted(host);
        let this = &mut self.hosts[usize::from(host)];
        if this.memory.fuel == Some(0) {
            // It ended in the middle of this, and had said nothing yet.
            return self.crash(host);
        }
        for action in actions {
            self.act(host, action);
        }
        let failed = std::mem::take(&mut self.hosts[usize::from(host)].memory.failed);
        for group in failed {
            self.attach_again(host, |area| area.group == group);
        }
        let this = &mut self.hosts[usize::from(host)];
        if let Some(next) = next
            && next < this.next_timeout
        {
            this.next_timeout = next;
            let boot = this.boot;
            self.at(next, What::Timeout(host, boot));
        }
    }
}
