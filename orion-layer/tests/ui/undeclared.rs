use hectare_orion::{parallel_for, run};

fn main() {
    let _ = run(2, |w| {
        let r = w.entries([4, 3], 12, |k| ([k % 4, k / 4], k as u64))?;
        let mut a = w.zeros::<u64, 1>([9])?;
        let mut u = w.zeros::<u64, 2>([9, 4])?;
        let mut count = 0u64;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = u[[i, 0]]; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = u.row(i)[0]; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { u.row_mut(i)[0] = 1; a[i] = 1; })?;
        parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = u.slice(0..i).len() as u64; })?;
        let _ = (&r, &mut a, &mut u, &mut count);
        Ok(())
    });
}
