//! Conflicts of other hosts with an area, for its owner: they have one of its name or group, attached to it with another element
//! type, or cannot have it. The agent reports them, and the owner is told of each once.
//!
//! The area's slot has several places, so that one conflict does not displace another, and a count in the header says that there is
//! a new one. A worker looks at the count at its synchronization points, and at the places of the areas that it owns when
//! the count has risen; and once after it has become the owner of an area, since the last owner may not have looked.
use crate::primitive::{AtomicU64, Ordering, fault_point};
use std::cell::Cell;

/// The kind of the objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both have the name.
    Name,
    /// Both have areas of the group.
    Group,
    /// The other host attached to this area with elements of another type: that type, as numbers
    /// ([`ElementType::to_parts`](crate::ElementType::to_parts)).
    Type([u32; 3]),
    /// Other hosts cannot have it: its group has more areas than are sent.
    Members,
    /// Other hosts cannot have it: its name, or that of its group, is longer than names between hosts.
    Length,
}

/// Something between an area of this host and other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its kind.
    pub over: Over,
    /// The other host; this one if other hosts cannot have the area.
    pub host: usize,
    /// Whether it is the area of this host that the other hosts know.
    pub is_known: bool,
}

/// Places of an area.
const PLACES: usize = 3;

/// The objections that the owner of an area has not heard yet. Zeros are none.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Conflicts {
    places: [Place; PLACES],
}

/// The agent writes a place while its head is 0, the owner takes it while it is not.
#[repr(C)]
#[derive(Debug)]
struct Place {
    head: AtomicU64,
    element: [AtomicU64; 2],
}

impl Conflict {
    fn to_words(self) -> (u64, [u64; 2]) {
        let (kind, [size, align, of]) = match self.over {
            Over::Name => (0, [0; 3]),
            Over::Group => (1, [0; 3]),
            Over::Type(parts) => (2, parts),
            Over::Members => (3, [0; 3]),
            Over::Length => (4, [0; 3]),
        };
        let head = 1 | u64::from(self.is_known) << 1 | kind << 2 | (self.host as u64) << 8;
        (head, [u64::from(size) << 32 | u64::from(align), u64::from(of)])
    }

    fn of_words(head: u64, [sizes, of]: [u64; 2]) -> Conflict {
        let over = match head >> 2 & 7 {
            0 => Over::Name,
            1 => Over::Group,
            2 => Over::Type([(sizes >> 32) as u32, sizes as u32, of as u32]),
            3 => Over::Members,
            _ => Over::Length,
        };
        Conflict { over, host: (head >> 8) as usize, is_known: head & 2 != 0 }
    }
}

impl Conflicts {
    #[cfg(loom)]
    pub(crate) fn new() -> Conflicts {
        let place = || Place { head: AtomicU64::new(0), element: [AtomicU64::new(0), AtomicU64::new(0)] };
        Conflicts { places: std::array::from_fn(|_| place()) }
    }

    /// The same, in place, of an area that is being created.
    pub(crate) fn reset(&self) {
        self.places.iter().for_each(|place| place.head.store(0, Ordering::Relaxed));
    }

    /// Tells whoever owns the area, unless all places are taken; what is there already is not told twice. For the agent.
    pub(crate) fn tell(&self, conflict: Conflict, count: &AtomicU64) -> bool {
        let (head, element) = conflict.to_words();
        let mut free = None;
        for place in &self.places {
            // Acquire: pairs with the release in `take`: who took it has read it.
            match place.head.load(Ordering::Acquire) {
                0 => free = free.or(Some(place)),
                // Relaxed: the agent itself wrote it.
                other
                    if other == head
                        && place.element.each_ref().map(|word| word.load(Ordering::Relaxed)) == element =>
                {
                    return true;
                }
                _ => {}
            }
        }
        let Some(place) = free else { return false };
        place.element.iter().zip(element).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        fault_point();
        // Release: pairs with the acquire in `take`.
        place.head.store(head, Ordering::Release);
        fault_point();
        // Release: pairs with the acquire in `Heard::begin`.
        count.fetch_add(1, Ordering::Release);
        true
    }

    /// Whether there is something that the owner has not heard yet.
    pub(crate) fn are_any(&self) -> bool {
        self.places.iter().any(|place| place.head.load(Ordering::Relaxed) != 0)
    }

    /// Something that the owner has not heard yet.
    pub(crate) fn take(&self) -> Option<Conflict> {
        self.places.iter().find_map(|place| {
            // Acquire: pairs with the release in `tell`.
            let head = place.head.load(Ordering::Acquire);
            if head == 0 {
                return None;
            }
            let element = place.element.each_ref().map(|word| word.load(Ordering::Relaxed));
            // Release: the agent writes the place after this has read it. Of two who take it, one has it.
            let taken = place.head.compare_exchange(head, 0, Ordering::Release, Ordering::Relaxed);
            taken.is_ok().then(|| Conflict::of_words(head, element))
        })
    }
}

/// The objections that a worker has looked at.
#[derive(Debug, Default)]
pub(crate) struct Heard(Cell<u64>);

/// It has to look, whatever the count is.
const LOOK: u64 = u64::MAX;

impl Heard {
    /// Whether there may be something for this worker.
    #[inline]
    pub(crate) fn has_news(&self, count: &AtomicU64) -> bool {
        // Relaxed: only a hint, which the next synchronization point sees at the latest.
        count.load(Ordering::Relaxed) != self.0.get()
    }

    /// The worker owns an area from now on, of which the last owner may not have heard all.
    #[inline]
    pub(crate) fn owns_more(&self, count: &AtomicU64, of_it: &Conflicts) {
        // Relaxed, both: this worker has looked at a count with an acquire, and sees what was told up to that; what came later
        // makes `has_news` true by itself. Where nothing ever conflicted, one load is all.
        if count.load(Ordering::Relaxed) != 0 && of_it.are_any() {
            self.0.set(LOOK);
        }
    }

    /// The worker begins to look; what to end with if it finds nothing.
    pub(crate) fn begin(&self, count: &AtomicU64) -> u64 {
        // Acquire: pairs with the release in `tell`: the places of all that are counted are there.
        count.load(Ordering::Acquire)
    }

    /// It has looked at all that it owns and found nothing.
    pub(crate) fn end(&self, count: u64) {
        self.0.set(count);
    }
}

#[cfg(all(test, loom))]
impl Conflicts {
    /// Makes accesses to the heads of places weaker.
    pub(crate) fn weaken(&self, access: crate::primitive::model::Access, from: Ordering, to: Ordering) {
        self.places.iter().for_each(|place| place.head.weaken(access, from, to));
    }
}
