//! The processes that a launcher has started on one host: the first one makes this host's part of the job, and the others wait for that
//! at a socket without a file, which ends with the process. The first one stays until all are members, since the job goes with its last
//! member.
use crate::cli::exit;
use crate::cli::failure::FirstFailed;
use crate::cli::output::one_line;
use anyhow::{Context, Result, bail, ensure};
use hectare_wire::RunDir;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::ops::Range;
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
/// The line of a job that is there. Another line says why there is none, behind the exit code that it makes.
const MADE: &str = "made";
/// The line of a process that is a member.
const HELD: &str = "held";

fn address(dir: &RunDir, job: &str) -> Result<SocketAddr> {
    let of = dir.path();
    let at = std::fs::metadata(of).map_err(|error| match error.kind() {
        ErrorKind::NotFound => hectare_wire::Error::NoDaemon { dir: of.to_owned() }.into(),
        _ => anyhow::Error::from(error).context(format!("the run directory {}", of.display())),
    })?;
    let name = format!("hectare-launched/{:x}/{:x}/{job}", at.dev(), at.ino());
    SocketAddr::from_abstract_name(name).context("the name of a socket")
}

/// Checks that the other end is of this user: anybody may have the name of a socket without a file. Its process.
fn check_user(stream: &UnixStream) -> Result<u32> {
    let other = rustix::net::sockopt::socket_peercred(stream).context("SO_PEERCRED")?;
    let (theirs, own) = (other.uid, rustix::process::geteuid());
    let process = other.pid.as_raw_nonzero().get().unsigned_abs();
    ensure!(
        theirs == own,
        "process {process} of another user ({theirs}) has the socket of this start: give it another name by --job, or have \
         that process ended"
    );
    Ok(process)
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
    /// The ranks of this host, of which the first process has the first.
    ranks: Range<u32>,
    /// Those who have come.
    others: Vec<Other>,
}

/// Another process, which has come.
struct Other {
    stream: UnixStream,
    rank: u32,
    process: u32,
}

impl Other {
    /// Hears which rank it has.
    fn hear(stream: UnixStream) -> Result<Other> {
        let process = check_user(&stream)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LINE_WITHIN))?;
        let said = line(&mut BufReader::new(&stream))?.context("it has ended")?;
        Ok(Other { stream, rank: said.parse().with_context(|| format!("{said:?} is no rank"))?, process })
    }

    /// Tells it whether the job is made.
    fn tell(&self, said: &str) -> std::io::Result<()> {
        (&self.stream).write_all(format!("{said}\n").as_bytes())
    }

    /// Waits until it says that it is a member; whether it does.
    fn is_member(&self) -> bool {
        line(&mut BufReader::new(&self.stream)).is_ok_and(|said| said.as_deref() == Some(HELD))
    }
}

