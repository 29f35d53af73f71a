//! Served arrays, and bodies whose subscripts cannot be known before they run.
use hectare_orion::relax::Sum;
use hectare_orion::serve::Served;
use hectare_orion::{Context, DistArray, parallel_for};

type Array = Served<u64, 1, Sum>;

fn program(w: &mut Context<'_>, mut a: Array, mut b: DistArray<u64, 1>, keys: &[usize]) {
    // A subscript that is read from the array itself.
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            let next = a.get(i) as usize;
            a.add(next, 1);
        });
    // ... or from one that the loop writes.
    let _ = parallel_for!(w, unordered, serve a, write b;
        for i in 0..10 {
            a.add(b[i] as usize, 1);
            b[i] = 1;
        });
    // ... or that was chosen by what was read.
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            let mut key = i;
            if a.get(i) > 3 {
                key += 1;
            }
            a.add(key, 1);
        });
    // Loops whose turns are not known.
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            for _ in 0..a.get(i) {
                a.add(i, 1);
            }
        });
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            loop {
                a.add(i, 1);
                if a.get(i) > 3 {
                    break;
                }
            }
        });
    // Runs through something without an end.
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            for at in (i..).step_by(3) {
                if a.get(at) == 0 {
                    a.add(at, 1);
                    break;
                }
            }
        });
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            let free = (i..).find(|at| a.get(*at) == 0);
            a.add(i, free.unwrap_or(i) as u64);
        });
    // A closure that may be called at any time.
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            let value = |k: usize| a.get(k);
            let both = value(i) + value(keys[i]);
            a.add(i, both);
        });
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            a.set(i, 1);
        });
    let _ = parallel_for!(w, unordered, serve a;
        for i in 0..10 {
            let _ = a.get(i);
        });
    let _ = parallel_for!(w, unordered, buffer a, prefetch = false;
        for i in 0..10 {
            a.add(i, 1);
        });
    let _ = parallel_for!(w, unordered, serve a, prefetch = maybe;
        for i in 0..10 {
            a.add(i, 1);
        });
}

fn main() {}
