//! The macro for loops.

/// Runs a loop on all workers of the program, in an order that preserves its dependences.
/// It takes a serial loop, after a head that names what the loop touches:
///
/// ```
/// use hectare_orion::{axpy, dot, parallel_for, run};
///
/// let losses = run(2, |w| {
///     let r = w.entries([4, 3], 12, |k| ([k % 4, k / 4], 1.0f32 + k as f32 / 4.0))?;
///     let mut u = w.from_fn([4, 8], |[i, k]| ((i + k) % 3) as f32 / 4.0)?;
///     let mut v = w.from_fn([3, 8], |[j, k]| ((j * k) % 5) as f32 / 4.0)?;
///     let mut losses = Vec::new();
///     for _pass in 0..30 {
///         let squares = parallel_for!(w, unordered, write [u, v], sum squares: f64;
///             for ((i, j), x) in r {
///                 let (a, b) = (u.row_mut(i), v.row_mut(j));
///                 let e = x - dot(a, b);
///                 axpy(0.05 * e, b, a);
///                 axpy(0.05 * e, a, b);
///                 squares += (e * e) as f64;
///             })?;
///         losses.push(squares);
///     }
///     Ok(losses)
/// })?;
/// assert!(losses[0][29] < 0.2 * losses[0][0] && losses[0] == losses[1]);
/// # Ok::<(), hectare_orion::Error>(())
/// ```
///
/// The macro describes the loop ([`LoopNest`](crate::loop_nest::LoopNest)) and decides nothing; dependences are found,
/// and a schedule chosen, when the loop first runs ([`Context::explain`](crate::Context::explain) says which and why).
/// The call is collective, and its value is a [`Result`](crate::Result) of `()`, or of the accumulators' values, a tuple
/// if there are several.
///
/// # The head
/// First the [`Context`](crate::Context), then in any order:
/// - `ordered` or `unordered`: the result is that of the loop's order, or that of some serial order.
/// - `read a` or `read [a, b]`, `write a` or `write [a, b]`: the [`DistArray`](crate::DistArray)s that the body
///   touches; one that is read and written goes under `write`. `name = place` for an array that is not a variable:
///   `write [u = model.users]`. The array whose entries the loop runs over need not be named.
/// - accumulators: `sum n: u64` (the body says `n += x`), `min low: f32` (`low = low.min(x)`), `max high: f32`,
///   `fold h: u64 = identity with |a, b| ...` (`h = fold(h, x)`; the function must be associative and, if the loop is
///   `unordered`, commute). `sum h: [u64; n]` is as many sums, `n` any expression (`h[place] += x`, `h.add(place, x)`, `h.add_row(first, &row)`, `h.view(first, len)` for
///   functions); its value is [`Sums`](crate::accumulate::Sums), which are read as a slice.
/// - `relax a` or `relax [a, b]`: arrays whose dependences are relaxed, seen as
///   [`RelaxedView`](crate::relax::RelaxedView)s: `a.get(i)`, `a.set(i, x)`, `a.add(i, x)`, `a.read_row(i, &mut row)`,
///   `a.write_row(i, &row)`, `a.add_row(i, &row)`, and `a.row(i, &mut room)` and `a.update_row(i, &mut room, |row| ..)`,
///   which copy only where others may write.
/// - `buffer a` or `buffer [a, b]`: [`Buffered`](crate::relax::Buffered) arrays to which the loop contributes, seen as
///   [`BufferView`](crate::relax::BufferView)s: `a.get(i)`, `a.row(i)`, `a.add(i, x)`, `a.add_row(i, &row)`.
/// - `serve a` or `serve [a, b]`: [`Served`](crate::serve::Served) arrays, seen as
///   [`ServedView`](crate::serve::ServedView)s with the same methods. A slice of the body that computes their subscripts
///   runs first, and the keys that it finds are prefetched in bulk; `prefetch = false`: keys are looked up one by one.
/// - `consistency = place`: the [`Consistency`](crate::relax::Consistency) of these, `Bsp` if left out; `every = place`:
///   how often workers merge ([`Every`](crate::relax::Every)); `tail = place`: what of arrays under `relax` and `buffer` they merge
///   less often ([`Tail`](crate::relax::Tail)). The same on all workers.
/// - `schedule = place`: a [`Schedule`](crate::schedule::Schedule), instead of the cheapest valid one. It is evaluated
///   once, and again when its `Debug` output changes.
///
/// # The loop
/// `for ((i, j), x) in r` over the entries of a [`SparseArray`](crate::SparseArray) (`x` is a reference to the
/// value), or `for i in a..b`, with further loops over ranges directly inside as further dimensions, if their bounds do
/// not depend on the outer variables. A dimension's variable is a `usize`. Other loops in the body belong to an
/// iteration.
///
/// # The body
/// Inside, an array's name stands for the part that this worker holds ([`View`](crate::view::View) or
/// [`ViewMut`](crate::view::ViewMut)): `u[i]`, `u[[i, j]]`, `u.row(i)`, `u.row_mut(i)`, `u.rows_mut(i, j)`,
/// `u.slice(a..b)`, `u.slice_mut(a..b)`; assignments of every kind, borrows, methods of rows. A subscript is analyzed if
/// it is affine: sums, differences and products of the loop's variables with numbers and with captured variables, through
/// `let`s and casts to 64-bit integers. Any other subscript (`u[x.user]`, `u[i / 2]`) means "any element": always safe,
/// but an obstacle to parallelism. A conditional write counts as a write.
///
/// ```
/// # use hectare_orion::{parallel_for, run};
/// # run(2, |w| {
/// let (n, offset) = (100, 3);
/// let a = w.from_fn([n + offset], |[i]| i as f64)?;
/// let mut b = w.zeros::<f64, 1>([n])?;
/// parallel_for!(w, unordered, read a, write b;
///     for i in 0..n {
///         let to = i + offset;
///         if a[i] > 10.0 {
///             b[i] = 0.5 * (a[i] + a[to]);
///         }
///     })?;
/// assert_eq!(b.to_vec(w)?[20], 21.5);
/// # Ok(())
/// # })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
///
/// Captured numbers, booleans and characters that the body names must be the same on all workers, or the loop ends with
/// [`Error::Diverged`](crate::Error::Diverged); wrap values that are meant to differ in a
/// [`PerWorker`](crate::PerWorker).
///
/// Captured values are analyzed if they are integers, and through 64-bit arithmetic: what could wrap around counts as
/// "any". So does a name whose meaning a macro, a glob import or a `#[cfg]` in the body may change.
///
/// # Compile errors
/// Anything that the macro cannot describe is an error at the token, with advice: an array used other than as above, inside a
/// macro that is not one of the standard library's usual, or shadowed; an array written that is named under
/// `read`; a subscript of a served array that depends on what the loop changes; `break`, `return` and `?` that would
/// leave the loop; an accumulator read in the body. The body is an `Fn` closure, so it cannot change captured variables:
/// iterations change arrays and accumulators.
///
/// # Errors
/// Those of [`Context::run_loop`](crate::Context::run_loop).
#[macro_export]
macro_rules! parallel_for {
    ($($tokens:tt)*) => { $crate::__parallel_for!([$crate] $($tokens)*) };
}
