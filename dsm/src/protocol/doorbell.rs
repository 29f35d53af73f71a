//! The agent's doorbell: how the agent, which stands in for other hosts, is told of changes on this host. Written over bare words, so
//! that the models run it.
//!
//! A bit for each area says that it changed, and the bell that some bit is set. A bit only says where to look: what counts is what
//! the agent finds there. So bits may be set twice or late, and a new agent looks everywhere.
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// The agent sleeps on the bell.
const ASLEEP: u32 = 1;
pub(crate) const RING: u32 = 2;

/// The words by which workers wake the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doorbell<'s> {
    /// Rises with every round that published something.
    pub(crate) published: &'s AtomicU32,
    /// The number of the agent; 0: there is none.
    pub(crate) attached: &'s AtomicU64,
    pub(crate) bell: &'s AtomicU32,
    /// Not 0: the agent is to be woken for areas that it has chosen, and for clocks of which other hosts hear. News are left of
    /// all.
    pub(crate) chooses: &'s AtomicU32,
    /// Not 0: the agent is to be woken for the end of a round.
    pub(crate) awaits_round: &'s AtomicU32,
}

impl Doorbell<'_> {
    /// Counts a round's publications, which were all made; whether an agent wants news of them.
    pub(crate) fn published(self) -> bool {
        // SeqCst: comes before the look at `attached`; pairs with `attach`. Also with `notify::watch`, whose look at the
        // notifiers follows.
        self.published.fetch_add(1, Ordering::SeqCst);
        self.is_attached()
    }

    /// Whether there is an agent to tell.
    #[inline]
    pub(crate) fn is_attached(self) -> bool {
        // SeqCst: pairs with `attach`.
        self.attached.load(Ordering::SeqCst) != 0
    }

    /// An agent comes. It is to look everywhere after this: of what was published before, it may not be told. It is woken for
    /// everything.
    pub(crate) fn attach(self, number: u64) {
        // Relaxed: who finds this agent's number finds this, or what the agent stored later.
        self.chooses.store(0, Ordering::Relaxed);
        // SeqCst, twice: comes before the look at `published`. Either whoever publishes sees the agent, or the agent sees
        // the publication; pairs with `published`.
        self.attached.store(number, Ordering::SeqCst);
        self.published.load(Ordering::SeqCst);
    }

    /// The agent goes, and holds nothing any more.
    pub(crate) fn detach(self) {
        // SeqCst: as in `attach`; nothing depends on when it is seen.
        self.attached.store(0, Ordering::SeqCst);
    }

    /// Whether the agent is woken for what it has chosen alone.
    pub(crate) fn chooses(self) -> bool {
        // Relaxed: one who finds the old value wakes it in vain; for a new agent, see `attach`.
        self.chooses.load(Ordering::Relaxed) != 0
    }

    /// The agent is to be woken for the areas whose bits are set. It is to look at them after this: of what was published
    /// before, it may not be told.
    pub(crate) fn choose(self, word: &AtomicU64, bits: u64) {
        // SeqCst, twice: as in `attach`. Either whoever publishes sees the bit, or the agent sees the publication; pairs with
        // `published` and `are_chosen`.
        word.fetch_or(bits, Ordering::SeqCst);
        self.published.load(Ordering::SeqCst);
    }

    /// Rings, after news were left; true if the agent sleeps and must be woken.
    pub(crate) fn ring(self) -> bool {
        let mut seen = self.bell.load(Ordering::Relaxed);
        loop {
            let next = (seen & !ASLEEP).wrapping_add(RING);
            // Release: pairs with the acquire in `listen`, so that who hears the ring finds the news. A change, and not a
            // store: the rings of all are one release sequence.
            match self.bell.compare_exchange(seen, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return seen & ASLEEP != 0,
                Err(now) => seen = now,
            }
        }
    }

    /// The agent waits for the end of a round. It is to look at the word of the rounds after this, before it sleeps.
    pub(crate) fn await_round(self) {
        // SeqCst: before the look at the word; pairs with `round_ended`. Either the agent sees the end, or whoever ended the round
        // sees that it is awaited.
        self.awaits_round.store(1, Ordering::SeqCst);
    }

    /// A round has ended, as the word says: rings if the agent waits for that; true if it sleeps and must be woken. It waits for
    /// no further round then.
    #[inline]
    pub(crate) fn round_ended(self) -> bool {
        // SeqCst: after the shift of the word; pairs with `await_round`.
        if self.awaits_round.load(Ordering::SeqCst) == 0 {
            return false;
        }
        // Relaxed: who asks again meanwhile hears the ring that follows.
        self.awaits_round.store(0, Ordering::Relaxed);
        self.ring()
    }

    /// The bell as it is before the agent looks for news.
    pub(crate) fn listen(self) -> u32 {
        // Acquire: pairs with the release in `ring`.
        self.bell.load(Ordering::Acquire)
    }

    /// The agent found no news since it listened and heard `heard`: the value of the bell to sleep on, unless it was rung
    /// since.
    pub(crate) fn fall_asleep(self, heard: u32) -> Option<u32> {
        let asleep = heard | ASLEEP;
        // Relaxed, also below: the mark orders nothing, and the release sequence of the rings goes on.
        self.bell
            .compare_exchange(heard, asleep, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
            .then_some(asleep)
    }

    /// The agent is awake, which slept on the value `asleep`. A ring since has taken the mark away.
    pub(crate) fn wake_up(self, asleep: u32) {
        let _ = self.bell.compare_exchange(asleep, asleep & !ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Whether the agent has chosen one of the areas whose bits are set, which were published and counted.
pub(crate) fn are_chosen(word: &AtomicU64, bits: u64) -> bool {
    // SeqCst: comes after the publications were counted; pairs with `choose`.
    word.load(Ordering::SeqCst) & bits != 0
}

/// Leaves news of the areas whose bits are set.
pub(crate) fn leave_news(word: &AtomicU64, bits: u64) {
    // Release: pairs with the acquire in `take_news`. Always a change, also where the bit is set already: the agent may be
    // about to take it, and has to see what this is about.
    word.fetch_or(bits, Ordering::Release);
}

/// The news of 64 areas, which are left where they are.
pub(crate) fn see_news(word: &AtomicU64) -> u64 {
    // Acquire: pairs with the release in `leave_news`.
    word.load(Ordering::Acquire)
}

/// Takes the news of 64 areas.
pub(crate) fn take_news(word: &AtomicU64) -> u64 {
    // Relaxed: whoever left news rang after it, and the agent has listened before.
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // Acquire: pairs with the release in `leave_news`.
    word.swap(0, Ordering::Acquire)
}
