//! The daemon's run directory, which is locked, and the socket in it. Either may be removed by others (a cleaner of
//! temporary files, the end of a login session, a mistake); both are checked, and recreated.
use crate::closer::Closer;
use crate::identity::{Identity, identity};
use hectare_wire::{Error, Result, RunDir, Socket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// The interval between checks that the socket exists. A check costs one system call.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The run directory of a daemon, locked, and its socket.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) dir: RunDir,
    lock: OwnedFd,
    pub(super) listener: Socket,
    socket: Option<Identity>,
    checked: Instant,
    /// Whether the last check failed, so that one warning is enough.
    failing: bool,
}

/// The result of a check of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointState {
    /// It is not time to check.
    Early,
    /// Nothing changed, or the next check will tell.
    Same,
    /// The socket was recreated, in a run directory that may be a new one.
    Made,
    /// Another daemon has the run directory of this name.
    Lost,
}

impl Endpoint {
    /// Takes the run directory, removes what a killed daemon left in it, and listens. `None` if another daemon has it.
    pub(super) fn take(dir: RunDir) -> Result<Option<Endpoint>> {
        dir.make()?;
        let Some(lock) = dir.lock()? else { return Ok(None) };
        let (listener, socket) = listen(&dir)?;
        Ok(Some(Endpoint { dir, lock, listener, socket, checked: Instant::now(), failing: false }))
    }

    /// How long until the next check.
    pub(super) fn due(&self) -> Duration {
        CHECK_EVERY.saturating_sub(self.checked.elapsed())
    }

    /// Checks that directory and socket are there, if it is time to, and recreates them if not.
    pub(super) fn check(&mut self, closer: &Closer) -> EndpointState {
        if !self.due().is_zero() {
            return EndpointState::Early;
        }
        self.checked = Instant::now();
        if self.is_here() {
            return EndpointState::Same;
        }
        let made = self.make_anew(closer);
        match &made {
            Ok(EndpointState::Made) => {
                warn!(dir = %self.dir.path().display(), "the socket was removed by somebody; it is recreated")
            }
            Err(error) if !self.failing => {
                warn!(%error, "the socket was removed by somebody and cannot be recreated yet")
            }
            _ => {}
        }
        self.failing = made.is_err();
        made.unwrap_or(EndpointState::Same)
    }

    fn is_here(&self) -> bool {
        self.socket.is_some() && identity(&self.dir.socket()) == self.socket && self.dir.is(&self.lock)
    }

    fn make_anew(&mut self, closer: &Closer) -> Result<EndpointState> {
        if !self.dir.is(&self.lock) {
            self.dir.make()?;
            match self.dir.lock()? {
                Some(lock) => self.lock = lock,
                None => return Ok(EndpointState::Lost),
            }
        }
        let (listener, socket) = listen(&self.dir)?;
        // Connections that wait at the old one may have sent anything.
        closer.hang_up(std::mem::replace(&mut self.listener, listener));
        self.socket = socket;
        Ok(EndpointState::Made)
    }

    /// Removes the socket, if it is this daemon's.
    pub(super) fn leave(&self) {
        if self.is_here()
            && let Err(error) = std::fs::remove_file(self.dir.socket())
        {
            warn!(%error, "the socket could not be removed");
        }
    }
}

/// Listens in a directory whose lock is held: a socket that is there belongs to a daemon that was killed.
fn listen(dir: &RunDir) -> Result<(Socket, Option<Identity>)> {
    let path = dir.socket();
    match std::fs::remove_file(&path) {
        Ok(()) => info!("removed the socket of a daemon that was killed"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(unusable(dir, "removing the socket of a daemon that was killed", &error)),
    }
    let listener = Socket::listen(&path).map_err(|error| unusable(dir, "making the socket", &error))?;
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    let set = std::fs::set_permissions(&path, private);
    set.map_err(|error| unusable(dir, "setting the mode of the socket", &error))?;
    Ok((listener, identity(&path)))
}

fn unusable(dir: &RunDir, doing: &str, error: &dyn std::error::Error) -> Error {
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Error::RunDir { dir: dir.path().to_owned(), what: format!("{doing} there: {cause}") }
}
