//! Which host has which ranks.
use super::list::Host;
use hectare_wire::MAX_HOSTS;
use std::net::IpAddr;
use std::ops::Range;

/// The most ranks of a run.
pub const MOST_RANKS: u32 = 4096;

/// The hosts of a run, in the order of their ranks, which are contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The hosts that have ranks.
    pub places: Vec<Place>,
}

/// A host of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The address at which the others reach it, where that is known.
    pub address: Option<IpAddr>,
    /// Its ranks.
    pub ranks: Range<u32>,
}

/// Hosts that cannot run the ranks that are asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is nothing to start.
    #[error("no ranks: neither -n nor the hosts say how many there are")]
    NoRanks,
    /// The hosts have no room for them.
    #[error("{ranks} ranks on hosts that have {slots} slots: {hosts}")]
    TooManyRanks {
        /// The ranks.
        ranks: u32,
        /// Room on all hosts.
        slots: u64,
        /// Each host and its room.
        hosts: String,
    },
    /// There are more ranks than a run may have.
    #[error("{ranks} ranks on all hosts; there may be {MOST_RANKS}: give a number by -n, or fewer slots")]
    TooManyInAll {
        /// The ranks.
        ranks: u32,
    },
    /// There are more hosts than a job may have.
    #[error("{hosts} hosts; a job may be on {most}")]
    TooManyHosts {
        /// The hosts.
        hosts: usize,
        /// How many there may be.
        most: usize,
    },
}

impl Plan {
    /// Gives ranks to the hosts in their order: to each as many as it has room for; all of them if `ranks` is `None`.
    /// A host for which none is left is not in the plan.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(hosts: &[Host], ranks: Option<u32>) -> Result<Plan, PlanError> {
        let slots: u64 = hosts.iter().map(|host| u64::from(host.slots)).sum();
        let too_many = |ranks| PlanError::TooManyRanks {
            ranks,
            slots,
            hosts: hosts
                .iter()
                .map(|host| format!("{}:{}", host.name, host.slots))
                .collect::<Vec<_>>()
                .join(","),
        };
        let ranks = ranks.unwrap_or(u32::try_from(slots).unwrap_or(u32::MAX));
        if ranks == 0 {
            return Err(PlanError::NoRanks);
        }
        if u64::from(ranks) > slots {
            return Err(too_many(ranks));
        }
        if ranks > MOST_RANKS {
            return Err(PlanError::TooManyInAll { ranks });
        }
        let mut next = 0;
        let mut places = Vec::new();
        for host in hosts {
            let first = next;
            next += host.slots.min(ranks - first);
            if first < next {
                places.push(Place { name: host.name.clone(), address: host.address, ranks: first..next });
            }
        }
        if places.len() > MAX_HOSTS {
            return Err(PlanError::TooManyHosts { hosts: places.len(), most: MAX_HOSTS });
        }
        Ok(Plan { places })
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.places.last().map_or(0, |place| place.ranks.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::parse_list;
    use proptest::prelude::*;

    fn plan(list: &str, ranks: Option<u32>) -> Result<Vec<(String, Range<u32>)>, PlanError> {
        let plan = Plan::new(&parse_list(list).unwrap(), ranks)?;
        Ok(plan.places.into_iter().map(|place| (place.name, place.ranks)).collect())
    }

    #[test]
    fn hosts_are_filled_in_their_order() {
        let (a, b) = ("a".to_owned(), "b".to_owned());
        assert_eq!(plan("a:2,b:2", Some(4)), Ok(vec![(a.clone(), 0..2), (b.clone(), 2..4)]));
        assert_eq!(plan("a:2,b:2", None), Ok(vec![(a.clone(), 0..2), (b.clone(), 2..4)]));
        assert_eq!(plan("b:2,a:2", Some(3)), Ok(vec![(b.clone(), 0..2), (a.clone(), 2..3)]));
        assert_eq!(plan("a:2,b:2", Some(2)), Ok(vec![(a, 0..2)]));
        let error = plan("a:2,b:1", Some(4)).unwrap_err().to_string();
        assert_eq!(error, "4 ranks on hosts that have 3 slots: a:2,b:1");
        assert_eq!(plan("a:2", Some(0)), Err(PlanError::NoRanks));
        assert_eq!(plan("a:4000,b:97", None), Err(PlanError::TooManyInAll { ranks: 4097 }));
        assert!(plan("a:4000,b:4000", Some(4096)).is_ok());
        assert_eq!(Plan::new(&[], None), Err(PlanError::NoRanks));
        let many: Vec<String> = (0..257).map(|n| format!("h{n}")).collect();
        assert!(matches!(plan(&many.join(","), None), Err(PlanError::TooManyHosts { hosts: 257, .. })));
        assert!(plan(&many.join(","), Some(256)).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Each rank is on one host, in order, and no host has more than it has room for.
        #[test]
        fn each_rank_has_one_place(slots in prop::collection::vec(1u32..9, 1..30), share in 0.0..1.0f64) {
            let hosts: Vec<Host> = (0..).zip(&slots)
                .map(|(n, slots)| Host { name: format!("h{n}"), address: None, slots: *slots }).collect();
            let ranks = 1 + (share * f64::from(slots.iter().sum::<u32>() - 1)) as u32;
            let plan = Plan::new(&hosts, Some(ranks)).unwrap();
            prop_assert_eq!(plan.size(), ranks);
            let mut next = 0;
            for (place, host) in plan.places.iter().zip(&hosts) {
                prop_assert_eq!((&place.name, place.ranks.start), (&host.name, next));
                prop_assert!((1..=host.slots).contains(&(place.ranks.end - next)));
                next = place.ranks.end;
            }
            prop_assert_eq!(next, ranks);
        }
    }
}
