//! Copying a round's chunks: claims, the lines of a chunk, and the bookkeeping that goes with them.
use super::plan::OWNER_BYTES;
use super::plan::{may_copy_whole, whole_threshold};
use super::runtime::{BLOCK_WORDS, CopyScratch, Runtime};
use crate::memory::clock;
use crate::memory::copy::{Kernels, LineBuffer, words};
use crate::protocol::claim;
use crate::protocol::claim::Claim;
use crate::protocol::division::{LEAST_BYTES, Speeds};
use crate::protocol::plan_checks::OTHER_HOST;
use crate::segment::layout::{Chunk, LINE};
use crate::segment::parts::Parts;
use crate::segment::tally::add;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

impl Runtime<'_> {
    /// Claims and copies chunks until none is free, beginning with those of the worker's own areas.
    pub(crate) fn copy_chunks(&self, round: u64, me: u32) {
        let segment = &self.shared.segment;
        let plan = &segment.header().sync.acting.plan;
        let chunks = &segment.plan_chunks()[..plan.chunks.load(Ordering::Relaxed) as usize];
        if chunks.is_empty() {
            return;
        }
        let start = self.first_chunk(chunks, me);
        let copy = |chunk: &Chunk, piece: &Piece| self.copy_claimed(chunk, piece, round, me);
        claim::copy_all(chunks, |chunk| &chunk.claim, (start, round, me), |chunk| self.piece(chunk), copy);
    }

    /// Where this worker begins: at the first chunk of an area that it owns, else at its own part.
    fn first_chunk(&self, chunks: &[Chunk], me: u32) -> usize {
        if let Some(own) = chunks.iter().position(|chunk| chunk.owner.load(Ordering::Relaxed) == me) {
            return own;
        }
        let workers = self.shared.segment.seats().len().max(1);
        chunks.len() * (me as usize % workers) / workers
    }

    /// The piece of a chunk by the plan alone, without a look at the area.
    fn piece(&self, chunk: &Chunk) -> Piece {
        let segment = &self.shared.segment;
        let plan = &segment.header().sync.acting.plan;
        let entry = &segment.plan_entries()[chunk.entry.load(Ordering::Relaxed) as usize];
        Piece {
            area: entry.area.load(Ordering::Relaxed) as usize,
            target: entry.copy.load(Ordering::Relaxed) as usize,
            whole: entry.whole.load(Ordering::Relaxed) != 0,
            first: chunk.first.load(Ordering::Relaxed) as usize,
            words: chunk.words.load(Ordering::Relaxed) as usize,
            round_bytes: plan.bytes.load(Ordering::Relaxed) as usize,
            workers: plan.workers.load(Ordering::Relaxed),
        }
    }

    fn copy_claimed(&self, chunk: &Chunk, piece: &Piece, round: u64, me: u32) {
        let segment = &self.shared.segment;
        let parts = Parts::of(segment, piece.area);
        let copying = Copying {
            parts,
            target: piece.target,
            round_bytes: piece.round_bytes,
            whole: piece.whole,
            threshold: if may_copy_whole(&parts) { whole_threshold(piece.workers) } else { 1.0 },
            shared_words: segment.config().stall_policy == crate::segment::layout::STALL_PIN,
        };
        let owner = chunk.owner.load(Ordering::Relaxed);
        // Of an area whose owner is elsewhere, nobody here has the lines in his cache.
        let of_speed =
            owner != OTHER_HOST && (LEAST_BYTES..=OWNER_BYTES).contains(&(parts.padded_bytes() as u64));
        let since = (of_speed && piece.workers > 1 && Speeds::are_noted(round)).then(clock::now_ns);
        let bytes = copying.run(piece.first, piece.words, &mut self.local.copy_scratch.borrow_mut());
        // Of sparse chunks the bitmaps cost as much as the lines.
        if let Some(since) = since.filter(|_| bytes as u64 * 2 > (piece.words * 64) as u64 * LINE) {
            segment.header().speeds.note(owner == me, bytes as u64, clock::now_ns() - since);
        }
        let tally = self.shared.tally(me);
        add(&tally.chunks, 1);
        add(&tally.copied_bytes, bytes as u64);
    }

    /// Whether every chunk of the round is done.
    pub(crate) fn all_copied(&self, round: u64) -> bool {
        let segment = &self.shared.segment;
        let count = segment.header().sync.acting.plan.chunks.load(Ordering::Relaxed) as usize;
        segment.plan_chunks()[..count].iter().all(|chunk| claim::read(&chunk.claim, round) == Claim::Done)
    }
}

/// A chunk as the plan describes it.
struct Piece {
    area: usize,
    target: usize,
    whole: bool,
    first: usize,
    words: usize,
    round_bytes: usize,
    workers: u32,
}

/// The copying of one area in one round.
struct Copying<'s> {
    parts: Parts<'s>,
    target: usize,
    round_bytes: usize,
    whole: bool,
    threshold: f32,
    /// Whether a stalled worker might still be at these words: then they change atomically.
    shared_words: bool,
}

