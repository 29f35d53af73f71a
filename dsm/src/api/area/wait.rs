//! Workers ask for versions of an area, and wait for them.
use super::handle::Area;
use crate::api::worker::{Synced, Worker};
use crate::engine::area_core::AreaCore;
use crate::error::{Error, Result};
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Worker {
    /// Publishes one area, whoever owns it, now: forces a round, and waits for it. Areas of the same group
    /// are published with it. Of an area of another host, what its owner had published or written by now is published here
    /// when this returns, as far as the clocks allow it: see [`Worker::tick`]. An owner that has not come to a round within the job's
    /// round timeout is left out, and rounds do not wait for it until it comes: [`Synced::postponed`] says so, then the area is as it was.
    ///
    /// # Errors
    /// [`Error::OtherJob`], [`Error::Deleted`], [`Error::NoReaderCopy`], and those of [`Worker::service`].
    pub fn sync_area<T: Element>(&mut self, area: &Area<T>) -> Result<Synced> {
        area.core.check_job(self.shared())?;
        area.core.check_live()?;
        if area.core.layout.copies == 0 {
            return Err(area.core.no_copy());
        }
        if area.core.ownership().is_remote() {
            return self.sync_from_host(&area.core);
        }
        area.core.force();
        let (round, abandoned) = self.complete_round(false);
        self.complain_at_end()?;
        let forced = self.shared().segment.forced(area.core.id.index as usize);
        Ok(Synced { round, abandoned, postponed: u32::from(forced.is_set()) })
    }

    /// Waits until the host of the owner has answered, and for the round after.
    fn sync_from_host(&mut self, core: &AreaCore) -> Result<Synced> {
        self.forget_waiting();
        let postponed = self.within(None, |worker| -> Result<bool> {
            let request = core.request();
            loop {
                core.check_live()?;
                if let Some(postponed) = core.answer_to(request) {
                    return Ok(postponed);
                }
                worker.shared().check_ending()?;
                worker.wait_step(None)?;
            }
        })?;
        let (round, abandoned) = self.complete_round(false);
        self.complain_at_end()?;
        Ok(Synced { round, abandoned, postponed: u32::from(postponed) })
    }

    /// Waits until this worker sees version `version` of `area`, or a later one; takes part in rounds
    /// meanwhile. Does not force one.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of [`Area::read`].
    pub fn wait_for<T: Element>(
        &mut self,
        area: &Area<T>,
        version: Version,
        timeout: Duration,
    ) -> Result<Version> {
        self.wait_until(
            timeout,
            |worker| Ok(Some(area.version(worker)?).filter(|seen| *seen >= version)),
            |worker, waited| Error::TimedOut {
                what: format!("version {version} of area {:?}", area.name()),
                waited,
                missing: match area.version(worker) {
                    Ok(seen) => format!("it is at {seen}, {}", area.core.ownership()),
                    Err(error) => error.to_string(),
                },
            },
        )
    }

    /// Waits until what this worker sees of `area` is at most `age` old ([`Area::age`]), asking for a
    /// publication if it is not. What comes from another host is at least as old as the way there and back.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of [`Area::read`].
    pub fn wait_fresher_than<T: Element>(
        &mut self,
        area: &Area<T>,
        age: Duration,
        timeout: Duration,
    ) -> Result<()> {
        let mut request = None;
        self.wait_until(
            timeout,
            |worker| {
                if area.age(worker)? <= age {
                    return Ok(Some(()));
                }
                if area.core.ownership().is_remote() {
                    // One at a time. The answer came with a round that this worker was in.
                    let is_open = request.is_some_and(|request| area.core.answer_to(request).is_none());
                    request = request.filter(|_| is_open).or_else(|| Some(area.core.request()));
                    return Ok(None);
                }
                area.core.force();
                worker.one_round(false);
                Ok((area.age(worker)? <= age).then_some(()))
            },
            |worker, waited| Error::TimedOut {
                what: format!("area {:?} to be fresher than {age:?}", area.name()),
                waited,
                missing: match area.age(worker) {
                    Ok(age) => format!("its age is {age:?}, {}", area.core.ownership()),
                    Err(error) => error.to_string(),
                },
            },
        )
    }

    /// Waits until the version of `area` that this worker sees was published by its owner no more than
    /// `staleness` clocks before this worker's: the bound of Bösen's tables (Wei et al., 2015), by area.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after `timeout`, and those of [`Area::read`].
    pub fn wait_clock_of<T: Element>(
        &mut self,
        area: &Area<T>,
        staleness: u64,
        timeout: Duration,
    ) -> Result<()> {
        area.core.check_job(self.shared())?;
        let since = Instant::now();
        let wanted = self.clock().saturating_sub(staleness);
        self.within(Some(timeout), |worker| worker.wait_clock_since(area, wanted, timeout, since))
    }

    fn wait_clock_since<T: Element>(
        &mut self,
        area: &Area<T>,
        wanted: u64,
        timeout: Duration,
        since: Instant,
    ) -> Result<()> {
        loop {
            // Relaxed, all of it: the lowest clock rises in rounds that this worker was in, with what it stands for.
            //
            // A publication that found nothing to write leaves the version and its clock as they were, so
            // an owner that has moved on without writing is fresh enough too.
            let owner = area.core.ownership().holder();
            let seats = self.shared().segment.seats();
            let is_remote = area.core.ownership().is_remote();
            let idle = owner.and_then(|rank| seats.get(rank as usize)).is_some_and(|seat| {
                seat.clock.load(Ordering::Relaxed) >= wanted
                    && !self.shared().segment.dirty(area.core.id.index as usize).is_set()
            });
            if area.clock(self)? >= wanted || ((idle || is_remote) && self.lowest_clock() >= wanted) {
                return Ok(());
            }
            self.shared().check_ending()?;
            if since.elapsed() >= timeout {
                return Err(Error::TimedOut {
                    what: format!("area {:?} to reach clock {wanted}", area.name()),
                    waited: since.elapsed(),
                    missing: format!("it is at {}, {}", area.clock(self)?, area.core.ownership()),
                });
            }
            match is_remote {
                // Rounds here bring nothing: the agent asks for one when something has arrived.
                true => drop(self.wait_step(None)?),
                false => {
                    area.core.force();
                    self.one_round(false);
                }
            }
        }
    }
}
