//! The cost of a sync: dense and sparse copies against plain ones, empty rounds, `service()`.
//!
//! `cargo bench --bench internal_sync [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::{AreaSpec, Job, Owned, Worker};
use hectare_testing::Random;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::Instant;
use support::copy::{self, Dense};
use support::gate::Gate;
use support::{Case, Report, Times, nanos};

const MIB: usize = 1 << 20;
const LINE: usize = 64;

fn main() {
    let mut report = Report::from_args("internal sync; 2 workers on 2 cores unless said");
    service(&mut report);
    empty_rounds(&mut report);
    let targets = [
        (256 << 10, 0.95, 0.85),
        (MIB, 0.95, 0.88),
        (4 * MIB, 0.95, 0.95),
        (8 * MIB, 0.95, 0.95),
        (32 * MIB, 0.92, 0.92),
        (128 * MIB, 0.95, 0.95),
    ];
    for workers in [1, 2] {
        for (bytes, one, two) in targets {
            dense(&mut report, bytes, workers, if workers == 1 { one } else { two });
        }
    }
    let sparse_targets = [
        (1, [0.60, 0.45], [0.022, 0.016]),
        (10, [0.70, 0.60], [0.13, 0.10]),
        (50, [0.90, 0.90], [0.7, 0.55]),
    ];
    for workers in [1, 2] {
        for (percent, list, time) in sparse_targets {
            sparse(&mut report, percent, workers, list[workers - 1], time[workers - 1]);
        }
    }
    report.finish();
}

fn job() -> Job {
    Job::builder().reserve(2 << 30).pin_cores(true).embedded().expect("a job")
}

fn size_name(bytes: usize) -> String {
    if bytes >= MIB { format!("{}MiB", bytes / MIB) } else { format!("{}KiB", bytes >> 10) }
}

/// Two private areas of the same page size as the measured one: the plain side's source and target.
fn plain_buffers(worker: &mut Worker, bytes: usize) -> (Owned<u64>, Owned<u64>) {
    let mut make =
        |name: &str| worker.create::<u64>(AreaSpec::new(name).copies(0), bytes / 8).expect("memory");
    (make("plain/from"), make("plain/to"))
}

/// Address of an area's own copy, for the plain side.
fn address(owned: &mut Owned<u64>, worker: &Worker) -> usize {
    owned.as_mut_ptr(worker).expect("owned") as usize
}

/// Rewrites a whole buffer, as its owner would between two syncs.
fn rewrite(data: &mut [u64], value: u64) {
    for (index, slot) in data.iter_mut().enumerate() {
        *slot = value ^ index as u64;
    }
}

/// A fully dirty area, rewritten by its owner each time.
fn dense(report: &mut Report, bytes: usize, workers: usize, target: f64) {
    let case = format!("dense/{}/{workers}w", size_name(bytes));
    if !report.wants(&case) {
        return;
    }
    let (blocks, repeats) = match (report.quick, bytes) {
        (true, b) if b >= 32 * MIB => (3, 5),
        (true, _) => (5, 40),
        (false, b) if b >= 32 * MIB => (8, 12),
        (false, _) => (20, 100),
    };
    let gate = Gate::new(workers);
    let shared = Mutex::new((0usize, 0usize));
    let results = job().run(workers, |worker| {
        let mine = (worker.rank() == 0).then(|| {
            let area = worker.create::<u64>("dense", bytes / 8).expect("memory");
            let (mut from, mut to) = plain_buffers(worker, bytes);
            *shared.lock().unwrap() = (address(&mut from, worker), address(&mut to, worker));
            (area, from, to)
        });
        worker.barrier().expect("a barrier");
        let (from, to) = *shared.lock().unwrap();
        let part = bytes / workers;
        let at = part * worker.rank() as usize;
        let mut mine = mine;
        let mut value = 0;
        let mut sync_once = |worker: &mut Worker| {
            value += 1;
            if let Some((area, ..)) = &mut mine {
                rewrite(area.write(worker).unwrap().as_mut_slice(), value);
            }
            gate.pass();
            nanos(|| {
                worker.sync().unwrap();
            })
        };
        let mut plain_value = 0;
        let mut plain_once = |kernel: Dense, rank: u32| {
            plain_value += 1;
            if rank == 0 {
                // SAFETY: worker 0 owns the buffer, and the others touch it only between the gates below.
                rewrite(unsafe { std::slice::from_raw_parts_mut(from as *mut u64, bytes / 8) }, plain_value);
            }
            gate.pass();
            nanos(|| {
                // SAFETY: both buffers have `bytes` bytes, a worker copies its own part, and nobody writes
                // the source between the gates.
                unsafe { copy::dense(kernel, (to + at) as *mut u8, (from + at) as *const u8, part) };
                if workers > 1 {
                    gate.pass();
                }
            })
        };
        let (mut sync, mut libc, mut streaming) = (Times::default(), Times::default(), Times::default());
        for _ in 0..blocks {
            sync_once(worker);
            sync_once(worker);
            for _ in 0..repeats {
                sync.push(sync_once(worker));
            }
            for (kernel, times) in [(Dense::Libc, &mut libc), (Dense::NonTemporal, &mut streaming)] {
                plain_once(kernel, worker.rank());
                plain_once(kernel, worker.rank());
                for _ in 0..repeats {
                    times.push(plain_once(kernel, worker.rank()));
                }
            }
        }
        (sync, libc, streaming)
    });
    let (sync, libc, streaming) = results.expect("no panics").swap_remove(0);
    let (best, name) =
        if libc.median() <= streaming.median() { (libc, "memcpy") } else { (streaming, "non-temporal") };
    report.add(Case {
        case,
        value: bytes as f64 / sync.median(),
        best: bytes as f64 / sync.best(),
        unit: "GB/s",
        ratio: Some(best.median() / sync.median()),
        against: Some(format!(
            "{name} ({:.1} GB/s), best {:.3}",
            bytes as f64 / best.median(),
            best.best() / sync.best()
        )),
        target: Some(target),
    });
}

