//! A spinning start gate for the plain sides of the benches.
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Gate {
    parties: usize,
    arrived: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(parties: usize) -> Gate {
        Gate { parties, arrived: AtomicUsize::new(0) }
    }

    /// Waits for all parties.
    pub(crate) fn pass(&self) {
        let mine = self.arrived.fetch_add(1, Ordering::AcqRel);
        let full = (mine / self.parties + 1) * self.parties;
        let mut looks = 0u32;
        while self.arrived.load(Ordering::Acquire) < full {
            looks += 1;
            if looks.is_multiple_of(10_000) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}
