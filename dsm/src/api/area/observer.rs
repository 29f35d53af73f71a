//! Observers: they read without taking part in rounds.
//!
//! An observer pins a reader copy; a round that finds every copy pinned puts the publication off, and the clocks wait for it. A pin
//! lies in the observer's own record, so that the pins of a dead observer are forgotten with it.
use super::handle::Area;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::memory::tenure::Tenure;
use crate::protocol::pin;
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use crate::segment::layout::ObserverRecord;
use crate::segment::pins::{self, FREE, LIVE, clear, pin_word};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long an observer lets a publication go first that waits for pins to be dropped: longer than until rounds try again.
const GRACE: Duration = Duration::from_millis(20);

/// Somebody who reads areas without being a worker.
///
/// It is tied to the thread that made it, which must not end before it is dropped, as with a
/// [`Worker`](crate::Worker). Reading with it delays no read and no write of a worker. While all copies of an area are pinned,
/// the area is not published, and barriers and clocks wait for it; rounds try again after 1 to 16 ms, and an observer that reads again
/// lets them go first. With one copy more than observers hold at a time ([`AreaSpec::copies`](crate::AreaSpec::copies)),
/// nobody waits.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    index: usize,
    /// Ends with the observer, after its pins.
    _tenure: Tenure,
    _thread: PhantomData<*const ()>,
}

impl Observer {
    pub(crate) fn register(shared: &Arc<Shared>) -> Result<Observer> {
        let shared = shared.clone();
        shared.check_process()?;
        let segment = &shared.segment;
        let tenure = Tenure::begin(segment.canary)?;
        let records: &[ObserverRecord] = segment.observers();
        // SeqCst, as below: comes before the observer's first pin; pairs with the load in `is_pinned`.
        let mut high = segment.header().sync.observers_high.load(Ordering::SeqCst);
        for (index, record) in records.iter().enumerate() {
            // Whoever gets the mutex has the record: its last observer is gone, or dead with its pins held.
            if record.life.try_lock().is_none() {
                continue;
            }
            clear(segment, index);
            record.state.store(LIVE, Ordering::Relaxed);
            record.pid.store(std::process::id(), Ordering::Relaxed);
            while (high as usize) <= index {
                // SeqCst: as above.
                high = segment.header().sync.observers_high.fetch_max(index as u32 + 1, Ordering::SeqCst);
            }
            let tenure = tenure.is(format!("observer {index} of {}", shared.name()));
            return Ok(Observer { shared, index, _tenure: tenure, _thread: PhantomData });
        }
        Err(Error::TooManyObservers { max: records.len() })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Pins the newest version of `area` and returns it. The pin ends when the value is dropped.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::NoReaderCopy`], [`Error::OtherJob`], [`Error::TooManyPins`], and
    /// [`Error::TimedOut`] if a round that is writing the only copy stands still for ten seconds.
    pub fn read<'o, T: Element>(&'o self, area: &'o Area<T>) -> Result<Pinned<'o, T>> {
        self.shared.check_process()?;
        if !Arc::ptr_eq(&self.shared, &area.core.shared) {
            return Err(Error::OtherJob { name: area.core.name.clone() });
        }
        let core = &area.core;
        core.check_live()?;
        let parts = core.parts();
        if parts.layout.copies == 0 {
            return Err(Error::NoReaderCopy { name: core.name.clone() });
        }
        let pins = self.shared.segment.pins(self.index);
        let free = pins.iter().find(|pin| pin.load(Ordering::Relaxed) == 0);
        let pin = self.shared.counted(free.ok_or(Error::TooManyPins { max: pins.len() }))?;
        let since = Instant::now();
        let mut looks = 0u32;
        // Who holds a version lets nobody go first by holding it for longer.
        let waits = |since: Instant| {
            !pins::are_here(&self.shared.segment)
                && pins::is_awaited(&self.shared.segment, core.id.index as usize)
                && since.elapsed() < GRACE
        };
        while waits(since) {
            std::thread::sleep(Duration::from_micros(50));
        }
        loop {
            let copy = parts.current();
            let word = pin_word(core.id.index as usize, copy);
            // A slot that is another area's by now may name a copy that this one does not have.
            let Some(record) = parts.copies().get(copy) else {
                core.check_live()?;
                continue;
            };
            if pin::pin(pin, word, &record.state, || parts.current() == copy) {
                if let Err(error) = core.check_live() {
                    pin::unpin(pin);
                    return Err(error);
                }
                // The pin keeps rounds from choosing this copy as a target and the directory from freeing the
                // area. It is forgotten when the observer, which the view borrows, is dropped or dead; a thread
                // that ends with one ends the process (`Tenure`). And the copy has `len` elements of `T`, checked when the area was attached.
                let data = std::ptr::slice_from_raw_parts(parts.reader(copy).cast::<T>(), core.len);
                let round = record.round.load(Ordering::Relaxed);
                pins::taken(&self.shared.segment, word);
                return Ok(Pinned { area, data, version: core.version_of(copy), round, pin });
            }
            looks += 1;
            if looks < 100 {
                std::hint::spin_loop();
            } else if since.elapsed() > Duration::from_secs(10) {
                return Err(Error::TimedOut {
                    what: format!("a readable copy of area {:?}", core.name),
                    waited: since.elapsed(),
                    missing: "a round stands still in the middle of copying".into(),
                });
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.shared.check_process().is_err() {
            return;
        }
        clear(&self.shared.segment, self.index);
        let record = &self.shared.segment.observers()[self.index];
        record.state.store(FREE, Ordering::Relaxed);
        record.life.unlock();
    }
}

/// One version of an area, held still for an observer.
///
/// In a forked child, which has the areas no more, the elements of one that was inherited read as zero.
pub struct Pinned<'o, T: Element> {
    area: &'o Area<T>,
    data: *const [T],
    version: Version,
    round: u64,
    pin: &'o AtomicU64,
}

impl<T: Element> std::fmt::Debug for Pinned<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned")
            .field("area", &self.area)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl<T: Element> Pinned<'_, T> {
    /// The version that this is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The round that published it.
    pub fn round(&self) -> u64 {
        self.round
    }
}

impl<T: Element> Deref for Pinned<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: valid and unchanged while the pin holds, see `Observer::read`; `area` keeps the mapping
        // (in a forked child, the empty memory that takes its place).
        unsafe { &*self.data }
    }
}

impl<T: Element> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        let core = &self.area.core;
        if core.shared.check_process().is_ok() {
            pins::dropped(&core.shared.segment, self.pin.load(Ordering::Relaxed));
            pin::unpin(self.pin);
        }
    }
}
