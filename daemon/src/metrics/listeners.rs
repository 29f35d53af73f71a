//! Where the daemon listens for scrapes: an address, a socket in the run directory, or both. If it cannot listen, it logs
//! a warning and tries again: metrics are no reason for a daemon not to start, and the address may become free.
use crate::config::Metrics;
use crate::identity::{Identity, identity};
use hectare_wire::RunDir;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long until what failed is tried again.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// The listeners that there are.
#[derive(Debug)]
pub(super) struct Listeners {
    dir: RunDir,
    tcp: Option<(SocketAddr, OwnedFd)>,
    unix: Option<(Option<Identity>, OwnedFd)>,
    tried: Option<Instant>,
    /// The failure of the last try: it is warned of once.
    failed: Option<String>,
}

impl Listeners {
    pub(super) fn new(dir: RunDir) -> Listeners {
        Listeners { dir, tcp: None, unix: None, tried: None, failed: None }
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let tcp = self.tcp.iter().map(|(_, fd)| fd.as_fd());
        tcp.chain(self.unix.iter().map(|(_, fd)| fd.as_fd()))
    }

    /// Listens where it is wanted, and nowhere else. To be called often.
    pub(super) fn keep(&mut self, wanted: &Metrics) {
        if self.tcp.as_ref().is_some_and(|(address, _)| Some(*address) != wanted.listen) {
            self.tcp = None;
            self.tried = None;
        }
        let path = self.dir.metrics();
        // Removed by others, as the control socket may be.
        if self.unix.as_ref().is_some_and(|(own, _)| !wanted.socket || identity(&path) != *own) {
            self.leave();
        }
        let lacking =
            (self.tcp.is_none() && wanted.listen.is_some()) || (self.unix.is_none() && wanted.socket);
        if !lacking || self.tried.is_some_and(|tried| tried.elapsed() < TRY_EVERY) {
            return;
        }
        self.tried = Some(Instant::now());
        let mut failed = None;
        if let (None, Some(address)) = (&self.tcp, wanted.listen) {
            match listen_at(address) {
                Ok(fd) => self.tcp = Some((address, fd)),
                Err(error) => {
                    failed = Some(format!("metrics.listen: {address} cannot be listened at: {error}"))
                }
            }
        }
        if self.unix.is_none() && wanted.socket {
            match listen_in(&path) {
                Ok(made) => self.unix = Some(made),
                Err(error) => {
                    failed = Some(format!("metrics.socket: {} cannot be made: {error}", path.display()))
                }
            }
        }
        if let Some(why) = &failed
            && self.failed != failed
        {
            tracing::warn!("{why}; it is tried again every second");
        }
        self.failed = failed;
    }

    /// Removes the socket, if it is this daemon's.
    pub(super) fn leave(&mut self) {
        if let Some((own, _)) = self.unix.take()
            && identity(&self.dir.metrics()) == own
        {
            // One that stays is refused to clients and removed by the next daemon.
            let _ = std::fs::remove_file(self.dir.metrics());
        }
    }
}

fn listen_at(address: SocketAddr) -> Result<OwnedFd, Error> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "metrics can be read from other hosts: there is no access control");
    }
    tracing::info!(%address, "metrics");
    Ok(listener.into())
}

fn listen_in(path: &Path) -> Result<(Option<Identity>, OwnedFd), Error> {
    // A killed daemon leaves its socket; one at which somebody listens is that of another daemon.
    if identity(path).is_some() {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            _ => return Err(ErrorKind::AddrInUse.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    tracing::info!(path = %path.display(), "metrics");
    Ok((identity(path), listener.into()))
}
