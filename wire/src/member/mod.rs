//! A membership in a job that outlives the daemon.
mod keeper;

use crate::{Connection, Error, MemberState, Page, Refusal, Reply, Request, Result, RunDir};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of this process's membership.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Membership {
    /// The daemon knows it as a member.
    Member,
    /// No daemon runs, or none that answers. The process comes back to the next one by itself.
    Away,
    /// The daemon does not take it back. It tries again when that may have changed.
    Refused {
        /// The replies of the daemon.
        why: String,
    },
    /// The job was removed on request. The process keeps the memory, and comes back to no daemon.
    Removed,
}

/// This process's membership in a job of the daemon.
///
/// A thread sleeps on the connection. When the daemon is gone, it looks for the next one and brings it the
/// job's memory with the ranks that this process holds. Dropping it leaves the job; a process that ends without
/// that is a member until the kernel says that it is dead.
#[derive(Debug)]
pub struct Member {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: RunDir,
    job: String,
    memory: OwnedFd,
    process: u32,
    /// An eventfd that becomes readable when the member leaves.
    stop: OwnedFd,
    now: Mutex<Now>,
}

/// The answer of a daemon that took this process on.
struct Brought {
    page: OwnedFd,
    /// The ranks of which it was told.
    ranks: Vec<u32>,
    /// Those of them that it had handed to others.
    missing: Vec<u32>,
}

/// The state that changes when daemons come and go.
#[derive(Debug)]
struct Now {
    connection: Option<Arc<Connection>>,
    page: Option<OwnedFd>,
    /// The ranks that this process holds, in the order in which it got them.
    ranks: Vec<u32>,
    /// Those of them that the daemon does not know: it had handed them to others, who did not know that they are held, or
    /// this process took them while the daemon took it on.
    missing: Vec<u32>,
    keep: bool,
    state: Membership,
    left: bool,
}

impl Member {
    /// Makes this process a member of a job, which is made if there is none, with a rank: the one asked for or
    /// the lowest that is free. Returns the rank and the descriptor of the job's memory, too.
    ///
    /// # Errors
    /// Those of [`Connection::open`] and [`Connection::ask`].
    pub fn attach(dir: &RunDir, job: &str, rank: Option<u32>) -> Result<(Member, u32, OwnedFd)> {
        let connection = Connection::open(dir)?;
        let (rank, memory) = match connection.ask(&Request::Attach { job: job.into(), rank })? {
            (Reply::Attached { rank, .. }, Some(memory)) => (rank, memory),
            (other, _) => return Err(not_an_answer(&other, "the job's memory")),
        };
        let own = memory.try_clone().map_err(|error| Error::os("dup", error))?;
        Ok((Member::start(dir, job, connection, own, vec![rank])?, rank, memory))
    }

    /// Makes this process a member of a job, which is made if there is none, without a rank: the job is there as
    /// long as the member.
    ///
    /// # Errors
    /// Those of [`Connection::open`] and [`Connection::ask`].
    pub fn hold(dir: &RunDir, job: &str) -> Result<Member> {
        let connection = Connection::open(dir)?;
        connection.order(&Request::Hold { job: job.into() })?;
        match connection.ask(&Request::Open { job: job.into() })? {
            (Reply::Opened, Some(memory)) => Member::start(dir, job, connection, memory, Vec::new()),
            (other, _) => Err(not_an_answer(&other, "the job's memory")),
        }
    }