/// 64 MiB of which some lines are dirty, other ones each time.
fn sparse(report: &mut Report, percent: usize, workers: usize, list_target: f64, time_target: f64) {
    let bytes = 64 * MIB;
    let case = format!("sparse/{percent}%/{workers}w");
    if !report.wants(&case) {
        return;
    }
    let (blocks, repeats) = if report.quick { (3, 8) } else { (8, 25) };
    let lines = bytes / LINE;
    let gate = Gate::new(workers);
    let shared = Mutex::new((0usize, 0usize));
    let list: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let results = job().run(workers, |worker| {
        let first = worker.rank() == 0;
        let mut mine = first.then(|| {
            let mut area = worker.create::<u64>("sparse", bytes / 8).expect("memory");
            area.write(worker).unwrap().fill(7);
            let (mut from, mut to) = plain_buffers(worker, bytes);
            from.write(worker).unwrap().fill(7);
            to.write(worker).unwrap().fill(7);
            *shared.lock().unwrap() = (address(&mut from, worker), address(&mut to, worker));
            (area, from, to)
        });
        worker.barrier().expect("a barrier");
        let (from, to) = *shared.lock().unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let draw = |random: &mut Random| -> Vec<u32> {
            let mut picked: Vec<u32> = (0..lines as u32).collect();
            let wanted = lines * percent / 100;
            for at in 0..wanted {
                let other = at + random.below(lines - at);
                picked.swap(at, other);
            }
            picked.truncate(wanted);
            picked.sort_unstable();
            picked
        };
        let mut lists: Vec<Vec<u32>> =
            if first { (0..4).map(|_| draw(&mut random)).collect() } else { Vec::new() };
        let mut turn = 0;
        let (mut sync, mut libc, mut streaming, mut whole) =
            (Times::default(), Times::default(), Times::default(), Times::default());
        for _ in 0..blocks {
            if first {
                lists.iter_mut().for_each(|list| *list = draw(&mut random));
            }
            for repeat in 0..repeats + 1 {
                turn += 1;
                if let Some((area, ..)) = &mut mine {
                    let mut guard = area.write(worker).unwrap();
                    for line in &lists[turn % 4] {
                        guard.set(*line as usize * 8, turn as u64);
                    }
                }
                gate.pass();
                let time = nanos(|| {
                    worker.sync().unwrap();
                });
                if repeat > 0 {
                    sync.push(time);
                }
            }
            for (kernel, times) in [(Dense::NonTemporal, &mut streaming), (Dense::Libc, &mut libc)] {
                for repeat in 0..repeats + 1 {
                    turn += 1;
                    if first {
                        for line in &lists[turn % 4] {
                            // SAFETY: worker 0 owns the buffer; the others touch it only between the gates.
                            unsafe { *(from as *mut u64).add(*line as usize * 8) = turn as u64 };
                        }
                        list.lock().unwrap().clone_from(&lists[turn % 4]);
                    }
                    gate.pass();
                    let ready = list.lock().unwrap().clone();
                    let part = ready.len().div_ceil(workers);
                    let own = &ready[part * worker.rank() as usize
                        ..(part * (worker.rank() as usize + 1)).min(ready.len())];
                    gate.pass();
                    let time = nanos(|| {
                        // SAFETY: the lines lie in both buffers; each worker copies its own part of the list.
                        unsafe { copy::listed(kernel, to as *mut u8, from as *const u8, own) };
                        if workers > 1 {
                            gate.pass();
                        }
                    });
                    if repeat > 0 {
                        times.push(time);
                    }
                }
            }
            gate.pass();
            if first {
                for repeat in 0..4 {
                    // SAFETY: worker 0 owns both buffers and the others wait at the gate.
                    let time = nanos(|| unsafe {
                        std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
                    });
                    if repeat > 0 {
                        whole.push(time);
                    }
                }
            }
            gate.pass();
        }
        (sync, libc, streaming, whole)
    });
    let (sync, libc, streaming, whole) = results.expect("no panics").swap_remove(0);
    let (best, name) =
        if libc.median() <= streaming.median() { (libc, "ordinary") } else { (streaming, "non-temporal") };
    report.add(Case {
        case: case.clone(),
        value: sync.median() / 1e3,
        best: sync.best() / 1e3,
        unit: "us",
        ratio: Some(best.median() / sync.median()),
        against: Some(format!("a ready list, {name} ({:.0} us)", best.median() / 1e3)),
        target: Some(list_target),
    });
    report.add(Case {
        case: format!("{case}/time (less is better)"),
        value: sync.median() / 1e3,
        best: sync.best() / 1e3,
        unit: "us",
        ratio: Some(sync.median() / whole.median()),
        against: Some(format!("memcpy of 64 MiB ({:.0} us)", whole.median() / 1e3)),
        target: Some(time_target),
    });
}

