//! Jobs: the workers and areas that synchronize together, on one segment per host.
pub(crate) mod absence;
pub(crate) mod builder;
pub(crate) mod connect;
pub(crate) mod info;
pub(crate) mod inspect;
pub(crate) mod monitor;
pub(crate) mod notify;
mod pass;
pub(crate) mod run;

use crate::api::area::handle::Area;
use crate::api::area::info::AreaInfo;
use crate::api::area::observer::Observer;
use crate::api::worker::Worker;
use crate::engine::directory;
use crate::engine::directory::Directory;
use crate::engine::directory::find;
use crate::engine::directory::reclaim::reclaim;
use crate::engine::shared::{Link, Shared};
use crate::engine::wanted::Wanting;
use crate::error::{Error, Result};
use crate::protocol::ownership;
use crate::segment::element::Element;
use crate::segment::layout::Config;
use crate::segment::mapping::Segment;
use monitor::Monitor;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use builder::{HugePages, JobBuilder, StallPolicy};

/// A job: workers and areas that synchronize together.
///
/// Cheap to clone; clones are the same job. [`Job::embedded`] makes one inside the program; a child process
/// joins it if it is passed on ([`Job::pass_to`], [`Job::inherited`]), any other through the descriptor of its
/// memory ([`Job::descriptor`], [`Job::from_descriptor`]). [`Job::connect`] joins one of the host's daemon by name.
///
/// ```
/// use hectare_dsm::{AreaSpec, Job};
/// let job = Job::embedded()?;
/// let sums = job.run(2, |worker| {
///     let mine = format!("part/{}", worker.rank());
///     let mut part = worker.create::<u64>(mine, 100)?;
///     part.write(worker)?.fill(worker.rank() as u64 + 1);
///     worker.barrier()?; // publishes what this worker wrote and waits for the others
///     let other = worker.attach::<u64>(&format!("part/{}", 1 - worker.rank()))?;
///     Ok::<u64, hectare_dsm::Error>(other.read(worker)?.iter().sum())
/// })?;
/// assert_eq!(sums.into_iter().collect::<Result<Vec<_>, _>>()?, [200, 100]);
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) shared: Arc<Shared>,
}

impl Job {
    /// A job inside this program, with the default settings of [`JobBuilder`].
    ///
    /// # Errors
    /// [`Error::Os`] if the system refuses the memory.
    pub fn embedded() -> Result<Job> {
        Job::builder().embedded()
    }

    /// Settings for a job that differs from the defaults.
    pub fn builder() -> JobBuilder {
        JobBuilder::default()
    }

    pub(crate) fn make(config: Config, ranks: &[u32], pin_cores: bool) -> Result<Job> {
        let job = Job::around(Segment::create(config, ranks)?, pin_cores, None);
        directory::initialize(&job.shared);
        Ok(job)
    }

    fn around(segment: Segment, pin_cores: bool, link: Option<Link>) -> Job {
        let cores = crate::memory::process::allowed_cores().len().max(1);
        let canary = segment.canary;
        let subscribers = Mutex::default();
        Job { shared: Arc::new(Shared { segment, canary, cores, pin_cores, subscribers, link }) }
    }

    /// This job, of which there are no clones yet, as one of the daemon's.
    fn linked(mut self, link: Link) -> Job {
        Arc::get_mut(&mut self.shared).expect("a job without clones").link = Some(link);
        self
    }

    /// Joins the job behind a descriptor that came from [`Job::descriptor`] of another process, by
    /// inheritance or over a Unix socket.
    ///
    /// The job is the trust boundary: any holder of a descriptor of its memory can write all of it, and is trusted to
    /// do so only through this library. That includes the caller: writes through a duplicate of this descriptor go to
    /// memory that views of this process refer to.
    ///
    /// # Errors
    /// [`Error::NotASegment`], [`Error::LayoutVersion`], [`Error::ProcessLimit`], [`Error::Os`].
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Job> {
        Ok(Job::around(Segment::open(descriptor)?, false, None))
    }

