//! The processes that a launcher has started on one host: the first one makes this host's part of the job, and the others wait for that
//! at a socket without a file, which ends with the process. The first one stays until all are members, since the job goes with its last
//! member.
use anyhow::{Context, Result, bail, ensure};
use hectare_wire::RunDir;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Between two attempts to reach the first process, and between two looks who has come.
const PAUSE: Duration = Duration::from_millis(20);
/// How long those are waited for that come late to hear of a failure.
const LATE_WITHIN: Duration = Duration::from_secs(1);
/// How long a line may take that its sender writes at once.
const LINE_WITHIN: Duration = Duration::from_secs(5);
/// The longest line, which is an error.
const LONGEST: u64 = 64 << 10;
/// The line of a job that is there. Another line says why there is none.
const MADE: &str = "made";
/// The line of a process that is a member.
const HELD: &str = "held";

fn address(dir: &RunDir, job: &str) -> Result<SocketAddr> {
    let of = dir.path();
    let at = std::fs::metadata(of).with_context(|| format!("the run directory {}", of.display()))?;
    let name = format!("hectare-launched/{:x}/{:x}/{job}", at.dev(), at.ino());
    SocketAddr::from_abstract_name(name).context("the name of a socket")
}

/// Checks that the other end is of this user: anybody may have the name of a socket without a file.
fn check_user(stream: &UnixStream) -> Result<()> {
    let theirs = rustix::net::sockopt::socket_peercred(stream).context("SO_PEERCRED")?.uid;
    let own = rustix::process::geteuid();
    ensure!(theirs == own, "another user ({theirs}) has the socket of this start");
    Ok(())
}

fn line(from: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    from.take(LONGEST).read_line(&mut line)?;
    Ok(line.ends_with('\n').then(|| line.trim_end().to_owned()))
}

/// The first process, for the others.
pub(super) struct First {
    listener: UnixListener,
    deadline: Instant,
    local_size: u32,
}

impl First {
    /// Lets the others come, who wait.
    ///
    /// # Errors
    /// Another start of the job on this host is under way.
    pub(super) fn begin(dir: &RunDir, job: &str, local_size: u32, deadline: Instant) -> Result<First> {
        let listener = UnixListener::bind_addr(&address(dir, job)?).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => anyhow::anyhow!("another start of job {job} is under way on this host"),
            _ => anyhow::Error::from(error).context("the socket of this start"),
        })?;
        listener.set_nonblocking(true).context("fcntl")?;
        Ok(First { listener, deadline, local_size })
    }

    /// Tells the others whether this host's part of the job is made, and waits until they are members.
    ///
    /// # Errors
    /// Somebody does not come in time.
    pub(super) fn conclude(self, failed: Option<&anyhow::Error>) -> Result<()> {
        let said = failed.map_or(MADE.to_owned(), crate::cli::output::one_line);
        let until = failed.map_or(self.deadline, |_| self.deadline.min(Instant::now() + LATE_WITHIN));
        let mut members = 1;
        while members < self.local_size {
            match self.listener.accept() {
                Ok((stream, _)) if check_user(&stream).is_ok() => {
                    let is_member = self.tell(stream, &said).is_ok_and(|is_member| is_member);
                    members += u32::from(is_member || failed.is_some());
                }
                Ok(_) => {}
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                // The launcher may have ended them: the failure is to be said.
                Err(_) if failed.is_some() => break,
                Err(_) => {
                    let size = self.local_size;
                    bail!("of {size} processes of this host, only {members} came in time")
                }
            }
        }
        Ok(())
    }

    /// Tells one that has come; whether it has become a member.
    fn tell(&self, mut stream: UnixStream, said: &str) -> Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LINE_WITHIN))?;
        stream.write_all(format!("{said}\n").as_bytes())?;
        Ok(line(&mut BufReader::new(stream))?.as_deref() == Some(HELD))
    }
}

/// Waits as another process for the first one to have made the job, and holds it by `hold`.
///
/// # Errors
/// The first process does not come in time, or could not make the job.
pub(super) fn follow<T>(
    dir: &RunDir,
    job: &str,
    deadline: Instant,
    hold: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let address = address(dir, job)?;
    let late =
        || format!("job {job} did not come to this host in time: the process of local rank 0 says why");
    let mut stream = loop {
        match UnixStream::connect_addr(&address) {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > deadline => return Err(error).with_context(late),
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    check_user(&stream)?;
    let left = deadline.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left + LINE_WITHIN))?;
    match line(&mut BufReader::new(stream.try_clone()?)).with_context(late)? {
        Some(said) if said == MADE => {
            let held = hold()?;
            // Without it the first process names this one; this one is a member.
            let _ = stream.write_all(format!("{HELD}\n").as_bytes());
            Ok(held)
        }
        Some(why) => bail!("{why} (says the process of local rank 0)"),
        None => bail!("the process of local rank 0 has ended before it made job {job}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, RunDir, Instant) {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        (top, dir, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn the_first_waits_until_all_are_members() {
        let (_top, dir, deadline) = scratch();
        std::thread::scope(|scope| {
            let early = scope.spawn(|| follow(&dir, "j", deadline, || Ok(1)));
            let first = First::begin(&dir, "j", 3, deadline).unwrap();
            assert!(First::begin(&dir, "j", 3, deadline).is_err());
            let late = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                follow(&dir, "j", deadline, || Ok(2))
            });
            first.conclude(None).unwrap();
            assert_eq!((early.join().unwrap().unwrap(), late.join().unwrap().unwrap()), (1, 2));
        });
    }

    #[test]
    fn why_there_is_no_job_is_heard() {
        let (_top, dir, deadline) = scratch();
        let first = First::begin(&dir, "j", 2, deadline).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| follow(&dir, "j", deadline, || Ok(())));
            std::thread::sleep(Duration::from_millis(100));
            first.conclude(Some(&anyhow::anyhow!("no key"))).unwrap();
            let said = other.join().unwrap().unwrap_err().to_string();
            assert!(said.contains("no key"), "{said}");
        });
        let first = First::begin(&dir, "j", 2, deadline).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| follow(&dir, "j", deadline, || Ok(())));
            let (stream, _) =
                std::iter::from_fn(|| Some(first.listener.accept())).find_map(|came| came.ok()).unwrap();
            drop((stream, first));
            let said = other.join().unwrap().unwrap_err().to_string();
            assert!(said.contains("has ended before"), "{said}");
        });
        let soon = Instant::now() + Duration::from_millis(50);
        let first = First::begin(&dir, "j", 2, soon).unwrap();
        let said = first.conclude(None).unwrap_err().to_string();
        assert!(said.contains("of 2 processes of this host, only 1 came"), "{said}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
