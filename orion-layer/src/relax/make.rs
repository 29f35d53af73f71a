//! Making arrays to which loops contribute.
use super::buffer::Contributions;
use super::{Additive, Apply, Buffered};
use crate::array::DistArray;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use std::any::type_name;

impl Context<'_> {
    /// An array to which loops contribute through buffers, merged by `rule`. Collective.
    ///
    /// # Errors
    /// Those of [`Context::zeros`].
    #[track_caller]
    pub fn buffered<T: Additive, const N: usize, A: Apply<T>>(
        &mut self,
        target: DistArray<T, N>,
        rule: A,
    ) -> Result<Buffered<T, N, A>> {
        let state = match size_of::<A::State>() {
            0 => None,
            _ => Some(self.fill(target.shape(), rule.initial())?),
        };
        self.buffered_from_parts(target, state, rule)
    }

    /// The same with helper values that are there already: what [`Buffered::into_parts`] gave, or a checkpoint, so that a
    /// rule goes on where it was. Collective.
    ///
    /// ```
    /// use hectare_orion::relax::{AdaGrad, Buffered};
    /// use hectare_orion::{parallel_for, run};
    ///
    /// let path = std::env::temp_dir().join(format!("hectare-doc-rule-{}.ckpt", std::process::id()));
    /// run(2, |w| {
    ///     let mut sums: Buffered<f64, 1, AdaGrad> = match w.open_checkpoint(&path)? {
    ///         Some(saved) => {
    ///             let (array, state) = (saved.array(w, "sums")?, saved.array(w, "squares")?);
    ///             w.buffered_from_parts(array, Some(state), AdaGrad::new(0.5))?
    ///         }
    ///         None => {
    ///             let zeros = w.zeros([10])?;
    ///             w.buffered(zeros, AdaGrad::new(0.5))?
    ///         }
    ///     };
    ///     parallel_for!(w, unordered, buffer sums; for i in 0..100 { sums.add(i % 10, 1.0); })?;
    ///     w.save_checkpoint(&path, |file| {
    ///         file.array("sums", sums.array())?;
    ///         file.array("squares", sums.state().expect("AdaGrad has them"))
    ///     })
    /// })?;
    /// # std::fs::remove_file(&path).expect("the checkpoint");
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the helper values are not as many as elements, or are there where the rule has none, or the other
    /// way around; and those of [`Context::zeros`].
    #[track_caller]
    pub fn buffered_from_parts<T: Additive, const N: usize, A: Apply<T>>(
        &mut self,
        target: DistArray<T, N>,
        mut state: Option<DistArray<A::State, N>>,
        rule: A,
    ) -> Result<Buffered<T, N, A>> {
        let site = Site::here();
        let (has, wants) = (state.as_ref().map(DistArray::shape), size_of::<A::State>() > 0);
        let right = match has {
            Some(shape) => wants && shape == target.shape(),
            None => !wants,
        };
        if !right {
            let (shape, rule) = (target.shape(), type_name::<A>());
            let wanted = if wants { format!("one for each element of {shape:?}") } else { "none".into() };
            let given =
                has.map_or("none are given".into(), |shape| format!("those given have shape {shape:?}"));
            let advice = if wants {
                "pass an array of them in the shape of the target"
            } else {
                "pass `None` for them"
            };
            let what = format!("the rule {rule} has helper values, {wanted}, and {given}: {advice}");
            return Err(Error::Shape { array: target.name().into(), what });
        }
        if let Some(state) = &mut state {
            state.lie_as(self, site, target.layout())?;
        }
        Ok(Buffered { target, state, rule, contributions: Contributions::new(), kept: None })
    }
}
