//! Areas of this host that cannot be in the job beside one of another host: the agent says so, the owner hears it once.
//!
//! A word in the area's slot says what is wrong, and a count in the header that there is something new. A worker looks at the
//! count at its synchronization points, and at the words of the areas that it owns when the count has risen.
use crate::primitive::{AtomicU64, Ordering};

/// What two areas cannot both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The name.
    Name,
    /// The group.
    Group,
}

/// An area of this host that cannot be in the job beside one of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clash {
    /// What both would have.
    pub over: Over,
    /// The other host.
    pub host: usize,
    /// Whether it is the area of this host that the other hosts know.
    pub is_known: bool,
}

impl Clash {
    /// Tells whoever owns the area.
    pub(crate) fn tell(self, word: &AtomicU64, count: &AtomicU64) {
        let bits = 1 | u64::from(self.over == Over::Group) << 1 | u64::from(self.is_known) << 2;
        word.store((self.host as u64) << 3 | bits, Ordering::Relaxed);
        // Release: pairs with the acquire in `heard`.
        count.fetch_add(1, Ordering::Release);
    }

    /// How many clashes there were on this host.
    pub(crate) fn heard(count: &AtomicU64) -> u64 {
        // Acquire: pairs with the release in `tell`: the words of all that are counted are there.
        count.load(Ordering::Acquire)
    }

    /// What the owner has not heard yet.
    pub(crate) fn take(word: &AtomicU64) -> Option<Clash> {
        // Relaxed: `heard` comes before. A swap: the agent may tell another one meanwhile.
        let bits = if word.load(Ordering::Relaxed) == 0 { 0 } else { word.swap(0, Ordering::Relaxed) };
        let over = if bits & 2 != 0 { Over::Group } else { Over::Name };
        (bits != 0).then_some(Clash { over, host: (bits >> 3) as usize, is_known: bits & 4 != 0 })
    }
}
