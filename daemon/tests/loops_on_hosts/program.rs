//! A program with a loop of each kind, which knows nothing of hosts.
use hectare_orion::collections;
use hectare_orion::relax::{AdaRevision, Consistency, Every, Sum, Tail};
use hectare_orion::{Context, Result, axpy, dot, parallel_for};
use std::path::Path;

const SIDE: usize = 24;
const LINES: usize = 150;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn hash(bits: &[u32]) -> u64 {
    super::hash(bits.iter().map(|bits| u64::from(*bits)))
}

/// Ordered loops: one in blocks, one that runs serially.
fn ordered(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut a = w.uniform([SIDE, SIDE], 0.0..1.0f32, 6)?.named("a");
    parallel_for!(w, ordered, write a;
    for i in 1..SIDE {
        for j in 0..SIDE {
            a[[i, j]] = 0.5 * a[[i, j]] + a[[i - 1, j]];
        }
    })?;
    let mut sums = w.fill([SIDE], 1.0f32)?.named("sums");
    parallel_for!(w, ordered, read a, write sums;
    for i in 1..SIDE {
        sums[i] = 0.9 * sums[i - 1] + a[[i, 3]];
    })?;
    Ok(bits(&[a.to_vec(w)?, sums.to_vec(w)?].concat()))
}

/// Parts that go from worker to worker in every pass.
fn rotation(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], (k % 5) as f32))?.named("ratings");
    let mut users = w.uniform([40, 4], 0.0..0.5f32, 1)?.named("users");
    let mut films = w.uniform([30, 4], 0.0..0.5f32, 2)?.named("films");
    let mut squares_of = Vec::new();
    for _ in 0..4 {
        let squares = parallel_for!(w, unordered, read ratings, write [users, films], sum squares: f64;
        for ((user, film), stars) in ratings {
            let (a, b) = (users.row_mut(user), films.row_mut(film));
            let error = stars - dot(a, b);
            axpy(0.02 * error, b, a);
            axpy(0.02 * error, a, b);
            squares += (error * error) as f64;
        })?;
        squares_of.push(squares as f32);
    }
    Ok(bits(&[users.to_vec(w)?, films.to_vec(w)?, squares_of].concat()))
}

/// Maps, a pipeline, and entries that go to other workers.
fn collections(w: &mut Context<'_>) -> Result<Vec<(String, u64)>> {
    let line = |k: usize| (0..k % 7).map(|n| format!("w{} ", (k * 13 + n * n) % 31)).collect::<String>();
    let text = w.entries([LINES], LINES, |k| ([k], line(k)))?.named("text");
    let mut counts = w.dist_map::<String, u64, _>(collections::Sum)?.named("counts");
    for _ in 0..2 {
        parallel_for!(w, unordered, buffer counts;
        for ((_number), words) in text {
            words.split_whitespace().for_each(|word| counts.add(word, 1));
        })?;
    }
    let found = parallel_for!(w, unordered, read counts, sum found: u64;
    for ((number), words) in text {
        for word in words.split_whitespace() {
            found += counts.get(word).unwrap_or(0) * number as u64;
        }
    })?;
    let local = text.local();
    let lengths = local.lazy().flat_map(|[line], text| text.split_whitespace().map(move |w| (w.len(), line)));
    let groups = lengths.map(|_, line| line as u32).group_by(|len, _| [*len]).materialize(w)?.to_vec(w)?;
    let mut all = counts.to_vec(w)?;
    all.push(("found".into(), found));
    all.extend(groups.into_iter().map(|entry| (format!("{:?}", entry.value), entry.key[0] as u64)));
    Ok(all)
}

/// Relaxed arrays: the bits of `Bsp`, and sums that lose and repeat nothing whoever is ahead.
fn relaxed(w: &mut Context<'_>, consistency: Consistency) -> Result<Vec<f32>> {
    let mut sums = w.zeros::<f32, 1>([200])?.named("sums");
    let mut of_rows = w.zeros::<f32, 2>([30, 3])?.named("of rows");
    let mut all = Vec::new();
    for pass in 0..3 {
        parallel_for!(w, unordered, relax [sums, of_rows], consistency = consistency, every = Every::PerPass(4),
            tail = if pass == 1 { Tail::new(7, 3) } else { Tail::NONE };
        for i in 0..600 {
            sums.add(i * 7 % 200, (i + pass) as f32);
            of_rows.add([i % 30, i % 3], 1.0);
        })?;
        all.extend(sums.to_vec(w)?);
    }
    all.extend(of_rows.to_vec(w)?);
    // Read and changed, so that the order of the clocks counts.
    let mut weights = w.fill::<f32, 1>([64], 0.5)?.named("weights");
    if consistency == Consistency::Bsp {
        for tail in [Tail::NONE, Tail::new(0, 3)] {
            parallel_for!(w, unordered, relax weights, consistency = consistency, every = Every::PerPass(8), tail = tail;
            for i in 0..800 {
                let (a, b) = (weights.get(i % 64), weights.get(i * 5 % 61));
                weights.add(i * 11 % 64, 0.01 * (a - 0.3 * b));
            })?;
        }
        all.extend(weights.to_vec(w)?);
    }
    Ok(all)
}