    /// The descriptor of the job's memory, close-on-exec: any holder can join the job and write everything in it. For
    /// passing it on, over a Unix socket for instance; a child process gets it by [`Job::pass_to`].
    ///
    /// ```compile_fail,E0133
    /// # let job = hectare_dsm::Job::embedded().unwrap();
    /// let memory = std::fs::File::from(job.descriptor().try_clone_to_owned().unwrap());
    /// std::os::unix::fs::FileExt::write_at(&memory, b"what others see change", 1 << 21).unwrap();
    /// ```
    ///
    /// # Safety
    /// Neither the caller nor whoever it gives the descriptor or a duplicate to writes, punches or maps the memory
    /// for writing, but by this library ([`Job::from_descriptor`]). Slices that views of this process hand out lie in
    /// it, and may not change.
    pub unsafe fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.segment.fd()
    }

    /// A monitor, which inspects this job without being part of it.
    ///
    /// # Errors
    /// [`Error::Os`] if the process has no descriptor left.
    pub fn monitor(&self) -> Result<Monitor> {
        Monitor::open(self.duplicate()?)
    }

    /// A descriptor of the job's memory of its own.
    fn duplicate(&self) -> Result<OwnedFd> {
        self.shared.segment.fd().try_clone_to_owned().map_err(|source| Error::Os { call: "dup", source })
    }

    /// Makes the calling thread a worker, with the lowest free rank, or with the next that the daemon hands to
    /// this process ([`Job::connect`]). Waits for an idle moment between rounds.
    ///
    /// # Errors
    /// [`Error::TooManyWorkers`], [`Error::ForkedChild`]; [`Error::Daemon`] in jobs of the daemon.
    pub fn worker(&self) -> Result<Worker> {
        self.shared.counted(match &self.shared.link {
            Some(link) => link.worker(self),
            None => Worker::join(&self.shared, None),
        })
    }

    /// Makes the calling thread the worker of this rank. In a job of the daemon ([`Job::connect`]), it is asked
    /// for the rank first, unless it has handed it to this process already.
    ///
    /// # Errors
    /// [`Error::RankTaken`] if another live worker has it, [`Error::NoSuchRank`] if it is beyond the
    /// configured maximum, [`Error::ForkedChild`]; [`Error::Daemon`] in jobs of the daemon, if the rank was
    /// handed to another process or is beyond the maximum.
    pub fn worker_at(&self, rank: crate::Rank) -> Result<Worker> {
        self.shared.counted(match &self.shared.link {
            Some(link) => link.worker_at(self, rank),
            None => Worker::join(&self.shared, Some(rank)),
        })
    }

    /// Registers an observer for the calling thread.
    ///
    /// # Errors
    /// [`Error::TooManyObservers`], [`Error::ForkedChild`].
    pub fn observer(&self) -> Result<Observer> {
        self.shared.counted(Observer::register(&self.shared))
    }

    /// Attaches to an area that exists.
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], [`Error::WrongType`], [`Error::ForkedChild`].
    pub fn attach<T: Element>(&self, name: &str) -> Result<Area<T>> {
        self.shared.check_process()?;
        Area::attach(&self.shared, name)
    }

    /// Attaches to an area, waiting for it to be created. For threads that are not workers: a worker calls
    /// [`Worker::attach_within`], which keeps up with the rounds meanwhile.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::PeerFailed`], and those of [`Worker::attach`].
    pub fn attach_within<T: Element>(&self, name: &str, timeout: Duration) -> Result<Area<T>> {
        let (since, mut wanting) = (Instant::now(), Wanting::default());
        loop {
            self.shared.check_ending()?;
            match self.attach(name) {
                Err(Error::NoSuchArea { .. }) if since.elapsed() < timeout => {
                    if let Some(error) = wanting.lasting_refusal(&self.shared, name) {
                        return Err(error);
                    }
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(Error::NoSuchArea { name }) => {
                    return Err(find::attach_timed_out(&self.shared, &name, since.elapsed()));
                }
                other => return other,
            }
        }
    }

    /// The areas of the job.
    ///
    /// # Errors
    /// [`Error::ForkedChild`].
    pub fn areas(&self) -> Result<Vec<AreaInfo>> {
        self.shared.check_process()?;
        let segment = &self.shared.segment;
        Ok(find::all(segment).filter_map(|id| AreaInfo::of(segment, id)).collect())
    }

    /// Deletes an area, whoever on this host owns it. Its name is free at once; its memory is released after a round in which every
    /// worker took part, when no observer pins it. Handles that are still attached get [`Error::Deleted`]. On other hosts it is gone, and
    /// its name free, after a barrier.
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], also while it is being created; [`Error::OwnerElsewhere`]; [`Error::ForkedChild`];
    /// [`Error::TimedOut`] after five seconds if a process stands still while it creates or deletes one.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.shared.check_process()?;
        let directory = Directory::lock_outside(&self.shared)?;
        let id =
            find::find(&self.shared.segment, name).ok_or_else(|| Error::NoSuchArea { name: name.into() })?;
        let slot = &self.shared.segment.areas()[id.index as usize];
        let word = ownership::load_to_read(&slot.own.ownership);
        if word.is_remote() {
            // It would be there all the same, and this host not know any more where it is.
            let host = self.shared.segment.host_text(self.shared.segment.owner_host(word));
            return Err(Error::OwnerElsewhere { name: name.into(), host });
        }
        directory.delete(id);
        drop(directory);
        reclaim(&self.shared);
        Ok(())
    }

    /// Bytes that are free in the job's reserved range (not all of which the host may be able to back).
    ///
    /// # Errors
    /// [`Error::ForkedChild`], [`Error::TimedOut`] as [`Job::delete`].
    pub fn free_bytes(&self) -> Result<u64> {
        self.shared.check_process()?;
        reclaim(&self.shared);
        Ok(Directory::lock_outside(&self.shared)?.free_bytes().0)
    }

    /// Bytes of memory that the job occupies now, according to the system.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn resident_bytes(&self) -> Result<u64> {
        self.shared.segment.resident_bytes()
    }
}

impl Worker {
    /// The job.
    pub fn job(&self) -> Job {
        Job { shared: self.shared().clone() }
    }
}
