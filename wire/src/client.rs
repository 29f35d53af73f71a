//! A client's connection to the daemon: one request at a time.
use crate::{Error, FrameError, Received, Refusal, Reply, Request, Result, RunDir, Socket, VERSION};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// A connection to the daemon. Requests of several threads take turns.
///
/// Dropping it tells the daemon that this process leaves the job that the connection made it a member of. A
/// process that ends, or closes the socket, without that is a member until the kernel says that it is dead.
#[derive(Debug)]
pub struct Connection {
    socket: Mutex<Socket>,
    process: u32,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A forked child has the socket, but is no member.
        if self.process == std::process::id()
            && let Ok(bytes) = crate::encode(&Request::Leave)
        {
            let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
            // A daemon that is gone is nothing to leave.
            let _ = socket.send(&bytes, None);
        }
    }
}

impl Connection {
    /// Connects to the daemon of a run directory.
    ///
    /// # Errors
    /// [`Error::NoDaemon`], [`Error::RunDir`], [`Error::OtherUser`], [`Error::Os`].
    pub fn open(dir: &RunDir) -> Result<Connection> {
        dir.check()?;
        let none = || Error::NoDaemon { dir: dir.path().to_owned() };
        let socket = Socket::connect(&dir.socket())?.ok_or_else(none)?;
        let (theirs, ours) = (socket.peer_user()?, rustix::process::geteuid().as_raw());
        if theirs != ours {
            return Err(Error::OtherUser { dir: dir.path().to_owned(), theirs, ours });
        }
        Ok(Connection { socket: Mutex::new(socket), process: std::process::id() })
    }

    /// Asks, and waits for the answer and the descriptor that comes with it.
    ///
    /// # Errors
    /// [`Error::Refused`] with the daemon's reason, [`Error::Version`], [`Error::Closed`],
    /// [`Error::Answer`], [`Error::Frame`], [`Error::Os`].
    pub fn ask(&self, request: &Request) -> Result<(Reply, Option<OwnedFd>)> {
        let bytes = crate::encode(request)?;
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        socket.send(&bytes, None)?;
        let (bytes, descriptor) = match socket.receive()? {
            Received::Message(bytes, descriptor) => (bytes, descriptor),
            Received::Closed => return Err(Error::Closed),
            Received::TooLong | Received::Nothing => {
                return Err(Error::Answer { what: "a message that is too long".into() });
            }
        };
        match crate::decode(&bytes) {
            Ok(Reply::Refused(Refusal::Version { daemon })) => {
                Err(Error::Version { theirs: daemon, ours: VERSION })
            }
            Ok(Reply::Refused(refusal)) => Err(Error::Refused(refusal)),
            Ok(reply) => Ok((reply, descriptor)),
            Err(FrameError::Version { theirs }) => Err(Error::Version { theirs, ours: VERSION }),
            Err(error) => Err(Error::Answer { what: error.to_string() }),
        }
    }

    /// Asks for something that needs no answer but that it is done.
    ///
    /// # Errors
    /// Those of [`Connection::ask`].
    pub fn order(&self, request: &Request) -> Result<()> {
        match self.ask(request)? {
            (Reply::Done, _) => Ok(()),
            (other, _) => Err(Error::Answer { what: format!("{other:?}") }),
        }
    }
}
