//! What changed since version v: the log of each publication, OR-ed into the newest of k generations.
//!
//! Generation 0 is the oldest and covers everything ever written up to its newest version. The others form
//! a ring; the open one takes the log of each round. When it is sealed, the next of the ring is merged into
//! generation 0, cleared and opened.
use crate::area::parts::Parts;
use crate::memory::layout::Config;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Notes that version `counter` was published, and seals the open generation if it is time to. Repeatable.
pub(crate) fn after_publication(parts: &Parts<'_>, counter: u64, config: &Config) {
    let round = &parts.slot.round;
    let open = round.open_generation.load(Ordering::Relaxed) as usize;
    let records = parts.generation_records();
    // A successor that repeats this after the rotation finds a fresh generation open: its record then
    // claims a version whose lines lie in the one before, which is found as well, being newer than any
    // version asked for below it.
    records[open].newest.store(counter, Ordering::Release);
    let since = round.since_seal.load(Ordering::Relaxed) + 1;
    if since < config.seal_every && round.seal_requested.load(Ordering::Relaxed) == 0 {
        round.since_seal.store(since, Ordering::Relaxed);
        // Odd: this repeats what another, who died, had done but for the last step.
        if round.generations_seq.load(Ordering::Relaxed) & 1 != 0 {
            settle(&round.generations_seq);
        }
        return;
    }
    let ring = parts.layout.generations as usize - 1;
    let next = 1 + open % ring;
    round.generations_seq.fetch_or(1, Ordering::SeqCst);
    if records[next].newest.load(Ordering::Relaxed) != 0 {
        merge(parts.generation(next), parts.generation(0));
        let newest = records[next].newest.load(Ordering::Relaxed);
        records[0].newest.fetch_max(newest, Ordering::Release);
        crate::primitive::fault_point();
        for word in parts.generation(next) {
            word.store(0, Ordering::Relaxed);
        }
        records[next].newest.store(0, Ordering::Release);
    }
    // The reasons to seal are taken back last: until then a successor seals again, which is coarser and
    // nothing worse.
    round.open_generation.store(next as u32, Ordering::Relaxed);
    crate::primitive::fault_point();
    round.since_seal.store(0, Ordering::Relaxed);
    round.seal_requested.store(0, Ordering::Relaxed);
    crate::primitive::fault_point();
    settle(&round.generations_seq);
}

/// Ends a rotation: the sequence becomes the next even number, also if the one who began it died.
fn settle(seq: &AtomicU32) {
    let now = seq.load(Ordering::Relaxed);
    seq.store((now | 1).wrapping_add(1), Ordering::SeqCst);
}

fn merge(from: &[AtomicU64], into: &[AtomicU64]) {
    for (from, into) in from.iter().zip(into) {
        let bits = from.load(Ordering::Relaxed);
        if bits != 0 {
            into.store(into.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }
}

/// The lines that changed after version `since`, as far as published: exact to generations, so possibly
/// more lines, never fewer. `None` while a rotation is under way; ask again.
pub(crate) fn changed_since(parts: &Parts<'_>, since: u64) -> Option<Vec<u64>> {
    let seq = &parts.slot.round.generations_seq;
    // SeqCst: a rotation makes the sequence odd before it clears anything and even (and different) after.
    let before = seq.load(Ordering::SeqCst);
    if before & 1 != 0 {
        return None;
    }
    let mut bits = vec![0u64; parts.layout.words as usize];
    for (index, record) in parts.generation_records().iter().enumerate() {
        if record.newest.load(Ordering::Acquire) > since {
            for (out, word) in bits.iter_mut().zip(parts.generation(index)) {
                *out |= word.load(Ordering::Relaxed);
            }
        }
    }
    std::sync::atomic::fence(Ordering::SeqCst);
    if seq.load(Ordering::SeqCst) != before {
        return None;
    }
    let tail = parts.layout.lines % 64;
    if tail != 0
        && let Some(last) = bits.last_mut()
    {
        *last &= u64::MAX >> (64 - tail);
    }
    Some(bits)
}