/// Buffered arrays, with rules that add and rules that depend on the order.
fn buffered(w: &mut Context<'_>) -> Result<Vec<f32>> {
    let counts = w.zeros::<f32, 1>([90])?.named("counts");
    let mut counts = w.buffered(counts, Sum)?;
    let weights = w.fill::<f32, 1>([70], 0.1)?.named("weights");
    let mut weights = w.buffered(weights, AdaRevision::new(0.1))?;
    for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async] {
        parallel_for!(w, unordered, buffer counts, consistency = consistency, every = Every::PerPass(9), tail = Tail::new(20, 4);
        for i in 0..500 {
            counts.add(i % 90, 1.0);
        })?;
    }
    for tail in [Tail::NONE, Tail::new(11, 2)] {
        parallel_for!(w, unordered, buffer weights, consistency = Consistency::Bsp, every = Every::PerPass(5), tail = tail;
        for i in 0..400 {
            weights.add(i * 3 % 70, weights.get(i % 70) - 0.01 * (i % 9) as f32);
        })?;
    }
    // A pass more shows that the helper values went on, too.
    Ok([counts.array().to_vec(w)?, weights.array().to_vec(w)?].concat())
}

/// Arrays that loops relax or buffer, and that are written by other means between two passes: each pass begins with what they are then.
fn written_between(w: &mut Context<'_>) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    let mut sums = w.fill::<f32, 1>([40], 0.5)?.named("sums");
    let start = w.fill::<f32, 1>([30], 0.1)?.named("weights");
    let mut weights = w.buffered(start, AdaRevision::new(0.1))?;
    let mut counts = w.zeros::<f32, 1>([30])?.named("counts");
    for turn in 0..6 {
        for _ in 0..2 {
            parallel_for!(w, unordered, relax sums, consistency = Consistency::Bsp, every = Every::PerPass(3);
            for i in 0..200 {
                sums.add(i * 7 % 40, 0.01 * (sums.get(i % 40) - 0.3 * sums.get(i * 3 % 40)));
            })?;
            parallel_for!(w, unordered, buffer weights, consistency = Consistency::Bsp, every = Every::PerPass(3);
            for i in 0..200 {
                weights.add(i * 3 % 30, weights.get(i % 30) - 0.01 * (i % 9) as f32);
            })?;
        }
        match turn {
            0 => sums.set(w, [3], 7.0)?,
            1 => sums.fill(w, 0.25)?,
            2 => weights.reset(w, 0.3)?,
            3 => parallel_for!(w, unordered, write sums; for i in 0..40 { sums[i] *= 2.0; })?,
            // Not what all have the same bits of.
            4 => {
                parallel_for!(w, unordered, relax sums, buffer weights, consistency = Consistency::Bounded(2);
                for i in 0..30 {
                    sums.add(i, 1.0);
                    weights.add(i, 0.0);
                })?
            }
            _ => {}
        }
        all.extend(sums.to_vec(w)?);
        // Read between passes, which leaves the copies as they are.
        parallel_for!(w, unordered, read sums, write counts; for i in 0..30 { counts[i] += sums[i]; })?;
        all.extend(counts.to_vec(w)?);
        all.extend(weights.array().to_vec(w)?);
    }
    Ok(all)
}

