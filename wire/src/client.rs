//! A client's connection to the daemon: one request at a time.
use crate::{Error, FrameError, Received, Refusal, Reply, Request, Result, RunDir, Socket, VERSION};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time limit of an answer. The daemon answers in microseconds, except where it waits for the members of
/// a job to come back (two seconds).
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A connection to the daemon. Requests of several threads take turns.
///
/// Dropping it tells the daemon that this process leaves the job that the connection made it a member of. A
/// process that ends, or closes the socket, without that is a member until the kernel says that it is dead.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// Held from a request to its answer.
    turn: Mutex<()>,
    process: u32,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Readable, or hung up, when the daemon is gone or has said something.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Connection {
    /// Connects to the daemon of a run directory.
    ///
    /// # Errors
    /// [`Error::NoDaemon`], [`Error::RunDir`], [`Error::OtherUser`], [`Error::NoAnswer`], [`Error::Os`].
    pub fn open(dir: &RunDir) -> Result<Connection> {
        dir.check()?;
        let none = || Error::NoDaemon { dir: dir.path().to_owned() };
        let socket = Socket::connect_within(&dir.socket(), Some(ANSWER_WITHIN)).map_err(late)?;
        let socket = socket.ok_or_else(none)?;
        let (theirs, ours) = (socket.peer_user()?, rustix::process::geteuid().as_raw());
        if theirs != ours {
            return Err(Error::OtherUser { dir: dir.path().to_owned(), theirs, ours });
        }
        Ok(Connection { socket, turn: Mutex::new(()), process: std::process::id() })
    }

    /// Asks, and waits for the answer and the descriptor that comes with it: ten seconds, but without limit for
    /// the answer to [`Request::Wait`].
    ///
    /// # Errors
    /// [`Error::Refused`] with the daemon's reason, [`Error::Version`], [`Error::Closed`],
    /// [`Error::NoAnswer`], after which the connection is closed, [`Error::Answer`], [`Error::Frame`],
    /// [`Error::Os`].
    pub fn ask(&self, request: &Request) -> Result<(Reply, Option<OwnedFd>)> {
        self.ask_with(request, None)
    }

    /// Asks and sends a descriptor along.
    ///
    /// # Errors
    /// Those of [`Connection::ask`].
    pub fn ask_with(
        &self,
        request: &Request,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(Reply, Option<OwnedFd>)> {
        let bytes = crate::encode(request)?;
        let patient = matches!(request, Request::Wait { .. });
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        match self.socket.send(&bytes, descriptor).map_err(late) {
            // A daemon that refuses a connection says why before it closes it.
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => return Err(error),
        }
        loop {
            match self.socket.receive()? {
                Received::Message(bytes, descriptor) => {
                    return understand(&bytes).map(|reply| (reply, descriptor));
                }
                Received::Closed => return Err(Error::Closed),
                Received::Nothing if patient || since.elapsed() < ANSWER_WITHIN => {}
                Received::Nothing => {
                    // The answer to this request must not be taken for that to the next.
                    self.socket.shut();
                    return Err(no_answer());
                }
                Received::TooLong => {
                    return Err(Error::Answer { what: "a message that is too long".into() });
                }
            }
        }
    }

    /// Sends a request whose answer is [`Reply::Done`].
    ///
    /// # Errors
    /// Those of [`Connection::ask`].
    pub fn order(&self, request: &Request) -> Result<()> {
        match self.ask(request)? {
            (Reply::Done, _) => Ok(()),
            (other, _) => Err(Error::Answer { what: format!("{other:?}") }),
        }
    }

    /// Leaves the job that the connection is a member of, if it is one; nothing in a forked child, which has the
    /// socket, but is no member.
    pub(crate) fn leave(&self) {
        if self.process == std::process::id()
            && let Ok(bytes) = crate::encode(&Request::Leave)
        {
            // A daemon that is gone is nothing to leave.
            let _ = self.socket.send(&bytes, None);
        }
    }

    /// Sends a request without waiting for the answer, which [`Connection::hear`] receives.
    pub(crate) fn say(&self, request: &Request) -> Result<()> {
        self.socket.send(&crate::encode(request)?, None).map_err(late)
    }

    /// Receives an answer; to be called when the connection is readable.
    pub(crate) fn hear(&self) -> Result<Reply> {
        match self.socket.receive()? {
            Received::Message(bytes, _) => understand(&bytes),
            _ => Err(Error::Closed),
        }
    }
}

fn understand(bytes: &[u8]) -> Result<Reply> {
    match crate::decode(bytes) {
        Ok(Reply::Refused(Refusal::Version { daemon })) => {
            Err(Error::Version { theirs: daemon, ours: VERSION })
        }
        Ok(Reply::Refused(refusal)) => Err(Error::Refused(refusal)),
        Ok(reply) => Ok(reply),
        Err(FrameError::Version { theirs }) => Err(Error::Version { theirs, ours: VERSION }),
        Err(error) => Err(Error::Answer { what: error.to_string() }),
    }
}

fn no_answer() -> Error {
    Error::NoAnswer { within_s: ANSWER_WITHIN.as_secs() }
}

/// The errors of a system call when a limit of time has passed.
fn late(error: Error) -> Error {
    match error {
        Error::Os { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock => no_answer(),
        other => other,
    }
}
