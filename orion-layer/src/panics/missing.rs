//! Keys and elements that a body asked for and that are not there.
use crate::error::Error;
use hectare_dsm::Rank;
use std::fmt::Debug;

/// A key or element that a body did not find: the executor turns it into [`Error::MissingKey`].
#[derive(Debug)]
pub(crate) struct Missing {
    collection: String,
    what: String,
}

impl Missing {
    /// A key of a map.
    #[cold]
    pub(crate) fn key(map: &str, key: &(impl Debug + ?Sized)) -> Missing {
        Missing { collection: map.into(), what: format!("key {key:?}") }
    }

    /// An element of a vector.
    #[cold]
    pub(crate) fn element(vector: &str, index: usize) -> Missing {
        Missing { collection: vector.into(), what: format!("element {index}") }
    }

    /// The error, in the loop or the call at `site`; and in this iteration of the loop, as far as that is known.
    pub(crate) fn into_error(self, site: String, worker: Rank, iteration: String) -> Error {
        let Missing { collection, what } = self;
        Error::MissingKey { site, collection, what, worker, iteration }
    }

    /// Ends the body.
    #[cold]
    pub(crate) fn end_body(self) -> ! {
        // Not a panic with a message: the executor adds what the view does not know.
        std::panic::resume_unwind(Box::new(self))
    }
}
