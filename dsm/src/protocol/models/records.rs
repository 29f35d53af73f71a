//! Records of copies (`protocol/record.rs`): whoever asks for the newest version without holding a copy gets term and counter of
//! one publication, also after the death of who publishes.
use super::super::publication::{Publication, Version};
use super::super::record::{Copies, CopyRecord};
use super::{explore, lives};
use crate::primitive::AtomicU32;
use crate::primitive::Ordering;
use crate::primitive::model::{Access, without_fences};
use loom::sync::Arc;
use loom::thread;

/// The one copy of an area, into which rounds 1 and 2 publish.
struct Area {
    records: [CopyRecord; 1],
    current: AtomicU32,
}

impl Area {
    fn copies(&self) -> Copies<'_> {
        Copies { records: &self.records, current: &self.current }
    }

    fn publish(&self, round: u64) {
        self.copies().publish(&Publication::of_round(0, round));
    }
}

/// One asks while another publishes, and dies after `steps` fault points; then the publication is repeated.
fn asked(steps: u32, weaken: impl Fn(&Area) + Sync + Send + 'static) {
    explore(3, move || {
        let area = Arc::new(Area { records: [CopyRecord::new(true)], current: AtomicU32::new(0) });
        area.publish(1);
        weaken(&area);
        let asker = {
            let area = area.clone();
            thread::spawn(move || {
                let Some(Version { term, counter }) = area.copies().version() else { return };
                assert_eq!(term, counter, "a mixture of two versions");
            })
        };
        if !lives(steps, || area.publish(2)) {
            area.publish(2);
        }
        asker.join().unwrap();
        assert_eq!(area.copies().version(), Some(Version { term: 2, counter: 2 }));
    });
}

#[test]
fn a_version_is_of_one_publication() {
    (0..4).for_each(|steps| asked(steps, |_| {}));
}

#[test]
#[should_panic(expected = "a mixture")]
fn mutant_a_record_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    asked(4, |_| {});
}

#[test]
#[should_panic(expected = "a mixture")]
fn mutant_a_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    asked(4, |_| {});
}

#[test]
#[should_panic(expected = "a mixture")]
fn mutant_a_record_that_is_finished_weakly() {
    asked(4, |area| area.records[0].round.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}
