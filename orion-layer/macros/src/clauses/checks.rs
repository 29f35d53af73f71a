//! Checks of the head of a loop.
use super::{Array, Head, Treatment};
use syn::{Error, Ident, Result};

/// The most accumulators of a loop: the runtime takes tuples of as many (`hectare_orion::accumulate::Accumulators`).
const MOST_ACCUMULATORS: usize = 4;

impl Head {
    pub(super) fn check_accumulators(&self) -> Result<()> {
        match self.accumulators.get(MOST_ACCUMULATORS) {
            Some(one_more) => Err(Error::new(
                one_more.name.span(),
                format!(
                    "a loop has at most {MOST_ACCUMULATORS} accumulators: make one of several sums of a type, `sum name: [f64; n]`"
                ),
            )),
            None => Ok(()),
        }
    }

    pub(super) fn check_names(&self) -> Result<()> {
        let names = self.arrays.iter().map(|array| &array.name);
        let mut seen: Vec<&Ident> = Vec::new();
        for name in names.chain(self.accumulators.iter().map(|accumulator| &accumulator.name)) {
            if seen.contains(&name) {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "`{name}` is named twice; what is named under `write`, `relax`, `buffer` or `serve` is read as well"
                    ),
                ));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Consistency is a promise about something.
    pub(super) fn check_relaxed(&self) -> Result<()> {
        let is_served = |array: &Array| array.treatment == Treatment::Served;
        if let Some((_, span)) = self.prefetch
            && !self.arrays.iter().any(is_served)
        {
            return Err(Error::new(span, "this applies to arrays named under `serve`, and there are none"));
        }
        if self.arrays.iter().any(|array| array.treatment != Treatment::Kept) {
            return Ok(());
        }
        match self.consistency.as_ref().or(self.every.as_ref()).or(self.tail.as_ref()) {
            Some((_, span)) => Err(Error::new(
                *span,
                "this applies to arrays named under `relax`, `buffer` or `serve`, and there are none: arrays under `write` keep their \
                 dependences",
            )),
            None => Ok(()),
        }
    }
}
