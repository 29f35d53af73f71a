//! Matrix factorization as in figure 1 of the Tasvir paper: Cyclades' batches of 2000 at rank 100 in `f64`, on
//! ratings of MovieLens-1M's shape. Time per epoch of each mode of the example, against ordinary shared memory with
//! as many workers and against the tight serial loop.
//!
//! `cargo bench --bench figure1 [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
//!
//! All modes run in turns, several times, since the machine may have two speeds: the time that a line takes from
//! core to core and back is printed for every turn.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../apps/matrix_completion/src/main.rs"]
mod matrix_completion;
mod support;

use matrix_completion::data::{DataSet, Rating};
use matrix_completion::exchange::Exchange;
use matrix_completion::generate::{Size, generate};
use matrix_completion::kernel::{Kernels, Step};
use matrix_completion::model::{Layout, Model};
use matrix_completion::modes::handover::BLOCKS_PER_WORKER;
use matrix_completion::modes::{areas, handover, serial, shared};
use matrix_completion::options::{Schedule, Transports};
use matrix_completion::plan::{Plan, PlanOptions};
use matrix_completion::random::Random;
use matrix_completion::train::{EpochEnd, Training};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use support::{Case, Report, Times};

const RANK: usize = 100;
const BATCH: usize = 2000;
/// The speed of Cyclades' own program: 0.4 million a second and worker.
const CYCLADES_UPDATE_NS: f64 = 2500.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Serial,
    Shared,
    Areas(Transports),
    Handover,
}

impl Mode {
    const ALL: [Mode; 6] = [
        Mode::Serial,
        Mode::Shared,
        Mode::Areas(Transports::Published),
        Mode::Areas(Transports::Handed),
        Mode::Areas(Transports::Logged),
        Mode::Handover,
    ];

    fn name(self) -> &'static str {
        match self {
            Mode::Serial => "serial",
            Mode::Shared => "shared",
            Mode::Areas(Transports::Published) => "areas/published",
            Mode::Areas(Transports::Handed) => "areas/handed",
            Mode::Areas(Transports::Logged) => "areas/all logged",
            Mode::Handover => "handover",
        }
    }
}

fn main() {
    let mut report = Report::from_args(
        "figure1: time per epoch, batches of 2000, rank 100, f64; ratio is speed against shared memory",
    );
    let mut data = DataSet::new(&generate(Size::MOVIELENS_1M, 1), &[]).expect("a few ratings");
    Random::new(1, "order").shuffle(&mut data.train);
    let repeats = if report.quick { 2 } else { 12 };
    for workers in [1, 2, 4, 8] {
        tight(&mut report, &data, workers, repeats);
    }
    like_cyclades(&mut report, &data, repeats.min(5));
    report.finish();
}

/// The modes as they are.
fn tight(report: &mut Report, data: &DataSet, workers: usize, repeats: usize) {
    let case = |mode: Mode| format!("{}/{workers}w", mode.name());
    if !Mode::ALL.iter().any(|mode| report.wants(&case(*mode))) {
        return;
    }
    let setting = Setting::new(&data.train, data, workers, 0);
    let measured = setting.measure(repeats, if report.quick { 3 } else { 6 });
    for mode in Mode::ALL.into_iter().filter(|mode| *mode != Mode::Serial || workers == 1) {
        let target = match mode {
            Mode::Areas(Transports::Handed) if workers == 2 => Some(0.65),
            Mode::Handover => Some(1.0),
            _ => None,
        };
        setting.report(report, case(mode), mode, &measured, target);
    }
}

/// With as much time per update as Cyclades' own code takes, two workers.
fn like_cyclades(report: &mut Report, data: &DataSet, repeats: usize) {
    let modes =
        [Mode::Shared, Mode::Areas(Transports::Published), Mode::Areas(Transports::Handed), Mode::Handover];
    let case = |mode: Mode| format!("0.4 M updates/s/{}/2w", mode.name());
    if !modes.iter().any(|mode| report.wants(&case(*mode))) {
        return;
    }
    // A tenth of the ratings: every mode slows down alike.
    let ratings = &data.train[..data.train.len() / 10];
    let tight = Setting::new(ratings, data, 1, 0).epochs(Mode::Serial, 4).best() / ratings.len() as f64;
    let turns = 20_000_000;
    let start = Instant::now();
    matrix_completion::sweep::idle(turns);
    let turn = start.elapsed().as_nanos() as f64 / f64::from(turns);
    let setting = Setting::new(ratings, data, 2, ((CYCLADES_UPDATE_NS - tight) / turn) as u32);
    let measured = setting.measure(repeats, 3);
    for mode in modes {
        let target = (mode == Mode::Areas(Transports::Handed)).then_some(1.0);
        setting.report(report, case(mode), mode, &measured, target);
    }
}

/// Ratings, how they are dealt out, and what an update costs.
struct Setting<'a> {
    ratings: &'a [Rating],
    users: usize,
    items: usize,
    plan: Plan,
    exchange: Exchange,
    layout: Layout,
    idle_turns: u32,
}

/// Nanoseconds per epoch of each mode, and of a round trip between two cores.
struct Measured {
    times: Vec<(Mode, Times)>,
    round_trip: Times,
}

impl Measured {
    fn of(&self, mode: Mode) -> &Times {
        &self.times.iter().find(|(of, _)| *of == mode).expect("all are measured").1
    }
}

