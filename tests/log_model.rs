//! A model of areas as plain vectors: random writes by every means, random syncs; what every worker reads is
//! the model at the published version, bit for bit, and what changed since any version is reported.
use crate::common::*;
use hectare::{Area, AreaSpec, Element, Job, Owned, Tracking, Version, Worker};
use std::collections::HashMap;
use std::sync::Mutex;

const WORKERS: usize = 3;
/// Every published version of every area, as its owner knew it.
type Models = Mutex<HashMap<(String, Version), Vec<u8>>>;

/// One area of one worker, whatever its element type.
trait Written {
    fn write(&mut self, worker: &Worker, random: &mut Random);
    /// Notes what the newest version is, if it is new.
    fn note(&mut self, worker: &Worker, models: &Models);
}

struct Writer<T: Element> {
    owned: Owned<T>,
    automatic: bool,
    noted: Option<Version>,
}

fn bits<T: Element>(random: &mut Random) -> T {
    let mut bytes = vec![0u8; size_of::<T>()];
    bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
    hectare::bytemuck::pod_read_unaligned(&bytes)
}

impl<T: Element> Written for Writer<T> {
    fn write(&mut self, worker: &Worker, random: &mut Random) {
        let len = self.owned.len();
        if len == 0 {
            return;
        }
        let at = random.below(len);
        let end = at + random.below((len - at).min(700)) + 1;
        let row = self.owned.row_len();
        let value = bits::<T>(random);
        let means = random.below(8);
        match means {
            0..=2 => self.owned.write(worker).unwrap().set(at, value),
            3 => self.owned.write(worker).unwrap().range_mut(at..end).fill(value),
            4 if len >= row => self.owned.write(worker).unwrap().row_mut(at / row % (len / row))[0] = value,
            5 if random.below(20) == 0 => self.owned.write(worker).unwrap().fill(value),
            6 if random.below(10) == 0 => {
                let mut guard = self.owned.write(worker).unwrap();
                guard.set(at, value);
            }
            _ => {
                let pointer = self.owned.as_mut_ptr(worker).unwrap();
                for index in at..end {
                    // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
                    unsafe { pointer.add(index).write(value) };
                }
                if !self.automatic {
                    self.owned.log(worker, at..end).unwrap();
                }
            }
        }
    }

    fn note(&mut self, worker: &Worker, models: &Models) {
        let newest = self.owned.area().newest_version();
        if newest != self.noted {
            self.noted = newest;
            let bytes = hectare::bytemuck::cast_slice(self.owned.read(worker).unwrap()).to_vec();
            models.lock().unwrap().insert((self.owned.name().to_owned(), newest.unwrap()), bytes);
        }
    }
}

fn writer<T: Element>(worker: &mut Worker, spec: AreaSpec, automatic: bool, len: usize) -> Box<dyn Written> {
    let owned = worker.create::<T>(spec, len).unwrap();
    Box::new(Writer { owned, automatic, noted: None })
}

/// A reader of an area, which checks what it sees.
trait Seen {
    fn check(&mut self, worker: &Worker, models: &Models);
}

struct Reader<T: Element> {
    area: Area<T>,
    history: Vec<(Version, Vec<u8>)>,
}

impl<T: Element> Seen for Reader<T> {
    fn check(&mut self, worker: &Worker, models: &Models) {
        let version = self.area.version(worker).unwrap();
        let view: &[u8] = hectare::bytemuck::cast_slice(self.area.read(worker).unwrap());
        {
            let models = models.lock().unwrap();
            let model = &models[&(self.area.name().to_owned(), version)];
            let differs = view.iter().zip(model).position(|(a, b)| a != b);
            assert_eq!((view.len(), differs), (model.len(), None), "{} at {version}", self.area.name());
        }
        if self.history.last().is_none_or(|(last, _)| *last < version) {
            self.history.push((version, view.to_vec()));
        }
        let step = self.history.len() / 3 + 1;
        for (since, old) in self.history.iter().rev().step_by(step) {
            let changed = self.area.changed_since(worker, *since).unwrap();
            assert!(changed.is_sorted_by(|a, b| a.end < b.start), "{changed:?}");
            let size = size_of::<T>();
            for (index, (a, b)) in view.chunks(size).zip(old.chunks(size)).enumerate() {
                let told = a == b || changed.iter().any(|range| range.contains(&index));
                assert!(told, "{}: {index} changed since {since}", self.area.name());
            }
        }
    }
}

