//! A loop whose iterations cost what their count does not say: passes after its bounds have moved by time, against passes by counts, in
//! turns.
//!
//! `cargo bench --bench rebalance [-- WORKERS]`
use hectare::DistArray;
use hectare::orion::{Context, Rebalance, Result, parallel_for};
use std::time::Instant;

const COUNT: usize = 4_800;
const ROUNDS: usize = 31;

/// The more work, the greater `i` is.
fn value(i: usize) -> f64 {
    (0..i).fold(1.0, |x, k| (x + k as f64).sqrt())
}

/// A pass over all; its time in milliseconds. Each call of the macro is a loop of its own.
macro_rules! pass {
    ($w:ident, $a:ident) => {{
        $w.barrier()?;
        let since = Instant::now();
        parallel_for!($w, unordered, write $a; for i in 0..COUNT { $a[i] += value(i); })?;
        since.elapsed().as_secs_f64() * 1e3
    }};
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(w: &mut Context<'_>) -> Result<()> {
    let mut a: DistArray<f64, 1> = w.zeros([COUNT])?;
    let (mut moved, mut counted) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        // Some passes to move the bounds in; then they stay.
        w.rebalance(if round < 5 { Rebalance::by_time() } else { Rebalance::never() })?;
        let by_time = pass!(w, a);
        w.rebalance(Rebalance::never())?;
        let by_count = pass!(w, a);
        if round >= 5 {
            moved.push(by_time);
            counted.push(by_count);
        }
    }
    let ratio = median(counted.iter().zip(&moved).map(|(counted, moved)| counted / moved).collect());
    let moves = w.moves();
    w.root(|| {
        for one in moves.list() {
            let [before, after] = one.imbalance;
            println!(
                "after pass {}: imbalance {before:.2} -> {after:.2}, bounds {:?}",
                one.after, one.bounds[0]
            );
        }
        let [counted, moved] = [counted, moved].map(median);
        println!("a pass by counts {counted:.2} ms, after the moves {moved:.2} ms: {ratio:.2} times as fast");
    });
    Ok(())
}

fn main() -> Result<()> {
    let workers = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(2);
    hectare::run(workers, measure).map(drop)
}
