//! The ownership word: who may write an area, under which epoch.
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};

/// `epoch << 24 | SLEEP | state << 20 | rank`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnershipWord(pub(crate) u64);

const STATE: u64 = 0b111 << 20;
const HELD: u64 = 1 << 20;
const TRANSIT: u64 = 2 << 20;
const CLAIMABLE: u64 = 3 << 20;
const LENT: u64 = 4 << 20;
const LEFT_LENT: u64 = 5 << 20;
const OPEN: u64 = 6 << 20;
const REMOTE: u64 = 7 << 20;
/// The recipient sleeps on the word.
pub(crate) const SLEEP: u64 = 1 << 23;
const RANK: u64 = (1 << 20) - 1;
/// In the place of the rank of a REMOTE word: what is below it is the rank to which a worker of this host gave the area, not the
/// place of a host.
const GIVEN: u64 = 1 << 19;
/// In the place of the rank of a REMOTE word: the owner has dropped the area, as its host says, so that nobody gives it.
const DROPPED: u64 = 1 << 18;
/// In an OPEN word: to tasks that were checked ([`super::tasks`]), and not by atomics.
const TASKS: u64 = 1 << 19;
/// In the place of the rank of a TRANSIT word: no worker has it. The area was released, and whoever is first acquires it.
const ANYBODY: u32 = RANK as u32;

impl OwnershipWord {
    pub(crate) const fn held(rank: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | HELD | rank as u64)
    }

    /// Given to `to`, who has not taken it yet.
    pub(crate) const fn transit(to: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | TRANSIT | to as u64)
    }

    /// Dropped by `last`: anybody may claim it.
    pub(crate) const fn claimable(last: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | CLAIMABLE | last as u64)
    }

    /// Lent by `owner` to everybody for reading.
    pub(crate) const fn lent(owner: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | LENT | owner as u64)
    }

    /// Lent by `last`, who is gone: everybody reads on, anybody may claim it.
    const fn left_lent(last: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | LEFT_LENT | last as u64)
    }

    /// Opened by `owner` to everybody for reading and writing by atomics.
    pub(crate) const fn open(owner: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | OPEN | owner as u64)
    }

    /// Opened by `owner` to the tasks of all workers, which were checked.
    pub(crate) const fn open_to_tasks(owner: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | OPEN | TASKS | owner as u64)
    }

    /// Owned by a worker of another host: of that one, if it is known.
    pub(crate) fn remote(host: Option<usize>, epoch: u64) -> OwnershipWord {
        let place = host.map_or(0, |host| (host as u64 + 1).min(DROPPED - 1));
        OwnershipWord(epoch << 24 | REMOTE | place)
    }

    /// Left to worker `to` of another host, to which a worker of this one gave it.
    fn left(to: u32, epoch: u64) -> OwnershipWord {
        OwnershipWord(epoch << 24 | REMOTE | GIVEN | u64::from(to))
    }

    /// The host of an owner that is on another one, as far as it is known.
    pub(crate) const fn host(self) -> Option<usize> {
        if self.is_remote() && self.0 & GIVEN == 0 {
            ((self.0 & (DROPPED - 1)) as usize).checked_sub(1)
        } else {
            None
        }
    }

    /// The worker of another host to which one of this host gave the area, which was left to it.
    pub(crate) const fn left_to(self) -> Option<u32> {
        if self.is_remote() && self.0 & GIVEN != 0 { Some((self.0 & (DROPPED - 1)) as u32) } else { None }
    }

    /// Whether the owner is a worker of another host: the agent writes the writer copy.
    pub(crate) const fn is_remote(self) -> bool {
        self.0 & STATE == REMOTE
    }

    /// Whether nobody gives the area, as its owner, on another host, has dropped it.
    pub(crate) const fn is_dropped_elsewhere(self) -> bool {
        self.is_remote() && self.0 & DROPPED != 0
    }

    /// Whether nobody of this host is responsible for an area of this host: it was dropped, and may be claimed.
    pub(crate) const fn is_dropped(self) -> bool {
        matches!(self.0 & STATE, CLAIMABLE | LEFT_LENT)
    }

    /// Whether everybody may read and write the writer copy by atomics.
    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        self.0 & (STATE | TASKS) == OPEN
    }

    /// Whether tasks that were checked may read and write the writer copy.
    #[inline]
    pub(crate) const fn is_open_to_tasks(self) -> bool {
        self.0 & (STATE | TASKS) == OPEN | TASKS
    }

    /// Whether everybody may read the writer copy.
    #[inline]
    pub(crate) const fn is_lent(self) -> bool {
        matches!(self.0 & STATE, LENT | LEFT_LENT)
    }

    pub(crate) const fn rank(self) -> u32 {
        let rank = if self.is_open_to_tasks() { self.0 & (TASKS - 1) } else { self.0 & RANK };
        rank as u32
    }

    pub(crate) const fn epoch(self) -> u64 {
        self.0 >> 24
    }

    /// Who of this host is responsible for the area: its owner, or the recipient while it is in transit.
    pub(crate) const fn holder(self) -> Option<u32> {
        match self.0 & STATE {
            TRANSIT if self.is_released() => None,
            HELD | TRANSIT | LENT | OPEN => Some(self.rank()),
            _ => None,
        }
    }

    /// Whether it was released, and nobody has acquired it.
    pub(crate) const fn is_released(self) -> bool {
        self.is_transit() && self.rank() == ANYBODY
    }

    pub(crate) const fn is_transit(self) -> bool {
        self.0 & STATE == TRANSIT
    }

    const fn awake(self) -> OwnershipWord {
        OwnershipWord(self.0 & !SLEEP)
    }

    /// Whether worker `me` has the area under `epoch`: holds it, or took it and left the word as the giver
    /// wrote it. Whether it took it, the worker alone knows.
    #[inline]
    pub(crate) const fn is_of(self, me: u32, epoch: u64) -> bool {
        const { assert!(TRANSIT == HELD + HELD) };
        self.awake().0.wrapping_sub(OwnershipWord::held(me, epoch).0) & !HELD == 0
    }
}

