//! Jacobi sweeps over two arrays that are swapped after each: two workers of a loop against two threads with a hand-written barrier,
//! over plain vectors, in turns; both must have made the same bits.
//!
//! `cargo bench --bench jacobi [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::orion::parallel_for;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Case, Report, Times, nanos};

/// Sweeps in one measurement, an even number.
const SWEEPS: usize = 4;

/// A barrier of two threads that spin: a count of arrivals.
#[derive(Default)]
struct Spin(AtomicUsize);

impl Spin {
    fn wait(&self) {
        // AcqRel: what each wrote before, the other sees after; pairs with the load and with the other's increment.
        let arrived = self.0.fetch_add(1, Ordering::AcqRel) + 1;
        let all = arrived.next_multiple_of(2);
        // Acquire: pairs with the increment above.
        while self.0.load(Ordering::Acquire) < all {
            std::hint::spin_loop();
        }
    }
}

/// The rows of a plain array that one thread writes while the other reads the array that is not written.
struct Plain(*mut f64);

// SAFETY: each thread writes its own rows of one array in a sweep, and reads the other array; the barrier is between the sweeps.
unsafe impl Sync for Plain {}

#[inline(always)]
fn relax([above, row, below]: [&[f64]; 3], out: &mut [f64]) {
    let n = out.len();
    for j in 1..n - 1 {
        out[j] = 0.25 * (above[j] + below[j] + row[j - 1] + row[j + 1]);
    }
}

fn start([i, j]: [usize; 2]) -> f64 {
    ((i * 31 + j * 17) % 101) as f64
}

fn jacobi(report: &mut Report, n: usize) {
    let case = format!("jacobi/{n}");
    if !report.wants(&case) {
        return;
    }
    let repeats = if report.quick { 3 } else { 15 };
    let (gate, barrier) = (Barrier::new(2), Spin::default());
    let mut plain = [(); 2].map(|()| (0..n * n).map(|at| start([at / n, at % n])).collect::<Vec<f64>>());
    let arrays = plain.each_mut().map(|array| Plain(array.as_mut_ptr()));
    let theirs = |rank: usize| {
        let (first, last) = if rank == 0 { (1, n / 2) } else { (n / 2, n - 1) };
        for sweep in 0..SWEEPS {
            let (from, to) = (&arrays[sweep % 2], &arrays[(sweep + 1) % 2]);
            for i in first..last {
                // SAFETY: rows of an array of `n` rows, which lives until the end; see `Plain`.
                let row = |at: usize| unsafe { std::slice::from_raw_parts(from.0.add(at * n), n) };
                // SAFETY: as above; this thread alone writes row `i`.
                let out = unsafe { std::slice::from_raw_parts_mut(to.0.add(i * n), n) };
                relax([row(i - 1), row(i), row(i + 1)], out);
            }
            barrier.wait();
        }
    };
    let results = hectare::run(2, |w| {
        let (mut a, mut b) = (w.from_fn([n, n], start)?, w.from_fn([n, n], start)?);
        let (mut ours, mut others) = (Times::default(), Times::default());
        for _ in 0..=repeats {
            gate.wait();
            others.push(nanos(|| theirs(w.rank() as usize)));
            gate.wait();
            let mut ended = Ok(());
            ours.push(nanos(|| {
                for _ in 0..SWEEPS {
                    ended = parallel_for!(w, unordered, read a, write b;
                    for i in 1..n - 1 {
                        relax([a.row(i - 1), a.row(i), a.row(i + 1)], b.row_mut(i));
                    });
                    std::mem::swap(&mut a, &mut b);
                }
            }));
            ended?;
        }
        // The first plans the loop and touches the memory.
        ours.0.remove(0);
        others.0.remove(0);
        Ok((ours, others, if w.rank() == 0 { a.to_vec(w)? } else { a.to_vec(w).map(|_| Vec::new())? }))
    });
    let (ours, others, made) = results.expect("a run").swap_remove(0);
    assert!(made == plain[0], "other bits than the threads have made");
    report.add(Case {
        case,
        value: ours.median() / SWEEPS as f64 / 1e6,
        unit: "ms/sweep",
        best: ours.best() / SWEEPS as f64 / 1e6,
        ratio: Some(others.median() / ours.median()),
        against: Some(format!("two threads, {:.3} ms", others.median() / SWEEPS as f64 / 1e6)),
        target: Some(0.9),
    });
}

fn main() {
    let mut report = Report::from_args("jacobi: two workers against two threads with a barrier, same bits");
    jacobi(&mut report, 4096);
    jacobi(&mut report, 512);
    report.finish();
}
