//! Registers that are being sent: the newest value of each key, until it is acknowledged.
use crate::wire::{Key, Register, Stage};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Entry {
    register: Register,
    serial: u64,
    known: bool,
    /// The first value since the register was made or ended, and whether that or one after it was acknowledged.
    since: u64,
    heard: bool,
}

/// This host's registers for a peer.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    entries: BTreeMap<Key, Entry>,
    /// Values to be sent, oldest first.
    due: BTreeSet<(u64, Key)>,
    /// One of them does not wait for company.
    urgent: bool,
    last: u64,
    /// The peer is told what it need not remember when so many values were given, and what it was told last.
    settles_at: u64,
    settled: u64,
}

/// The peer is told what it need not remember once for so many values.
const SETTLE_EVERY: u64 = 64;

impl Outbox {
    /// Gives a register a value; its serial.
    pub(super) fn put(&mut self, register: Register) -> u64 {
        let key = register.key();
        let before = self.entries.get(&key).filter(|entry| !is_over(&entry.register) && !is_over(&register));
        let (since, heard) = before.map_or((self.last + 1, false), |entry| (entry.since, entry.heard));
        if let Some(entry) = self.entries.get(&key) {
            if entry.register == register {
                return entry.serial;
            }
            self.due.remove(&(entry.serial, key));
        }
        self.urgent = self.is_urgent() || !may_coalesce(&register);
        self.last += 1;
        self.entries.insert(key, Entry { register, serial: self.last, known: false, since, heard });
        self.due.insert((self.last, key));
        self.last
    }

    /// Whether the newest value of a register was acknowledged.
    pub(super) fn is_known(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.known)
    }

    /// Whether there is a value of a register that has not been acknowledged.
    pub(super) fn is_unheard(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| !entry.known)
    }

    /// Whether some value of a register was acknowledged since it has one. The newest may never be, where it changes all the time.
    pub(super) fn is_heard(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.heard)
    }

    /// Forgets that earlier values of a register were acknowledged: only those from now on count as heard.
    pub(super) fn begin_anew(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            (entry.since, entry.heard) = (self.last + 1, false);
        }
    }

    /// The serial of the newest value.
    pub(super) fn last_serial(&self) -> u64 {
        self.last
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether something is worth a packet of its own at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent && self.has_due()
    }

    /// The next value to be sent.
    pub(super) fn next(&self) -> Option<(u64, &Register)> {
        let (serial, key) = self.due.first()?;
        Some((*serial, &self.entries[key].register))
    }

    /// That value is in a packet.
    pub(super) fn sent(&mut self) -> Option<(Key, u64)> {
        let (serial, key) = self.due.pop_first()?;
        Some((key, serial))
    }

    /// A value was received. Whether it is the last of its register: it is forgotten.
    pub(super) fn acked(&mut self, key: Key, serial: u64) -> bool {
        self.due.remove(&(serial, key));
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        entry.heard |= serial >= entry.since;
        entry.known |= entry.serial == serial;
        let ends = entry.serial == serial && (is_over(&entry.register) || is_answer(&entry.register));
        if ends {
            self.entries.remove(&key);
        }
        ends
    }

    /// The serial below which no value counts that the peer has not received, if it is to be told: now and then, and when there is
    /// nothing else to say.
    pub(super) fn settled(&mut self, is_quiet: bool) -> Option<u64> {
        if self.last < self.settles_at && !is_quiet {
            return None;
        }
        self.settles_at = self.last + SETTLE_EVERY;
        let unknown = self.entries.values().filter(|entry| !entry.known).map(|entry| entry.serial);
        let settled = unknown.min().unwrap_or(self.last + 1);
        let is_more = settled > std::mem::replace(&mut self.settled, settled);
        is_more.then_some(settled)
    }

    pub(super) fn lost(&mut self, key: Key, serial: u64) {
        if self.entries.get(&key).is_some_and(|entry| entry.serial == serial && !entry.known) {
            self.due.insert((serial, key));
            self.urgent = true;
        }
    }

    /// The peer's agent is another one, which knows nothing. Answers to the one before are dropped.
    pub(super) fn restate(&mut self) {
        let is_void = |register: &Register| {
            is_over(register)
                || is_answer(register)
                || matches!(register, Register::Clock { .. } | Register::Card(_))
        };
        self.entries.retain(|_, entry| !is_void(&entry.register));
        (self.settles_at, self.settled) = (0, 0);
        self.due = self.entries.iter().map(|(key, entry)| (entry.serial, *key)).collect();
        self.entries.values_mut().for_each(|entry| (entry.known, entry.heard) = (false, false));
        self.urgent = true;
    }

    /// Says a value no more, if it is the newest: the peer has done what it asks for, and a later agent of it is not to do so again.
    pub(super) fn withdraw(&mut self, register: &Register) {
        let key = register.key();
        if self.entries.get(&key).is_some_and(|entry| entry.register == *register) {
            self.forget(|other| *other == key);
        }
    }

    /// Forgets registers that are about the peer's former agent.
    pub(super) fn forget(&mut self, which: impl Fn(&Key) -> bool) {
        self.entries.retain(|key, _| !which(key));
        self.due.retain(|(_, key)| !which(key));
    }
}

