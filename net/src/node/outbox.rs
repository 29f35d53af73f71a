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
}

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

    pub(super) fn acked(&mut self, key: Key, serial: u64) {
        self.due.remove(&(serial, key));
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.heard |= serial >= entry.since;
        if entry.serial == serial {
            entry.known = true;
            if is_over(&entry.register) {
                self.entries.remove(&key);
            }
        }
    }

    pub(super) fn lost(&mut self, key: Key, serial: u64) {
        if self.entries.get(&key).is_some_and(|entry| entry.serial == serial && !entry.known) {
            self.due.insert((serial, key));
            self.urgent = true;
        }
    }

    /// The peer knows nothing any more.
    pub(super) fn restate(&mut self) {
        self.entries.retain(|_, entry| !is_over(&entry.register));
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
    serials: BTreeMap<Key, u64>,
}

impl Inbox {
    /// Whether a value is newer than all that came.
    pub(super) fn accept(&mut self, key: Key, serial: u64) -> bool {
        let last = self.serials.entry(key).or_default();
        let newer = serial > *last;
        *last = serial.max(*last);
        newer
    }

    /// The newest serial of a value, 0 if none came.
    pub(super) fn newest(&self, key: &Key) -> u64 {
        self.serials.get(key).copied().unwrap_or_default()
    }
}
