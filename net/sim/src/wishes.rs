//! Workers of a host want what a group of another is now.

/// A wish that is not answered.
#[derive(Debug)]
struct Wish {
    /// Its number; several may have one, after a start of the agent.
    number: u32,
    /// The owner's round of what was the newest then.
    newest: u64,
}

/// The wishes for a group.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    last: u32,
    open: Vec<Wish>,
}

impl Wishes {
    /// Somebody wants the group, of which the owner's round `newest` is the newest; the number of the wish.
    pub(crate) fn make(&mut self, newest: u64) -> u32 {
        self.last += 1;
        self.open.push(Wish { number: self.last, newest });
        self.last
    }

    /// Another agent counts anew; the number of what it is to ask again, if there is anything.
    pub(crate) fn restart(&mut self) -> Option<u32> {
        self.last = u32::from(!self.open.is_empty());
        self.open.iter_mut().for_each(|wish| wish.number = 1);
        (self.last > 0).then_some(self.last)
    }

    /// All wishes up to this number are answered: the newest round that they have to have; none if there are no such wishes.
    pub(crate) fn answer(&mut self, number: u32) -> Option<u64> {
        let newest = self.open.iter().filter(|wish| wish.number <= number).map(|wish| wish.newest).max();
        self.open.retain(|wish| wish.number > number);
        newest
    }

    /// Whether nobody waits for an answer.
    pub(crate) fn are_answered(&self) -> bool {
        self.open.is_empty()
    }
}
