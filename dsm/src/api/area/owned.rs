//! The writer's side of an area.
use super::guard::WriteGuard;
use super::handle::{Area, out_of_range};
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::runtime::owned_set::{Hand, OwnedSet};
use crate::engine::runtime::scan::Scanned;
use crate::engine::unchanged::forget_unchanged;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::primitive::AtomicU64;
use crate::protocol::ownership;
use crate::protocol::ownership::OwnershipWord;
use crate::segment::element::Element;
use crate::segment::layout::LINE;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An area that this worker owns: the right to write it.
///
/// Not `Clone` and not `Send`: between workers it goes by [`Owned::give`] and [`Area::take`]. Dropping it,
/// also by unwinding, makes the area claimable ([`Worker::claim`]).
///
/// ```compile_fail
/// # use hectare_dsm::Owned;
/// fn needs_send<T: Send>(_: T) {}
/// fn broken(owned: Owned<f32>) { needs_send(owned) }
/// ```
pub struct Owned<T: Element> {
    /// Two words in all, so that it goes through calls in registers.
    hand: Rc<Hand>,
    epoch: u64,
    element: PhantomData<(T, *const ())>,
}

impl<T: Element> std::fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owned")
            .field("name", &self.core().name)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// The address of the log of an owned area ([`Owned::raw_log`]).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawLog {
    /// One bit for each 64 bytes of the writer copy, the lowest bit first; bits beyond its end are zero. For
    /// reading, by the thread of the owner, while it owns the area: others write here only while it is in a
    /// call.
    pub words: *const u64,
    /// If rows are logged as a whole, one bit tells whether a row is logged: that of the byte so far behind the
    /// row's first.
    pub row_probe: Option<usize>,
}

/// A refused [`Owned::give`]: the area stays with its owner.
pub struct GiveError<T: Element> {
    /// Why.
    pub error: Error,
    /// The area.
    pub owned: Owned<T>,
}

impl<T: Element> std::fmt::Debug for GiveError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GiveError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T: Element> std::fmt::Display for GiveError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: Element> std::error::Error for GiveError<T> {}

impl<T: Element> From<GiveError<T>> for Error {
    fn from(refused: GiveError<T>) -> Error {
        refused.error
    }
}

impl<T: Element> Owned<T> {
    /// The handle of an area that the worker has just come to own under `epoch`.
    pub(crate) fn begin(core: &Arc<AreaCore>, worker: &Worker, epoch: u64) -> Owned<T> {
        Owned::taken(core, worker, epoch).expect("an epoch begins once")
    }

    /// The handle of an area that is on its way to the worker under `epoch`; `None` if it has taken it already.
    #[inline(always)]
    pub(crate) fn taken(core: &Arc<AreaCore>, worker: &Worker, epoch: u64) -> Option<Owned<T>> {
        let hand = OwnedSet::begin(worker.local(), worker.rank(), core, epoch)?;
        if core.looked_through {
            Owned::<T>::look_through(&hand);
        }
        Some(Owned { hand, epoch, element: PhantomData })
    }

