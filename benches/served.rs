//! Parameters that are looked up by keys in the data, on two processes: fetched in bulk before they are needed, against
//! access one by one.
//!
//! `cargo bench --bench served [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`. Sparse logistic regression over generated
//! examples of KDD 2010's kind: 30 features each, of 4 million, half of them drawn from Zipf's law with exponent 1, half
//! uniform; 20,000 examples (4,000 with `--quick`), 16 clocks in a pass, bulk-synchronous.
//!
//! All processes are on one host. A request for a key costs a message to the other process and its answer through shared
//! memory, far less than one over a network. A look in place costs a load, since all memory is mapped: it is the best way on
//! one host where nothing prevents it. The ways:
//!
//! - *by request*: every access to a weight of the other process's, a read or a contribution, is a request, and the process
//!   that has it answers. Weights are divided by their numbers' parity. Written by hand: the loop layer does not do this.
//! - *looked up*: `serve`, `prefetch = false`: read in place, and contributions to keys that nobody announced.
//! - *bulk*: `serve`; *new lists*: the same where the slice is run in every pass.
//! - *by hand*: the keys of each clock copied, computed on and added back, without anything that makes it right; the places of
//!   keys are computed before. What copying costs.
//! - *buffer*, *relax, async*: without keys: the array is copied at every clock, or everything is done in place.
#[path = "served/copies.rs"]
mod copies;
#[path = "served/post.rs"]
mod post;
mod support;

use self::copies::Copies;
use self::post::Post;

use hectare::orion::relax::{Consistency, Every, Sum};
use hectare::orion::{Context, Error, Result, parallel_for};
use hectare::{Area, AreaSpec, Job, SparseArray};
use hectare_testing::Random;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Case, Report, Times};

const CHILD: &str = "HECTARE_BENCH_CHILD";
/// The ways that both processes go, in this order.
const WANTED: &str = "HECTARE_BENCH_WANTED";
const FEATURES: usize = 4_000_000;
const PER_ROW: usize = 30;
const RATE: f32 = 0.05;
const CLOCKS: Every = Every::PerPass(16);

type Row = ([u32; PER_ROW], f32);

fn row(k: usize) -> Row {
    let mut random = Random(k as u64);
    let features = std::array::from_fn(|at| {
        let x = random.unit();
        // Zipf's law by its continuous inverse, and then spread over the array.
        let rank = if at % 2 == 0 { (FEATURES as f64).powf(x) - 1.0 } else { FEATURES as f64 * x };
        (rank as u64 * 2_654_435_761 % FEATURES as u64) as u32
    });
    (features, if random.unit() < 0.5 { -1.0 } else { 1.0 })
}

fn slope(margin: f32, label: f32) -> f32 {
    -label / (1.0 + (label * margin).exp())
}

/// The body that all ways share.
macro_rules! pass {
    ($w:ident, $rows:ident, $weights:ident, $key:ident: $($head:tt)*) => {
        parallel_for!($w, unordered, $($head)*;
            for ((_number), row) in $rows {
                let (features, label) = row;
                let mut margin = 0.0;
                for feature in features {
                    margin += $weights.get($key(*feature));
                }
                let step = -RATE * slope(margin, *label);
                for feature in features {
                    $weights.add($key(*feature), step);
                }
            })
    };
}

/// Nothing, and yet not comparable.
struct Opaque<'a>(&'a [f32]);

impl Opaque<'_> {
    fn key(&self, feature: u32) -> usize {
        feature as usize + self.0.len()
    }
}

