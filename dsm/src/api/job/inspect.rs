//! Information about a job's memory without joining the job.
use super::Job;
use crate::error::Result;
use crate::segment::mapping::Segment;
use std::os::fd::AsFd;

/// The fixed settings of a job that its memory tells ([`Job::inspect`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Address space for areas, in bytes.
    pub reserve_bytes: u64,
    /// Worker slots.
    pub max_workers: u32,
    /// Area slots.
    pub max_areas: u32,
}

impl Job {
    /// Checks that a descriptor is that of a job's memory, as [`Job::from_descriptor`] does, and says what its
    /// settings are. Maps nothing: it may be the descriptor of somebody who is not trusted.
    ///
    /// The memory can be written by every member of the job. It is read once here; what is returned was found
    /// to fit the size, which is sealed.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let memory = Job::builder().max_workers(3).memory()?;
    /// assert_eq!(Job::inspect(&memory)?.max_workers, 3);
    /// assert!(Job::inspect(std::fs::File::open("/dev/null").unwrap()).is_err());
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotASegment`](crate::Error::NotASegment), [`Error::LayoutVersion`](crate::Error::LayoutVersion),
    /// [`Error::Os`](crate::Error::Os).
    pub fn inspect(descriptor: impl AsFd) -> Result<MemoryInfo> {
        let (_, config) = Segment::inspect(descriptor.as_fd())?;
        Ok(MemoryInfo {
            reserve_bytes: config.reserve_bytes,
            max_workers: config.max_workers,
            max_areas: config.max_areas,
        })
    }
}
