//! The settings of a run: a job, a network and its faults, all of which follow from the seed.
use crate::random::Random;
use hectare_net::{GroupId, Mutant};

/// A millisecond of virtual time.
pub const MS: u64 = 1_000_000;

/// How the workers of the job keep step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A barrier after each iteration.
    Barrier,
    /// Nobody is ahead by more clocks than this.
    Stale(u64),
    /// Everybody runs on; there are no clocks.
    Free,
}

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Hosts of the job.
    pub hosts: u16,
    /// How their workers keep step.
    pub mode: Mode,
    /// Iterations of each worker.
    pub iterations: u64,
    /// Groups that each host owns.
    pub groups: u64,
    /// The most areas in a group.
    pub members: u64,
    /// The most lines in an area.
    pub lines: u64,
    /// Reader copies of each area.
    pub copies: usize,
    /// Pairs in a thousand, of a host and a group of another, that subscribe.
    pub attach: u64,
    /// Between the beginnings of cuts, in microseconds.
    pub interval_us: u64,
    /// Packets of a thousand that are lost.
    pub loss: u64,
    /// Packets of a thousand that come with flipped bits, which the link drops.
    pub corrupt: u64,
    /// Packets of a thousand that come twice, which the link delivers once.
    pub duplicate: u64,
    /// Acknowledgements of a thousand that are lost: a packet counts as lost and came.
    pub false_loss: u64,
    /// The way of a packet takes at least so long,
    pub delay_ns: u64,
    /// and at most so much longer, which reorders.
    pub jitter_ns: u64,
    /// Bytes on the way to one peer.
    pub window: usize,
    /// Bytes in a packet.
    pub max_payload: usize,
    /// Bytes per millisecond from one host to another; 0 is any.
    pub rate: u64,
    /// Faults happen until then.
    pub faults_until: u64,
    /// Partitions.
    pub partitions: u64,
    /// Hosts that stand still for a while.
    pub pauses: u64,
    /// Agents that end, between two steps or in the middle of one, and are started again.
    pub crashes: u64,
    /// Areas that are deleted, and created again under the same name.
    pub renewals: u64,
    /// How often a worker gives an area to the worker of another host.
    pub handovers: u64,
    /// How often a worker of each host deletes an area that goes from host to host, and one of that name is created by it at once, or by
    /// another host's after a barrier.
    pub deletions: u64,
    /// How many areas each host adds to its groups while the workers run.
    pub growths: u64,
    /// Hosts in a thousand that have at first no memory for the copies that they would send.
    pub short: u64,
    /// States in a thousand that arrive and cannot be handed over to the rounds.
    pub failing: u64,
    /// Rounds in a thousand that find a worker that wants the newest state of a group of another host.
    pub requests: u64,
    /// Requests for what is sent on demand, in a thousand, during which the host has no rounds: its only worker waits outside of them.
    pub awaits: u64,
    /// Groups of one area, in a thousand, that are sent on demand.
    pub on_demand: u64,
    /// Hosts write lines of cuts into each other's memory.
    pub placing: bool,
    /// Writes in a thousand that break the queue pair.
    pub breaks: u64,
    /// How often a worker of each host drops an area, or claims one that was dropped.
    pub drops: u64,
    /// How often an area of each host is handed from a worker to another of that host.
    pub gives_here: u64,
    /// How often a worker of each host fails, or somebody takes its rank again.
    pub worker_deaths: u64,
    /// Hosts, at most all but one, whose workers leave before the others are done.
    pub leavers: u16,
    /// The most lines that are placed at one peer at a time.
    pub place_most: u64,
    /// A host sends cuts of groups that it does not own.
    pub impostor: bool,
    /// A host dies.
    pub death: bool,
    /// An error in the node.
    pub mutant: Option<Mutant>,
    /// Prints all that happens.
    pub verbose: bool,
}

macro_rules! overrides {
    ($($name:ident: $type:ty),* $(,)?) => {
        /// Settings that are not the seed's.
        #[derive(Debug, Default, clap::Args)]
        pub struct Overrides {
            $(#[arg(long, help = concat!("`", stringify!($name), "` of options.rs, whatever the seed says"))]
            $name: Option<$type>,)*
        }

        impl Overrides {
            /// Puts them in place of the seed's.
            pub fn apply(&self, options: &mut Options) {
                $(options.$name = self.$name.unwrap_or(options.$name);)*
            }

            /// The arguments for those settings that are not the seed's.
            pub(crate) fn of(options: &Options) -> String {
                let seeded = Options::of(options.seed);
                let mut text = String::new();
                $(if options.$name != seeded.$name {
                    text += &format!(" --{} {}", stringify!($name).replace('_', "-"), options.$name);
                })*
                text
            }
        }
    };
}