impl std::fmt::Display for OwnershipWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, epoch) = (self.rank(), self.epoch());
        match self.0 & STATE {
            HELD => write!(f, "owned by worker {rank}, epoch {epoch}"),
            TRANSIT if self.is_released() => write!(f, "released, epoch {epoch}"),
            TRANSIT => write!(f, "on its way to worker {rank}, epoch {epoch}"),
            CLAIMABLE => write!(f, "claimable, last owned by worker {rank}, epoch {epoch}"),
            LENT => write!(f, "lent to all readers by worker {rank}, epoch {epoch}"),
            OPEN if self.is_open_to_tasks() => {
                write!(f, "opened to tasks by worker {rank}, epoch {epoch}")
            }
            OPEN => write!(f, "opened to all by worker {rank}, epoch {epoch}"),
            REMOTE if self.is_dropped_elsewhere() => {
                write!(f, "dropped by its owner on another host, epoch {epoch}")
            }
            REMOTE => write!(f, "owned by a worker of another host, epoch {epoch}"),
            LEFT_LENT => write!(f, "claimable, lent to all readers by worker {rank}, epoch {epoch}"),
            _ => write!(f, "not owned"),
        }
    }
}

impl std::fmt::Debug for OwnershipWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[inline]
pub(crate) fn load(word: &AtomicU64) -> OwnershipWord {
    // Acquire: pairs with the release of `give` and `let_go`, so that the new owner sees the writer copy.
    OwnershipWord(word.load(Ordering::Acquire))
}

/// The word, for one who reads the area in place if it is lent, and holds no view from before; also for the agent, which only asks
/// whether it is lent.
#[inline]
pub(crate) fn load_to_read(word: &AtomicU64) -> OwnershipWord {
    // SeqCst: after the reader's last arrival, or after a round that it saw past; pairs with `recall`.
    // Acquire: pairs with `lend`.
    OwnershipWord(word.load(Ordering::SeqCst))
}

/// The word, for one who is about to ask whether its holder is gone, and then to [`seize`] it.
pub(crate) fn load_to_claim(word: &AtomicU64) -> OwnershipWord {
    // SeqCst: comes before the look at the holder's seat; pairs with `orphan`, which comes after the store of the seat's
    // state: if the seat was free at that look, `orphan` finds what is seen here, or newer.
    OwnershipWord(word.load(Ordering::SeqCst))
}

