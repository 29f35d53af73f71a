//! Loops that read neighbours: of what other hosts wrote, what they read is sent and no more, and they have the bits of one host.
use hectare_orion::array::DistArray;
use hectare_orion::relax::Consistency;
use hectare_orion::schedule::Blocks;
use hectare_orion::{Context, Result, parallel_for};
use std::ops::Range;

const SIDE: usize = 36;
/// Elements of a row of the array whose bytes are counted.
pub(super) const WIDE: usize = 20_000;

fn bits<const N: usize>(w: &Context<'_>, array: &DistArray<f32, N>) -> Result<Vec<u32>> {
    Ok(array.to_vec(w)?.iter().map(|value| value.to_bits()).collect())
}

/// Sweeps over rows; what is read is written by loops and, in between, by other means.
pub(super) fn rows(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut a = w.uniform([SIDE, SIDE], 0.0..1.0f32, 5)?.named("a");
    let mut b = w.zeros([SIDE, SIDE])?.named("b");
    for pass in 0..12 {
        parallel_for!(w, unordered, read a, write b;
        for i in 2..SIDE - 1 {
            for j in 1..SIDE - 1 {
                b[[i, j]] = 0.2 * (a[[i - 2, j]] + a[[i - 1, j]] + a[[i + 1, j]] + a[[i, j - 1]] + a[[i, j + 1]]);
            }
        })?;
        std::mem::swap(&mut a, &mut b);
        match pass {
            6 => a.for_each_mut(w, |[i, j], x| *x += (i * j) as f32 * 1e-3)?,
            8 => a.write_range(w, [17..19, 0..2], &[1.0, 2.0, 3.0, 4.0])?,
            // Nothing is written, and all is read.
            9 => {
                let sum = parallel_for!(w, unordered, read a, sum sum: f32;
                for i in 0..SIDE {
                    for j in 0..SIDE {
                        sum += a[[j, i]];
                    }
                })?;
                a.set(w, [0, 0], sum)?;
            }
            _ => {}
        }
    }
    bits(w, &a)
}

/// Of elements of one dimension, of columns, and of planes; two loops that read different neighbours.
fn others(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    let (mut a, mut b) = (w.uniform([200], 0.0..1.0f32, 6)?.named("a"), w.zeros([200])?.named("b"));
    for _ in 0..6 {
        parallel_for!(w, unordered, read a, write b;
        for i in 3..199 {
            b[i] = 0.3 * (a[i - 3] + a[i] + a[i + 1]);
        })?;
        parallel_for!(w, unordered, read b, write a;
        for i in 1..190 {
            a[i] = 0.5 * (b[i - 1] + b[i + 10]);
        })?;
    }
    all.extend(bits(w, &a)?);
    let (mut a, mut b) = (w.uniform([9, 60], 0.0..1.0f32, 7)?.named("a"), w.zeros([9, 60])?.named("b"));
    for _ in 0..8 {
        parallel_for!(w, unordered, read a, write b;
        for j in 1..59 {
            for i in 0..9 {
                b[[i, j]] = 0.4 * (a[[i, j - 1]] + a[[i, j + 1]]) + 0.1 * a[[8 - i, j]];
            }
        })?;
        std::mem::swap(&mut a, &mut b);
    }
    all.extend(bits(w, &a)?);
    let (mut a, mut b) = (w.uniform([40, 3, 4], 0.0..1.0f32, 8)?.named("a"), w.zeros([40, 3, 4])?.named("b"));
    for _ in 0..6 {
        parallel_for!(w, unordered, read a, write b;
        for i in 1..39 {
            for j in 0..3 {
                let (above, below) = (a.row([i - 1, j]), a.row([i + 1, 2 - j]));
                b.row_mut([i, j]).iter_mut().zip(above.iter().zip(below)).for_each(|(z, (x, y))| *z = 0.5 * (x + y));
            }
        })?;
        std::mem::swap(&mut a, &mut b);
    }
    all.extend(bits(w, &a)?);
    Ok(all)
}