overrides! {
    hosts: u16, iterations: u64, groups: u64, members: u64, lines: u64, copies: usize, attach: u64, interval_us: u64,
    loss: u64, corrupt: u64, duplicate: u64, false_loss: u64, delay_ns: u64, jitter_ns: u64, window: usize,
    max_payload: usize, rate: u64, faults_until: u64, partitions: u64, pauses: u64, crashes: u64, renewals: u64,
    handovers: u64, deletions: u64, growths: u64, short: u64, failing: u64, requests: u64, awaits: u64, on_demand: u64, placing: bool, breaks: u64, drops: u64, worker_deaths: u64,
    gives_here: u64, leavers: u16, place_most: u64, impostor: bool, death: bool,
}

impl Options {
    /// Whether nothing has agents begin anew, or sessions, or questions answered in vain: then nothing is sent to who has not asked.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.crashes + self.partitions + self.pauses + self.short + self.failing == 0
            && !self.death
            && !self.impostor
    }

    /// Whether no queue pair begins anew, and no owner, either: then nothing is sent twice.
    #[must_use]
    pub fn is_sent_once(&self) -> bool {
        (!self.placing || self.breaks == 0) && self.handovers == 0
    }

    /// Whether a group of one area is sent on demand.
    #[must_use]
    pub fn is_on_demand(&self, group: GroupId) -> bool {
        Random::new(self.seed ^ group.0.rotate_left(17)).chance(self.on_demand)
    }

    /// The run of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Options {
        let mut random = Random::new(seed);
        let random = &mut random;
        let calm = random.chance(150);
        let mut maybe = |in_thousand: u64, most: u64| match !calm && random.chance(in_thousand) {
            true => random.between(1, most),
            false => 0,
        };
        let (loss, corrupt, duplicate, false_loss) =
            (maybe(600, 300), maybe(300, 50), maybe(300, 500), maybe(500, 200));
        let (partitions, pauses, crashes) = (maybe(400, 4), maybe(300, 3), maybe(500, 6));
        let (impostor, death, rate) = (maybe(250, 1) > 0, maybe(80, 1) > 0, maybe(200, 4000));
        Options {
            seed,
            hosts: random.pick(&[2, 2, 3, 3, 4, 5, 7]),
            mode: random.pick(&[Mode::Barrier, Mode::Barrier, Mode::Stale(1), Mode::Stale(4), Mode::Free]),
            iterations: random.between(5, 25),
            groups: random.between(1, 3),
            members: random.between(1, 4),
            lines: random.pick(&[1, 4, 40, 200]),
            copies: random.pick(&[4, 5, 7]),
            attach: random.pick(&[1000, 1000, 600]),
            interval_us: random.pick(&[0, 0, 0, 5000]),
            loss,
            corrupt,
            duplicate,
            false_loss,
            delay_ns: random.pick(&[20_000, 200_000, 2 * MS]),
            jitter_ns: random.pick(&[1, 50_000, 3 * MS]),
            window: random.pick(&[2_000, 12_000, 100_000]),
            max_payload: random.pick(&[1100, 1400, 8900]),
            rate: if rate == 0 { 0 } else { rate + 1000 },
            faults_until: 800 * MS,
            partitions,
            pauses,
            crashes,
            impostor,
            death,
            requests: if random.chance(400) { random.between(1, 200) } else { 0 },
            short: if random.chance(200) { 500 } else { 0 },
            renewals: if random.chance(400) { random.between(1, 6) } else { 0 },
            handovers: if random.chance(500) { random.between(1, 12) } else { 0 },
            on_demand: if random.chance(500) { 500 } else { 0 },
            placing: random.chance(500),
            breaks: if random.chance(500) { random.between(1, 200) } else { 0 },
            drops: if random.chance(300) { random.between(1, 6) } else { 0 },
            place_most: random.pick(&[8, 40, 1 << 16]),
            failing: if random.chance(200) { random.between(1, 100) } else { 0 },
            worker_deaths: if random.chance(200) { random.between(1, 6) } else { 0 },
            gives_here: if random.chance(400) { random.between(1, 12) } else { 0 },
            deletions: if random.chance(400) { random.between(1, 6) } else { 0 },
            growths: if random.chance(400) { random.between(1, 6) } else { 0 },
            awaits: if random.chance(400) { 500 } else { 0 },
            leavers: if random.chance(300) { random.between(1, 3) as u16 } else { 0 },
            mutant: None,
            verbose: false,
        }
    }
}
