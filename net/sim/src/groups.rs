//! The numbers of groups that are there for a purpose.
use hectare_net::GroupId;

/// The first of a host's groups that are added while the program runs, each of one area.
pub(crate) const ALONE: u64 = 1 << 25;

/// The first of a host's groups that are deleted and created again; those after it have higher numbers.
pub(crate) const RENEWED: u64 = 1 << 23;

/// The number of a host's group that is given from host to host. Those that are created when such a group was deleted have higher numbers.
pub(crate) const GIVEN: u64 = 1 << 24;

fn serial(group: GroupId) -> u64 {
    group.0 & 0xffff_ffff
}

/// Whether a group was created while the program ran.
pub(crate) fn is_renewed(group: GroupId) -> bool {
    (RENEWED..GIVEN).contains(&serial(group))
}

/// Whether a group is one that is given from host to host.
pub(crate) fn is_given(group: GroupId) -> bool {
    (GIVEN..ALONE).contains(&serial(group))
}