/// One pass in one of the ways; all workers call this.
fn pass(w: &mut Context<'_>, way: &str, rows: &SparseArray<Row, 1>, passes: usize) -> Result<Times> {
    let (mut times, key) = (Times::default(), |feature: u32| feature as usize);
    let mut weights = w.zeros::<f32, 1>([FEATURES])?;
    let bsp = Consistency::Bsp;
    // The first pass is left out: it makes lists, and brings memory.
    let mut time = |w: &mut Context<'_>, run: &mut dyn FnMut(&mut Context<'_>) -> Result<()>| {
        for number in 0..=passes {
            w.barrier()?;
            let since = Instant::now();
            run(w)?;
            if number > 0 {
                times.push(since.elapsed().as_secs_f64());
            }
        }
        Ok::<(), Error>(())
    };
    match way {
        "by request" => {
            let mut post = Post::open(w.worker());
            time(w, &mut |w| {
                post.pass(w.worker(), rows);
                Ok(())
            })?;
        }
        "by hand" => {
            let worker = w.worker();
            let name = |rank: u32| format!("copies/{rank}");
            let own = (worker.rank() == 0)
                .then(|| worker.create::<f32>(AreaSpec::new(name(0)).copies(0), FEATURES).expect("memory"))
                .map(|area| area.open(worker).expect("held"));
            let all: Area<f32> = worker.attach_within(&name(0), Duration::from_secs(20)).expect("memory");
            let copies = Copies::new(rows, 16);
            time(w, &mut |w| {
                copies.pass(all.cells(w.worker()).expect("open"));
                w.barrier()
            })?;
            drop(own);
        }
        "relax, async" => {
            let consistency = Consistency::Async;
            time(
                w,
                &mut |w| pass!(w, rows, weights, key: relax weights, consistency = consistency, every = CLOCKS),
            )?;
        }
        "buffer" => {
            let mut weights = w.buffered(weights, Sum)?;
            time(
                w,
                &mut |w| pass!(w, rows, weights, key: buffer weights, consistency = bsp, every = CLOCKS),
            )?;
        }
        _ => {
            let mut weights = w.served(weights, Sum)?;
            time(w, &mut |w| match way {
                "looked up" => {
                    pass!(w, rows, weights, key: serve weights, prefetch = false, consistency = bsp, every = CLOCKS)
                }
                "new lists" => {
                    let opaque = Opaque(&[]);
                    parallel_for!(w, unordered, serve weights, consistency = bsp, every = CLOCKS;
                    for ((_number), row) in rows {
                        let (features, label) = row;
                        let mut margin = 0.0;
                        for feature in features {
                            margin += weights.get(opaque.key(*feature));
                        }
                        let step = -RATE * slope(margin, *label);
                        for feature in features {
                            weights.add(opaque.key(*feature), step);
                        }
                    })
                }
                _ => pass!(w, rows, weights, key: serve weights, consistency = bsp, every = CLOCKS),
            })?;
        }
    }
    if w.rank() == 0 && std::env::var_os("HECTARE_BENCH_REPORT").is_some() {
        println!("{way}");
    }
    for report in w.reports()? {
        if w.rank() == 0 && std::env::var_os("HECTARE_BENCH_REPORT").is_some() {
            println!("{report}");
        }
    }
    Ok(times)
}

const WAYS: [&str; 7] = ["by request", "looked up", "bulk", "new lists", "by hand", "buffer", "relax, async"];

/// Both processes do this, in the same order; the times of each way.
fn program(job: &Job, rank: u32, (rows, passes): (usize, usize), wanted: &str) -> Result<Vec<Times>> {
    let mut worker = job.worker_at(rank)?;
    let w = &mut Context::join(&mut worker, 2)?;
    let rows = w.entries([rows], rows, |k| ([k], row(k)))?;
    // Each worker has its half of the rows from the first loop on.
    parallel_for!(w, unordered, sum count: u64; for ((_number), row) in rows { count += u64::from(row.1 > 0.0); })?;
    wanted.split(';').map(|way| pass(w, way, &rows, passes)).collect()
}

fn main() {
    let size = |quick: bool| if quick { (4_000, 5) } else { (20_000, 11) };
    if let Ok(role) = std::env::var(CHILD) {
        let job = Job::inherited().expect("a job").expect("the parent's job");
        let wanted = std::env::var(WANTED).expect("what to run");
        program(&job, 1, size(role == "quick"), &wanted).expect("a run");
        return;
    }
    let mut report = Report::from_args("Served parameters, 2 processes: seconds of a pass, less is better");
    let job = Job::builder().pin_cores(true).reserve(4 << 30).embedded().expect("a job");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    job.pass_to(&mut command);
    // The first way is what the others are compared with.
    let ways: Vec<&str> = WAYS.into_iter().filter(|way| *way == WAYS[0] || report.wants(way)).collect();
    let wanted = ways.join(";");
    command.env(CHILD, if report.quick { "quick" } else { "long" }).env(WANTED, &wanted);
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = command.spawn().expect("a process");
    let (rows, passes) = size(report.quick);
    let all = program(&job, 0, (rows, passes), &wanted).expect("a run");
    assert!(child.wait().expect("its end").success());
    for (way, times) in ways.iter().zip(&all) {
        let per_key = 1e9 * times.median() / (rows / 2 * PER_ROW) as f64;
        report.add(Case {
            case: (*way).into(),
            value: 1e3 * times.median(),
            best: 1e3 * times.best(),
            unit: "ms/pass",
            ratio: Some(all[0].median() / times.median()),
            against: Some(format!("by request; {per_key:.0} ns for each key that a row names")),
            target: None,
        });
    }
    report.finish();
}
