//! The arithmetic of one update, in a fixed order of lanes, compiled for each instruction set that matters.
//!
//! A row is whole lines of 64 bytes (see `model.rs`), so there is no remainder to treat, and sums run over lanes
//! in an order that is written down here: a compiler may not reorder floating-point sums by itself, which is why
//! a plain loop over two slices does not vectorize.
//!
//! Which instruction set runs is decided once per run, in [`Kernels::new`]. Fused multiply-add rounds
//! differently from two operations; since all workers and modes of a run use one `Kernels`, all compute the same
//! bits.

mod arithmetic;
mod element;
#[cfg(target_arch = "x86_64")]
mod product;

pub use arithmetic::Instructions;
pub use element::Element;

use arithmetic::{Arithmetic, Separate};
#[cfg(target_arch = "x86_64")]
use arithmetic::{Avx2, Avx512};
use clap::ValueEnum;
use std::marker::PhantomData;

/// How long a step along the gradient is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// The same for all rows
    Fixed,
    /// Shorter for rows that have moved far
    Adagrad,
}

impl Step {
    /// The name to print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Adagrad => "adagrad",
        }
    }
}

/// The step sizes that hold for one epoch.
#[derive(Clone, Copy, Debug)]
pub struct Rate<E> {
    /// The learning rate.
    pub learning_rate: E,
    /// The weight of the squared norms of the two rows (L2).
    pub regularization: E,
}

/// One update and one prediction, with everything about them known to the compiler.
pub trait Kernel<E>: Copy {
    /// Elements from one row to the next, for the address of a row without a multiplication.
    fn stride(self) -> usize;

    /// The prediction for a pair of rows.
    fn dot(self, user: &[E], item: &[E]) -> E;

    /// Moves a pair of rows along the gradient of the squared error of one rating.
    ///
    /// # Panics
    /// When a row is shorter than the layout says.
    fn update(self, user: &mut [E], item: &mut [E], rating: E);
}

/// Work that is compiled once per kernel: implement it for a struct of what the loop needs.
pub trait Pass<E> {
    /// Its result.
    type Out;
    /// Does the work. Mark the implementation `#[inline(always)]`: that is what makes it part of a function that
    /// is compiled for the instruction set.
    fn run<K: Kernel<E>>(self, kernel: K) -> Self::Out;
}

/// The kernel that a run uses: element type, row length, step rule and instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels<E> {
    step: Step,
    lines: usize,
    instructions: Instructions,
    element: PhantomData<E>,
}

impl<E: Element> Kernels<E> {
    /// The best kernel of this machine for rows with `lines` lines of factors.
    pub fn new(lines: usize, step: Step) -> Self {
        Self { step, lines, instructions: Instructions::detect(), element: PhantomData }
    }

    /// Lines of factors in a row.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The step rule.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The instruction set.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// Runs `pass` with this kernel. Costs a few nanoseconds: call it per batch, not per rating.
    pub fn run<P: Pass<E>>(&self, rate: Rate<E>, pass: P) -> P::Out {
        E::run(self, rate, pass)
    }
}

