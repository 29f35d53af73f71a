//! Schedules at work: a rotation over three dimensions (CP tensor factorization), two processes against two
//! threads, and what it costs once to plan a loop and to place its entries.
//!
//! `cargo bench --bench schedules [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::orion::accumulate::Sum;
use hectare::orion::execute::{LoopHead, entry_parts};
use hectare::orion::loop_nest::{Access, Affine, LoopNest, Mode, Order, Subscript};
use hectare::orion::relax::Relaxation;
use hectare::orion::{Context, Result, Site};
use hectare::{DistArray, Job, SparseArray};
use hectare_testing::Random;
use std::sync::Barrier;
use std::time::Duration;
use support::{Case, Report, Times, nanos};

const RATE: f32 = 0.005;
const REG: f32 = 0.02;

/// Entries of a tensor or a matrix: index and value.
type List<const N: usize> = Vec<([usize; N], f32)>;

/// Entries at random places, few indices much more often than others.
fn entries<const N: usize>(shape: [usize; N], count: usize) -> List<N> {
    let mut random = Random(11);
    let mut skewed = |extent: usize| {
        let unit = random.below(1 << 20) as f64 / (1u64 << 20) as f64;
        ((unit * unit * extent as f64) as usize).min(extent - 1)
    };
    (0..count).map(|k| (shape.map(&mut skewed), 1.0 + (k % 9) as f32 / 2.0)).collect()
}

fn initial(len: usize) -> Vec<f32> {
    let mut random = Random(3);
    (0..len).map(|_| (random.below(1000) as f32 + 200.0) / 2500.0).collect()
}