/// Gives the area to `to`, if `me` has it under `epoch`; whether `to` sleeps and must be woken. `None` if it is not this
/// worker's any more.
#[inline]
pub(crate) fn give(word: &AtomicU64, me: u32, to: u32, epoch: u64) -> Option<bool> {
    fault_point();
    // Relaxed: an owner reads its own word.
    let mut seen = OwnershipWord(word.load(Ordering::Relaxed));
    while seen.is_of(me, epoch) {
        // Compare and swap: another who waits for the area may set the sleep mark, and who takes areas from living owners, as
        // agents will, may have been faster. Release: everything that the giver wrote, log included, comes before; pairs with
        // `load`.
        let next = OwnershipWord::transit(to, epoch + 1).0;
        match word.compare_exchange(seen.0, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(old) => return Some(old & SLEEP != 0),
            Err(now) => seen = OwnershipWord(now),
        }
    }
    None
}

/// Lays the area down for anybody, if `me` has it under `epoch`; whether somebody sleeps on the word. `None` if it is not this
/// worker's any more.
pub(crate) fn release(word: &AtomicU64, me: u32, epoch: u64) -> Option<bool> {
    give(word, me, ANYBODY, epoch)
}

/// Acquires an area that was released; the new epoch, or `None` if somebody was faster, or it was not released.
pub(crate) fn acquire(word: &AtomicU64, me: u32) -> Option<u64> {
    // Relaxed: nothing is done on the strength of this look alone.
    let mut seen = OwnershipWord(word.load(Ordering::Relaxed));
    while seen.is_released() {
        let epoch = seen.epoch() + 1;
        // Whoever sleeps on the word is woken when the area goes on.
        let next = OwnershipWord::held(me, epoch).0 | seen.0 & SLEEP;
        // Compare and swap: of those who are here at once, one gets it. Acquire: pairs with the release of `release`, so
        // that the new owner sees the writer copy. AcqRel, and not Acquire: what was written before stays before.
        match word.compare_exchange(seen.0, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                fault_point();
                return Some(epoch);
            }
            Err(now) => seen = OwnershipWord(now),
        }
    }
    None
}

/// The epoch under which the area is on its way to `me`, or was taken by `me` already, which `me` knows.
///
/// To take it, nothing has to be written. Nobody else may change the word, except to set the sleep mark: a
/// claimer who found the recipient's slot free is kept off because whoever takes a slot first makes
/// claimable what is on its way there (`orphan`).
#[inline]
pub(crate) fn given(word: &AtomicU64, me: u32) -> Option<u64> {
    let seen = load(word);
    (seen.is_transit() && seen.rank() == me).then(|| seen.epoch())
}

/// Says in the word that `me` has taken what was on its way to it: for areas that rounds treat in another way
/// once they are taken.
pub(crate) fn hold(word: &AtomicU64, me: u32) {
    let mut seen = load(word);
    while seen.is_transit() && seen.rank() == me {
        // Compare and swap: another who waits for the area may set the sleep mark. Relaxed: it orders
        // nothing, the acquire did.
        let held = OwnershipWord(OwnershipWord::held(me, seen.epoch()).0 | seen.0 & SLEEP);
        match word.compare_exchange(seen.0, held.0, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => return fault_point(),
            Err(now) => seen = OwnershipWord(now),
        }
    }
}

/// Lets go of the area without a recipient: it becomes claimable. True if somebody sleeps on the word.
pub(crate) fn let_go(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    leave(word, |seen| seen.is_of(me, epoch), OwnershipWord::claimable(me, epoch))
}

/// Lends the area to all readers; true if somebody sleeps on the word. `ever` says from then on that there may be views.
pub(crate) fn lend(word: &AtomicU64, ever: &AtomicU32, me: u32, epoch: u64) -> bool {
    note_views(ever);
    leave(word, |seen| seen.is_of(me, epoch), OwnershipWord::lent(me, epoch))
}

fn note_views(ever: &AtomicU32) {
    // Relaxed: comes before the release of the ownership word, and a claimer acquires that.
    ever.store(1, Ordering::Relaxed);
}

/// Whether there may be views of an area, lent or open now or before; for one who has claimed it.
pub(crate) fn may_have_views(ever: &AtomicU32) -> bool {
    ever.load(Ordering::Relaxed) != 0
}

