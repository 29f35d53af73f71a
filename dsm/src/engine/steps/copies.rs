//! A round brings the owner's writes to the readers, however they are divided, listed and copied.
use super::Scene;
use crate::{AreaSpec, Owned, StallPolicy};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Elements of a line, and of what one word of the log's upper level stands for.
const LINE: usize = 8;
const BLOCK: usize = 4096 * LINE;

/// Other copies than the newest are written, in turn.
const IN_TURN: StallPolicy = StallPolicy::Pin { after: Duration::MAX };

/// Writes `value` to the first element of each of `lines`.
fn write(scene: &Scene, owned: &mut Owned<u64>, lines: impl Iterator<Item = usize>, value: u64) {
    let mut guard = owned.write(&scene.workers[0]).unwrap();
    lines.for_each(|line| guard.set(line * LINE, value));
}

#[track_caller]
fn assert_published(scene: &Scene, owned: &Owned<u64>, what: &str) {
    let area = owned.area();
    let (seen, written) = (area.read(&scene.workers[0]).unwrap(), owned.read(&scene.workers[0]).unwrap());
    let differs = seen.iter().zip(written).position(|(seen, written)| seen != written);
    assert_eq!(differs, None, "{what}");
}

/// Lines that a copy missed are brought to it, in blocks too in which nothing was logged since.
#[test]
fn what_a_copy_owes_is_brought_in_every_block() {
    for copies in [3, 4] {
        let mut scene = Scene::new(1, IN_TURN);
        let mut owned = scene.create_long(0, AreaSpec::new("a").copies(copies), 4 * BLOCK - 100);
        for turn in 1..30 {
            // One line, in another block each time.
            let line = (turn * 5 % 4 * 4096 + turn * 37) % (owned.len() / LINE);
            write(&scene, &mut owned, std::iter::once(line), turn as u64);
            assert!(scene.publish(&owned));
            assert_published(&scene, &owned, &format!("turn {turn}"));
        }
    }
}

/// Blocks that are copied whole and blocks of which lines are listed, in every order, and more listed lines than the
/// list has room for.
#[test]
fn dense_and_sparse_blocks_side_by_side() {
    /// Of so many lines in a row, one is written; 0: none.
    const SPARSE: [usize; 5] = [4, 0, 1, 900, 2];
    let mut scene = Scene::new(1, StallPolicy::Wait);
    let mut owned = scene.create_long(0, AreaSpec::new("a"), 20 * BLOCK);
    for turn in 0..25 {
        for block in 0..20 {
            // All blocks alike at first: a quarter of each is more than the list holds.
            let kind = if turn == 0 { 0 } else { block * (turn % 5) + turn / 5 };
            let (sparse, first) = (SPARSE[kind % 5], block * 4096);
            if sparse > 0 {
                let lines = (first + turn % sparse..first + 4096).step_by(sparse);
                write(&scene, &mut owned, lines, turn as u64 + 1);
            }
        }
        scene.publish(&owned);
        assert_published(&scene, &owned, &format!("turn {turn}"));
    }
}

/// Chunks are all of an area, each word of its log in one of them, also where a small area is divided between its
/// owner and others, which elsewhere depends on what was measured.
#[test]
fn a_divided_area_is_copied_whole() {
    let mut divided = 0;
    for workers in 2..5 {
        for len in [16 << 10, 20_000, 50_001, 128 << 10, (128 << 10) + 1, 500_000, 8 * BLOCK] {
            let mut scene = Scene::new(workers, StallPolicy::Wait);
            let ranks: Vec<usize> = (0..workers).collect();
            let mut owned = scene.create_long(0, AreaSpec::new("a"), len);
            // As where cores share a cache.
            for by_owner in [true, false] {
                scene.job.shared.segment.header().speeds.note(by_owner, 1 << 20, 20_000);
            }
            scene.write(&mut owned, 0, 7);
            owned.core().force();
            let round = scene.arrive(&ranks);
            assert!(scene.runtime(0).make_plan(round, 0));
            let chunks = scene.chunks_of(&owned);
            let mut ranges: Vec<_> =
                chunks.iter().map(|chunk| (chunk.first.load(Relaxed), chunk.words.load(Relaxed))).collect();
            ranges.sort_unstable();
            let mut end = 0;
            for (first, words) in &ranges {
                assert_eq!(*first, end, "{workers} workers, {len} elements: {ranges:?}");
                end = first + words;
            }
            assert_eq!(end, len.div_ceil(64 * LINE) as u64, "{workers} workers, {len} elements: {ranges:?}");
            divided += usize::from(len <= 128 << 10 && ranges.len() == workers);
            ranks.iter().for_each(|rank| scene.runtime(*rank).copy_chunks(round, *rank as u32));
            assert!(scene.runtime(0).all_copied(round));
            scene.runtime(0).publish_plan(round, 0);
            scene.end();
            assert_published(&scene, &owned, &format!("{workers} workers, {len} elements"));
        }
    }
    assert!(divided >= 10, "{divided} areas were divided");
}

/// Writes through a raw pointer that were not logged stay with their owner, among however many logged lines.
#[test]
fn what_is_not_logged_is_not_published() {
    for copies in [1, 2] {
        let mut scene = Scene::new(1, StallPolicy::Wait);
        let mut owned = scene.create_long(0, AreaSpec::new("a").copies(copies), 2 * BLOCK);
        let (len, kept) = (owned.len(), BLOCK + 80);
        let pointer = owned.as_mut_ptr(&scene.workers[0]).unwrap();
        // SAFETY: the whole area, which this worker owns; no view or guard of it lives.
        unsafe { std::slice::from_raw_parts_mut(pointer, len) }.fill(5);
        owned.log(&scene.workers[0], 0..kept).unwrap();
        owned.log(&scene.workers[0], kept + LINE..len).unwrap();
        scene.publish(&owned);
        let area = owned.area();
        let seen = area.read(&scene.workers[0]).unwrap();
        assert_eq!((seen[kept - 1], seen[kept], seen[kept + LINE]), (5, 0, 5));
        assert!(seen[kept..kept + LINE].iter().all(|value| *value == 0), "published without being logged");
        owned.log(&scene.workers[0], kept..kept + 1).unwrap();
        scene.publish(&owned);
        assert_published(&scene, &owned, "logged");
    }
}
