//! The thread that sleeps on a member's connection and comes back when the daemon does.
//!
//! It polls for the next daemon, with growing pauses, rather than watch the run directory by inotify: a user
//! has 128 inotify instances by default, a job may have more members, and the directory itself may go and come.
use super::{Brought, Inner, Membership};
use crate::{Connection, Error, Refusal, Request, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info, warn};

/// The first and the longest pause between two attempts to find a daemon.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause after a daemon that refused.
const LONGEST_AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// The reason why a sleep ended.
#[derive(PartialEq, Eq)]
enum Woken {
    /// The member leaves.
    Leaving,
    /// The connection: a message, or its end.
    Connection,
    /// Time.
    Time,
}

impl Inner {
    /// Stays with the membership until the member leaves or its job is removed.
    pub(super) fn keep(&self) {
        while let Ok(connection) = self.connection() {
            let mut pause = FIRST_PAUSE;
            loop {
                // Messages are answers, and belong to who asked.
                let time = self.is_short_of_ranks().then_some(pause);
                match self.sleep(Some((&connection, PollFlags::empty())), time) {
                    Woken::Leaving => return,
                    Woken::Connection => break,
                    Woken::Time => self.ask_for_missing(&connection),
                }
                pause = (pause * 2).min(LONGEST_AFTER_REFUSAL);
            }
            drop(connection);
            if !self.note_loss() || !self.come_back() {
                return;
            }
        }
    }

    fn is_short_of_ranks(&self) -> bool {
        !self.lock().missing.is_empty()
    }

    /// Asks again for ranks that the daemon had handed to others. Who gets a rank finds in the job's memory that
    /// it is held, and gives it back.
    fn ask_for_missing(&self, connection: &Connection) {
        let missing = self.lock().missing.clone();
        for rank in missing {
            if connection.order(&Request::RankAt { rank }).is_err() {
                continue;
            }
            let mut now = self.lock();
            now.missing.retain(|held| *held != rank);
            let given_back = !now.ranks.contains(&rank);
            drop(now);
            if given_back {
                let _ = connection.order(&Request::ReleaseRank { rank });
            }
        }
    }

    /// Notes that the daemon is gone; false if there is nothing to come back for.
    fn note_loss(&self) -> bool {
        let mut now = self.lock();
        if now.left {
            return false;
        }
        now.state = if now.is_removed() { Membership::Removed } else { Membership::Away };
        let lost = now.connection.take();
        let removed = now.state == Membership::Removed;
        drop(now);
        drop(lost);
        warn!(job = self.job, removed, "the daemon is gone");
        !removed
    }

    /// Looks for a daemon until one takes this process on; false if it leaves before.
    fn come_back(&self) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            // Jitter, so that not all members of all jobs come at the same moment.
            let spread = (u64::from(self.process.wrapping_mul(0x9e37_79b9)) * pause.as_micros() as u64) >> 33;
            if self.sleep(None, Some(pause + Duration::from_micros(spread))) == Woken::Leaving {
                return false;
            }
            let longest = match self.try_once() {
                Ok(()) => return true,
                Err(Some(connection)) => {
                    // Another job has the name. Its end is told by the daemon.
                    let wait = Request::Wait { job: self.job.clone() };
                    let said = connection.say(&wait);
                    if said.is_ok() && self.sleep(Some((&connection, PollFlags::IN)), None) == Woken::Leaving
                    {
                        return false;
                    }
                    if connection.hear().is_err() {
                        self.lock().state = Membership::Away;
                    }
                    pause = FIRST_PAUSE;
                    continue;
                }
                Err(None) if self.lock().state == Membership::Away => LONGEST_PAUSE,
                Err(None) => LONGEST_AFTER_REFUSAL,
            };
            pause = (pause * 2).min(longest);
        }
    }

    /// Tries to come back. If another job has the name, returns the connection by which to wait for its end.
    fn try_once(&self) -> Result<(), Option<Connection>> {
        let connection = match Connection::open(&self.dir) {
            Ok(connection) => connection,
            Err(error) => return Err(self.not_back(&error, None)),
        };
        let Brought { page, ranks, mut missing } = match self.bring(&connection) {
            Ok(brought) => brought,
            Err(error) => return Err(self.not_back(&error, Some(connection))),
        };
        let connection = Arc::new(connection);
        let mut now = self.lock();
        if now.left {
            drop(now);
            connection.leave();
            // The sleep of the caller ends at once.
            return Ok(());
        }
        // Taken and given back while the daemon was asked: nobody has told it.
        missing.retain(|rank| now.ranks.contains(rank));
        missing.extend(now.ranks.iter().filter(|rank| !ranks.contains(rank)));
        let released: Vec<u32> = ranks.into_iter().filter(|rank| !now.ranks.contains(rank)).collect();
        info!(job = self.job, ranks = ?now.ranks, ?missing, "back with the daemon");
        (now.page, now.connection) = (Some(page), Some(connection.clone()));
        (now.state, now.missing) = (Membership::Member, missing);
        drop(now);
        for rank in released {
            // A daemon that is gone again has forgotten it.
            let _ = connection.order(&Request::ReleaseRank { rank });
        }
        Ok(())
    }

    /// Records why this process is no member again yet.
    fn not_back(&self, error: &Error, connection: Option<Connection>) -> Option<Connection> {
        let state = match error {
            error if error.is_absence() => Membership::Away,
            error => Membership::Refused { why: error.to_string() },
        };
        let mut now = self.lock();
        let news = now.state != state;
        now.state = state;
        drop(now);
        match error {
            error if error.is_absence() => debug!(job = self.job, %error, "no daemon yet"),
            error if news => warn!(job = self.job, %error, "the daemon does not take this process back"),
            _ => {}
        }
        connection.filter(|_| matches!(error, Error::Refused(Refusal::OtherJob { .. })))
    }

    /// Sleeps until the member leaves, something is on a connection, or time has passed.
    fn sleep(&self, on: Option<(&Connection, PollFlags)>, time: Option<Duration>) -> Woken {
        let time = time
            .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        loop {
            let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN)];
            if let Some((connection, flags)) = on {
                fds.push(PollFd::from_borrowed_fd(connection.as_fd(), flags));
            }
            match poll(&mut fds, time.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                // Out of memory: as if time had passed, but not in a hurry.
                Err(_) => std::thread::sleep(LONGEST_PAUSE),
                Ok(_) => {}
            }
            return if !fds[0].revents().is_empty() {
                Woken::Leaving
            } else if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                Woken::Connection
            } else if time.is_some() {
                Woken::Time
            } else {
                continue;
            };
        }
    }
}
