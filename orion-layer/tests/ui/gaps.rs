//! Mistakes that are easily made.
use hectare_orion::{Context, Error, parallel_for};

struct Model {
    u: Vec<f32>,
}

fn gaps(w: &mut Context<'_>, m: &mut Model) -> Result<(), Error> {
    let mut a = w.zeros::<f32, 1>([9])?;
    let mut b = w.zeros::<f32, 2>([9, 9])?;
    let c = w.zeros::<f32, 1>([9])?;
    let mut total = 0.0;
    let mut last = [0; 4];
    parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = c[i]; })?;
    parallel_for!(w, ordered, write a; for i in 0..9 { total += a[i]; a[i] = 1.0; })?;
    parallel_for!(w, ordered, write a; for i in 0..9 { last[0] = i; a[i] = 1.0; })?;
    parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = 1.0; c[i] = 1.0; })?;
    parallel_for!(w, ordered, write b; for i in 0..9 { b[i, 2] = 1.0; })?;
    parallel_for!(w, ordered, write m.u; for i in 0..9 { m.u[i] = 1.0; })?;
    parallel_for!(w, orderd, write a; for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(w, ordered, wirte a; for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(w, ordered, write [m.u, m.v]; for i in 0..9 { m.u[i] = 1.0; })?;
    parallel_for!(w, ordered, colour a; for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(ordered, write a; for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(w, ordered write a; for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(w, ordered, write a for i in 0..9 { a[i] = 1.0; })?;
    parallel_for!(w, ordered, read c, sum all; for i in 0..9 { all += c[i]; })?;
    parallel_for!(w, ordered, write a; for i in 0..9 { a[i] = w.rank() as f32; })?;
    Ok(())
}

fn main() {}
