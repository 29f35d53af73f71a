//! The changes since version v: the log of each publication, OR-ed into the newest of k generations.
//!
//! Generation 0 is the oldest and covers everything ever written up to its newest version. The others form
//! a ring; the open one takes the log of each round. When it is sealed, the next of the ring is merged into
//! generation 0, cleared and opened: a rotation.
//!
//! A rotation is the writing side of a sequence lock (Boehm, *Can seqlocks get along with programming language memory
//! models?*, 2012): the data are relaxed atomics, and a fence on either side orders them with the sequence.
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point, fence};

/// The words of an area that say where its generations stand.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct GenerationWords {
    /// Which generation the log goes to now.
    pub(crate) open: AtomicU32,
    /// How many publications the open one has.
    since_seal: AtomicU32,
    pub(crate) seal_requested: AtomicU32,
    /// Rises before and after generations change places; odd in between.
    sequence: AtomicU32,
}

/// The range of versions that a generation covers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct GenerationRecord {
    /// The newest counter whose changes it holds; 0: none.
    pub(crate) newest: AtomicU64,
}

/// The generations of one area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generations<'s> {
    pub(crate) words: &'s GenerationWords,
    pub(crate) records: &'s [GenerationRecord],
    /// Their bitmaps, one after the other.
    pub(crate) bits: &'s [AtomicU64],
}

impl GenerationWords {
    /// Words of an area that has no versions yet, and that nobody else sees.
    #[cfg(loom)]
    pub(crate) fn new() -> GenerationWords {
        let [open, since_seal, seal_requested, sequence] = [1, 0, 0, 0].map(AtomicU32::new);
        GenerationWords { open, since_seal, seal_requested, sequence }
    }

    /// The same, in place.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.open.store(1, Ordering::Relaxed);
        self.since_seal.store(0, Ordering::Relaxed);
        self.seal_requested.store(0, Ordering::Relaxed);
        self.sequence.store(0, Ordering::Relaxed);
    }

    #[cfg(loom)]
    pub(crate) fn sequence(&self) -> &AtomicU32 {
        &self.sequence
    }
}

impl<'s> Generations<'s> {
    /// The lines that changed in one generation.
    pub(crate) fn lines(&self, index: usize) -> &'s [AtomicU64] {
        let words = self.bits.len() / self.records.len();
        &self.bits[index * words..(index + 1) * words]
    }

    /// Notes that version `counter` was published, and seals the open generation if it is time to. Repeatable.
    pub(crate) fn after_publication(&self, counter: u64, seal_every: u32) {
        let words = self.words;
        let open = words.open.load(Ordering::Relaxed) as usize;
        // A successor that repeats this after the rotation finds a fresh generation open: its record then
        // claims a version whose lines lie in the one before, which is found as well, being newer than any
        // version asked for below it.
        //
        // Relaxed: who asks sees a version of which this was written before (`copy.round`, `current`).
        self.records[open].newest.store(counter, Ordering::Relaxed);
        let since = words.since_seal.load(Ordering::Relaxed) + 1;
        if since < seal_every && words.seal_requested.load(Ordering::Relaxed) == 0 {
            words.since_seal.store(since, Ordering::Relaxed);
            // Odd: this repeats what another, who died, had done but for the last step.
            if words.sequence.load(Ordering::Relaxed) & 1 != 0 {
                self.end_rotation();
            }
            return;
        }
        self.begin_rotation();
        let next = 1 + open % (self.records.len() - 1);
        self.empty(next);
        // The reasons to seal are taken back last: until then a successor seals again, which is coarser and
        // nothing worse.
        words.open.store(next as u32, Ordering::Relaxed);
        fault_point();
        words.since_seal.store(0, Ordering::Relaxed);
        words.seal_requested.store(0, Ordering::Relaxed);
        fault_point();
        self.end_rotation();
    }

    /// Makes the sequence odd, which it is already if whoever rotated before died at it.
    fn begin_rotation(&self) {
        let sequence = &self.words.sequence;
        sequence.store(sequence.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        fault_point();
        // Release: pairs with the acquire fence in `changed_since`. Who sees anything that is stored after this sees
        // the sequence odd, or later.
        fence(Ordering::Release);
    }

    /// Makes the sequence the next even number, also if the one who began the rotation died.
    fn end_rotation(&self) {
        let sequence = &self.words.sequence;
        let now = sequence.load(Ordering::Relaxed);
        // Release: pairs with the acquire load in `changed_since`. Who sees this number sees the whole rotation.
        sequence.store((now | 1).wrapping_add(1), Ordering::Release);
    }

    /// Merges a generation into generation 0 and clears it.
    fn empty(&self, index: usize) {
        let newest = self.records[index].newest.load(Ordering::Relaxed);
        if newest == 0 {
            return;
        }
        for (from, into) in self.lines(index).iter().zip(self.lines(0)) {
            let bits = from.load(Ordering::Relaxed);
            if bits != 0 {
                into.store(into.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
            }
        }
        let oldest = &self.records[0].newest;
        oldest.store(oldest.load(Ordering::Relaxed).max(newest), Ordering::Relaxed);
        fault_point();
        for word in self.lines(index) {
            word.store(0, Ordering::Relaxed);
        }
        self.records[index].newest.store(0, Ordering::Relaxed);
    }

    /// The lines that changed after version `since`, up to a version that the caller sees: exact to generations, so
    /// possibly more lines, never fewer. `None` while a rotation is under way; ask again.
    pub(crate) fn changed_since(&self, since: u64) -> Option<Vec<u64>> {
        let sequence = &self.words.sequence;
        // Acquire: pairs with the release in `end_rotation`. What follows is not older than that rotation.
        let before = sequence.load(Ordering::Acquire);
        if before & 1 != 0 {
            return None;
        }
        let mut changed = vec![0u64; self.lines(0).len()];
        for (index, record) in self.records.iter().enumerate() {
            if record.newest.load(Ordering::Relaxed) > since {
                for (out, word) in changed.iter_mut().zip(self.lines(index)) {
                    *out |= word.load(Ordering::Relaxed);
                }
            }
        }
        // Acquire: pairs with the release fence in `begin_rotation`. If anything above came from a rotation that has
        // begun since, the sequence is another now.
        fence(Ordering::Acquire);
        (sequence.load(Ordering::Relaxed) == before).then_some(changed)
    }
}