/// Runs `pass` in a function that is compiled for the instruction set.
pub(super) fn run_on<E, P, const LANES: usize, const LINES: usize, const ADAGRAD: bool>(
    kernels: &Kernels<E>,
    rate: Rate<E>,
    pass: P,
) -> P::Out
where
    E: Element,
    P: Pass<E>,
{
    let lines = kernels.lines;
    match kernels.instructions {
        // SAFETY: `Instructions::detect` found these features, and nothing else makes this value.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe {
            on_avx512(Sgd::<E, Avx512, LANES, LINES, ADAGRAD>::new(lines, rate), pass)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe {
            on_avx2(Sgd::<E, Avx2, LANES, LINES, ADAGRAD>::new(lines, rate), pass)
        },
        _ => pass.run(Sgd::<E, Separate, LANES, LINES, ADAGRAD>::new(lines, rate)),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,fma")]
fn on_avx512<E, P: Pass<E>, K: Kernel<E>>(kernel: K, pass: P) -> P::Out {
    pass.run(kernel)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn on_avx2<E, P: Pass<E>, K: Kernel<E>>(kernel: K, pass: P) -> P::Out {
    pass.run(kernel)
}

/// The most lines of both rows that stay in registers from reading to writing.
const IN_REGISTERS: usize = 4;

/// The update itself; `LINES` is 0 when only `lines` knows the number.
#[derive(Clone, Copy)]
struct Sgd<E, A, const LANES: usize, const LINES: usize, const ADAGRAD: bool> {
    rate: Rate<E>,
    /// The factor of regularization in one fixed step.
    shrink: E,
    lines: usize,
    arithmetic: PhantomData<A>,
}

impl<E: Element, A: Arithmetic, const LANES: usize, const LINES: usize, const ADAGRAD: bool>
    Sgd<E, A, LANES, LINES, ADAGRAD>
{
    #[inline(always)]
    fn new(lines: usize, rate: Rate<E>) -> Self {
        let shrink = E::from_f64(1.0) - rate.learning_rate * rate.regularization;
        Self { rate, shrink, lines, arithmetic: PhantomData }
    }

    #[inline(always)]
    fn lines(self) -> usize {
        if LINES == 0 { self.lines } else { LINES }
    }

    /// Plain SGD: the same step for all.
    #[inline(always)]
    fn fixed(self, p: &mut [[E; LANES]], q: &mut [[E; LANES]], rating: E) {
        if let (1..=IN_REGISTERS, Ok(p), Ok(q)) =
            (LINES, <&mut [_; LINES]>::try_from(&mut *p), <&mut [_; LINES]>::try_from(&mut *q))
        {
            // Read whole rows before anything is written: the compiler does not know that they are two.
            let (old_p, old_q): ([_; LINES], [_; LINES]) = (*p, *q);
            let step = self.rate.learning_rate * (rating - A::product(&old_p, &old_q));
            // Loops, not closures: those would be functions of their own, without the instruction set.
            for line in 0..LINES {
                p[line] = self.moved(&old_p[line], step, &old_q[line]);
            }
            for line in 0..LINES {
                q[line] = self.moved(&old_q[line], step, &old_p[line]);
            }
            return;
        }
        let step = self.rate.learning_rate * (rating - A::product(p, q));
        for (p, q) in p.iter_mut().zip(q) {
            (*p, *q) = (self.moved(p, step, q), self.moved(q, step, p));
        }
    }

    /// A line after a step of plain SGD.
    #[inline(always)]
    fn moved(self, line: &[E; LANES], step: E, other: &[E; LANES]) -> [E; LANES] {
        let mut moved = [E::default(); LANES];
        for k in 0..LANES {
            moved[k] = A::multiply_add(step, other[k], self.shrink * line[k]);
        }
        moved
    }

    /// AdaGrad (Duchi, Hazan and Singer, 2011) with one accumulator a row, the mean square of its gradients so
    /// far (Chin et al., 2015). The squared norm of the gradient `e q - reg p` follows from three products that
    /// are all ready before the error is, so it adds nothing to the chain from one update to the next.
    #[inline(always)]
    fn adagrad(self, p: &mut [[E; LANES]], q: &mut [[E; LANES]], sums: [&mut E; 2], rating: E) {
        let [sum_p, sum_q] = sums;
        let (prediction, norm_p, norm_q) = (A::product(p, q), A::product(p, p), A::product(q, q));
        let (error, reg) = (rating - prediction, self.rate.regularization);
        let (step_p, step_q) =
            (self.rate.learning_rate / sum_p.sqrt(), self.rate.learning_rate / sum_q.sqrt());
        let (along_p, keep_p) = (step_p * error, E::from_f64(1.0) - step_p * reg);
        let (along_q, keep_q) = (step_q * error, E::from_f64(1.0) - step_q * reg);
        for (p, q) in p.iter_mut().zip(q.iter_mut()) {
            let (old_p, old_q) = (*p, *q);
            for k in 0..LANES {
                p[k] = A::multiply_add(along_p, old_q[k], keep_p * old_p[k]);
            }
            for k in 0..LANES {
                q[k] = A::multiply_add(along_q, old_p[k], keep_q * old_q[k]);
            }
        }
        let (square, cross) = (error * error, (error + error) * reg * prediction);
        let weight = E::from_f64(1.0 / (self.lines() * LANES) as f64);
        *sum_p += weight * positive(square * norm_q - cross + reg * reg * norm_p);
        *sum_q += weight * positive(square * norm_p - cross + reg * reg * norm_q);
    }
}

impl<E: Element, A: Arithmetic, const LANES: usize, const LINES: usize, const ADAGRAD: bool> Kernel<E>
    for Sgd<E, A, LANES, LINES, ADAGRAD>
{
    #[inline(always)]
    fn stride(self) -> usize {
        (self.lines() + usize::from(ADAGRAD)) * LANES
    }

    #[inline(always)]
    fn dot(self, user: &[E], item: &[E]) -> E {
        let (user, item) = (user.as_chunks::<LANES>().0, item.as_chunks::<LANES>().0);
        A::product(&user[..self.lines()], &item[..self.lines()])
    }

    #[inline(always)]
    fn update(self, user: &mut [E], item: &mut [E], rating: E) {
        let (user, item) = (user.as_chunks_mut().0, item.as_chunks_mut().0);
        let lines = self.lines();
        if ADAGRAD {
            // The accumulator is the first element after the factors.
            let ((p, after_p), (q, after_q)) = (user.split_at_mut(lines), item.split_at_mut(lines));
            self.adagrad(p, q, [&mut after_p[0][0], &mut after_q[0][0]], rating);
        } else {
            self.fixed(&mut user[..lines], &mut item[..lines], rating);
        }
    }
}

/// Rounding can make a squared norm that is all but zero negative.
#[inline(always)]
fn positive<E: Element>(value: E) -> E {
    if value < E::default() { E::default() } else { value }
}
