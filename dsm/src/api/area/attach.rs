//! Workers find areas.
use super::handle::Area;
use crate::api::worker::Worker;
use crate::engine::directory::find::attach_timed_out;
use crate::engine::wanted::Wanting;
use crate::error::{Error, Result};
use crate::segment::element::Element;
use std::time::Duration;

/// The longest wait for the other hosts' answer whether they have an area.
const OTHER_HOST: Duration = Duration::from_secs(60);

impl Worker {
    /// Attaches to an area that exists. See also [`Worker::attach_within`].
    ///
    /// In a job on several hosts, the area may be of another one: the worker waits until the hosts have said whether it exists,
    /// and until it has come, and takes part in rounds meanwhile. What a worker created before a barrier, all find after it.
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], [`Error::WrongType`], [`Error::ForkedChild`]; in a job on several hosts [`Error::NotShared`] if
    /// another host has an area of the name that this one cannot have, [`Error::OutOfMemory`] and [`Error::NotReceived`] if
    /// there is no place for its copies here; [`Error::PeerFailed`]; [`Error::TimedOut`] if the hosts say nothing for a minute.
    pub fn attach<T: Element>(&mut self, name: &str) -> Result<Area<T>> {
        match self.attach_here(name) {
            Err(Error::NoSuchArea { .. }) if self.shared().segment.spans_hosts() => {
                self.attach_elsewhere(name)
            }
            other => other,
        }
    }

    /// Attaches to an area that exists on this host, without waiting: one of this host's workers has created it, or an area of
    /// another host has come.
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], [`Error::WrongType`], [`Error::ForkedChild`].
    pub fn attach_here<T: Element>(&self, name: &str) -> Result<Area<T>> {
        self.shared().check_process()?;
        Area::attach(self.shared(), name)
    }

    fn attach_elsewhere<T: Element>(&mut self, name: &str) -> Result<Area<T>> {
        let mut wanting = Wanting::default();
        self.wait_until(
            OTHER_HOST,
            |worker| {
                worker.shared().check_ending()?;
                match worker.attach_here(name) {
                    Err(Error::NoSuchArea { .. }) => {
                        wanting.refusal(worker.shared(), name).map_or(Ok(None), Err)
                    }
                    other => other.map(Some),
                }
            },
            |_, waited| Error::TimedOut {
                what: format!("an answer of the other hosts for area {name:?}"),
                waited,
                missing: "the agent of this host, or the job's first host".into(),
            },
        )
    }

    /// Asks the other hosts for the areas of these names at the same time: attaching to all of them takes as long as attaching to one,
    /// not one after the other. Up to 64 names at a time; of others, and where the job is on one host, it has no effect.
    ///
    /// ```
    /// # let job = hectare_dsm::Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// # let mut made = Vec::new();
    /// # for name in ["part/0", "part/1"] { made.push(worker.create::<f32>(name, 10)?); }
    /// let names = ["part/0", "part/1"];
    /// worker.ask_for(names)?;
    /// let parts: Vec<_> = names.iter().map(|name| worker.attach::<f32>(name)).collect::<Result<_, _>>()?;
    /// assert_eq!(parts.len(), 2);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ForkedChild`]; [`Error::TimedOut`] after five seconds if a process stands still while it takes or frees a slot.
    pub fn ask_for<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<()> {
        let shared = self.shared().clone();
        shared.check_process()?;
        if shared.segment.spans_hosts() && shared.segment.doorbell().is_attached() {
            self.lock_directory(&shared)?.ask_for(names.into_iter());
            shared.ring_for_agent();
        }
        Ok(())
    }

    /// Attaches to an area, waiting for it to be created; takes part in rounds meanwhile. That another host has an area of the
    /// name which this one cannot have ends the wait.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of [`Worker::attach`].
    pub fn attach_within<T: Element>(&mut self, name: &str, timeout: Duration) -> Result<Area<T>> {
        let mut wanting = Wanting::default();
        self.wait_until(
            timeout,
            |worker| match worker.attach_here(name) {
                Err(Error::NoSuchArea { .. }) => {
                    wanting.lasting_refusal(worker.shared(), name).map_or(Ok(None), Err)
                }
                other => other.map(Some),
            },
            |worker, waited| attach_timed_out(worker.shared(), name, waited),
        )
    }
}
