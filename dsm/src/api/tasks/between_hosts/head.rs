//! The head of a ring: what a worker says of itself to the workers of another host.
use crate::error::Rank;
use crate::segment::layout::LINE;
use std::ops::Range;

/// How a worker's part in a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// It is in none.
    #[default]
    None = 0,
    /// It has begun.
    Begun = 1,
    /// It has done all its tasks.
    Finished = 2,
    /// It has left before that.
    Left = 3,
    /// It does not begin: something is wrong with what it was given.
    Refused = 4,
}

/// See the head of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Which run it is in, by a number that it has for that run alone.
    pub(super) run: u64,
    /// The same for the same tasks, whatever they are.
    pub(super) digest: u64,
    pub(super) state: State,
    /// 1 + the worker because of which it has left or does not begin, or 0.
    pub(super) blamed: u32,
    /// How many tasks it has done.
    pub(super) done: u64,
    /// Bytes of its stream before the run.
    pub(super) base: u64,
    /// Bytes of its stream in all.
    pub(super) sent: u64,
    /// How many workers of its host are gone that had not done all their tasks; marks say which ([`place_of_gone`]).
    pub(super) gone: u64,
    /// For the workers of its own host: the round since which all of them have to pass a synchronization point before the run.
    pub(super) since: u64,
}

/// Bytes of the head itself.
const HEAD: usize = LINE as usize;

/// Bytes before the stream, in a ring from a host of so many ranks to one of so many: the head, for each rank there how much of its stream
/// is in place, and for each rank here whether its worker is gone.
pub(super) fn head_bytes(from: usize, to: usize) -> usize {
    place_of_gone(from, to).end.next_multiple_of(LINE as usize)
}

/// Where it stands which workers of the host from which a ring comes are gone, a byte for each.
pub(super) fn place_of_gone(from: usize, to: usize) -> Range<usize> {
    HEAD + to * 8..HEAD + to * 8 + from
}

/// Where it stands how much of the stream of the `number`-th rank of the host is in place.
pub(super) fn place_of_ack(number: usize) -> Range<usize> {
    HEAD + number * 8..HEAD + number * 8 + 8
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|k| bytes[at * 8 + k]))
}

/// How much of the stream of the `number`-th rank of the host is in place, as a ring has it.
pub(super) fn ack(ring: &[u8], number: usize) -> u64 {
    word(&ring[place_of_ack(number)], 0)
}

impl Head {
    /// The worker because of which this one, of rank `rank`, has left or does not begin: itself, if no other.
    pub(super) fn cause(&self, rank: Rank) -> Rank {
        self.because_of().unwrap_or(rank)
    }

    /// The same, if it is another.
    pub(super) fn because_of(&self) -> Option<Rank> {
        self.blamed.checked_sub(1)
    }

    /// The head of a ring.
    pub(super) fn of(ring: &[u8]) -> Head {
        let state = match word(ring, 2) as u32 {
            1 => State::Begun,
            2 => State::Finished,
            3 => State::Left,
            4 => State::Refused,
            _ => State::None,
        };
        Head {
            run: word(ring, 0),
            digest: word(ring, 1),
            state,
            blamed: (word(ring, 2) >> 32) as u32,
            done: word(ring, 3),
            base: word(ring, 4),
            sent: word(ring, 5),
            gone: word(ring, 6),
            since: word(ring, 7),
        }
    }

    pub(super) fn bytes(&self) -> [u8; HEAD] {
        let words = [
            self.run,
            self.digest,
            u64::from(self.blamed) << 32 | self.state as u64,
            self.done,
            self.base,
            self.sent,
            self.gone,
            self.since,
        ];
        bytemuck::cast(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        for state in [State::None, State::Begun, State::Finished, State::Left, State::Refused] {
            let head = Head {
                run: 1 << 40,
                digest: u64::MAX,
                state,
                blamed: 7,
                done: 3,
                base: 5,
                sent: 1 << 33,
                gone: 4,
                since: 9,
            };
            assert_eq!(Head::of(&head.bytes()), head);
        }
        assert_eq!(
            (head_bytes(1, 1), head_bytes(1, 8), head_bytes(56, 1), head_bytes(57, 1)),
            (128, 192, 128, 192)
        );
        assert_eq!(place_of_ack(8).end, place_of_gone(3, 9).start);
    }
}
