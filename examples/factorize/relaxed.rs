//! The loop with the rows of columns relaxed: rows `u[i]` stay exact, for the entries of one `i` run on one worker; rows
//! `v[j]`, which all workers need, are read and changed as the consistency says, or take gradients through a buffer.
use super::training::Options;
use super::{dot, step};
use hectare::orion::relax::{AdaRevision, Apply, Buffered, Relaxation};
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};
use std::cell::RefCell;

/// One pass with fixed or adaptive steps; the sum of squared errors.
pub(super) fn pass(
    w: &mut Context<'_>,
    (o, first, relax): (&Options, bool, Relaxation),
    r: &SparseArray<f32, 2>,
    u: &mut DistArray<f32, 2>,
    v: &mut DistArray<f32, 2>,
) -> Result<f64> {
    let (row, Relaxation { consistency, every, .. }) = (RefCell::new(vec![0.0; v.shape()[1]]), relax);
    parallel_for!(w, unordered, read r, write u, relax v, sum squares: f64,
        consistency = consistency, every = every;
    for ((i, j), x) in r {
        let b = &mut row.borrow_mut()[..];
        v.read_row(j, b);
        let e = step(o, u.row_mut(i), b, *x, first);
        v.write_row(j, b);
        squares += (e * e) as f64;
    })
}

/// One pass with AdaRevision's steps; the sum of squared errors.
pub(super) fn revised_pass(
    w: &mut Context<'_>,
    (o, relax): (&Options, Relaxation),
    r: &SparseArray<f32, 2>,
    u: &mut DistArray<f32, 2>,
    v: &mut Buffered<f32, 2, AdaRevision>,
) -> Result<f64> {
    let (gradient, Relaxation { consistency, every, .. }) = (RefCell::new(vec![0.0; o.rank]), relax);
    parallel_for!(w, unordered, read r, write u, buffer v, sum squares: f64,
        consistency = consistency, every = every;
    for ((i, j), x) in r {
        let gradient = &mut gradient.borrow_mut()[..];
        let e = revise(o, u.row_mut(i), v.row(j), *x, gradient);
        v.add_row(j, gradient);
        squares += (e * e) as f64;
    })
}

/// A step of AdaGrad, number by number, for a row, behind whose numbers are the sums of squares of their gradients; and
/// the gradient for a column. The error before the step.
#[inline(always)]
fn revise(o: &Options, a: &mut [f32], b: &[f32], x: f32, gradient: &mut [f32]) -> f32 {
    let (a, squares) = a.split_at_mut(o.rank);
    let (e, rate) = (x - dot(a, b), o.rate());
    for (((a, b), squares), gradient) in a.iter_mut().zip(b).zip(squares).zip(gradient) {
        let own = o.reg * *a - e * b;
        *gradient = o.reg * b - e * *a;
        *squares += own * own;
        *a -= rate * own / (1.0 + *squares).sqrt();
    }
    e
}

/// The same without Hectare: AdaRevision without delay.
#[derive(Debug)]
pub(super) struct Revised {
    rule: AdaRevision,
    states: Vec<[f32; 3]>,
    gradient: Vec<f32>,
}

impl Revised {
    /// For columns of `numbers` numbers together.
    pub(super) fn new(o: &Options, numbers: usize) -> Revised {
        let rule = AdaRevision::new(o.rate().into());
        Revised { rule, states: vec![Apply::<f32>::initial(&rule); numbers], gradient: vec![0.0; o.rank] }
    }

    /// A step of a row and of column `j`; the error before it.
    pub(super) fn step(&mut self, o: &Options, a: &mut [f32], b: &mut [f32], x: f32, j: usize) -> f32 {
        let e = revise(o, a, b, x, &mut self.gradient);
        let states = &mut self.states[j * o.rank..][..o.rank];
        for ((b, state), gradient) in b.iter_mut().zip(states).zip(&self.gradient) {
            let seen = Apply::<f32>::snapshot(&self.rule, state);
            self.rule.apply(b, state, *gradient, seen);
        }
        e
    }
}
