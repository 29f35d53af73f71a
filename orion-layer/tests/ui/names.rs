use hectare_orion::{parallel_for, run};

/// Two variables named `a`: the caller's, and this macro's.
macro_rules! twice {
    ($w:ident, $a:ident, $i:ident) => {
        parallel_for!($w, ordered, write $a; for $i in 0..9 { let a = 3; $a[$i] = a; })?
    };
}

fn main() {
    let _ = run(2, |w| {
        let r = w.entries([4, 3], 12, |k| ([k % 4, k / 4], k as u64))?;
        let mut a = w.zeros::<u64, 1>([9])?;
        let mut u = w.zeros::<u64, 2>([9, 4])?;
        let mut count = 0u64;
        twice!(w, a, i);
        let _ = (&r, &mut a, &mut u, &mut count);
        Ok(())
    });
}
