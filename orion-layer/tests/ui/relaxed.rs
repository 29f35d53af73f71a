//! Relaxed and buffered arrays, and what may not be done with them.
use hectare_orion::relax::Consistency;
use hectare_orion::{Context, DistArray, parallel_for};

fn program(w: &mut Context<'_>, mut a: DistArray<f64, 1>, mut b: DistArray<f64, 1>) {
    let _ = parallel_for!(w, unordered, relax a, consistency = Consistency::Async;
        for i in 0..10 { a[i] += 1.0; });
    let _ = parallel_for!(w, unordered, relax a, consistency = Consistency::Async;
        for i in 0..10 { a.row_mut(i)[0] = 1.0; });
    let _ = parallel_for!(w, unordered, buffer a;
        for i in 0..10 { a.set(i, 1.0); });
    let _ = parallel_for!(w, unordered, write b, consistency = Consistency::Bsp;
        for i in 0..10 { b[i] = 1.0; });
    let _ = parallel_for!(w, unordered, relax a, read b, consistency = Consistency::Bsp;
        for i in 0..10 { let _ = a.get(i) + b[i]; });
    let _ = parallel_for!(w, unordered, relax a, consistency = Consistency::Bsp, consistency = Consistency::Async;
        for i in 0..10 { a.add(i, 1.0); });
}

fn main() {}