/// Arrays that are cut anew between the sweeps, whose parts change hands, or that only one worker reads.
fn moved(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    let (mut a, mut b) = (w.uniform([30, 30], 0.0..1.0f32, 9)?.named("a"), w.zeros([30, 30])?.named("b"));
    for _ in 0..4 {
        for _ in 0..3 {
            parallel_for!(w, unordered, read a, write b;
            for i in 1..29 { for j in 0..30 { b[[i, j]] = 0.5 * (a[[i - 1, j]] + a[[i + 1, j]]); } })?;
            std::mem::swap(&mut a, &mut b);
        }
        for _ in 0..3 {
            parallel_for!(w, unordered, read a, write b;
            for j in 1..29 { for i in 0..30 { b[[i, j]] = 0.5 * (a[[i, j - 1]] + a[[i, j + 1]]); } })?;
            std::mem::swap(&mut a, &mut b);
        }
        // One worker alone.
        if w.rank() == 1 {
            let one = a.get(w, [29, 7])?;
            assert_eq!(one, a.to_vec(w)?[29 * 30 + 7]);
        }
    }
    all.extend(bits(w, &a)?);
    let entries = w.entries([24, 30], 24 * 30, |k| ([k / 30, k % 30], 1.0f32))?.named("entries");
    let mut users = w.fill([24], 0.1f32)?.named("users");
    let mut films = w.fill([30], 0.1f32)?.named("films");
    let mut means = w.zeros::<f32, 1>([30])?.named("means");
    for pass in 0..9 {
        // Films go from worker to worker.
        parallel_for!(w, unordered, read entries, write [users, films];
        for ((user, film), one) in entries {
            users[user] += 0.01 * films[film] * one;
            films[film] += 0.01 * users[user];
        })?;
        // And begin with others than they end with.
        if pass > 4 {
            parallel_for!(w, unordered, write films; for i in 0..30 { films[i] *= 0.99; })?;
        }
        parallel_for!(w, unordered, read films, write means;
        for i in 1..29 { means[i] += 0.3 * (films[i - 1] + films[i] + films[i + 1]); })?;
    }
    all.extend(bits(w, &means)?);
    all.extend(bits(w, &films)?);
    Ok(all)
}

/// Loops that write some elements of an array and read others of it, which other workers have: on one host it lies in place.
fn in_place(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    let mut a = w.uniform([SIDE, 8], 0.0..1.0f32, 10)?.named("a");
    for pass in 0..6 {
        // Odd rows of even ones, and the other way round.
        parallel_for!(w, unordered, write a, schedule = Blocks { dim: 0 };
        for i in 0..SIDE / 2 - 1 {
            for j in 1..7 {
                a[[2 * i + 1, j]] = 0.3 * (a[[2 * i, j - 1]] + a[[2 * i, j]] + a[[2 * i + 2, j + 1]]);
            }
        })?;
        parallel_for!(w, unordered, write a, schedule = Blocks { dim: 0 };
        for i in 1..SIDE / 2 {
            for j in 0..8 {
                a[[2 * i, j]] = 0.4 * (a[[2 * i - 1, j]] + a[[2 * i + 1, 7 - j]]);
            }
        })?;
        // One column of the one beside it, up and down, with a sum.
        let sum = parallel_for!(w, unordered, write a, sum sum: f32, schedule = Blocks { dim: 0 };
        for i in 2..SIDE - 2 {
            a[[i, 0]] += 0.1 * (a[[i - 2, 1]] - a[[i + 2, 2]]);
            sum += a[[i, 0]];
        })?;
        if pass % 2 == 1 {
            a.set(w, [pass, 1], sum)?;
        }
        all.push(sum.to_bits());
    }
    let explained = w.explain().to_string();
    w.root(|| {
        println!("with ghosts: {}", explained.matches("who reads of the others what they were").count())
    });
    all.extend(bits(w, &a)?);
    // Rows below a pivot, and so another range each time.
    let mut m = w
        .from_fn([20, 20], |[i, j]| ((i * 7 + j * 3) % 11) as f32 + if i == j { 20.0 } else { 0.0 })?
        .named("m");
    for k in 0..12 {
        parallel_for!(w, unordered, write m, schedule = Blocks { dim: 0 };
        for i in k + 1..20 {
            for j in k + 1..20 {
                m[[i, j]] -= m[[i, k]] / m[[k, k]] * m[[k, j]];
            }
        })?;
    }
    all.extend(bits(w, &m)?);
    Ok(all)
}