/// Whether a value waits for others, as it is likely to be replaced soon: a cut that is complete is published at the next round.
/// All that its owner does with it is to let a copy go.
fn may_coalesce(register: &Register) -> bool {
    matches!(register, Register::Subscription(_, said) if said.stage == Stage::Complete)
}

/// Whether a value is an answer to what the peer's agent has said: a later one asks again.
fn is_answer(register: &Register) -> bool {
    matches!(
        register,
        Register::Member(..)
            | Register::Named(..)
            | Register::Found(..)
            | Register::Forced(..)
            | Register::Unsent(..)
            | Register::Taken(..)
            | Register::Grant(..)
            | Register::Ownerless(..)
    )
}

/// Whether nobody who hears of the register for the first time needs this value.
fn is_over(register: &Register) -> bool {
    match register {
        Register::Name(_, value) => value.is_none(),
        Register::Lookup(_, value) => value.is_none(),
        Register::Subscription(_, value) => value.stage == Stage::Off,
        Register::Handover(_, value) => value.is_none(),
        Register::Deleted(_, is_answer) => *is_answer,
        _ => false,
    }
}

/// Which values of a peer's registers came. Older ones that come later are stale.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Of each register, the newest that came, if it is not settled.
    serials: BTreeMap<Key, u64>,
    /// All that is older is stale, whether it came or not.
    settled: u64,
}

impl Inbox {
    /// Whether a value is newer than all that came.
    pub(super) fn accept(&mut self, key: Key, serial: u64) -> bool {
        if serial < self.settled {
            return false;
        }
        let last = self.serials.entry(key).or_default();
        let newer = serial > *last;
        *last = serial.max(*last);
        newer
    }

    pub(super) fn len(&self) -> usize {
        self.serials.len()
    }

    /// The peer says what is settled.
    pub(super) fn settle(&mut self, settled: u64) {
        self.settled = settled.max(self.settled);
        self.serials.retain(|_, serial| *serial >= self.settled);
    }

    /// The newest serial of a value, 0 if none came or all that did are settled: then they are older than one that was just accepted.
    pub(super) fn newest(&self, key: &Key) -> u64 {
        self.serials.get(key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Inbox, Outbox, SETTLE_EVERY};
    use crate::types::{AreaId, GroupId, HostId};
    use crate::wire::{Key, Register};

    fn area(group: u64) -> AreaId {
        AreaId { group: GroupId(group), member: 0 }
    }

    fn send(outbox: &mut Outbox) -> (Key, u64) {
        outbox.sent().expect("something is due")
    }

    #[test]
    fn what_is_settled_is_below_all_that_may_still_come() {
        let mut outbox = Outbox::default();
        let first = outbox.put(Register::Ownerless(area(1), true));
        assert_eq!(outbox.settled(false), Some(first), "nothing is acknowledged");
        let second = outbox.put(Register::Suspect(HostId(1), true));
        let (first_sent, second_sent) = (send(&mut outbox), send(&mut outbox));
        assert!(!outbox.acked(second_sent.0, second_sent.1), "a later agent needs it");
        assert_eq!(outbox.settled(true), None, "the first one may still come");
        assert!(outbox.acked(first_sent.0, first_sent.1), "an answer");
        assert_eq!(outbox.settled(false), None, "not yet");
        assert_eq!(outbox.settled(true), Some(second + 1));
        for value in 0..SETTLE_EVERY {
            outbox.put(Register::Suspect(HostId(1), value % 2 == 1));
        }
        assert_eq!(outbox.settled(false), Some(second + SETTLE_EVERY), "all but the last are replaced");
        assert_eq!(outbox.len(), 1);
    }

    #[test]
    fn a_new_agent_is_told_all_but_answers_and_knows_nothing_settled() {
        let mut outbox = Outbox::default();
        let kept = outbox.put(Register::Suspect(HostId(1), true));
        outbox.put(Register::Ownerless(area(1), true));
        outbox.put(Register::Name(area(2), None));
        let (key, serial) = send(&mut outbox);
        outbox.acked(key, serial);
        outbox.settled(true);
        outbox.restate();
        assert_eq!(outbox.settled(true), Some(kept));
        assert_eq!(send(&mut outbox), (Key::Suspect(HostId(1)), kept));
        assert!(!outbox.has_due());
    }

    #[test]
    fn what_is_settled_is_stale_and_forgotten() {
        let mut inbox = Inbox::default();
        let keys = [1, 2].map(|group| Key::Member(area(group)));
        assert!(inbox.accept(keys[0], 3) && inbox.accept(keys[1], 6));
        inbox.settle(5);
        assert_eq!(inbox.len(), 1);
        assert!(!inbox.accept(keys[0], 4), "it came before, or does not count");
        assert!(!inbox.accept(keys[1], 6) && inbox.accept(keys[0], 5));
        inbox.settle(2);
        assert!(!inbox.accept(Key::Clock, 4), "what is settled stays so");
    }
}
