//! Answers of the agent (`protocol/answers.rs`): whoever reads one gets its words, or none, also when it is written over, and
//! after the death of an agent that was writing it. None is missed by one who looks in time.
use super::super::answers::Answers;
use super::{explore, lives};
use crate::primitive::Ordering;
use crate::primitive::model::{Access, without_fences};
use loom::sync::Arc;
use loom::thread;

/// One place, so that every answer is written over what somebody may be reading.
type One = Answers<1, 2>;

/// Somebody looks while the agent tells answers 1 and 2; it dies after `steps` fault points, and the next goes on.
fn looked_at(steps: u32) {
    explore(3, move || {
        let answers = Arc::new(One::new());
        let reader = {
            let answers = answers.clone();
            thread::spawn(move || {
                let (found, count) = answers.since(0);
                for words in found {
                    assert_eq!(words[0], words[1], "a mixture of two answers");
                    assert!(words[0] >= count, "an answer of before");
                }
            })
        };
        for number in 1..=2 {
            if !lives(steps, || answers.tell([number; 2])) {
                answers.tell([number; 2]);
            }
        }
        reader.join().unwrap();
        let (found, count) = answers.since(1);
        assert_eq!((found.collect::<Vec<_>>(), count), (vec![[2, 2]], 2));
    });
}

#[test]
fn an_answer_is_whole() {
    (0..3).for_each(looked_at);
}

#[test]
#[should_panic(expected = "a mixture")]
fn mutant_an_answer_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    looked_at(3);
}

#[test]
#[should_panic(expected = "a mixture")]
fn mutant_a_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    looked_at(3);
}

/// Whoever counts an answer that is not written over finds it.
fn found(weaken: impl Fn(&Answers<2, 1>) + Sync + Send + 'static) {
    explore(3, move || {
        let answers = Arc::new(Answers::<2, 1>::new());
        weaken(&answers);
        let reader = {
            let answers = answers.clone();
            thread::spawn(move || {
                let (found, count) = answers.since(0);
                assert_eq!(found.count() as u64, count, "an answer that is counted and not there");
            })
        };
        answers.tell([1]);
        reader.join().unwrap();
    });
}

#[test]
fn what_is_counted_is_there() {
    found(|_| {});
}

#[test]
#[should_panic(expected = "counted and not there")]
fn mutant_a_count_that_is_raised_weakly() {
    found(|answers| answers.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}
