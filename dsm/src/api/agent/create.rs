//! The agent makes areas whose owners are on other hosts.
use super::Agent;
use crate::Rank;
use crate::engine::directory::AGENT;
use crate::engine::directory::create::{Draft, complete};
use crate::engine::directory::make::{Maker, make};
use crate::engine::directory::reclaim::reclaim;
use crate::engine::directory::spec::{AreaSpec, Tracking};
use crate::engine::directory::{AreaId, Directory};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::segment::element::ElementType;

/// The agent, which serves no rounds.
struct Outside;

impl Maker for Outside {
    fn rank(&self) -> Rank {
        AGENT
    }

    fn lock<'s>(&mut self, shared: &'s Shared) -> Result<Directory<'s>> {
        Directory::lock_outside(shared)
    }

    fn pause(&mut self) {}
}

impl Agent {
    /// Makes an area whose owner is on another host, and what that one published arrives here ([`Agent::receive`]). Its
    /// bytes are zero, its version is 0.0. How many copies it has and how often it falls due is this host's affair, and so is
    /// its log: how the owner finds what it writes is not.
    ///
    /// Takes the memory at once, which for a large area takes its time.
    ///
    /// # Errors
    /// [`Error::NameTaken`], [`Error::InvalidName`], [`Error::InvalidArea`] (also without a reader copy),
    /// [`Error::OutOfMemory`], [`Error::TooManyAreas`], [`Error::Os`], [`Error::ForkedChild`]; [`Error::TimedOut`] after five
    /// seconds if a process stands still while it takes or frees a slot.
    pub fn create(&self, spec: &AreaSpec, element: ElementType, len: usize) -> Result<AreaId> {
        self.create_noted(spec, element, len, None)
    }

    /// The same, of an area of host `host` that nobody finds by its name before [`Agent::show`]; with a note ([`Agent::note`]).
    ///
    /// # Errors
    /// Those of [`Agent::create`].
    pub fn create_hidden(
        &self,
        spec: &AreaSpec,
        element: ElementType,
        len: usize,
        host: usize,
        note: [u64; 3],
    ) -> Result<AreaId> {
        self.create_noted(spec, element, len, Some((host, note)))
    }

    fn create_noted(
        &self,
        spec: &AreaSpec,
        element: ElementType,
        len: usize,
        hidden: Option<(usize, [u64; 3])>,
    ) -> Result<AreaId> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        if spec.copies == 0 {
            let what = "no reader copy to publish into, and its owner is on another host".into();
            return Err(Error::InvalidArea { name: spec.name.clone(), what });
        }
        reclaim(shared);
        // How the owner finds what it writes is no affair of this host: here, lines are marked as they arrive.
        let spec = &spec.clone().tracking(Tracking::Logged);
        let draft = Draft::of(spec, element, len, shared.segment.config())?;
        let draft = match hidden {
            Some((host, note)) => draft.for_elsewhere(Some(host)).hidden(note),
            None => draft.for_elsewhere(None),
        };
        make(&mut Outside, shared, draft)
    }

    /// Gives memory to all reader copies of an area, of which a job on several hosts leaves some without until another host wants
    /// the area ([`JobBuilder::min_copies`](crate::JobBuilder::min_copies)). Does nothing if all have it.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::builder().hosts(&[1, 1], 0).min_copies(3).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// let owned = worker.create::<u64>("a", 100_000)?;
    /// assert_eq!(job.areas()?[0].copies, 1);
    /// agent.complete(agent.find("a").expect("it was created"))?;
    /// assert_eq!(job.areas()?[0].copies, 3);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Os`]: those that got memory keep it. [`Error::Deleted`], [`Error::ForkedChild`].
    pub fn complete(&self, area: AreaId) -> Result<()> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        self.desk.hold(area)?;
        let done = complete(&shared.segment, area.index as usize);
        self.desk.release(area);
        done
    }

    /// Deletes an area, whoever owns it, as [`Job::delete`](crate::Job::delete) does.
    ///
    /// # Errors
    /// [`Error::Deleted`] if it is gone already, [`Error::ForkedChild`]; [`Error::TimedOut`] as [`Agent::create`].
    pub fn delete(&self, area: AreaId) -> Result<()> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        if !Directory::lock_outside(shared)?.delete(area) {
            return Err(Error::Deleted { name: format!("{area:?}") });
        }
        reclaim(shared);
        Ok(())
    }
}
