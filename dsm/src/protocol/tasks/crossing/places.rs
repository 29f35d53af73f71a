//! Where a plan is run, and what crosses there: found once for the same places.
use super::Crossing;
use crate::error::Rank;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the workers and the arrays of a plan are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// How many hosts there are.
    pub(crate) hosts: usize,
    /// The host of each worker.
    pub(crate) host_of: Vec<usize>,
    /// The host of each array's owner, which has all of it before a run, and after it.
    pub(crate) homes: Vec<usize>,
}

impl Places {
    /// The first worker of the plan on a host.
    pub(crate) fn first_of(&self, host: usize) -> Option<Rank> {
        self.host_of.iter().position(|of| *of == host).map(|rank| rank as Rank)
    }
}

/// The crossing for the places where the workers and arrays of a plan were last.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<(Places, Arc<Crossing>)>>);

impl Kept {
    /// The crossing between these places; it is made anew if they are others than last.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn of<E>(
        &self,
        places: &Places,
        make: impl FnOnce() -> Result<Crossing, E>,
    ) -> Result<Arc<Crossing>, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, crossing)) = kept.as_ref().filter(|(of, _)| of == places) {
            return Ok(crossing.clone());
        }
        let crossing = Arc::new(make()?);
        *kept = Some((places.clone(), crossing.clone()));
        Ok(crossing)
    }
}