impl Copying<'_> {
    /// Copies what words `first..first + count` of the log mark, and notes it in the generation and in
    /// what the other copies owe. Repeatable: the log is cleared only when the round is published. Returns how
    /// many bytes were copied.
    fn run(&self, first: usize, count: usize, scratch: &mut CopyScratch) -> usize {
        let layout = self.parts.layout;
        if self.whole {
            let copied = self.copy_span(first, count);
            for (other, copy) in self.parts.copies().iter().enumerate() {
                if other != self.target {
                    fill(self.parts.owed(other), first, count);
                    copy.owes.store(1, Ordering::Relaxed);
                }
            }
            if layout.is_logged() {
                fill(self.parts.open_generation(), first, count);
            }
            return copied;
        }
        let kernels = Kernels::get();
        let level1 = self.parts.level1();
        let owes = self.parts.copies()[self.target].owes.load(Ordering::Relaxed) != 0;
        scratch.lines.clear();
        // The span of neighbouring blocks that are copied whole.
        let mut span = 0..0;
        let mut copied = 0;
        let mut word = first;
        while word < first + count {
            let end = (word / BLOCK_WORDS * BLOCK_WORDS + BLOCK_WORDS).min(first + count);
            if level1[word / BLOCK_WORDS].load(Ordering::Relaxed) == 0 && !owes {
                word = end;
                continue;
            }
            let bits = &mut scratch.bits[..end - word];
            let lines = self.gather(word, bits, owes);
            if lines == (end - word) * 64 || lines as f32 > self.threshold * ((end - word) * 64) as f32 {
                if span.end != word {
                    copied += self.copy_span(span.start, span.end - span.start);
                    span = word..word;
                }
                span.end = end;
            } else if lines > 0 {
                let mut done = 0;
                while done < bits.len() {
                    done += scratch.lines.decode(&bits[done..], ((word + done) * 64) as u32);
                    if done < bits.len() {
                        copied += self.copy_listed(kernels, &mut scratch.lines);
                    }
                }
            }
            word = end;
        }
        copied += self.copy_span(span.start, span.end - span.start);
        copied + self.copy_listed(kernels, &mut scratch.lines)
    }

    /// Collects the lines to copy of some log words and does their bookkeeping; returns how many.
    fn gather(&self, first: usize, bits: &mut [u64], owes: bool) -> usize {
        let parts = &self.parts;
        let range = first..first + bits.len();
        let log = &parts.level0()[range.clone()];
        let generation = &parts.open_generation()[range.clone()];
        if self.shared_words {
            for ((out, log), seen) in bits.iter_mut().zip(log).zip(generation) {
                *out = log.load(Ordering::Relaxed);
                seen.fetch_or(*out, Ordering::Relaxed);
            }
        }
        let into = if self.shared_words { &[][..] } else { generation };
        // SAFETY: the log is still while its owner is inside the round. These words of the generation are
        // this worker's alone by the chunk's claim; where a stalled worker might still be at them, they were
        // merged atomically above.
        let mut lines = unsafe { words::gather(log, into, bits) };
        if parts.layout.copies > 1 {
            self.note_owed(&range, bits);
            if owes {
                lines = 0;
                for (out, owed) in bits.iter_mut().zip(&parts.owed(self.target)[range]) {
                    *out |= owed.load(Ordering::Relaxed);
                    lines += out.count_ones() as usize;
                }
            }
        }
        lines
    }

    /// Notes that the other copies lack the logged lines.
    fn note_owed(&self, range: &Range<usize>, logged: &[u64]) {
        if logged.iter().all(|word| *word == 0) {
            return;
        }
        for (other, copy) in self.parts.copies().iter().enumerate() {
            if other == self.target {
                continue;
            }
            for (owed, logged) in self.parts.owed(other)[range.clone()].iter().zip(logged) {
                if *logged != 0 {
                    self.or_into(owed, *logged);
                }
            }
            copy.owes.store(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn or_into(&self, word: &AtomicU64, bits: u64) {
        if self.shared_words {
            word.fetch_or(bits, Ordering::Relaxed);
        } else {
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    /// Copies whole words' lines `first..first + count`; returns how many bytes that are.
    fn copy_span(&self, first: usize, count: usize) -> usize {
        let from = first * 64 * LINE as usize;
        let to = ((first + count) * 64 * LINE as usize).min(self.parts.padded_bytes());
        if to <= from {
            return 0;
        }
        // SAFETY: both copies have `padded_bytes` bytes. The writer copy is still: its owner is inside the
        // round. Nobody reads the target: planning chose a copy that no straggler and no observer may be
        // reading, and everybody else is inside the round. The chunk's claim gives these words to this
        // worker alone.
        unsafe {
            let source = self.parts.writer().add(from);
            let target = self.parts.reader(self.target).add(from);
            Kernels::get().copy_dense(target, source, to - from, self.round_bytes);
        }
        to - from
    }

    /// Copies the lines that are listed, and empties the list; returns how many bytes that are.
    fn copy_listed(&self, kernels: &Kernels, lines: &mut LineBuffer) -> usize {
        let count = lines.as_slice().len();
        if !lines.as_slice().is_empty() {
            // SAFETY: as in `copy_span`; the log has bits only for lines of the area.
            unsafe {
                let (source, target) = (self.parts.writer(), self.parts.reader(self.target));
                kernels.copy_lines(
                    target,
                    source,
                    lines.as_slice(),
                    self.round_bytes,
                    self.parts.padded_bytes(),
                );
            }
            lines.clear();
        }
        count * LINE as usize
    }
}

/// Marks every line of some words, as far as the area has them.
fn fill(bitmap: &[AtomicU64], first: usize, count: usize) {
    if !bitmap.is_empty() {
        for word in &bitmap[first..first + count] {
            word.store(u64::MAX, Ordering::Relaxed);
        }
    }
}
