//! Generations (`protocol/generations.rs`): whoever asks what changed since a version finds every line that was published
//! after it, also while generations change places, and after the death of who moved them.
//!
//! Version v has changed line v. Each publication is sealed, so that the third merges the first into generation 0.
use super::{explore, lives};
use crate::primitive::model::{Access, without_fences};
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::generations::{GenerationRecord, GenerationWords, Generations};
use loom::sync::Arc;
use loom::thread;

/// Generation 0 and a ring of two.
const GENERATIONS: usize = 3;

struct Area {
    words: GenerationWords,
    records: Vec<GenerationRecord>,
    bits: Vec<AtomicU64>,
    /// The newest version, as `copy.round` and `current` tell it.
    version: AtomicU64,
}

impl Area {
    fn new() -> Area {
        Area {
            words: GenerationWords::new(),
            records: (0..GENERATIONS).map(|_| GenerationRecord { newest: AtomicU64::new(0) }).collect(),
            bits: (0..GENERATIONS).map(|_| AtomicU64::new(0)).collect(),
            version: AtomicU64::new(0),
        }
    }

    fn generations(&self) -> Generations<'_> {
        Generations { words: &self.words, records: &self.records, bits: &self.bits }
    }

    /// The steps of rounds: `copying.rs` marks, `publish.rs` does the rest.
    fn publish(&self, version: u64, seal_every: u32) {
        let generations = self.generations();
        let open = generations.words.open.load(Ordering::Relaxed) as usize;
        let lines = &generations.lines(open)[0];
        lines.store(lines.load(Ordering::Relaxed) | 1 << version, Ordering::Relaxed);
        self.finish(version, seal_every);
    }

    fn finish(&self, version: u64, seal_every: u32) {
        self.generations().after_publication(version, seal_every);
        self.version.store(version, Ordering::Release);
    }

    /// Asks what changed since `since`, once.
    fn ask(&self, since: u64) {
        let version = self.version.load(Ordering::Acquire);
        let Some(changed) = self.generations().changed_since(since) else { return };
        for line in since + 1..=version {
            assert!(changed[0] >> line & 1 != 0, "line {line} is missing at version {version}: {changed:?}");
        }
    }
}

/// Version 2 is published, and generation 1 merged, while another asks. `weaken` makes a mutant of the area.
fn asked(weaken: impl Fn(&Area) + Sync + Send + 'static) {
    explore(3, move || {
        let area = Arc::new(Area::new());
        area.publish(1, 1);
        weaken(&area);
        let asker = {
            let area = area.clone();
            thread::spawn(move || area.ask(0))
        };
        area.publish(2, 1);
        asker.join().unwrap();
        assert!(area.generations().changed_since(0).is_some());
    });
}

#[test]
fn no_line_is_missing_while_generations_change_places() {
    asked(|_| {});
}

#[test]
#[should_panic(expected = "is missing")]
fn mutant_a_rotation_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    asked(|_| {});
}

#[test]
#[should_panic(expected = "is missing")]
fn mutant_a_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    asked(|_| {});
}

#[test]
#[should_panic(expected = "is missing")]
fn mutant_a_rotation_that_ends_weakly() {
    asked(|area| area.words.sequence().weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "is missing")]
fn mutant_a_look_that_begins_weakly() {
    asked(|area| area.words.sequence().weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// Who seals dies after `steps` fault points, and another repeats the publication; who asks meanwhile finds every line,
/// and whoever asks afterwards is answered.
fn a_publisher_dies(steps: u32, seal_every: u32) {
    explore(1, move || {
        let area = Arc::new(Area::new());
        // The next publication is sealed, and merges the first ones.
        let last = 2 * u64::from(seal_every);
        (1..last).for_each(|version| area.publish(version, seal_every));
        let asker = {
            let area = area.clone();
            thread::spawn(move || area.ask(0))
        };
        if !lives(steps, || area.publish(last, seal_every)) {
            area.finish(last, seal_every);
        }
        asker.join().unwrap();
        assert!(area.generations().changed_since(0).is_some());
        (0..last).for_each(|since| area.ask(since));
    });
}

#[test]
fn a_publisher_dies_at_every_step_of_a_rotation() {
    for seal_every in [1, 2] {
        (0..5).for_each(|steps| a_publisher_dies(steps, seal_every));
    }
}