/// The same learned from examples with few features each, by arrays that loops serve or buffer: elements and rows, keys that a slice
/// foresees and some that it cannot, keys that one worker alone uses.
macro_rules! learn {
    ($w:ident, $how:ident, $made:ident $(, $by_one:ident = $one:literal)?) => {{
        let w = $w;
        let examples = w.entries([240], 240, |k| ([k], (k * 7919 % 500, k, (k % 5) as f32)))?.named("examples");
        let weights = w.fill::<f32, 1>([500], 0.1)?.named("weights");
        let mut weights = w.$made(weights, AdaRevision::new(0.1))?;
        let mut all = Vec::new();
        for pass in 0..3 {
            parallel_for!(w, unordered, $how weights, consistency = Consistency::Bsp, every = Every::PerPass(6);
            for ((_k), example) in examples {
                let (rare, own, label) = *example;
                let error = weights.get(rare) + weights.get(own) + weights.get(3) - 0.1 * label;
                weights.add(rare, error);
                weights.add(own, 0.5 * error);
                weights.add(3, 0.1 * error);
            })?;
            parallel_for!(w, unordered, $how weights, consistency = Consistency::Bsp, every = Every::PerPass(3) $(, $by_one = $one)?;
            for ((k), example) in examples {
                // Which key it is depends on what was learned.
                let unforeseen = (weights.get(example.1) * 1e4).abs() as usize % 500;
                let value = weights.get(unforeseen);
                if (value * 1e3).abs() as usize % 3 != pass % 3 {
                    weights.add(unforeseen, 0.01 * value + 0.001 * k as f32);
                }
            })?;
            all.extend(weights.array().to_vec(w)?);
        }
        // The helper values went along.
        let (weights, states) = weights.into_parts(w)?;
        all.extend(states.expect("the rule has some").to_vec(w)?.into_iter().flatten());
        all.extend(weights.to_vec(w)?);
        let rows = w.zeros::<f32, 2>([50, 20])?.named("rows");
        let mut rows = w.$made(rows, Sum)?;
        for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async] {
            parallel_for!(w, unordered, $how rows, consistency = consistency, every = Every::PerPass(5);
            for ((k), example) in examples {
                let (rare, _, label) = *example;
                let sum: f32 = rows.row(rare % 50).iter().sum();
                // Counts, so that nothing depends on who is faster.
                rows.add([rare % 50, k % 20], label + if sum < 0.0 { 1.0 } else { 0.0 });
                rows.add_row(k % 50, &[1.0; 20]);
            })?;
            all.extend(rows.array().to_vec(w)?);
        }
        Ok(bits(&all).chunks(100).map(hash).collect())
    }};
}

fn by_serving(w: &mut Context<'_>) -> Result<Vec<u64>> {
    learn!(w, serve, served, prefetch = false)
}

fn by_buffering(w: &mut Context<'_>) -> Result<Vec<u64>> {
    learn!(w, buffer, buffered)
}

/// An array and entries, through a file of each host.
fn checkpoint(w: &mut Context<'_>, file: &Path) -> Result<Vec<u32>> {
    let a = w.uniform([SIDE, 3], 0.0..1.0f32, 9)?;
    let entries = w.entries([50, 50], 80, |k| ([k % 50, k * 3 % 50], k as f32))?;
    w.save_checkpoint(file, |c| {
        c.array("a", &a)?;
        c.entries("entries", &entries)
    })?;
    let c = w.open_checkpoint(file)?.expect("it was just written");
    let (a, entries) = (c.array::<f32, 2>(w, "a")?, c.entries::<f32, 2>(w, "entries")?);
    let mut all = a.to_vec(w)?;
    all.extend(entries.to_vec(w)?.into_iter().map(|entry| entry.value));
    Ok(bits(&all))
}

/// A line for each kind, the same for as many workers, wherever they are.
pub(super) fn all(w: &mut Context<'_>, file: &Path) -> Result<Vec<String>> {
    let mut lines = vec![
        format!("stencil {:x?}", super::stencils::rows(w)?),
        format!("ordered {:x?}", ordered(w)?),
        format!("rotation {:x?}", rotation(w)?),
        format!("collections {:?}", collections(w)?),
        format!("checkpoint {:x?}", checkpoint(w, file)?),
        format!("bsp {:x?}", bits(&relaxed(w, Consistency::Bsp)?)),
        format!("bounded {:?}", relaxed(w, Consistency::Bounded(1))?),
        format!("buffered {:x?}", bits(&buffered(w)?)),
        format!("async {:?}", relaxed(w, Consistency::Async)?),
        format!("between {:x?}", bits(&written_between(w)?)),
        format!("contributed {:x?}", by_buffering(w)?),
        format!("served {:x?}", by_serving(w)?),
    ];
    w.check_loops(true);
    lines.push(format!("checked {:x?}", rotation(w)?));
    lines.push(format!("checked-serving {:x?}", by_serving(w)?));
    Ok(lines)
}
