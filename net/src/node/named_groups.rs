//! The groups that one host has named to another, and a hash by which the two compare which ones they know of.
use crate::types::GroupId;
use std::collections::BTreeSet;

/// A set of groups, with a hash of it that costs the same however many there are: clocks are told with it.
#[derive(Debug, Default)]
pub(super) struct NamedGroups {
    groups: BTreeSet<GroupId>,
    hash: u32,
}

impl NamedGroups {
    /// Whether it is a new one.
    pub(super) fn insert(&mut self, group: GroupId) -> bool {
        let is_new = self.groups.insert(group);
        if is_new {
            self.hash = self.hash.wrapping_add(mixed(group));
        }
        is_new
    }

    pub(super) fn contains(&self, group: GroupId) -> bool {
        self.groups.contains(&group)
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn clear(&mut self) {
        *self = NamedGroups::default();
    }

    /// Equal for equal sets, in whatever order they grew, and for others by chance only. A count would not do, as packets may be late:
    /// who hears that two groups were named may know two, and not the same ones.
    pub(super) fn hash(&self) -> u32 {
        self.hash
    }
}

impl FromIterator<GroupId> for NamedGroups {
    fn from_iter<I: IntoIterator<Item = GroupId>>(groups: I) -> NamedGroups {
        let mut named = NamedGroups::default();
        for group in groups {
            named.insert(group);
        }
        named
    }
}

/// A group's part of the sum; the upper half of the finalizer of MurmurHash3 (Appleby, 2011).
fn mixed(group: GroupId) -> u32 {
    let mixed = (group.0 ^ group.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::NamedGroups;
    use crate::types::GroupId;

    #[test]
    fn equal_sets_have_one_hash_and_others_do_not() {
        let set = |groups: &[u64]| groups.iter().map(|group| GroupId(*group)).collect::<NamedGroups>();
        assert_eq!(set(&[3, 1, 2]).hash(), set(&[1, 2, 3, 2]).hash());
        assert_ne!(set(&[1, 2]).hash(), set(&[1, 3]).hash());
        assert_ne!(set(&[1, 2]).hash(), set(&[1]).hash());
        let mut cleared = set(&[1]);
        cleared.clear();
        assert!(cleared.insert(GroupId(7)) && !cleared.insert(GroupId(7)));
        assert_eq!((cleared.hash(), cleared.len()), (set(&[7]).hash(), 1));
    }
}