/// Random loops over three arrays, each some times, with what happens to arrays between them.
fn random(w: &mut Context<'_>, seed: u32) -> Result<u32> {
    let mut state = seed;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) % below) as usize
    };
    let start = |[i, j]: [usize; 2]| (i * 7919 + j * 104_729) as u32;
    let (mut a, mut b, mut c) =
        (w.from_fn([31, 7], start)?, w.from_fn([31, 7], start)?, w.from_fn([31, 7], start)?);
    for _ in 0..30 {
        let (p, q, r, turns) = (next(5), next(5), next(3), 1 + next(4));
        let what = next(10);
        for _ in 0..turns {
            match what {
                0 | 1 => parallel_for!(w, unordered, read [a, c], write b;
                for i in 0..26 {
                    for j in 0..5 {
                        b[[i + 2, j + 1]] = a[[i + p, j + r]].wrapping_mul(3).wrapping_add(c[[i + q, j]]);
                    }
                })?,
                2 => parallel_for!(w, unordered, read a, write b;
                for i in 0..26 {
                    let (x, y, out) = (a.row(i + p), a.row(30 - i), b.row_mut(i + q));
                    for j in 0..7 {
                        out[j] = x[j].wrapping_mul(5).wrapping_add(y[6 - j]);
                    }
                })?,
                3 => parallel_for!(w, unordered, read [a, c], write b;
                for j in 0..5 {
                    for i in 0..31 {
                        b[[i, j + 1]] = a[[i, j + r]].wrapping_mul(7) ^ c[[30 - i, j]];
                    }
                })?,
                4 | 5 => parallel_for!(w, unordered, read c, write a, schedule = Blocks { dim: 0 };
                for i in 0..12 {
                    for j in 0..7 {
                        a[[2 * i + 1, j]] = a[[2 * i + 2 * r, 6 - j]].wrapping_mul(9).wrapping_add(c[[i + p, j]]);
                    }
                })?,
                6 => {
                    std::mem::swap(&mut a, &mut b);
                    std::mem::swap(&mut b, &mut c);
                }
                // Written in copies, while others read what was before; of integers the order does not matter.
                7 => parallel_for!(w, unordered, read b, relax c, consistency = Consistency::Bsp;
                for i in 0..31 {
                    for j in 0..7 {
                        c.add([(i * 5 + p) % 31, j], b[[30 - i, 6 - j]] ^ i as u32);
                    }
                })?,
                // All on one worker.
                8 => parallel_for!(w, ordered, read c, write b;
                for i in 1..31 {
                    for j in 1..7 {
                        b[[i, j]] = b[[i - 1, 6 - j]].wrapping_mul(3).wrapping_add(c[[30 - i, j - 1]]);
                    }
                })?,
                _ => a.for_each_mut(w, |[i, j], x| *x = x.wrapping_add((i * q + j) as u32))?,
            }
        }
        if next(4) == 0 && w.rank() == 1 {
            a.get(w, [30, 6])?;
        }
    }
    let mut hash = 0u32;
    for array in [&a, &b, &c] {
        array.to_vec(w)?.iter().for_each(|x| hash = hash.rotate_left(5).wrapping_mul(31) ^ x);
    }
    Ok(hash)
}

