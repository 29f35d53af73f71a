//! An area's identity between hosts, as an agent stores it in the area's slot for the agents after it.
//!
//! Three words: the group; the member plus one, with a bit that says whether the directory has accepted the name; and the last member of
//! the group, which also counts those that were deleted. They are written in this order. If the second word is zero, the agent died
//! while writing, and the note is incomplete.
use hectare_dsm as dsm;
use hectare_dsm::agent::Agent;
use hectare_net::{AreaId, GroupId};

/// In the second word.
const ACCEPTED: u64 = 1 << 32;

/// The note of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: AreaId,
    pub(crate) accepted: bool,
    /// The last member of its group that there was.
    pub(crate) last: u16,
}

impl Note {
    /// That of an area, if it has one and that is whole.
    pub(crate) fn read(agent: &Agent, area: dsm::AreaId) -> Option<Note> {
        Note::from_words(agent.note(area)?)
    }

    pub(crate) fn write(self, agent: &Agent, area: dsm::AreaId) {
        agent.set_note(area, self.words());
    }

    /// The directory has accepted the name of an area.
    pub(crate) fn accept(agent: &Agent, area: dsm::AreaId) {
        if let Some(note) = Note::read(agent, area) {
            Note { accepted: true, ..note }.write(agent, area);
        }
    }

    pub(crate) fn words(self) -> [u64; 3] {
        let place = u64::from(self.id.member) + 1;
        let accepted = if self.accepted { ACCEPTED } else { 0 };
        [self.id.group.0, place | accepted, u64::from(self.last)]
    }

    fn from_words([group, place, last]: [u64; 3]) -> Option<Note> {
        let member = u16::try_from((place & 0xffff_ffff).checked_sub(1)?).ok()?;
        let id = AreaId { group: GroupId(group), member };
        Some(Note { id, accepted: place & ACCEPTED != 0, last: u16::try_from(last).unwrap_or(member) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let id = AreaId { group: GroupId(7 << 48 | 3), member: u16::MAX };
        for accepted in [false, true] {
            let note = Note { id, accepted, last: u16::MAX };
            assert_eq!(Note::from_words(note.words()), Some(note));
        }
        assert_eq!(Note::from_words([1, 0, 0]), None, "its writer died after the first word");
        assert_eq!(Note::from_words([1, ACCEPTED, 0]), None);
        assert_eq!(Note::from_words([1, 1 << 20, 0]), None, "no member has that number");
    }
}
