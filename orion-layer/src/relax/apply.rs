//! How contributions are merged into a buffered array: functions of one element, which run where the element lives.
use super::Additive;
use hectare_dsm::Element;
use hectare_dsm::bytemuck::Zeroable;

/// Merges contributions into an element.
///
/// A worker sums the contributions of its iterations to an element, and at its next clock the sum is merged by one call
/// of [`Apply::apply`]: exactly once, by one worker, and not at all if the sum is zero. Helper values ([`Apply::State`],
/// for example AdaGrad's sums of squares) are stored beside the array, one for each element, and persist from pass to
/// pass.
///
/// The rule must be the same on every worker: type and `Debug` output are compared when a loop begins, and a different
/// one ends the loop with [`Error::Diverged`](crate::Error::Diverged).
///
/// ```
/// use hectare_orion::relax::Apply;
/// use hectare_orion::{parallel_for, run};
///
/// /// Momentum: a contribution is a gradient.
/// #[derive(Debug)]
/// struct Momentum {
///     rate: f32,
///     keep: f32,
/// }
///
/// impl Apply<f32> for Momentum {
///     type State = f32;
///     type Snapshot = ();
///
///     fn snapshot(&self, _velocity: &f32) {}
///
///     fn apply(&self, target: &mut f32, velocity: &mut f32, gradient: f32, _seen: ()) {
///         *velocity = self.keep * *velocity - self.rate * gradient;
///         *target += *velocity;
///     }
/// }
/// // On one worker, so that the sums are those of all iterations.
/// run(1, |w| {
///     let zeros = w.zeros::<f32, 1>([2])?;
///     let mut weights = w.buffered(zeros, Momentum { rate: 0.5, keep: 0.5 })?;
///     for _pass in 0..2 {
///         // Every iteration contributes a quarter to element 0; at the end of the pass, the rule is called once.
///         parallel_for!(w, unordered, buffer weights, every = 4;
///             for _i in 0..4 {
///                 weights.add(0, 0.25);
///             })?;
///     }
///     // -0.5 in the first pass, half of that and another -0.5 in the second; nothing where nothing was contributed.
///     assert_eq!(weights.array().to_vec(w)?, [-0.5 - 0.75, 0.0]);
///     assert_eq!(weights.state().unwrap().to_vec(w)?, [-0.75, 0.0]);
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no rule for an array of `{T}`",
    label = "does not merge contributions of this type",
    note = "rules of buffered and served arrays are those of the module `relax` (`Sum`; for floats `Mean`, `AdaGrad`, `AdaRevision`) and \
            types that implement `Apply`; those of the module `collections` are for maps"
)]
pub trait Apply<T: Element>: std::fmt::Debug {
    /// Helper values of an element; `()` if there are none.
    type State: Element + std::fmt::Debug;
    /// The part of the state that a worker remembers of its last read of the element, and sends with its contribution;
    /// `()` if that does not matter.
    type Snapshot: Element + std::fmt::Debug;

    /// The initial state of an element; zero by default.
    fn initial(&self) -> Self::State {
        Self::State::zeroed()
    }

    /// The state that a worker remembers.
    fn snapshot(&self, state: &Self::State) -> Self::Snapshot;

    /// Merges `update`, from a worker that had `seen` this part of the state. A panic ends the loop with
    /// [`Error::RulePanicked`](crate::Error::RulePanicked), and poisons the array.
    fn apply(&self, target: &mut T, state: &mut Self::State, update: T, seen: Self::Snapshot);
}

/// Adds contributions to the element; integers wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl<T: Additive> Apply<T> for Sum {
    type State = ();
    type Snapshot = ();

    fn snapshot(&self, _state: &()) {}

    fn apply(&self, target: &mut T, _state: &mut (), update: T, _seen: ()) {
        *target = target.plus(update);
    }
}

/// Adds the mean of the workers' contributions in a clock.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    workers: f64,
}

impl Mean {
    /// The mean over this many workers, usually [`Context::size`](crate::Context::size).
    ///
    /// # Panics
    /// If there are none.
    pub fn over(workers: usize) -> Mean {
        assert!(workers > 0, "the mean over no workers");
        Mean { workers: workers as f64 }
    }
}

/// The steps of AdaGrad (Duchi, Hazan and Singer, 2011): contributions are gradients, and an element's step is `rate`
/// divided by the root of the sum of their squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// The size of steps.
    pub rate: f64,
    /// The initial sum of squares.
    pub initial: f64,
}

