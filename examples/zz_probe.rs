use hectare::prelude::*;
use std::time::Instant;
fn main() {
    let job = Job::builder().reserve(1 << 30).pin_cores(true).embedded().unwrap();
    job.run(1, |w| {
        for kb in [0usize, 4, 64, 256, 1024] {
            let n = (kb << 10).max(64) / 8;
            let mut a = w.create::<u64>(format!("a{kb}"), n).unwrap();
            let mut best = f64::MAX;
            let mut v = 0;
            let mut all = vec![];
            for _ in 0..3000 {
                v += 1;
                if kb > 0 {
                    let mut g = a.write(w).unwrap();
                    for (i, x) in g.as_mut_slice().iter_mut().enumerate() {
                        *x = v ^ i as u64;
                    }
                }
                let t = Instant::now();
                w.sync().unwrap();
                let e = t.elapsed().as_nanos() as f64;
                best = best.min(e);
                all.push(e);
            }
            all.sort_by(f64::total_cmp);
            println!("{kb} KiB: best {best} median {}", all[1500]);
        }
    })
    .unwrap();
}
