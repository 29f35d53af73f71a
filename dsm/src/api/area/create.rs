//! Workers make areas, and delete them.
use super::owned::Owned;
use crate::Rank;
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::directory::create::Draft;
use crate::engine::directory::make::{Maker, make};
use crate::engine::directory::spec::AreaSpec;
use crate::engine::directory::{AreaId, Directory, LONGEST_WAIT};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::segment::element::{Element, ElementType};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Worker {
    /// Creates an area of `len` elements, all zero, owned by this worker.
    ///
    /// May take part in rounds while it waits for the directory or for memory: hold no lock across it that a
    /// worker needs on its way to a synchronization point.
    ///
    /// The name is taken from the beginning: others who create it meanwhile get [`Error::NameTaken`], also if this one
    /// then fails for want of memory; others who attach to it find nothing before the area is whole.
    ///
    /// ```
    /// # let job = hectare_dsm::Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// use hectare_dsm::AreaSpec;
    /// let weights = worker.create::<f32>("model/weights", 1000)?;
    /// let counts = worker.create::<u64>(AreaSpec::new("model/counts").copies(2), 10)?;
    /// # let _ = (weights, counts);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidName`], [`Error::NameTaken`], [`Error::InvalidArea`], [`Error::OutOfMemory`] (also
    /// for lengths that overflow, and under a cgroup's limit), [`Error::TooManyAreas`], [`Error::Os`],
    /// [`Error::ForkedChild`]; [`Error::TimedOut`] after five seconds if a process stands still while it takes or
    /// frees a slot.
    pub fn create<T: Element>(&mut self, spec: impl Into<AreaSpec>, len: usize) -> Result<Owned<T>> {
        self.shared().check_process()?;
        let spec = spec.into();
        let element = ElementType::of::<T>();
        if element.size == 0 {
            return Err(Error::InvalidArea { name: spec.name, what: "elements of no bytes".into() });
        }
        if element.align > 4096 {
            return Err(Error::InvalidArea { name: spec.name, what: format!("alignment {}", element.align) });
        }
        let mut result = self.try_create(&spec, element, len);
        // Memory of deleted areas may still wait for their grace rounds.
        for _ in 0..2 {
            let full = matches!(result, Err(Error::OutOfMemory { .. } | Error::TooManyAreas { .. }));
            if !full || self.shared().segment.header().pending_frees.load(Ordering::Relaxed) == 0 {
                break;
            }
            self.complete_round(false);
            result = self.try_create(&spec, element, len);
        }
        let id = self.shared().counted(result)?;
        let core = Arc::new(AreaCore::of(self.shared(), id, &spec.name, element)?);
        Ok(Owned::begin(&core, self, 1))
    }

    fn try_create(&mut self, spec: &AreaSpec, element: ElementType, len: usize) -> Result<AreaId> {
        let shared = self.shared().clone();
        let draft = Draft::of(spec, element, len, shared.segment.config())?;
        self.reclaim();
        make(self, &shared, draft)
    }

    /// Locks the directory, serving rounds meanwhile.
    pub(super) fn lock_directory<'s>(&mut self, shared: &'s Shared) -> Result<Directory<'s>> {
        self.within(Some(LONGEST_WAIT), |worker| Directory::lock(shared, || worker.keep_up()))
    }

    pub(crate) fn delete(&mut self, id: AreaId) -> Result<()> {
        let shared = self.shared().clone();
        self.lock_directory(&shared)?.delete(id);
        self.reclaim();
        Ok(())
    }
}

impl Maker for Worker {
    fn rank(&self) -> Rank {
        self.rank()
    }

    fn lock<'s>(&mut self, shared: &'s Shared) -> Result<Directory<'s>> {
        self.lock_directory(shared)
    }

    fn pause(&mut self) {
        self.keep_up();
    }
}
