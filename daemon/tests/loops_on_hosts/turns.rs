//! Random programs of many loops over the same arrays: each finds them as the one before has left them, in parts of all kinds, in one piece,
//! in copies, read or not.
use super::inspected::hash;
use super::oracle::random::Random;
use hectare_orion::relax::{Consistency, Every};
use hectare_orion::{Context, Result, parallel_for};
use std::ops::Range;

/// A line for each time that arrays are read, and for each sum.
pub(super) fn all(w: &mut Context<'_>, seeds: Range<u64>) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for seed in seeds {
        one(w, seed, &mut lines)?;
    }
    Ok(lines)
}

fn one(w: &mut Context<'_>, seed: u64, lines: &mut Vec<String>) -> Result<()> {
    let mut random = Random(seed);
    let (len, columns) = (21 + 2 * random.below(60), 3 + random.below(20));
    let mut a = w.uniform([len], 0.0..1.0f32, seed)?.named("a");
    let mut b = w.uniform([len, columns], 0.0..1.0f32, seed + 1)?.named("b");
    let table = w.from_fn([200], |[k]| ((k * 7919 + seed as usize) % len) as u32)?.named("table");
    let ratings =
        w.entries([len, len], 300, |k| ([k * 7 % len, k * 11 % len], (k % 5) as f32))?.named("ratings");
    for turn in 0..14 {
        let kind = random.below(12);
        match kind {
            0 => {
                parallel_for!(w, unordered, write a; for i in 0..len { a[i] = 0.5 * a[i] + i as f32 * 0.01; })?
            }
            1 => parallel_for!(w, ordered, write a;
            for t in 0..6 {
                for i in 1..len - 1 {
                    a[i] = 0.3 * (a[i - 1] + a[i] + a[i + 1]);
                }
            })?,
            2 => {
                parallel_for!(w, unordered, relax a, consistency = Consistency::Bsp, every = Every::PerPass(3);
                for i in 0..400 {
                    a.add(i * 7 % len, 0.01 * (a.get(i % len) - 0.3 * a.get(i * 3 % len)));
                })?
            }
            3 => parallel_for!(w, unordered, read a, write b;
            for i in 0..len {
                for j in 0..columns {
                    b[[i, j]] += 0.1 * a[i];
                }
            })?,
            4 => parallel_for!(w, unordered, write b;
            for j in 0..columns {
                for i in 1..len {
                    b[[i, j]] = 0.5 * (b[[i, j]] + b[[i - 1, j]]);
                }
            })?,
            5 => {
                let sum = parallel_for!(w, unordered, write a, sum sum: f64;
                for i in 0..(len - 1) / 2 {
                    a[2 * i + 1] = 0.5 * (a[2 * i] + a[2 * i + 2]);
                    sum += f64::from(a[2 * i + 1]);
                })?;
                lines.push(format!("sum {seed}.{turn} {:x}", sum.to_bits()));
            }
            6 => a.set(w, [len / 2], turn as f32)?,
            7 => b.for_each_mut(w, |[i, j], value| *value = 0.9 * *value + (i + j) as f32 * 1e-3)?,
            8 => {
                let k = turn % 5;
                parallel_for!(w, unordered, write b;
                for i in k + 1..len {
                    for j in 0..columns {
                        b[[i, j]] -= 0.1 * b[[k, j]];
                    }
                })?;
            }
            9 => {
                let sum = parallel_for!(w, unordered, read ratings, write [a, b], sum sum: f64;
                for ((i, j), stars) in ratings {
                    let error = *stars - a[j] * b[[i, 0]];
                    a[j] += 0.01 * error;
                    b[[i, 0]] += 0.01 * error;
                    sum += f64::from(error * error);
                })?;
                lines.push(format!("sum {seed}.{turn} {:x}", sum.to_bits()));
            }
            // Exact, in whatever order.
            10 => {
                parallel_for!(w, unordered, write a; for i in 0..len { a[i] = a[i].trunc(); })?;
                parallel_for!(w, unordered, read table, write a; for k in 0..200 { a[table[k] as usize] += 1.0; })?;
            }
            _ => {
                let sum = parallel_for!(w, ordered, read [a, b], sum sum: f64;
                for i in 0..len {
                    sum += f64::from(a[i] * b[[len - 1 - i, 1]]);
                })?;
                lines.push(format!("sum {seed}.{turn} {:x}", sum.to_bits()));
            }
        }
        // Or the next loop finds them as this one has left them.
        if random.percent(30) {
            lines.push(format!("a {seed}.{turn} after {kind} {:x}", hash(&a.to_vec(w)?)));
        }
        if random.percent(30) {
            lines.push(format!("b {seed}.{turn} after {kind} {:x}", hash(&b.to_vec(w)?)));
        }
    }
    lines.push(format!("end {seed} {:x} {:x}", hash(&a.to_vec(w)?), hash(&b.to_vec(w)?)));
    Ok(())
}