fn head<'a>(site: Site, variables: &'a [&'a str], arrays: &'a [&'a str]) -> LoopHead<'a> {
    LoopHead {
        site,
        order: Order::Unordered,
        variables,
        arrays,
        invariants: &[],
        captured: &[],
        schedule: None,
        relax: Relaxation::default(),
    }
}

/// Array `k` is updated in the row that loop variable `k` names.
fn rows(nest: &mut LoopNest, names: &[&str]) {
    for (array, name) in names.iter().enumerate() {
        let subscripts = vec![Subscript::Index(Affine::var(array)), Subscript::Full];
        let text = format!("{name}.row_mut({})", nest.dims[array].name);
        nest.accesses.push(Access { array, subscripts, mode: Mode::Update, text, line: 0 });
    }
}

/// One step of SGD on a tensor of three dimensions.
#[inline(always)]
fn tensor_step(a: &mut [f32], b: &mut [f32], c: &mut [f32], x: f32) -> f32 {
    let len = a.len().min(b.len()).min(c.len());
    let (a, b, c) = (&mut a[..len], &mut b[..len], &mut c[..len]);
    let mut lanes = [0.0f32; 16];
    for k in 0..len {
        lanes[k % 16] += a[k] * b[k] * c[k];
    }
    let e = x - lanes.iter().sum::<f32>();
    let (along, keep) = (RATE * e, 1.0 - RATE * REG);
    for k in 0..len {
        let (p, q, r) = (a[k], b[k], c[k]);
        a[k] = keep * p + along * q * r;
        b[k] = keep * q + along * p * r;
        c[k] = keep * r + along * p * q;
    }
    e
}

#[inline(never)]
fn tight_tensor(arrays: &mut [Vec<f32>; 3], list: &[([usize; 3], f32)], rank: usize) {
    let [u, v, t] = arrays;
    for ([i, j, k], x) in list {
        let (a, b, c) = (&mut u[i * rank..][..rank], &mut v[j * rank..][..rank], &mut t[k * rank..][..rank]);
        tensor_step(a, b, c, *x);
    }
}

/// CP on two workers, against two tight loops beside each other.
fn tensor(report: &mut Report) {
    let shape = [4000, 3000, 500];
    let list = entries(shape, 1_000_000);
    for rank in [16, 32] {
        let case = format!("cp/rank {rank}/2w");
        if !report.wants(&case) {
            continue;
        }
        let repeats = if report.quick { 6 } else { 30 };
        let gate = Barrier::new(2);
        let results = hectare::run(2, |w| {
            let mut u = w.from_slice([shape[0], rank], &initial(shape[0] * rank))?;
            let mut v = w.from_slice([shape[1], rank], &initial(shape[1] * rank))?;
            let mut t = w.from_slice([shape[2], rank], &initial(shape[2] * rank))?;
            let x = w.entries(shape, list.len(), |k| list[k])?;
            let mut own = shape.map(|extent| initial(extent * rank));
            let me = w.rank() as usize;
            let share = &list[list.len() * me / 2..list.len() * (me + 1) / 2];
            let (mut ours, mut theirs) = (Times::default(), Times::default());
            let site = Site::here();
            for _ in 0..=repeats {
                gate.wait();
                theirs.push(nanos(|| {
                    tight_tensor(&mut own, share, rank);
                    gate.wait();
                }));
                ours.push(nanos(|| {
                    let names = ["u", "v", "t"];
                    w.run_loop(
                        &head(site, &["i", "j", "k"], &names),
                        &x,
                        (&mut u, &mut v, &mut t),
                        (),
                        &|nest: &mut LoopNest| rows(nest, &names),
                        |entries, (u, v, t)| {
                            for entry in entries {
                                let ([i, j, k], x) = entry_parts(entry);
                                tensor_step(u.row_mut(i), v.row_mut(j), t.row_mut(k), *x);
                            }
                        },
                    )
                    .expect("a pass");
                    gate.wait();
                }));
            }
            ours.0.remove(0);
            theirs.0.remove(0);
            Ok((ours, theirs))
        });
        let (ours, theirs) = results.expect("a run").swap_remove(0);
        let speed = |time: f64| list.len() as f64 / time * 1e3;
        report.add(Case {
            case,
            value: speed(ours.median()),
            best: speed(ours.best()),
            unit: "M updates/s",
            ratio: Some(theirs.median() / ours.median()),
            against: Some(format!("2 tight loops ({:.1})", speed(theirs.median()))),
            target: Some(0.85),
        });
    }
}

/// One step of SGD on a matrix.
#[inline(always)]
fn matrix_step(a: &mut [f32], b: &mut [f32], x: f32) {
    let e = RATE * (x - hectare::orion::dot(a, b));
    let keep = 1.0 - RATE * REG;
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (keep * *a + e * *b, keep * *b + e * *a);
    }
}

fn matrix_pass(
    w: &mut Context<'_>,
    r: &SparseArray<f32, 2>,
    u: &mut DistArray<f32, 2>,
    v: &mut DistArray<f32, 2>,
) -> Result<f64> {
    let names = ["u", "v"];
    let head = head(Site::here(), &["i", "j"], &names);
    let describe = |nest: &mut LoopNest| rows(nest, &names);
    let (sum,) = w.run_loop(&head, r, (u, v), (Sum::<f64>::new(),), &describe, |entries, (u, v)| {
        for entry in entries {
            let ([i, j], x) = entry_parts(entry);
            matrix_step(u.row_mut(i), v.row_mut(j), *x);
        }
        (entries.len() as f64,)
    })?;
    Ok(sum)
}

/// Passes of matrix factorization on one worker of two, wherever it runs; the time of each.
fn matrix_passes(w: &mut Context<'_>, repeats: usize) -> Result<Times> {
    let (shape, rank) = ([6040, 3706], 32);
    let list = entries(shape, 1_000_000);
    let mut u = w.from_slice([shape[0], rank], &initial(shape[0] * rank))?;
    let mut v = w.from_slice([shape[1], rank], &initial(shape[1] * rank))?;
    let r = w.entries(shape, list.len(), |k| list[k])?;
    let mut times = Times::default();
    for _ in 0..=repeats {
        w.barrier()?;
        let mut result = Ok(0.0);
        times.push(nanos(|| result = matrix_pass(w, &r, &mut u, &mut v)));
        result?;
    }
    times.0.remove(0);
    Ok(times)
}

/// How many passes the second process is to run.
const ROLE: &str = "HECTARE_BENCH_PASSES";

fn second_process(passes: &str) {
    let job = Job::inherited().expect("a job").expect("the parent's job");
    let mut worker = job.worker_at(1).expect("a slot");
    let mut context = Context::join(&mut worker, 2).expect("the parent");
    matrix_passes(&mut context, passes.parse().expect("a number of passes")).expect("passes");
}

fn as_processes(repeats: usize) -> Times {
    let job = Job::builder().pin_cores(true).embedded().expect("a job");
    let mut worker = job.worker_at(0).expect("a slot");
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.env(ROLE, repeats.to_string());
    job.pass_to(&mut command);
    let mut child = command.spawn().expect("a second process");
    let mut context = Context::join(&mut worker, 2).expect("the second process");
    let times = matrix_passes(&mut context, repeats).expect("passes");
    drop(context);
    assert!(child.wait().expect("its end").success());
    times
}

fn processes(report: &mut Report) {
    let case = "mf/rank 32/2 processes";
    if !report.wants(case) {
        return;
    }
    let (rounds, repeats) = if report.quick { (3, 10) } else { (6, 40) };
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..rounds {
        theirs.0.extend(hectare::run(2, |w| matrix_passes(w, repeats)).expect("threads").swap_remove(0).0);
        ours.0.extend(as_processes(repeats).0);
    }
    let speed = |time: f64| 1e9 / time;
    report.add(Case {
        case: case.into(),
        value: speed(ours.median()),
        best: speed(ours.best()),
        unit: "M updates/s",
        ratio: Some(theirs.median() / ours.median()),
        against: Some(format!("2 threads ({:.1})", speed(theirs.median()))),
        target: Some(0.9),
    });
}

/// The cost of ten million entries before the first pass, against a pass at rank 32.
fn planning(report: &mut Report) {
    if !report.wants("plan") {
        return;
    }
    let (shape, count, rank) = ([480_000, 17_800], 10_000_000, 32);
    let list = entries(shape, count);
    let times = hectare::run(2, |w| {
        let mut u = w.from_slice([shape[0], rank], &initial(shape[0] * rank))?;
        let mut v = w.from_slice([shape[1], rank], &initial(shape[1] * rank))?;
        let r = w.entries(shape, count, |k| list[k])?;
        for _ in 0..4 {
            matrix_pass(w, &r, &mut u, &mut v)?;
        }
        let mut passes = Times::default();
        for _ in 0..if report.quick { 3 } else { 9 } {
            let mut result = Ok(0.0);
            passes.push(nanos(|| result = matrix_pass(w, &r, &mut u, &mut v)));
            result?;
        }
        let timing = &w.timings()[0];
        let nanos = |time: Duration| time.as_nanos() as f64;
        Ok((passes, nanos(timing.planning + r.counting_time()), nanos(timing.placing)))
    });
    let times = times.expect("a run");
    let pass = times[0].0.median();
    let most = |part: fn(&(Times, f64, f64)) -> f64| times.iter().map(part).fold(0.0, f64::max);
    let cases = [("plan/analysis, counts, cuts", most(|t| t.1), 0.1), ("plan/placing", most(|t| t.2), 1.0)];
    for (case, time, target) in cases {
        report.add(Case {
            case: format!("{case} (at most)"),
            value: time / 1e6,
            best: time / 1e6,
            unit: "ms",
            ratio: Some(time / pass),
            against: Some(format!("a pass ({:.1} ms)", pass / 1e6)),
            target: Some(target),
        });
    }
}

fn main() {
    if let Ok(passes) = std::env::var(ROLE) {
        return second_process(&passes);
    }
    let mut report = Report::from_args("schedules: rotations, processes, planning");
    tensor(&mut report);
    processes(&mut report);
    planning(&mut report);
    report.finish();
}