impl<'a> Setting<'a> {
    fn new(ratings: &'a [Rating], data: &DataSet, workers: usize, idle_turns: u32) -> Self {
        let options = PlanOptions { batch: BATCH, workers, affinity: true };
        let plan = Plan::new(ratings, data.users, data.items, options);
        let (layout, exchange) = (Layout::new::<f64>(RANK, Step::Fixed), Exchange::new(&plan));
        Self { ratings, users: data.users, items: data.items, plan, exchange, layout, idle_turns }
    }

    /// Times of all epochs of a run but the first.
    fn epochs(&self, mode: Mode, epochs: usize) -> Times {
        let mut model = Model::<f64>::new(self.users, self.items, self.layout, 1).expect("memory");
        let training = Training {
            kernels: Kernels::new(self.layout.lines, Step::Fixed),
            ratings: self.ratings,
            schedule: Schedule { lr: 0.02, decay: 1.0, reg: 0.04 },
            epochs,
            files: &[],
            idle_turns: self.idle_turns,
        };
        let mut times = Times::default();
        let mut on_epoch = |end: EpochEnd<'_, f64>| {
            if end.epoch > 0 {
                times.push(end.time.as_nanos() as f64);
            }
            ControlFlow::Continue(())
        };
        let done = match mode {
            Mode::Serial => {
                serial::train(&training, &mut model, &mut on_epoch);
                Ok(())
            }
            Mode::Shared => shared::train(&training, &self.plan, &mut model, &mut on_epoch),
            Mode::Areas(transport) => {
                areas::train(&training, &self.plan, transport, &mut model, &mut on_epoch)
            }
            Mode::Handover => handover::train(&training, self.plan.workers(), &mut model, &mut on_epoch),
        };
        done.expect("threads and memory");
        times
    }

    /// All modes in turns.
    fn measure(&self, repeats: usize, epochs: usize) -> Measured {
        let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Serial || self.idle_turns == 0);
        let mut times: Vec<_> = modes.map(|mode| (mode, Times::default())).collect();
        let mut trips = Times::default();
        for _ in 0..repeats {
            trips.push(round_trip());
            for (mode, times) in &mut times {
                times.0.extend(self.epochs(*mode, epochs).0);
            }
        }
        Measured { times, round_trip: trips }
    }

    /// Bytes that change workers in an epoch, and how often something is published or handed over.
    fn traffic(&self, mode: Mode) -> (usize, usize) {
        let row = self.layout.stride * size_of::<f64>();
        let (workers, batches) = (self.plan.workers(), self.plan.batches());
        match mode {
            Mode::Serial | Mode::Shared => (0, 0),
            Mode::Areas(Transports::Published) => (self.exchange.rows() * row, batches),
            Mode::Areas(Transports::Handed) => {
                (self.exchange.rows() * row, batches * workers * (workers - 1) * 2)
            }
            Mode::Areas(Transports::Logged) => {
                let written = |batch: &[Rating]| {
                    batch.iter().flat_map(|rating| self.plan.rows_of(rating)).collect::<HashSet<_>>().len()
                };
                (self.ratings.chunks(BATCH).map(written).sum::<usize>() * row, batches)
            }
            Mode::Handover if workers == 1 => (0, 0),
            Mode::Handover => (self.items * row * workers, workers * workers * BLOCKS_PER_WORKER),
        }
    }

    fn report(
        &self,
        report: &mut Report,
        case: String,
        mode: Mode,
        measured: &Measured,
        target: Option<f64>,
    ) {
        if !report.wants(&case) {
            return;
        }
        let (time, shared) = (measured.of(mode), measured.of(Mode::Shared));
        let (bytes, exchanges) = self.traffic(mode);
        let seconds = time.median() / 1e9;
        let mut notes = format!(
            "shared ({:.1} ms; by the best of each {:.3})",
            shared.median() / 1e6,
            shared.best() / time.best()
        );
        if self.idle_turns == 0 {
            let serial = measured.of(Mode::Serial).median() / time.median();
            notes += &format!(
                "; serial {serial:.2}; {:.1} M updates/s",
                self.ratings.len() as f64 / seconds / 1e6
            );
        }
        if exchanges > 0 {
            notes += &format!(
                "; {:.0} {}/s; {:.2} MB a batch; {:.2} GB/s",
                exchanges as f64 / seconds,
                if matches!(mode, Mode::Handover | Mode::Areas(Transports::Handed)) {
                    "gives"
                } else {
                    "syncs"
                },
                bytes as f64 / self.plan.batches() as f64 / 1e6,
                bytes as f64 / seconds / 1e9
            );
        }
        let trips = &measured.round_trip;
        notes += &format!("; round trip {:.0} ns, best {:.0}", trips.median(), trips.best());
        report.add(Case {
            case,
            value: time.median() / 1e6,
            best: time.best() / 1e6,
            unit: "ms",
            ratio: Some(shared.median() / time.median()),
            against: Some(notes),
            target,
        });
    }
}

/// Nanoseconds that a line takes to the other core and back.
fn round_trip() -> f64 {
    const TRIPS: u32 = 5000;
    let token = AtomicU32::new(0);
    let pass = |from: u32| {
        for trip in 0..TRIPS {
            while token.load(Ordering::Acquire) != 2 * trip + from {
                std::hint::spin_loop();
            }
            token.store(2 * trip + from + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| pass(1));
        let start = Instant::now();
        pass(0);
        start.elapsed().as_nanos() as f64 / f64::from(TRIPS)
    })
}