impl First {
    /// Lets the others come, who wait.
    ///
    /// # Errors
    /// Another process has begun already: of another start of the job, or of this one.
    pub(super) fn begin(dir: &RunDir, job: &str, ranks: Range<u32>, deadline: Instant) -> Result<First> {
        let address = address(dir, job)?;
        let listener = UnixListener::bind_addr(&address).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                let other = UnixStream::connect_addr(&address).ok().map(|stream| check_user(&stream));
                let by = match other {
                    Some(Ok(process)) => format!(", by process {process}"),
                    Some(Err(error)) => return error.context(format!("job {job} cannot be started on this host")),
                    None => String::new(),
                };
                anyhow::anyhow!(
                    "another start of job {job} is under way on this host{by}: give this one a name of its own by --job. If both \
                     are of one start, this one (rank {}) and the other both have local rank 0: the launcher must give each \
                     process a rank of its own",
                    ranks.start
                )
            }
            _ => anyhow::Error::from(error).context("the socket of this start"),
        })?;
        listener.set_nonblocking(true).context("fcntl")?;
        Ok(First { listener, deadline, ranks, others: Vec::new() })
    }

    /// Waits until the others have come.
    ///
    /// # Errors
    /// Somebody does not come in time, or has a rank that is not its own.
    pub(super) fn gather(&mut self) -> Result<()> {
        self.wait(self.deadline);
        self.check()
    }

    /// Tells the others that this host's part of the job is made, and waits until they are members; or why it is not made.
    ///
    /// # Errors
    /// Somebody does not become a member.
    pub(super) fn conclude(mut self, failed: Option<&anyhow::Error>) -> Result<()> {
        if failed.is_some() {
            // The launcher may have ended them.
            self.wait(self.deadline.min(Instant::now() + LATE_WITHIN));
        }
        let why = |error| format!("{} {}", exit::code_of(error), one_line(error));
        let said = failed.map_or(MADE.to_owned(), why);
        let told: Vec<&Other> = self.others.iter().filter(|other| other.tell(&said).is_ok()).collect();
        let members = 1 + told.iter().filter(|_| failed.is_none()).filter(|other| other.is_member()).count();
        ensure!(
            failed.is_some() || members == self.ranks.len(),
            "of {} processes of this host, only {members} became members of the job",
            self.ranks.len()
        );
        Ok(())
    }

    /// Hears those who come until then.
    fn wait(&mut self, until: Instant) {
        while self.others.len() + 1 < self.ranks.len() {
            match self.listener.accept() {
                Ok((stream, _)) => self.others.extend(Other::hear(stream)),
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(_) => break,
            }
        }
    }

    /// Whether they are all, each with one of this host's ranks.
    fn check(&self) -> Result<()> {
        let Range { start, end } = self.ranks;
        let advice = "the launcher must give each process a rank of its own, and each host ranks that follow each other";
        let mut holders = BTreeMap::from([(start, std::process::id())]);
        for Other { rank, process, .. } in &self.others {
            if let Some(holder) = holders.insert(*rank, *process) {
                bail!("processes {holder} and {process} of this host both have rank {rank}: {advice}");
            }
            ensure!(
                self.ranks.contains(rank),
                "process {process} of this host has rank {rank}, and its ranks are {start} to {}: {advice}",
                end - 1
            );
        }
        ensure!(
            holders.len() == self.ranks.len(),
            "of {} processes of this host, only {} came in time",
            self.ranks.len(),
            holders.len()
        );
        Ok(())
    }
}

