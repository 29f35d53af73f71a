use hectare_orion::{parallel_for, run};

fn main() {
    let _ = run(2, |w| {
        let r = w.entries([4, 3], 12, |k| ([k % 4, k / 4], k as u64))?;
        let mut a = w.zeros::<u64, 1>([9])?;
        let mut u = w.zeros::<u64, 2>([9, 4])?;
        let mut count = 0u64;
        parallel_for!(w, ordered, sum n: u64; for i in 0..9 { n -= 1; })?;
        parallel_for!(w, ordered, sum n: u64; for i in 0..9 { n += i as u64; if n > 3 { n += 1; } })?;
        parallel_for!(w, ordered, min n: u64; for i in 0..9 { n = i as u64; })?;
        parallel_for!(w, ordered, max n: u64; for i in 0..9 { n = n.min(i as u64); })?;
        parallel_for!(w, ordered, fold n: u64 = 0 with |x, y| x ^ y; for i in 0..9 { n ^= 1; })?;
        parallel_for!(w, ordered, sum n: u64; for i in 0..9 { n += 1; println!("{n}"); })?;
        parallel_for!(w, ordered, sum n: u64; for i in 0..9 { println!("{:?}", n += 1); })?;
        parallel_for!(w, ordered, sum n: u64; for i in 0..9 { n += 1; let n = 3; })?;
        parallel_for!(w, ordered, sum n: [u64; 4]; for i in 0..4 { n[i] = 1; })?;
        parallel_for!(w, ordered, sum n: [u64; 4]; for i in 0..3 { n[i] += n[i + 1]; })?;
        parallel_for!(w, ordered, sum n: [u64; 4]; for i in 0..4 { n.add(i, 1); n.fill(0); })?;
        parallel_for!(w, ordered, max n: [u64; 4]; for i in 0..4 { n[i] += 1; })?;
        parallel_for!(w, ordered, sum a: u64, sum b: u64, min c: u64, max d: u64, sum e: u64; for i in 0..4 { a += 1; })?;
        let _ = (&r, &mut a, &mut u, &mut count);
        Ok(())
    });
}
