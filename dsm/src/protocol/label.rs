//! Labels of versions, by which a barrier holds across hosts.
//!
//! On one host, all workers leave barrier n in one round, so what a worker writes after the barrier is not published before the others
//! could read what was there. Between hosts that takes a number: the label of a version says before which clock it was written. The
//! receiver publishes it when its own workers may read what was written then, and not before.

/// The label of what a round publishes, before which `lowest` was the lowest clock of all: that plus one; 0 outside of the
/// clocks.
pub(crate) fn of_round(lowest: u64) -> u64 {
    lowest.wrapping_add(1)
}

/// Whether a version of another host may be published in a round before which `lowest` was the lowest clock here.
pub(crate) fn may_publish(label: u64, lowest: u64) -> bool {
    label <= lowest.saturating_add(1)
}

/// The round of the last state with an earlier label, which other hosts may still need, when a state of label `label` is published. If
/// this begins a new label, that is the state that was the newest until now, published in round `newest_round` with label `newest`;
/// otherwise it is still that of round `kept`.
pub(crate) fn keep(label: u64, newest: u64, newest_round: u64, kept: u64) -> u64 {
    if label > newest { newest_round } else { kept }
}

/// In place of a round: nothing is kept.
pub(crate) const NONE: u64 = u64::MAX;