    fn start(
        dir: &RunDir,
        job: &str,
        connection: Connection,
        memory: OwnedFd,
        ranks: Vec<u32>,
    ) -> Result<Member> {
        let page = page_of(&connection)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| Error::os("eventfd", error))?;
        let keep = Page::read(&page).is_some_and(|page| page.keep);
        let (connection, page) = (Some(Arc::new(connection)), Some(page));
        let state = Membership::Member;
        let now = Now { connection, page, ranks, missing: Vec::new(), keep, state, left: false };
        let process = std::process::id();
        let (dir, job) = (dir.clone(), job.to_owned());
        let inner = Arc::new(Inner { dir, job, memory, process, stop, now: Mutex::new(now) });
        let keeper = inner.clone();
        // It sleeps most of the time, and needs little stack otherwise.
        let thread = std::thread::Builder::new().name("hectare-member".into()).stack_size(128 << 10);
        let spawned = thread.spawn(move || keeper.keep());
        spawned.map_err(|error| Error::os("starting a thread", error))?;
        Ok(Member { inner })
    }

    /// The name of the job.
    pub fn job(&self) -> &str {
        &self.inner.job
    }

    /// The descriptor of the job's memory.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.inner.memory.as_fd()
    }

    /// The ranks that this process holds, in the order in which it got them.
    pub fn ranks(&self) -> Vec<u32> {
        self.inner.lock().ranks.clone()
    }

    /// The state of the membership, without asking the daemon.
    pub fn state(&self) -> Membership {
        let now = self.inner.lock();
        match now.state {
            Membership::Member if now.is_removed() => Membership::Removed,
            ref state => state.clone(),
        }
    }

    /// One more rank from the daemon.
    ///
    /// # Errors
    /// Those of [`Connection::ask`]; [`Error::NoDaemon`] while there is none, [`Error::NotTakenBack`].
    pub fn rank(&self) -> Result<u32> {
        let connection = self.inner.connection()?;
        match connection.ask(&Request::Rank)? {
            (Reply::Rank { rank }, _) => {
                self.add(rank, &connection);
                Ok(rank)
            }
            (other, _) => Err(not_an_answer(&other, "a rank")),
        }
    }

    /// This rank, too, from the daemon; nothing if this process holds it already.
    ///
    /// # Errors
    /// Those of [`Connection::ask`], [`Refusal::RankTaken`] among them; [`Error::NoDaemon`] while there is none, [`Error::NotTakenBack`].
    pub fn rank_at(&self, rank: u32) -> Result<()> {
        if self.inner.lock().ranks.contains(&rank) {
            return Ok(());
        }
        let connection = self.inner.connection()?;
        connection.order(&Request::RankAt { rank })?;
        self.add(rank, &connection);
        Ok(())
    }

    /// A rank that this process took while no daemon handed any out: the next one is told of it.
    pub fn took(&self, rank: u32) {
        let mut now = self.inner.lock();
        if now.ranks.contains(&rank) {
            return;
        }
        now.ranks.push(rank);
        // One that came meanwhile does not know it yet.
        let connection = now.connection.clone();
        drop(now);
        if let Some(connection) = connection {
            let _ = connection.order(&Request::RankAt { rank });
        }
    }

    /// Gives a rank back that is held by a process unknown to the daemon.
    pub fn give_back(&self, rank: u32) {
        let mut now = self.inner.lock();
        now.ranks.retain(|held| *held != rank);
        now.missing.retain(|held| *held != rank);
        let connection = now.connection.clone();
        drop(now);
        // A daemon that is gone has forgotten it.
        if let Some(connection) = connection {
            let _ = connection.order(&Request::ReleaseRank { rank });
        }
    }

    fn add(&self, rank: u32, from: &Arc<Connection>) {
        let mut now = self.inner.lock();
        if !now.ranks.contains(&rank) {
            now.ranks.push(rank);
        }
        // The daemon that handed it out may be gone, and the next one have been told the ranks without it.
        let changed = now.connection.as_ref().filter(|now| !Arc::ptr_eq(now, from)).cloned();
        drop(now);
        if let Some(connection) = changed {
            let _ = connection.order(&Request::RankAt { rank });
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // A forked child has the descriptors, but is no member.
        if self.inner.process != std::process::id() {
            return;
        }
        let mut now = self.inner.lock();
        now.left = true;
        let connection = now.connection.take();
        drop(now);
        if let Some(connection) = connection {
            connection.leave();
        }
        // Only a full counter fails, and then the thread is told already.
        let _ = rustix::io::write(&self.inner.stop, &1u64.to_ne_bytes());
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, or why there is none.
    fn connection(&self) -> Result<Arc<Connection>> {
        let now = self.lock();
        match (&now.connection, &now.state) {
            (Some(connection), _) => Ok(connection.clone()),
            (None, Membership::Refused { why }) => {
                Err(Error::NotTakenBack { job: self.job.clone(), why: why.clone() })
            }
            (None, Membership::Removed) => Err(Refusal::NoSuchJob { job: self.job.clone() }.into()),
            (None, _) => Err(Error::NoDaemon { dir: self.dir.path().to_owned() }),
        }
    }

    /// Asks a daemon to take this process on.
    fn bring(&self, connection: &Connection) -> Result<Brought> {
        let now = self.lock();
        let (keep, ranks) = (now.keep, now.ranks.clone());
        drop(now);
        let adopt = Request::Adopt { job: self.job.clone(), keep, ranks: ranks.clone() };
        match connection.ask_with(&adopt, Some(self.memory.as_fd()))? {
            (Reply::Adopted { missing }, _) => Ok(Brought { page: page_of(connection)?, ranks, missing }),
            (other, _) => Err(not_an_answer(&other, "that it takes the job on")),
        }
    }
}

impl Now {
    fn is_removed(&self) -> bool {
        let page = self.page.as_ref().and_then(Page::read);
        page.is_some_and(|page| page.state == MemberState::Removed)
    }
}

fn page_of(connection: &Connection) -> Result<OwnedFd> {
    match connection.ask(&Request::Page)? {
        (Reply::Page, Some(page)) => Ok(page),
        (other, _) => Err(not_an_answer(&other, "a control page")),
    }
}

fn not_an_answer(reply: &Reply, wanted: &str) -> Error {
    Error::Answer { what: format!("{reply:?} instead of {wanted}") }
}
