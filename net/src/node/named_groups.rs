//! The groups that one host has named to another in subscriptions: each naming has a number, and the two compare how many are known.
//!
//! Only the newest value of a register counts, so the other host may hear two namings out of order, or the second of them alone. It
//! knows all of them up to the first number that is missing. A group is forgotten on both sides when it is heard that the subscription
//! is over: what is remembered depends on the subscriptions that there are, not on those that there were.
use crate::intervals::Intervals;
use crate::types::GroupId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Groups of a peer to which this host subscribes, or did until the peer hears that it does not.
#[derive(Debug, Default)]
pub(super) struct OwnNamings {
    numbers: BTreeMap<GroupId, u32>,
    count: u32,
}

impl OwnNamings {
    /// Whether it is a new one.
    pub(super) fn insert(&mut self, group: GroupId) -> bool {
        let is_new = !self.numbers.contains_key(&group);
        if is_new {
            self.count += 1;
            self.numbers.insert(group, self.count);
        }
        is_new
    }

    pub(super) fn contains(&self, group: GroupId) -> bool {
        self.numbers.contains_key(&group)
    }

    /// The peer has heard that the subscription is over, with its number.
    pub(super) fn remove(&mut self, group: GroupId) {
        self.numbers.remove(&group);
    }

    /// The number of a naming, from 1 on.
    pub(super) fn number(&self, group: GroupId) -> u32 {
        self.numbers.get(&group).copied().unwrap_or_default()
    }

    /// How many namings there were.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl FromIterator<GroupId> for OwnNamings {
    fn from_iter<I: IntoIterator<Item = GroupId>>(groups: I) -> OwnNamings {
        let mut stated = OwnNamings::default();
        for group in groups {
            stated.insert(group);
        }
        stated
    }
}

/// The namings of a peer that came.
#[derive(Debug, Default)]
pub(super) struct HeardNamings {
    numbers: Intervals,
}

impl HeardNamings {
    /// Namings of these numbers came, from 1 on. Whether more are known without a gap.
    pub(super) fn insert(&mut self, numbers: RangeInclusive<u32>) -> bool {
        let Some(before) = numbers.start().checked_sub(1) else { return false };
        let known = self.count();
        self.numbers.insert(before.into()..u64::from(*numbers.end()));
        self.count() > known
    }

    /// How many are known, without a gap.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.numbers.first_gap()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{HeardNamings, OwnNamings};
    use crate::types::GroupId;

    #[test]
    fn a_group_has_one_number_until_its_end_is_heard() {
        let mut stated = [3, 1, 3].map(GroupId).into_iter().collect::<OwnNamings>();
        assert_eq!((stated.number(GroupId(3)), stated.number(GroupId(1)), stated.count()), (1, 2, 2));
        stated.remove(GroupId(3));
        assert!(!stated.contains(GroupId(3)) && stated.insert(GroupId(3)));
        assert_eq!((stated.number(GroupId(3)), stated.count(), stated.len()), (3, 3, 2));
    }

    #[test]
    fn namings_count_up_to_the_first_that_is_missing() {
        let mut named = HeardNamings::default();
        assert!(!named.insert(2..=2) && !named.insert(0..=0));
        assert_eq!(named.count(), 0);
        assert!(named.insert(1..=1) && !named.insert(1..=1));
        assert_eq!(named.count(), 2);
        assert!(!named.insert(u32::MAX..=u32::MAX));
    }
}