/// A line for each kind, the same for as many workers, wherever they are.
pub(super) fn all(w: &mut Context<'_>, seeds: Range<u64>) -> Result<Vec<String>> {
    let kinds =
        [("rows", rows(w)?), ("others", others(w)?), ("moved", moved(w)?), ("in-place", in_place(w)?)];
    let mut lines: Vec<_> = kinds.iter().map(|(kind, bits)| format!("{kind} {bits:x?}")).collect();
    for seed in seeds {
        lines.push(format!("random-{seed} {:x}.", random(w, seed as u32)?));
    }
    Ok(lines)
}

/// Sweeps over wide rows, two of which each worker reads of each neighbour. Prints what agents count.
pub(super) fn count(w: &mut Context<'_>) -> Result<()> {
    let mut a = w.from_fn([24, WIDE], |[i, j]| ((i * 31 + j * 17) % 101) as f32)?;
    let mut b = w.zeros([24, WIDE])?;
    for sweep in 0..36 {
        parallel_for!(w, unordered, read a, write b;
        for i in 2..22 {
            let (x, y, out) = (a.row(i - 2), a.row(i + 2), b.row_mut(i));
            for j in 0..WIDE {
                out[j] = 0.5 * (x[j] + y[j]) + sweep as f32;
            }
        })?;
        std::mem::swap(&mut a, &mut b);
    }
    for between in w.explain().iter().filter_map(|one| one.between_hosts.clone()) {
        for link in between.links {
            println!(
                "bytes {} {} {} {}",
                link.from,
                link.to,
                link.predicted,
                link.measured.map_or(-1.0, f64::round)
            );
        }
    }
    Ok(())
}

/// Loops that read neighbours, and the same on one worker, without Hectare.
pub(super) struct Known {
    arrays: [DistArray<u32, 2>; 2],
    plain: [Vec<u32>; 2],
}

/// Rows and columns of [`Known`].
const KNOWN: [usize; 2] = [18, 5];

impl Known {
    pub(super) fn new(w: &mut Context<'_>) -> Result<Known> {
        let start = |[i, j]: [usize; 2]| (i * 5 + j * 3) as u32;
        let plain =
            (0..KNOWN[0] * KNOWN[1]).map(|at| start([at / KNOWN[1], at % KNOWN[1]])).collect::<Vec<_>>();
        let arrays = [w.from_fn(KNOWN, start)?.named("a"), w.from_fn(KNOWN, start)?.named("b")];
        Ok(Known { arrays, plain: [plain.clone(), plain] })
    }

    /// A sweep from one array to the other, and one over every second row of that.
    pub(super) fn go_on(&mut self, w: &mut Context<'_>) -> Result<()> {
        let [rows, columns] = KNOWN;
        let [a, b] = &mut self.arrays;
        parallel_for!(w, unordered, read a, write b;
        for i in 1..rows - 1 {
            for j in 0..columns {
                b[[i, j]] = a[[i - 1, j]].wrapping_mul(3).wrapping_add(a[[i + 1, j]]);
            }
        })?;
        parallel_for!(w, unordered, write b, schedule = Blocks { dim: 0 };
        for i in 0..rows / 2 - 1 {
            for j in 0..columns {
                b[[2 * i + 1, j]] = b[[2 * i, j]].wrapping_mul(5).wrapping_add(b[[2 * i + 2, j]]);
            }
        })?;
        let [plain, other] = &mut self.plain;
        let mut relax = |from: Option<&[u32]>, row: usize, by: u32| {
            for j in 0..columns {
                let at = |row: usize| row * columns + j;
                let (above, below) = (at(row - 1), at(row + 1));
                let pair = from.map_or((other[above], other[below]), |from| (from[above], from[below]));
                other[at(row)] = pair.0.wrapping_mul(by).wrapping_add(pair.1);
            }
        };
        (1..rows - 1).for_each(|row| relax(Some(plain), row, 3));
        (0..rows / 2 - 1).for_each(|i| relax(None, 2 * i + 1, 5));
        self.arrays.swap(0, 1);
        self.plain.swap(0, 1);
        assert_eq!(self.arrays[0].to_vec(w)?, self.plain[0], "worker {}", w.rank());
        Ok(())
    }
}
