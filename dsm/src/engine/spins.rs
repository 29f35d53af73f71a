//! How long it pays to spin.
use std::cell::Cell;

/// Looks at a word before sleeping, with a core for every worker: about 100 us.
const MOST: u32 = 4000;
/// How often that is halved at most.
const HALVINGS: u32 = 7;
/// Of the waits that follow others that spun in vain, each that has such a number spins for as long as it may.
const PROBE: u32 = 16;

/// How often a worker looks at what it waits for before it sleeps, by how the last waits went (adaptive spinning: Karlin, Li, Manasse
/// and Owicki, 1991).
///
/// Though there is a core for every worker, the system may run two of them on one, beside another program on the other: then the
/// worker that spins keeps the other from doing what it waits for. Each wait that spins in vain halves the number of looks for
/// the next one; one that does not restores it.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// Waits one after the other that had to sleep.
    in_vain: Cell<u32>,
}

impl Spins {
    /// How often the next wait is to look.
    #[inline]
    pub(crate) fn looks(&self) -> u32 {
        let in_vain = self.in_vain.get();
        if in_vain.is_multiple_of(PROBE) { MOST } else { MOST >> in_vain.min(HALVINGS) }
    }

    /// The wait ended while the worker spun.
    #[inline]
    pub(crate) fn paid(&self) {
        self.in_vain.set(0);
    }

    /// The worker had to sleep.
    pub(crate) fn were_in_vain(&self) {
        self.in_vain.set(self.in_vain.get().wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_vain_get_shorter_and_one_that_is_not_restores_them() {
        let spins = Spins::default();
        let looks = |count: u32| {
            let next = || {
                spins.were_in_vain();
                spins.looks()
            };
            std::iter::repeat_with(next).take(count as usize).collect::<Vec<_>>()
        };
        assert_eq!(spins.looks(), MOST);
        assert_eq!(looks(8), [2000, 1000, 500, 250, 125, 62, 31, 31]);
        // Now and then, it is tried whether it pays again.
        let further = looks(32);
        assert_eq!(further.iter().filter(|looks| **looks == MOST).count(), 2);
        assert!(further.iter().sum::<u32>() < 3 * MOST);
        spins.paid();
        assert_eq!(spins.looks(), MOST);
    }
}