/// Lets go of an area that is lent: it stays readable.
pub(crate) fn let_go_lent(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    leave(word, |seen| seen.awake() == OwnershipWord::lent(me, epoch), OwnershipWord::left_lent(me, epoch))
}

/// Opens the area to all; true if somebody sleeps on the word. `ever` as in [`lend`].
pub(crate) fn open(word: &AtomicU64, ever: &AtomicU32, me: u32, epoch: u64) -> bool {
    note_views(ever);
    leave(word, |seen| seen.is_of(me, epoch), OwnershipWord::open(me, epoch))
}

/// Opens the area to tasks; true if somebody sleeps on the word. `ever` as in [`lend`].
pub(crate) fn open_to_tasks(word: &AtomicU64, ever: &AtomicU32, me: u32, epoch: u64) -> bool {
    note_views(ever);
    leave(word, |seen| seen.is_of(me, epoch), OwnershipWord::open_to_tasks(me, epoch))
}

/// Lets go of an area that is open to tasks: it becomes claimable.
pub(crate) fn let_go_of_tasks(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    let is_mine = |seen: OwnershipWord| seen.awake() == OwnershipWord::open_to_tasks(me, epoch);
    leave(word, is_mine, OwnershipWord::claimable(me, epoch))
}

/// Takes an area back that is open to tasks, under a new epoch; false if it is not this worker's any more.
pub(crate) fn close_to_tasks(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    take_back(word, OwnershipWord::open_to_tasks(me, epoch), me, epoch)
}

/// Lets go of an area that is open: it becomes claimable.
pub(crate) fn let_go_open(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    leave(word, |seen| seen.awake() == OwnershipWord::open(me, epoch), OwnershipWord::claimable(me, epoch))
}

/// Takes a lent area back under a new epoch; false if it is not this worker's any more.
pub(crate) fn recall(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    take_back(word, OwnershipWord::lent(me, epoch), me, epoch)
}

/// Takes an open area back under a new epoch; false if it is not this worker's any more.
pub(crate) fn close(word: &AtomicU64, me: u32, epoch: u64) -> bool {
    take_back(word, OwnershipWord::open(me, epoch), me, epoch)
}

fn take_back(word: &AtomicU64, left: OwnershipWord, me: u32, epoch: u64) -> bool {
    let mut seen = load(word);
    while seen.awake() == left {
        // SeqCst: comes before the owner's look at the round word, see SYNC.md, "lending"; pairs with the loads
        // of `read_lent`.
        let next = OwnershipWord(OwnershipWord::held(me, epoch + 1).0 | seen.0 & SLEEP);
        match word.compare_exchange(seen.0, next.0, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => {
                fault_point();
                return true;
            }
            Err(now) => seen = OwnershipWord(now),
        }
    }
    false
}

/// Changes the word to `next` if it is the caller's own, and not somebody else's after a claim; true if somebody slept on it.
fn leave(word: &AtomicU64, is_mine: impl Fn(OwnershipWord) -> bool, next: OwnershipWord) -> bool {
    change(word, is_mine, next).unwrap_or(false)
}

/// Takes the area over from a holder that is dead, or from nobody: `seen` becomes held by `me`, under a new
/// epoch. False if somebody was faster.
pub(crate) fn seize(word: &AtomicU64, seen: OwnershipWord, me: u32) -> bool {
    // SeqCst: comes before the claimer's look at the area's lock, see SYNC.md, "claims".
    word.compare_exchange(
        seen.0,
        OwnershipWord::held(me, seen.epoch() + 1).0,
        Ordering::SeqCst,
        Ordering::SeqCst,
    )
    .is_ok()
}

/// Makes claimable what worker `dead` held, or was given. True if there was something.
pub(crate) fn orphan(word: &AtomicU64, dead: u32) -> bool {
    // SeqCst: comes after the store of the seat's state, see SYNC.md, "the ownership lock"; pairs with `load_to_claim`.
    let mut seen = OwnershipWord(word.load(Ordering::SeqCst));
    while seen.holder() == Some(dead) {
        let left = if seen.is_lent() { OwnershipWord::left_lent } else { OwnershipWord::claimable };
        let next = left(dead, seen.epoch());
        match word.compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(now) => seen = OwnershipWord(now),
        }
    }
    false
}

