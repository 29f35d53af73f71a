//! The numbers of arrays, and which of them are gone.
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The numbers of arrays whose handles this worker has dropped, until they are asked for.
#[derive(Debug, Default)]
pub(crate) struct DroppedArrays(Mutex<Vec<u64>>);

impl DroppedArrays {
    /// Those since the last call.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number of an array, which no other array of the program has; the same on every worker. It goes with the array's handle.
pub(crate) struct ArrayNumber {
    number: u64,
    dropped: Arc<DroppedArrays>,
}

impl ArrayNumber {
    pub(crate) fn new(number: u64, dropped: Arc<DroppedArrays>) -> ArrayNumber {
        ArrayNumber { number, dropped }
    }

    pub(crate) fn get(&self) -> u64 {
        self.number
    }
}

impl Drop for ArrayNumber {
    fn drop(&mut self) {
        self.dropped.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

impl fmt::Debug for ArrayNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl fmt::Display for ArrayNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