impl AdaGrad {
    /// With sums of squares that begin at 1e-6.
    pub fn new(rate: f64) -> AdaGrad {
        AdaGrad { rate, initial: 1e-6 }
    }
}

/// The steps of AdaRevision (McMahan and Streeter, 2014), AdaGrad for delayed gradients: an element's step accounts for
/// what others contributed between the computation of a gradient and its merge, and steps that were too long are revised.
/// Contributions are gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaRevision {
    /// The size of steps.
    pub rate: f64,
    /// The initial sum of squares; 1 in the paper.
    pub initial: f64,
}

impl AdaRevision {
    /// With sums of squares that begin at 1.
    pub fn new(rate: f64) -> AdaRevision {
        AdaRevision { rate, initial: 1.0 }
    }
}

/// The sum of all gradients of an element, as a worker last saw it.
pub type Snapshot<T> = T;

macro_rules! floats {
    ($($of:ident)*) => {$(
        impl Apply<$of> for Mean {
            type State = ();
            type Snapshot = ();

            fn snapshot(&self, _state: &()) {}

            fn apply(&self, target: &mut $of, _state: &mut (), update: $of, _seen: ()) {
                *target += update / self.workers as $of;
            }
        }

        impl Apply<$of> for AdaGrad {
            /// The sum of squares.
            type State = $of;
            type Snapshot = ();

            fn initial(&self) -> $of {
                self.initial as $of
            }

            fn snapshot(&self, _state: &$of) {}

            fn apply(&self, target: &mut $of, squares: &mut $of, gradient: $of, _seen: ()) {
                *squares += gradient * gradient;
                *target -= self.rate as $of * gradient / squares.sqrt();
            }
        }

        impl Apply<$of> for AdaRevision {
            /// The sum of gradients, the sum of squares with its corrections, and the greatest that this has been.
            type State = [$of; 3];
            type Snapshot = Snapshot<$of>;

            fn initial(&self) -> [$of; 3] {
                [0.0, self.initial as $of, self.initial as $of]
            }

            fn snapshot(&self, [sum, ..]: &[$of; 3]) -> $of {
                *sum
            }

            fn apply(&self, target: &mut $of, state: &mut [$of; 3], gradient: $of, seen: $of) {
                let [sum, squares, greatest] = state;
                // The gradients that came between.
                let between = *sum - seen;
                let old = self.rate as $of / greatest.sqrt();
                *squares += gradient * gradient + 2.0 * gradient * between;
                *greatest = greatest.max(*squares);
                let new = self.rate as $of / greatest.sqrt();
                *target += (old - new) * between - new * gradient;
                *sum += gradient;
            }
        }
    )*};
}
floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adarevision_without_delay_is_adagrad() {
        let (late, soon) = (AdaRevision::new(0.5), AdaGrad { rate: 0.5, initial: 1.0 });
        let (mut a, mut b) = (2.0f64, 2.0f64);
        let (mut state, mut squares) = (Apply::<f64>::initial(&late), Apply::<f64>::initial(&soon));
        for gradient in [1.0, -0.5, 2.0, 0.25] {
            let seen = Apply::<f64>::snapshot(&late, &state);
            late.apply(&mut a, &mut state, gradient, seen);
            soon.apply(&mut b, &mut squares, gradient, ());
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }

    #[test]
    fn adarevision_shortens_the_steps_of_gradients_that_agree() {
        // Two workers compute the same gradient from the same place. The second one's step, and that of the first after
        // the fact, are as if the gradients had been one of twice the size.
        let rule = AdaRevision::new(1.0);
        let (mut target, mut state) = (0.0f64, Apply::<f64>::initial(&rule));
        let seen = Apply::<f64>::snapshot(&rule, &state);
        rule.apply(&mut target, &mut state, 3.0, seen);
        rule.apply(&mut target, &mut state, 3.0, seen);
        let at_once = 6.0 / (1.0f64 + 36.0).sqrt();
        assert!((target + at_once).abs() < 1e-12, "{target} {at_once}");
    }

    #[test]
    fn a_mean_and_a_sum() {
        let (mut mean, mut sum) = (1.0f32, 5u32);
        Mean::over(4).apply(&mut mean, &mut (), 2.0, ());
        Sum.apply(&mut sum, &mut (), 3u32.wrapping_neg(), ());
        assert_eq!((mean, sum), (1.5, 2));
    }
}