/// `service()` with nothing due.
fn service(report: &mut Report) {
    if !report.wants("service") {
        return;
    }
    let calls = 1_000_000;
    let mut times = Times::default();
    let mut worker = job().worker().expect("a worker");
    for _ in 0..if report.quick { 15 } else { 60 } {
        let time = nanos(|| {
            for _ in 0..calls {
                black_box(&mut worker).service().unwrap();
            }
        });
        times.push(time / f64::from(calls));
    }
    report.add(Case {
        case: "service/idle (less is better)".into(),
        value: times.median(),
        best: times.best(),
        unit: "ns",
        ratio: None,
        against: None,
        target: Some(3.0),
    });
}

/// Rounds that have nothing to publish.
fn empty_rounds(report: &mut Report) {
    for (workers, rounds) in [(2, 20_000), (16, 500)] {
        let case = format!("round/empty/{workers}w");
        if !report.wants(&case) {
            continue;
        }
        let blocks = if report.quick { 10 } else { 40 };
        let barrier = Barrier::new(workers);
        let gate = Gate::new(workers);
        let pin = workers <= 2;
        let job = Job::builder().pin_cores(pin).embedded().expect("a job");
        let results = job.run(workers, |worker| {
            let (mut ours, mut theirs) = (Times::default(), Times::default());
            for _ in 0..blocks {
                barrier.wait();
                if pin {
                    gate.pass();
                }
                let start = Instant::now();
                for _ in 0..rounds {
                    worker.sync().unwrap();
                }
                ours.push(start.elapsed().as_nanos() as f64 / f64::from(rounds));
                barrier.wait();
                let waits = rounds.min(500);
                let start = Instant::now();
                for _ in 0..waits {
                    barrier.wait();
                    barrier.wait();
                }
                theirs.push(start.elapsed().as_nanos() as f64 / f64::from(waits));
            }
            (ours, theirs)
        });
        let (ours, theirs) = results.expect("no panics").swap_remove(0);
        report.add(Case {
            case,
            value: ours.median(),
            best: ours.best(),
            unit: "ns",
            ratio: Some(theirs.median() / ours.median()),
            against: Some(format!("two waits of std::sync::Barrier ({:.0} ns)", theirs.median())),
            target: if workers == 16 { Some(3.0) } else { None },
        });
    }
}