/// Waits as another process, that of a rank, for the first one to have made the job, and holds it by `hold`.
///
/// # Errors
/// The first process does not come in time, could not make the job, or refuses the rank.
pub(super) fn follow<T>(
    dir: &RunDir,
    (job, rank): (&str, u32),
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
    check_user(&stream).with_context(|| format!("job {job} cannot be started on this host"))?;
    let left = deadline.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left + LINE_WITHIN))?;
    let asked = stream.write_all(format!("{rank}\n").as_bytes());
    let said = match asked.and_then(|()| line(&mut BufReader::new(&stream))) {
        // It has ended, and had not read the rank.
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => None,
        said => said.with_context(late)?,
    };
    match said {
        Some(said) if said == MADE => {
            let held = hold()?;
            // Without it the first process names this one; this one is a member.
            let _ = stream.write_all(format!("{HELD}\n").as_bytes());
            Ok(held)
        }
        Some(why) => {
            let (code, what) = why.split_once(' ').with_context(|| format!("{why:?} is no reason"))?;
            let code = code.parse().with_context(|| format!("{why:?} is no reason"))?;
            Err(FirstFailed { what: what.to_owned(), code }.into())
        }
        None => bail!("the process of local rank 0 has ended before it made job {job}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::failure::HostFailed;

    fn scratch() -> (tempfile::TempDir, RunDir, Instant) {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        (top, dir, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn the_first_waits_until_all_are_members() {
        let (_top, dir, deadline) = scratch();
        std::thread::scope(|scope| {
            let early = scope.spawn(|| follow(&dir, ("j", 1), deadline, || Ok(1)));
            let mut first = First::begin(&dir, "j", 0..3, deadline).unwrap();
            let said = First::begin(&dir, "j", 0..3, deadline).map(drop).unwrap_err().to_string();
            let by = format!("on this host, by process {}:", std::process::id());
            assert!(said.contains(&by) && said.contains("this one (rank 0)"), "{said}");
            let late = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                follow(&dir, ("j", 2), deadline, || Ok(2))
            });
            first.gather().unwrap();
            first.conclude(None).unwrap();
            assert_eq!((early.join().unwrap().unwrap(), late.join().unwrap().unwrap()), (1, 2));
        });
    }

    #[test]
    fn ranks_of_two_processes_are_named_and_nobody_holds_the_job() {
        let (_top, dir, deadline) = scratch();
        for (ranks, part) in
            [([6, 6], "both have rank 6"), ([6, 5], "both have rank 5"), ([6, 9], "has rank 9")]
        {
            let mut first = First::begin(&dir, "j", 5..8, deadline).unwrap();
            std::thread::scope(|scope| {
                let others = ranks.map(|rank| {
                    let dir = &dir;
                    scope.spawn(move || {
                        follow(dir, ("j", rank), deadline, || -> Result<()> { panic!("it holds") })
                    })
                });
                let failed = first.gather().unwrap_err();
                first.conclude(Some(&failed)).unwrap();
                let said = failed.to_string();
                let process = format!(
                    "process{} {}",
                    if part.starts_with("both") { "es" } else { "" },
                    std::process::id()
                );
                assert!(said.contains(part) && said.contains(&process), "{said}");
                for other in others {
                    let heard = other.join().unwrap().unwrap_err().to_string();
                    assert!(heard.contains(&said), "{heard}");
                }
            });
        }
    }

    #[test]
    fn another_user_who_has_the_socket_is_named() {
        use rustix::process::Uid;
        let (_top, dir, deadline) = scratch();
        let others = std::thread::scope(|scope| {
            let as_nobody = || {
                // Only this thread is another user.
                rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::from_raw(65534), Uid::ROOT)?;
                Ok::<_, rustix::io::Errno>(UnixListener::bind_addr(&address(&dir, "j").unwrap()).unwrap())
            };
            scope.spawn(as_nobody).join().unwrap()
        });
        let _listener = match others {
            Ok(listener) => listener,
            Err(error) => return hectare_testing::skip("another user", error),
        };
        let first = First::begin(&dir, "j", 0..2, deadline).map(drop).unwrap_err();
        let other = follow(&dir, ("j", 1), deadline, || Ok(())).unwrap_err();
        for error in [first, other] {
            let said = one_line(&error);
            assert!(
                said.contains("of another user (65534) has the socket") && said.contains("--job"),
                "{said}"
            );
        }
    }

    #[test]
    fn why_there_is_no_job_is_heard() {
        let (_top, dir, deadline) = scratch();
        let first = First::begin(&dir, "j", 0..2, deadline).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| follow(&dir, ("j", 1), deadline, || Ok(())));
            std::thread::sleep(Duration::from_millis(100));
            let failed = HostFailed::new("b".into(), "no key".into()).into();
            first.conclude(Some(&failed)).unwrap();
            let heard = other.join().unwrap().unwrap_err();
            assert!(heard.to_string().contains("no key"), "{heard}");
            assert_eq!((exit::code_of(&heard), exit::code_of(&failed)), (8, 8));
        });
        let first = First::begin(&dir, "j", 0..2, deadline).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| follow(&dir, ("j", 1), deadline, || Ok(())));
            let (stream, _) =
                std::iter::from_fn(|| Some(first.listener.accept())).find_map(|came| came.ok()).unwrap();
            drop((stream, first));
            let said = other.join().unwrap().unwrap_err().to_string();
            assert!(said.contains("has ended before"), "{said}");
        });
        let soon = Instant::now() + Duration::from_millis(50);
        let mut first = First::begin(&dir, "j", 0..2, soon).unwrap();
        let said = first.gather().unwrap_err().to_string();
        assert!(said.contains("of 2 processes of this host, only 1 came"), "{said}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