    #[cold]
    fn look_through(hand: &Hand) {
        // A round lets an area pass that is on its way, since its giver has looked it through.
        ownership::hold(&hand.core.slot().own.ownership, hand.rank);
        if let Some(scanned) = Scanned::of(&hand.core) {
            hand.local.scanned.borrow_mut().push(scanned);
        }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<AreaCore> {
        &self.hand.core
    }

    /// The worker no longer owns the area.
    #[inline]
    pub(crate) fn end(&self) {
        self.hand.local.owned.end(self.core().id, self.epoch);
        if self.core().looked_through {
            self.hand.local.scanned.borrow_mut().retain(|scanned| !scanned.is_of(self.core()));
        }
    }

    /// The area's name.
    pub fn name(&self) -> &str {
        &self.core().name
    }

    /// Elements in the area.
    pub fn len(&self) -> usize {
        self.core().len
    }

    /// Whether the area has no elements.
    pub fn is_empty(&self) -> bool {
        self.core().len == 0
    }

    /// Elements per row.
    pub fn row_len(&self) -> usize {
        self.core().row
    }

    /// The epoch of this ownership; it rises with every change of owner.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The readers' side of the same area.
    pub fn area(&self) -> Area<T> {
        Area::around(Arc::clone(self.core()))
    }

    #[inline]
    pub(crate) fn check(&self, worker: &Worker) -> Result<()> {
        self.core().check_job(worker.shared())?;
        self.core().check_live()?;
        // Relaxed: an owner reads its own word; a change would have needed its death.
        let word = OwnershipWord(self.core().slot().own.ownership.load(Ordering::Relaxed));
        if word.is_of(worker.rank(), self.epoch) { Ok(()) } else { Err(self.stale(worker)) }
    }

    #[cold]
    pub(crate) fn stale(&self, worker: &Worker) -> Error {
        Error::NotOwner {
            name: self.core().name.clone(),
            rank: worker.rank(),
            owner: self.core().ownership().to_string(),
        }
    }

    /// The owner's own state of the area, published or not.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn read<'w>(&'w self, worker: &'w Worker) -> Result<&'w [T]> {
        self.check(worker)?;
        let data = self.core().parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`; this worker owns it, and writing needs
        // `&mut self`, which the slice's lifetime excludes. Nobody claims the area: the worker, which the slice
        // borrows, lives, for a thread that ends with one ends the process (`Tenure`).
        Ok(unsafe { std::slice::from_raw_parts(data, self.core().len) })
    }

    /// Opens the area for writing. What is written through the guard is logged.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn write<'w>(&'w mut self, worker: &'w Worker) -> Result<WriteGuard<'w, T>> {
        self.check(worker)?;
        // SAFETY: this worker owns the area, and the guard borrows `self` mutably and the worker, so that nobody
        // else reads or writes the writer copy while it lives, nor claims the area (see `Owned::read`); the type
        // was checked when the area was attached.
        Ok(unsafe { WriteGuard::new(self.core()) })
    }

    /// The whole area as a slice, for writing; all of it is logged at once. For areas that change as a whole,
    /// or that have no log.
    ///
    /// # Errors
    /// Those of [`Owned::write`].
    #[inline]
    pub fn write_whole<'w>(&'w mut self, worker: &'w Worker) -> Result<&'w mut [T]> {
        self.check(worker)?;
        if self.core().len != 0 {
            self.core().log().mark(self.core().lines(0..self.core().len, size_of::<T>()));
        }
        let data = self.core().parts().writer().cast::<T>();
        // SAFETY: the writer copy has `len` elements of `T`; this worker owns it, and the slice borrows `self`
        // mutably and the worker, so that nobody else reads or writes the writer copy while it lives, nor claims
        // the area (see `Owned::read`).
        Ok(unsafe { std::slice::from_raw_parts_mut(data, self.core().len) })
    }

    /// A raw pointer to the writer copy, for code that logs by itself with [`Owned::log`], or whose area is
    /// tracked automatically. Valid while this worker owns the area; write through it only between
    /// synchronization points.
    ///
    /// # Errors
    /// Those of [`Owned::write`].
    pub fn as_mut_ptr(&mut self, worker: &Worker) -> Result<*mut T> {
        self.check(worker)?;
        self.core().slot().own.raw.store(1, Ordering::Relaxed);
        if !self.core().layout.is_logged() {
            self.core().log().touch();
        }
        Ok(self.core().parts().writer().cast())
    }

    /// The address of the log of this area, for code in another language that tests it in line and calls
    /// [`Owned::log`] only for what is not marked yet; `None` for areas without a log.
    ///
    /// # Errors
    /// Those of [`Owned::write`].
    pub fn raw_log(&self, worker: &Worker) -> Result<Option<RawLog>> {
        self.check(worker)?;
        let core = self.core();
        let level0 = core.log().level0;
        Ok((!level0.is_empty()).then(|| RawLog {
            words: level0.as_ptr().cast(),
            row_probe: core.by_rows.then(|| core.row * size_of::<T>() / 2),
        }))
    }

    /// Tells the log that elements `range` were written through a raw pointer.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range does not lie in the area (nothing is logged then), and those of
    /// [`Owned::write`].
    #[inline]
    pub fn log(&mut self, worker: &Worker, range: Range<usize>) -> Result<()> {
        self.check(worker)?;
        if range.start > range.end || range.end > self.core().len {
            return Err(out_of_range(self.core(), range.start, range.end));
        }
        if !range.is_empty() {
            self.core().log().mark(self.core().lines(range, size_of::<T>()));
        }
        Ok(())
    }

    /// [`Owned::log`] for whole rows ([`AreaSpec::row`](crate::AreaSpec::row)), without a division.
    ///
    /// # Errors
    /// Those of [`Owned::log`].
    #[inline]
    pub fn log_rows(&mut self, worker: &Worker, rows: Range<usize>) -> Result<()> {
        self.check(worker)?;
        let core = self.core();
        let (start, end) = (rows.start.saturating_mul(core.row), rows.end.saturating_mul(core.row));
        if start > end || end > core.len {
            return Err(out_of_range(core, start, end));
        }
        if start < end {
            let size = size_of::<T>();
            core.log().mark(start * size / LINE as usize..(end * size).div_ceil(LINE as usize));
        }
        Ok(())
    }

    /// Gives the area to another worker: one atomic exchange, no barrier, no copy. What was written and not yet
    /// published goes along: on one host, others see it when the next owner publishes it, whatever barriers this worker passes
    /// meanwhile. If the next owners die before that, it is lost, and a claim names this worker among those who lost writes.
    /// See [`Owned::give_published`].
    ///
    /// To a worker of another host it goes in the background: what was written is published here by the next round, and sent to
    /// that host and all who have copies; then it is that worker's. If this worker dies and no other of its host lives, its agent
    /// publishes it. Lines that were written and are as they were published last are
    /// not sent, if many are: this call compares them. If that worker leaves meanwhile, of which this host is told later, the area waits
    /// for the next worker of its rank; if there is none, a worker of that host can claim it.
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] if `to` is not alive or has left, [`Error::CannotLeave`] if it is of another host and the area cannot go there:
    /// one without reader copies, of a group, or that is tracked; and those of [`Owned::write`]. The area comes back in the error.
    #[inline]
    pub fn give(self, worker: &Worker, to: Rank) -> Result<(), GiveError<T>> {
        let checked = self.check(worker).and_then(|()| worker.check_peer(to));
        if let Err(error) = checked.and_then(|()| self.check_leaving(worker, to)) {
            return Err(GiveError { error, owned: self });
        }
        if worker.shared().segment.spans_hosts() && worker.shared().segment.host_of(to).is_some() {
            forget_unchanged(self.core());
        }
        let asleep = self.leave_hand(|word, me, epoch| ownership::give(word, me, to, epoch));
        let Some(asleep) = asleep else {
            let error = self.stale(worker);
            return Err(GiveError { error, owned: self });
        };
        // From here on the area is the other's; what follows is this worker's own bookkeeping.
        if asleep {
            futex_wake_all(low_half(&self.core().parts().slot.own.ownership));
        }
        if worker.shared().segment.spans_hosts() && worker.shared().tell_given(self.core(), to) {
            worker.local().gave_away.set(true);
            worker.look_soon();
        }
        self.end();
        self.forget();
        Ok(())
    }

    /// Notes what the next owner has to know of the area, and changes the ownership word.
    #[inline(always)]
    pub(crate) fn leave_hand(&self, change: impl Fn(&AtomicU64, Rank, u64) -> Option<bool>) -> Option<bool> {
        self.scan();
        let parts = self.core().parts();
        if self.core().log().dirty.is_set() {
            let writers = &parts.writers()[self.hand.rank as usize / 64];
            let bits = writers.load(Ordering::Relaxed);
            if bits >> (self.hand.rank % 64) & 1 == 0 {
                writers.store(bits | 1 << (self.hand.rank % 64), Ordering::Relaxed);
            }
        }
        change(&parts.slot.own.ownership, self.hand.rank, self.epoch)
    }

    /// Whether the area can go where `to` is.
    #[inline]
    fn check_leaving(&self, worker: &Worker, to: Rank) -> Result<()> {
        if worker.shared().segment.spans_hosts() { self.core().check_leaving(to) } else { Ok(()) }
    }

    /// Publishes the area, then gives it to another worker: nothing can be lost by the death of later
    /// owners.
    ///
    /// # Errors
    /// Those of [`Owned::give`] and of [`Worker::sync`]; [`Error::TimedOut`] if the publication is postponed
    /// for ten seconds because every reader copy is pinned.
    pub fn give_published(self, worker: &mut Worker, to: Rank) -> Result<(), GiveError<T>> {
        let checked = self.check(worker).and_then(|()| worker.check_peer(to));
        let mut publish = || if self.core().layout.copies > 0 { worker.publish(self.core()) } else { Ok(()) };
        if let Err(error) = checked.and_then(|()| publish()) {
            return Err(GiveError { error, owned: self });
        }
        self.give(worker, to)
    }

    /// Deletes the area. See [`Job::delete`](crate::Job::delete).
    ///
    /// # Errors
    /// Those of [`Owned::write`], and [`Error::TimedOut`] as there; the area is claimable then.
    pub fn delete(self, worker: &mut Worker) -> Result<()> {
        self.check(worker)?;
        worker.delete(self.core().id)
    }

    /// Logs what was written behind the log's back, before somebody else sees the area.
    #[inline]
    pub(crate) fn scan(&self) {
        if self.core().looked_through {
            for scanned in
                self.hand.local.scanned.borrow_mut().iter_mut().filter(|scanned| scanned.is_of(self.core()))
            {
                scanned.scan(&self.core().shared, &self.hand.local, self.hand.rank);
            }
        }
    }

    /// Ends this value without making the area claimable.
    pub(crate) fn forget(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never used or dropped again, so the field is moved out of it exactly once.
        drop(unsafe { std::ptr::read(&this.hand) });
    }
}

impl<T: Element> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.core().shared.check_process().is_err() {
            return;
        }
        if ownership::load(&self.core().slot().own.ownership).is_of(self.hand.rank, self.epoch)
            && self.core().id.is_live(self.core().slot())
        {
            // So that a claim knows that something was lost.
            self.scan();
        }
        self.end();
        if !self.core().id.is_live(self.core().slot()) {
            return;
        }
        let word = &self.core().slot().own.ownership;
        if ownership::let_go(word, self.hand.rank, self.epoch) {
            futex_wake_all(low_half(word));
        }
        self.core().shared.tell_of_owner(self.core().id.index as usize);
    }
}