/// Leaves an area, which a worker of this host has given to worker `to` of another, to that host; true if somebody sleeps on the
/// word. `None` if it is not on its way there under this epoch.
pub(crate) fn leave_to(word: &AtomicU64, to: u32, epoch: u64) -> Option<bool> {
    let is_given = |seen: OwnershipWord| seen.awake() == OwnershipWord::transit(to, epoch);
    change(word, is_given, OwnershipWord::left(to, epoch))
}

/// An area whose owner was on another host is on its way to worker `to` of this one; or anybody may claim it, since that one is
/// `gone`. True if somebody sleeps on the word; `None` if it is not another host's, or has had a later owner.
pub(crate) fn arrive(word: &AtomicU64, to: u32, epoch: u64, gone: bool) -> Option<bool> {
    let next = if gone { OwnershipWord::claimable(to, epoch) } else { OwnershipWord::transit(to, epoch) };
    change(word, |seen| seen.is_remote() && seen.epoch() < epoch, next)
}

/// The owner of an area of another host is on host `host` now; `None` if that is known, or a later one.
pub(crate) fn refer(word: &AtomicU64, host: usize, epoch: u64) -> Option<bool> {
    let next = OwnershipWord::remote(Some(host), epoch);
    change(word, |seen| seen.is_remote() && seen.epoch() < epoch, next)
}

/// An area that was left to worker `to` of host `host` has come there. `None` if it was not left to that one, as of this epoch.
pub(crate) fn has_come(word: &AtomicU64, to: u32, host: usize, epoch: u64) -> Option<bool> {
    let next = OwnershipWord::remote(Some(host), epoch);
    change(word, |seen| seen.left_to() == Some(to) && seen.epoch() == epoch, next)
}

/// Notes that the owner of an area of another host has dropped it, or that there is one again; `None` if that is known, or it is not
/// another host's.
pub(crate) fn note_dropped(word: &AtomicU64, is: bool) -> Option<bool> {
    let mut seen = load(word);
    while seen.is_remote() && seen.is_dropped_elsewhere() != is {
        let next = seen.awake().0 ^ DROPPED;
        // Relaxed: it orders nothing, and the release sequence of who left the area goes on. Acquire: as in `load`.
        match word.compare_exchange(seen.0, next, Ordering::Relaxed, Ordering::Acquire) {
            Ok(old) => return Some(old & SLEEP != 0),
            Err(now) => seen = OwnershipWord(now),
        }
    }
    None
}

/// Changes the word to `next` if `may` says so of what it is; true if somebody slept on it.
fn change(word: &AtomicU64, may: impl Fn(OwnershipWord) -> bool, next: OwnershipWord) -> Option<bool> {
    let mut seen = load(word);
    while may(seen) {
        // Release: pairs with `load` of who takes, claims or reads it: what was written, what has arrived, and what is logged of
        // it. Acquire: pairs with the release in `give`, so that what a giver wrote comes before what arrives.
        match word.compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(old) => {
                fault_point();
                return Some(old & SLEEP != 0);
            }
            Err(now) => seen = OwnershipWord(now),
        }
    }
    None
}

/// Whether nobody gives an area any more to `me`, who found its word to be `seen` and waited: its holder is gone, or it was dropped,
/// here or on another host. `is_gone` tells of workers.
pub(crate) fn is_given_up(
    word: &AtomicU64,
    seen: OwnershipWord,
    me: u32,
    is_gone: impl FnOnce(u32) -> bool,
) -> bool {
    let gone = match seen.holder() {
        None => !seen.is_remote() || seen.is_dropped_elsewhere(),
        Some(holder) => holder != me && is_gone(holder),
    };
    // The word may have moved on since: a giver may have given and left, or there may be an owner again.
    gone && load(word).awake() == seen.awake()
}

/// Sets the sleep mark if the word is still `seen`.
pub(crate) fn mark_sleeper(word: &AtomicU64, seen: OwnershipWord) -> bool {
    // Relaxed: it orders nothing, and the release sequence of the giver goes on.
    word.compare_exchange(seen.0, seen.0 | SLEEP, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
