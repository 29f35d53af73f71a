//! A model of the links: sessions between agents, and what becomes of their packets.
use crate::options::{MS, Options};
use crate::random::Random;
use std::collections::BTreeMap;

/// A link without news for so long is gone.
pub(crate) const IDLE: u64 = 200 * MS;

/// One end of a link.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// The session, if there is one.
    pub(crate) session: Option<u64>,
    /// Bytes of packets that are on the way, by their ids.
    pub(crate) under_way: BTreeMap<u64, usize>,
    /// When something last came.
    pub(crate) heard: u64,
    /// When its last packet is through, at a limited rate.
    pub(crate) busy_until: u64,
}

impl End {
    /// Bytes that may be sent.
    pub(crate) fn room(&self, window: usize) -> usize {
        window.saturating_sub(self.under_way.values().sum())
    }
}

/// From whom to whom nothing goes, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The sender.
    pub(crate) from: u16,
    /// The receiver.
    pub(crate) to: u16,
    /// From this time
    pub(crate) start: u64,
    /// to this.
    pub(crate) end: u64,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It comes at this time, and is acknowledged at that.
    Acked(u64, u64),
    /// It comes, and counts as lost.
    FalselyLost(u64, u64),
    /// It does not come, and counts as lost at this time.
    Lost(u64),
}

/// All links.
#[derive(Debug)]
pub(crate) struct Network {
    /// By sender and receiver.
    pub(crate) ends: BTreeMap<(u16, u16), End>,
    /// Partitions.
    pub(crate) cuts: Vec<Cut>,
    random: Random,
}

impl Network {
    /// Links between hosts of these options.
    pub(crate) fn new(options: &Options, random: Random) -> Network {
        let pairs =
            (0..options.hosts).flat_map(|a| (0..options.hosts).filter(move |b| *b != a).map(move |b| (a, b)));
        Network { ends: pairs.map(|pair| (pair, End::default())).collect(), cuts: Vec::new(), random }
    }

    /// Whether nothing goes that way.
    pub(crate) fn is_cut(&self, from: u16, to: u16, now: u64) -> bool {
        self.cuts.iter().any(|cut| cut.from == from && cut.to == to && (cut.start..cut.end).contains(&now))
    }

    /// How long a packet takes.
    pub(crate) fn delay(&mut self, options: &Options) -> u64 {
        options.delay_ns + self.random.below(options.jitter_ns)
    }

    /// Whether a handshake succeeds: three packets.
    pub(crate) fn shakes_hands(&mut self, options: &Options, a: u16, b: u16, now: u64) -> bool {
        let lossy = now < options.faults_until && (0..3).any(|_| self.random.chance(options.loss));
        !lossy && !self.is_cut(a, b, now) && !self.is_cut(b, a, now)
    }

    /// Decides the fate of a packet that is sent now.
    pub(crate) fn send(&mut self, options: &Options, from: u16, to: u16, len: usize, now: u64) -> Fate {
        let faulty = now < options.faults_until;
        let end = self.ends.get_mut(&(from, to)).expect("there is such a link");
        let mut start = now;
        if let Some(takes) = (len as u64 * MS).checked_div(options.rate) {
            start = end.busy_until.max(now) + takes;
            end.busy_until = start;
        }
        let arrives = start + self.delay(options);
        let acked = arrives + self.delay(options);
        let lost = start + 3 * (options.delay_ns + options.jitter_ns);
        let gone = faulty && (self.random.chance(options.loss) || self.random.chance(options.corrupt));
        // A packet that comes twice is delivered once: its number was seen. What remains is that it comes at another time.
        let arrives = if faulty && self.random.chance(options.duplicate) {
            arrives.min(start + self.delay(options))
        } else {
            arrives
        };
        if gone || self.is_cut(from, to, now) {
            return Fate::Lost(lost);
        }
        let ack_lost = (faulty && self.random.chance(options.false_loss)) || self.is_cut(to, from, arrives);
        if !ack_lost {
            return Fate::Acked(arrives, acked);
        }
        // A lost acknowledgement, or a packet that took another way and comes long after it was given up.
        let late = if faulty && self.random.chance(500) { self.random.below(40 * MS) } else { 0 };
        Fate::FalselyLost(arrives + late, lost.max(start + 1))
    }
}
