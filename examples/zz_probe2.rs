use hectare::prelude::*;
fn main() {
    let job = Job::builder().reserve(1 << 30).pin_cores(true).embedded().unwrap();
    job.run(1, |w| {
        let mut a = w.create::<u64>("a", 512).unwrap();
        for v in 0..20_000_000u64 {
            a.write(w).unwrap().set((v as usize * 8) % 512, v);
            w.sync().unwrap();
        }
    })
    .unwrap();
}
