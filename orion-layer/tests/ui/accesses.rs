use hectare_orion::{parallel_for, run};

macro_rules! own {
    ($place:expr) => { $place = 1 };
}

fn main() {
    let _ = run(2, |w| {
        let r = w.entries([4, 3], 12, |k| ([k % 4, k / 4], k as u64))?;
        let mut a = w.zeros::<u64, 1>([9])?;
        let mut u = w.zeros::<u64, 2>([9, 4])?;
        let mut count = 0u64;
        parallel_for!(w, ordered, write a; for i in 0..9 { let b = &mut a; b[i] = 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a.fill(i as u64); })?;
        parallel_for!(w, ordered, write [a, u]; for i in 0..9 { a[i] = u[(i, 0)]; u[[i, 0]] = 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[0..i] = [1]; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a.slice_mut(..i)[0] = 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { let a = i; a += 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = 1; let f = |a: u64| a + 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = 1; const a: u64 = 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { own!(a[i]); })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = 1; println!("{a:?}"); })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = 1; macro_rules! hidden { () => { a[0] = 1 } } })?;
        let _ = (&r, &mut a, &mut u, &mut count);
        Ok(())
    });
}
