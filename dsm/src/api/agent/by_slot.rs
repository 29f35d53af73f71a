//! The agent's knowledge of areas, for as long as their slots are theirs.
use crate::engine::directory::AreaId;
use std::collections::HashMap;

/// A value for each of some areas. That of a deleted area goes when the next area in its slot gets one, so that there are never more
/// values than slots.
#[derive(Debug)]
pub(super) struct BySlot<V>(HashMap<u32, (AreaId, V)>);

impl<V> Default for BySlot<V> {
    fn default() -> Self {
        BySlot(HashMap::new())
    }
}

impl<V> BySlot<V> {
    /// Gives an area a value; the one that it had.
    pub(super) fn insert(&mut self, area: AreaId, value: V) -> Option<V> {
        let (of, last) = self.0.insert(area.index, (area, value))?;
        (of == area).then_some(last)
    }

    pub(super) fn has(&self, area: AreaId) -> bool {
        self.0.get(&area.index).is_some_and(|(of, _)| *of == area)
    }

    pub(super) fn remove(&mut self, area: AreaId) {
        if self.has(area) {
            self.0.remove(&area.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AreaId, BySlot};

    #[test]
    fn the_next_area_of_a_slot_takes_its_place() {
        let mut known = BySlot::default();
        let area = |index, generation| AreaId { index, generation };
        assert_eq!(known.insert(area(3, 1), 'a'), None);
        assert_eq!(known.insert(area(3, 1), 'b'), Some('a'));
        assert!(known.has(area(3, 1)) && !known.has(area(3, 2)) && !known.has(area(2, 1)));
        assert_eq!(known.insert(area(3, 2), 'c'), None);
        assert!(known.has(area(3, 2)) && !known.has(area(3, 1)));
        // Of the one before, nothing is left to be removed.
        known.remove(area(3, 1));
        assert!(known.has(area(3, 2)));
        for generation in 3..1000 {
            known.insert(area(3, generation), 'd');
        }
        assert_eq!(known.0.len(), 1);
        known.remove(area(3, 999));
        assert!(known.0.is_empty());
    }
}
