//! Access one by one, by messages.
use super::{FEATURES, RATE, Row, slope};
use hectare::{Area, AreaSpec, Cells, Opened, SparseArray, Worker};
use std::time::Duration;

/// Requests and answers of two processes, one key each.
pub(crate) struct Post {
    _mine: Opened<u64>,
    all: [Area<u64>; 2],
    me: usize,
    /// The weights that this process has.
    weights: Vec<f32>,
    asked: u64,
    answered: u64,
}

/// Words of a process: how often it has asked, for what, and what it contributes; how often it has answered, and what;
/// passes it has ended. What others write lies in another line of the cache.
const ASKED: usize = 0;
const KEY: usize = 1;
const ADDED: usize = 2;
const ANSWERED: usize = 8;
const VALUE: usize = 9;
const ENDED: usize = 16;

/// The words of this process, and those of the other.
type Words<'w> = [Cells<'w, u64>; 2];

impl Post {
    pub(crate) fn open(worker: &mut Worker) -> Post {
        let name = |rank: usize| format!("post/{rank}");
        let me = worker.rank() as usize;
        let mine = worker.create::<u64>(AreaSpec::new(name(me)).copies(0), 24).expect("memory");
        let mine = mine.open(worker).expect("held");
        let all =
            [0, 1].map(|rank| worker.attach_within(&name(rank), Duration::from_secs(20)).expect("the other"));
        Post { _mine: mine, all, me, weights: vec![0.0; FEATURES / 2], asked: 0, answered: 0 }
    }

    /// Answers what the other process has asked since: with the weight, after what was to be added to it.
    #[inline]
    fn serve(&mut self, [mine, theirs]: &Words<'_>) {
        if theirs.observe(ASKED) > self.answered {
            let weight = &mut self.weights[theirs.get(KEY) as usize];
            *weight += f32::from_bits(theirs.get(ADDED) as u32);
            mine.set(VALUE, u64::from(weight.to_bits()));
            self.answered += 1;
            mine.publish(ANSWERED, self.answered);
        }
    }

    /// Adds to a weight, wherever it is, and has the sum: a request and its answer if the other process has it.
    fn access(&mut self, words: &Words<'_>, feature: u32, added: f32) -> f32 {
        let at = feature as usize / 2;
        if feature as usize % 2 == self.me {
            self.weights[at] += added;
            return self.weights[at];
        }
        let [mine, theirs] = words;
        mine.set(KEY, at as u64);
        mine.set(ADDED, u64::from(added.to_bits()));
        self.asked += 1;
        mine.publish(ASKED, self.asked);
        let mut turns = 0u32;
        while theirs.observe(ANSWERED) < self.asked {
            self.serve(words);
            turns += 1;
            if turns.is_multiple_of(1000) {
                std::thread::yield_now();
            }
        }
        f32::from_bits(theirs.get(VALUE) as u32)
    }

    /// The pass of the loop, every access by itself.
    pub(crate) fn pass(&mut self, worker: &Worker, rows: &SparseArray<Row, 1>) {
        let [mine, theirs] = [self.me, 1 - self.me];
        let words = [mine, theirs].map(|rank| self.all[rank].clone());
        let words = words.each_ref().map(|area| area.cells(worker).expect("open"));
        for entry in rows.local().iter() {
            let (features, label) = &entry.value;
            let margin: f32 = features.iter().map(|feature| self.access(&words, *feature, 0.0)).sum();
            let step = -RATE * slope(margin, *label);
            for feature in features {
                self.access(&words, *feature, step);
            }
            self.serve(&words);
        }
        let ended = words[0].get(ENDED) + 1;
        words[0].publish(ENDED, ended);
        while words[1].observe(ENDED) < ended {
            self.serve(&words);
            std::hint::spin_loop();
        }
    }
}
