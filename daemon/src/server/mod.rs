//! The daemon itself: one thread that waits for connections, messages and deaths.
mod clients;
mod membership;
mod requests;

use crate::config::Config;
use crate::ready;
use crate::registry::{ClientId, Registry};
use clients::Client;
use hectare_wire::{Error, Result, RunDir, Socket, VERSION};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;
use tracing::{info, warn};

/// A daemon that has its run directory to itself and listens.
#[derive(Debug)]
pub struct Server {
    dir: RunDir,
    _lock: OwnedFd,
    listener: Socket,
    clients: BTreeMap<ClientId, Client>,
    max_clients: usize,
    last_id: ClientId,
    registry: Registry,
    /// Whether deaths are being looked for, see `bury`.
    burying: bool,
    since: Instant,
    /// Tells this daemon from others, on control pages.
    boot: u64,
}

/// Why a daemon could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another daemon has the run directory.
    #[error("another daemon runs for {dir}; stop it, or choose another run directory with --run-dir")]
    Running {
        /// The run directory.
        dir: String,
    },
    /// The run directory or the socket.
    #[error(transparent)]
    Wire(#[from] Error),
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// What the system said.
        r#source: std::io::Error,
    },
}

impl Server {
    /// Takes the run directory, removes what a killed daemon left in it, and listens.
    ///
    /// # Errors
    /// [`StartError::Running`], [`StartError::Wire`], [`StartError::Os`].
    pub fn start(config: &Config) -> Result<Server, StartError> {
        let dir = config.run_dir();
        dir.make()?;
        let running = || StartError::Running { dir: dir.path().display().to_string() };
        let lock = dir.lock()?.ok_or_else(running)?;
        let path = dir.socket();
        let os = |what: &str, source| StartError::Os { what: format!("{what} {}", path.display()), source };
        // Whoever has the lock is the only daemon: a socket that is there belongs to one that was killed.
        match std::fs::remove_file(&path) {
            Ok(()) => info!("removed the socket of a daemon that was killed"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(os("removing", error)),
        }
        let listener = Socket::listen(&path)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).map_err(|error| os("setting the mode of", error))?;
        raise_descriptor_limit();
        Ok(Server {
            dir,
            _lock: lock,
            listener,
            clients: BTreeMap::new(),
            max_clients: config.max_clients,
            last_id: 0,
            registry: Registry::new(config),
            burying: false,
            since: Instant::now(),
            boot: boot_number(),
        })
    }

    /// Serves until a byte comes through `stop`, or its other end is closed. Then removes the socket. Jobs go
    /// on among their members.
    ///
    /// # Errors
    /// [`Error::Os`] if waiting fails.
    pub fn serve(mut self, mut stop: UnixStream) -> Result<()> {
        info!(dir = %self.dir.path().display(), pid = std::process::id(), protocol = VERSION, "ready");
        ready::notify("READY=1");
        self.registry.open();
        loop {
            let (stopped, new, busy, dead) = self.wait(&stop)?;
            // The dead first: what was theirs may be asked for.
            for id in dead {
                self.drop_dead(id);
            }
            for id in busy {
                if let Some(end) = self.read(id) {
                    self.drop_client(id, end);
                }
            }
            if new {
                self.accept();
            }
            self.serve_parked();
            if stopped {
                let _ = stop.read(&mut [0]);
                break;
            }
        }
        ready::notify("STOPPING=1");
        self.registry.close();
        info!(clients = self.clients.len(), "stopping");
        if let Err(error) = std::fs::remove_file(self.dir.socket()) {
            warn!(%error, "the socket could not be removed");
        }
        Ok(())
    }
}

/// Nanoseconds since 1970: two daemons of one run directory do not begin in the same one.
fn boot_number() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Three descriptors per client and one per job have to fit.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "the limit of descriptors could not be raised");
    }
}
