//! Workers of a host want what a group of another is now.

/// A request that is not answered.
#[derive(Debug)]
struct Request {
    /// Its number; several may have one, after a start of the agent.
    number: u32,
    /// The owner's round of what was the newest then.
    newest: u64,
}

/// The requests for a group.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    last: u32,
    open: Vec<Request>,
}

impl Requests {
    /// Somebody wants the group, of which the owner's round `newest` is the newest; the number of the request.
    pub(crate) fn make(&mut self, newest: u64) -> u32 {
        self.last += 1;
        self.open.push(Request { number: self.last, newest });
        self.last
    }

    /// Another agent counts anew; the number of what it is to ask again, if there is anything.
    pub(crate) fn restart(&mut self) -> Option<u32> {
        self.last = u32::from(!self.open.is_empty());
        self.open.iter_mut().for_each(|request| request.number = 1);
        (self.last > 0).then_some(self.last)
    }

    /// All requests up to this number are answered: the newest round that they have to have; none if there are no such requests.
    pub(crate) fn answer(&mut self, number: u32) -> Option<u64> {
        let newest =
            self.open.iter().filter(|request| request.number <= number).map(|request| request.newest).max();
        self.open.retain(|request| request.number > number);
        newest
    }

    /// Whether somebody asked since the agent began.
    pub(crate) fn were_any(&self) -> bool {
        self.last > 0
    }

    /// Whether nobody waits for an answer.
    pub(crate) fn are_answered(&self) -> bool {
        self.open.is_empty()
    }
}
