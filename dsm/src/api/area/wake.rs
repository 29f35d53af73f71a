//! Sleeping until a word of an open area changes.
use super::cells::Cells;
use super::handle::Area;
use crate::api::worker::Worker;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Result};
use crate::protocol::words;
use std::sync::atomic::AtomicU64;

impl Cells<'_, u64> {
    /// Adds one to an element, after all that this worker wrote before, and wakes all workers that sleep on it
    /// ([`Worker::wait_for_event`]): a system call, of some hundred nanoseconds if nobody does. Several workers may ring one bell.
    ///
    /// # Panics
    /// If there is no element at `index`.
    pub fn notify(&self, index: usize) {
        let word = self.word(index);
        words::ring(word);
        futex_wake_all(low_half(word));
    }
}

impl Worker {
    /// Calls `look` until it has found something, and serves rounds meanwhile. Between two looks the worker spins, if there
    /// is a core for every worker, then sleeps until somebody rings ([`Cells::notify`]) at element `index` of an area that is
    /// open ([`Owned::open`](crate::Owned::open)), or for some milliseconds.
    ///
    /// Whoever makes `look` find something writes that first, then rings. The bell is read before every look, so that no
    /// ring is missed.
    ///
    /// ```
    /// # use hectare_dsm::{AreaSpec, Error, Job};
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let words = worker.create::<u64>(AreaSpec::new("words").copies(0), 2)?.open(&worker)?;
    /// words.area().cells(&worker)?.publish(0, 7);
    /// words.area().cells(&worker)?.notify(1);
    /// let area = words.area();
    /// let found = worker.wait_for_event(&area, 1, |worker| {
    ///     let value = area.cells(worker)?.observe(0);
    ///     Ok::<_, Error>((value != 0).then_some(value))
    /// })?;
    /// assert_eq!(found, 7);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `look`, of [`Worker::service`] and of [`Area::cells`].
    ///
    /// # Panics
    /// If there is no element at `index`.
    pub fn wait_for_event<R, E: From<Error>>(
        &mut self,
        area: &Area<u64>,
        index: usize,
        look: impl FnMut(&mut Worker) -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        self.forget_waiting();
        let observe = |worker: &mut Worker| Ok(area.cells(worker)?.observe(index));
        words::wait(self, observe, look, |worker, seen| {
            worker.wait_step(Some((area.word(index), seen)))?;
            Ok(())
        })
    }
}

impl Area<u64> {
    /// To sleep on: nothing else is known of what happens to it after `Area::cells` has checked.
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len(), "element {index} of {}", self.len());
        // SAFETY: the element lies in the writer copy, which stays mapped for as long as the handle lives, and is aligned;
        // no reference to it exists while the area is open, and the caller has just checked that it is. If it is closed
        // meanwhile, the address is what the kernel looks at, and nothing here reads it.
        unsafe { &*self.core.parts().writer().cast::<AtomicU64>().add(index) }
    }
}
