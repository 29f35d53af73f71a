//! Planted errors, with which the simulator shows that its checks find them.

/// One error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A cut counts as complete when one line is missing.
    EarlyCommit,
    /// Cuts that were overtaken are accepted.
    StaleCut,
    /// Cuts are accepted from hosts that do not own the group.
    ForeignCut,
    /// Only the first member of a group is received.
    SplitGroup,
    /// Receivers publish states of any label.
    NoLabels,
    /// The first state that a host gets of a group may be from behind a barrier that it has not passed.
    EarlyFirst,
    /// Clocks count before the data that they cover.
    BareClocks,
    /// Lost lines are not sent again.
    ForgetLost,
    /// Registers that were lost are not sent again.
    ForgetRegisters,
    /// Every host decides for itself who failed.
    EveryoneDecides,
    /// The directory gives a name twice.
    NameTwice,
    /// The directory accepts areas of one group from two hosts.
    GroupTwice,
    /// The directory tells of a conflict only the host that asked.
    OneSided,
    /// A new directory does not hear of names that the one before it refused.
    ForgetRefused,
    /// A request for a group's newest state is answered before that is there.
    EarlyAnswer,
    /// A host leaves a group that it gives away before all who have copies have gone over.
    HastyLeave,
    /// Versions of areas on demand go to all who lack them, asked or not.
    Unasked,
    /// A group is taken before its last state is there.
    BlindTake,
    /// A new agent tells of a group that is given away and not left under the epoch of its next owner.
    RaisedOwner,
    /// A state that could not be handed over to the rounds counts as published.
    FailedCounts,
    /// A clock waits for what is sent no more to a host without workers.
    DesertedWaits,
    /// A cut under way that begins once more is not granted again.
    GrantOnce,
    /// What an owner after the next one says of areas without owner is forgotten, if the group was left and not taken.
    ForgetOwnerless,
    /// Lines are placed before their receiver has heard which they are.
    HastyPlace,
    /// The last state that a receiver may publish is given up when one that is ahead of its clocks leaves.
    GiveUpEarlier,
    /// A cut that is ahead of the clocks of its receiver takes the place of the one before it there.
    HastyAhead,
    /// Of two clocks, the later is told alone.
    LoneClock,
    /// Whoever waits for the state of the express under way goes by it, whatever it has.
    AnyoneJoins,
    /// A cut that is kept has room for half of its lines. No error: it is given up, and sent anew.
    LittleRoom,
    /// A clock counts before all have heard of what was deleted before it.
    HastyClock,
    /// The directory is told of a new area before it has heard that the last one of its name is gone.
    HastyName,
    /// Values count as settled that were not acknowledged.
    HastySettle,
    /// Who has heard of one subscription counts as having heard of all before it.
    LooseNumbers,
    /// A question for what was left to another host is answered without that having said that it has not taken it.
    Unconfirmed,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 34] = [
        Mutant::EarlyCommit,
        Mutant::StaleCut,
        Mutant::ForeignCut,
        Mutant::SplitGroup,
        Mutant::NoLabels,
        Mutant::EarlyFirst,
        Mutant::BareClocks,
        Mutant::ForgetLost,
        Mutant::ForgetRegisters,
        Mutant::EveryoneDecides,
        Mutant::NameTwice,
        Mutant::GroupTwice,
        Mutant::OneSided,
        Mutant::ForgetRefused,
        Mutant::EarlyAnswer,
        Mutant::HastyLeave,
        Mutant::Unasked,
        Mutant::BlindTake,
        Mutant::RaisedOwner,
        Mutant::FailedCounts,
        Mutant::DesertedWaits,
        Mutant::GrantOnce,
        Mutant::ForgetOwnerless,
        Mutant::HastyPlace,
        Mutant::GiveUpEarlier,
        Mutant::HastyAhead,
        Mutant::LoneClock,
        Mutant::AnyoneJoins,
        Mutant::LittleRoom,
        Mutant::HastyClock,
        Mutant::HastyName,
        Mutant::HastySettle,
        Mutant::LooseNumbers,
        Mutant::Unconfirmed,
    ];
}