fn reader<T: Element>(worker: &Worker, name: &str) -> Box<dyn Seen> {
    Box::new(Reader::<T> { area: worker.attach_here(name).unwrap(), history: Vec::new() })
}

/// An area of every combination, spread over the workers.
type Make = fn(&mut Worker, AreaSpec, bool, usize) -> Box<dyn Written>;
type Look = fn(&Worker, &str) -> Box<dyn Seen>;
const TYPES: [(Make, Look, usize, usize); 6] = [
    (writer::<u8>, reader::<u8>, 4097, 100),
    (writer::<u16>, reader::<u16>, 31, 3),
    (writer::<f32>, reader::<f32>, 10_007, 16),
    (writer::<u64>, reader::<u64>, 777, 1),
    (writer::<[u8; 24]>, reader::<[u8; 24]>, 501, 5),
    (writer::<u128>, reader::<u128>, 1, 1),
];
const TRACKINGS: [Tracking; 3] = [Tracking::Logged, Tracking::Whole, Tracking::Automatic];

fn run(job: &Job, seed: u64, turns: usize) {
    let models: Models = Mutex::default();
    job.run(WORKERS, |worker| {
        let me = worker.rank() as usize;
        let mut random = Random(seed * 100 + me as u64);
        let mut mine = Vec::new();
        let mut names = Vec::new();
        for (index, (make, look, len, row)) in TYPES.into_iter().enumerate() {
            for (kind, tracking) in TRACKINGS.into_iter().enumerate() {
                for copies in 1..=3 {
                    let name = format!("{index}/{kind}/{copies}");
                    if (index + kind + copies as usize) % WORKERS == me {
                        let spec = AreaSpec::new(name.as_str()).copies(copies).tracking(tracking).row(row);
                        mine.push(make(worker, spec, tracking == Tracking::Automatic, len));
                    }
                    names.push((name, look));
                }
            }
        }
        mine.iter_mut().for_each(|area| area.note(worker, &models));
        worker.barrier().unwrap();
        let mut all: Vec<_> = names.iter().map(|(name, look)| look(worker, name)).collect();
        for turn in 0..turns {
            for _ in 0..random.below(mine.len() * 2) {
                let area = random.below(mine.len());
                mine[area].write(worker, &mut random);
            }
            worker.barrier().unwrap();
            mine.iter_mut().for_each(|area| area.note(worker, &models));
            worker.barrier().unwrap();
            // A few of them every turn, and all in the end.
            for (index, area) in all.iter_mut().enumerate() {
                if turn + 1 == turns || (index + turn + me).is_multiple_of(6) {
                    area.check(worker, &models);
                }
            }
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn readers_see_the_model() {
    for seed in 1..4 {
        let job = Job::builder().reserve(1 << 30).round_timeout(LONG).generations(3, 2).embedded().unwrap();
        let _watch = watch(&job);
        run(&job, seed, 40);
        assert_eq!(job.stats().unwrap().postponed, 0);
    }
}

#[test]
fn readers_see_the_model_in_check_mode() {
    let job = Job::builder().reserve(1 << 30).round_timeout(LONG).check(true).embedded().unwrap();
    let _watch = watch(&job);
    run(&job, 9, 25);
    assert_eq!(job.stats().unwrap().unlogged_lines, 0, "everything that must be was logged");
}
