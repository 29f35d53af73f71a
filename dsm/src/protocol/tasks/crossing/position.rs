//! How far a stream of pieces is: what comes next, in the order in which it is sent.
use super::{Piece, Route};

/// Bytes of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) array: usize,
    /// From the array's first byte on.
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

/// A place in all that one worker sends to a host in a run: what is before the first task, then what follows each task of each pass, then
/// what goes home.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// Bytes before it.
    pub(crate) bytes: u64,
    is_begun: bool,
    /// The place among the pieces of a pass, those before the first task, or those in the end.
    at: usize,
    pass: usize,
    /// Bytes of the piece that come before it.
    within: usize,
}

impl Position {
    /// The piece that is next; `None` behind the last.
    fn piece(&mut self, route: &Route, passes: usize) -> Option<Piece> {
        if passes == 0 {
            return None;
        }
        if !self.is_begun {
            if let Some(piece) = route.initial.get(self.at) {
                return Some(*piece);
            }
            (self.is_begun, self.at) = (true, 0);
        }
        while self.pass < passes {
            let is_last = self.pass + 1 == passes;
            let is_sent = |(in_last, _): &(bool, Piece)| *in_last || !is_last;
            if let Some(skipped) = route.pieces[self.at..].iter().position(is_sent) {
                self.at += skipped;
                return Some(route.pieces[self.at].1);
            }
            (self.pass, self.at) = (self.pass + 1, 0);
        }
        route.home.get(self.at).copied()
    }

    /// The next stretch, of `most` bytes at most, which comes before the place from then on; `None` at the end. `unit_bytes` has the size of
    /// a unit of each array.
    pub(crate) fn next(
        &mut self,
        route: &Route,
        passes: usize,
        unit_bytes: &[usize],
        most: usize,
    ) -> Option<Stretch> {
        loop {
            let piece = self.piece(route, passes)?;
            let unit = unit_bytes[piece.array as usize];
            let left = piece.count as usize * unit - self.within;
            let bytes = left.min(most);
            let start = piece.first as usize * unit + self.within;
            if bytes == left {
                (self.at, self.within) = (self.at + 1, 0);
            } else {
                self.within += bytes;
            }
            self.bytes += bytes as u64;
            if bytes > 0 || most == 0 {
                return Some(Stretch { array: piece.array as usize, start, bytes });
            }
        }
    }
}
