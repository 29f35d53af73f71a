//! The RDMA connection to one peer: a queue pair, which is replaced when it breaks, and the writes that wait for it.
//!
//! Each side numbers its queue pairs, and sends the other a card with two numbers: that of its queue pair, and that of the peer's queue
//! pair to which it is connected, its partner. A queue pair is connected only to one that is free or names it as its partner. When a
//! card shows that the peer has replaced the partner, this side replaces its own queue pair, too. So whichever breaks, both get new
//! ones.
use hectare_rdma::{BATCH, Broken, Card, Domain, Done, Error, Pair, Write};
use hectare_session::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// The first byte of a card with a queue pair.
pub(super) const PAIR: u8 = 1;
/// Before the card's own bytes: kind, number, partner.
const HEAD: usize = 9;
/// The shortest and the longest time until a queue pair that broke is replaced.
const AGAIN: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(10);

/// The peer's queue pair, as its last card describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theirs {
    pub(super) number: u32,
    /// Of this side; 0 if it is not connected.
    pub(super) partner: u32,
    pub(super) card: Card,
}

impl Theirs {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Theirs> {
        let (head, card) = bytes.split_first_chunk::<HEAD>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        (head[0] == PAIR && word(1) > 0).then_some(Theirs {
            number: word(1),
            partner: word(5),
            card: Card::from_bytes(card)?,
        })
    }
}

/// The way to a peer.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) domain: Domain,
    pair: Option<Pair>,
    /// The number of the queue pair, or of the last one.
    number: u32,
    /// The peer's that it is connected with; 0 for none.
    partner: u32,
    pub(super) theirs: Option<Theirs>,
    queue: VecDeque<Write>,
    /// Of each batch of writes under way: how many writes were queued in all up to its end, and its id.
    ids: VecDeque<(u64, u64)>,
    queued: u64,
    written: u64,
    is_up: bool,
    is_given_up: bool,
    /// When the queue pair is replaced, if there is none.
    again: Option<Time>,
    /// How often one broke, since the last that wrote something.
    failures: u32,
    /// Why there is no queue pair that works.
    pub(super) why: String,
}

/// The completions that one look found.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub(super) words: Vec<u32>,
    pub(super) written: usize,
    /// The last that is written whole.
    pub(super) wrote: Option<u64>,
    pub(super) broken: Option<Broken>,
}

impl Way {
    pub(super) fn new(domain: Domain) -> Way {
        Way {
            domain,
            pair: None,
            number: 0,
            partner: 0,
            theirs: None,
            queue: VecDeque::new(),
            ids: VecDeque::new(),
            queued: 0,
            written: 0,
            is_up: false,
            is_given_up: false,
            again: None,
            failures: 0,
            why: "its queue pairs are being connected".into(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether there is to be no queue pair any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    pub(super) fn again(&self) -> Option<Time> {
        self.again
    }

    /// Opens a queue pair in place of the last one.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        self.shut();
        self.again = None;
        self.number += 1;
        // Packet numbers begin elsewhere than those of the last queue pair, so that its late packets do not fit.
        self.pair = Some(Pair::open(&self.domain, self.number.wrapping_mul(0x9e_3779) ^ std::process::id())?);
        self.meet()
    }

    /// Ends the queue pair: nothing is written by it any more, here or there. Whether it was up.
    pub(super) fn shut(&mut self) -> bool {
        self.pair = None;
        self.partner = 0;
        self.queue.clear();
        self.ids.clear();
        self.written = self.queued;
        std::mem::take(&mut self.is_up)
    }

    /// The queue pair has failed. It is replaced after a pause, which is twice as long after each failure.
    pub(super) fn fail(&mut self, now: Time, why: String) {
        self.shut();
        self.why = why;
        let pause = AGAIN.saturating_mul(1 << self.failures.min(10)).min(LATEST);
        self.failures += 1;
        self.again = Some(now + pause);
    }

    /// Ends the queue pair, and opens no other.
    pub(super) fn give_up(&mut self, why: String) {
        self.shut();
        (self.why, self.again, self.is_given_up) = (why, None, true);
    }

    /// The peer has sent a card. True if this side is connected to another queue pair than the one on it, so that this side's has to be
    /// replaced.
    pub(super) fn hear(&mut self, theirs: Theirs) -> bool {
        self.theirs = Some(theirs);
        self.partner != 0 && self.partner != theirs.number
    }

    /// Connects the queue pair with the peer's, if both are there and free.
    pub(super) fn meet(&mut self) -> Result<(), Error> {
        let (Some(pair), Some(theirs)) = (&mut self.pair, self.theirs) else { return Ok(()) };
        if self.partner == 0 && (theirs.partner == 0 || theirs.partner == self.number) {
            pair.connect(&theirs.card)?;
            self.partner = theirs.number;
        }
        Ok(())
    }

    /// Whether the two queue pairs have become connected to each other since the last call that said so.
    pub(super) fn comes_up(&mut self) -> bool {
        let is_met =
            self.theirs.is_some_and(|theirs| theirs.partner == self.number && theirs.number == self.partner);
        let comes = is_met && self.pair.is_some() && !self.is_up;
        self.is_up |= comes;
        comes
    }

    /// The card for the peer; none if there is no queue pair.
    pub(super) fn card(&self) -> Option<Vec<u8>> {
        let card = self.pair.as_ref()?.card();
        let mut bytes = vec![PAIR];
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.partner.to_le_bytes());
        bytes.extend(card.to_bytes());
        Some(bytes)
    }

    /// Queues writes, which follow all that were queued before.
    pub(super) fn write(&mut self, writes: Vec<Write>, id: u64) {
        self.queued += writes.len() as u64;
        self.ids.push_back((self.queued, id));
        self.queue.extend(writes);
    }

    /// Posts as many writes as there is room for, and collects completions.
    pub(super) fn look(&mut self) -> Came {
        let mut came = Came::default();
        let Some(pair) = &mut self.pair else { return came };
        let mut done = Vec::new();
        came.broken = pair.poll(&mut done).err();
        while came.broken.is_none() && !self.queue.is_empty() && pair.room() >= BATCH.min(self.queue.len()) {
            let batch: Vec<Write> = self.queue.drain(..self.queue.len().min(BATCH)).collect();
            came.broken = pair.post(&batch).err();
        }
        for it in done {
            match it {
                Done::Word(word) => came.words.push(word),
                Done::Written(count) => came.written += count,
            }
        }
        self.written += came.written as u64;
        while let Some((_, id)) = self.ids.pop_front_if(|(end, _)| *end <= self.written) {
            came.wrote = Some(id);
        }
        if came.written > 0 {
            self.failures = 0;
        }
        came
    }

    /// Asks the device for a notification of the next completion. False if that fails.
    pub(super) fn arm(&mut self) -> bool {
        self.pair.as_ref().is_none_or(|pair| pair.arm().is_ok())
    }
}
