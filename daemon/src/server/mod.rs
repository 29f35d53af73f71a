//! The daemon itself: one thread that waits for connections, messages and deaths.
mod clients;
pub(crate) mod endpoint;
mod in_flight;
mod membership;
mod replies;
mod requests;

use crate::closer::Closer;
use crate::config::Config;
use crate::registry::{ClientId, Registry};
use crate::sd_notify;
use clients::Client;
use endpoint::{Endpoint, EndpointState};
use hectare_agent::Limiter;
use hectare_wire::{Error, Result, VERSION, remove_all_dead_agents};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Instant;
use tracing::{info, warn};

/// A daemon that has its run directory to itself and listens.
#[derive(Debug)]
pub struct Server {
    clients: BTreeMap<ClientId, Client>,
    max_clients: usize,
    max_clients_per_process: usize,
    closer: Closer,
    last_id: ClientId,
    registry: Registry,
    /// Limits the log lines of refusals.
    limiter: Limiter,
    /// Whether deaths are being looked for, see `bury`.
    burying: bool,
    since: Instant,
    /// Identifies this daemon on control pages.
    boot: u64,
    reload: Option<Reload>,
    /// Dropped last: until everything else has left the run directory, its lock keeps the next daemon out.
    place: Endpoint,
}

/// How the configuration is loaded again.
struct Reload {
    /// Readable when a reload is requested.
    asked: UnixStream,
    /// Loads the configuration; `None` if nothing changed, or if it is invalid.
    load: Box<dyn FnMut() -> Option<Config> + Send>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("asked", &self.asked).finish_non_exhaustive()
    }
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
}

impl Server {
    /// Takes the run directory, removes what a killed daemon left in it, and listens.
    ///
    /// # Errors
    /// [`StartError::Running`], [`StartError::Wire`].
    pub fn start(config: &Config) -> Result<Server, StartError> {
        let dir = config.run_dir();
        let running = || StartError::Running { dir: dir.path().display().to_string() };
        let place = Endpoint::take(dir.clone())?.ok_or_else(running)?;
        raise_descriptor_limit();
        remove_all_dead_agents(&dir);
        let closer = Closer::default();
        Ok(Server {
            clients: BTreeMap::new(),
            max_clients: config.max_clients,
            max_clients_per_process: config.max_clients_per_process,
            closer: closer.clone(),
            last_id: 0,
            registry: Registry::with_closer(config, closer),
            limiter: Limiter::default(),
            burying: false,
            since: Instant::now(),
            boot: boot_number(),
            reload: None,
            place,
        })
    }

    /// Has the daemon take the settings that `load` returns whenever a byte comes through `asked`.
    #[must_use]
    pub fn reload_with(
        mut self,
        asked: UnixStream,
        load: impl FnMut() -> Option<Config> + Send + 'static,
    ) -> Server {
        self.reload = Some(Reload { asked, load: Box::new(load) });
        self
    }

    /// Serves until a byte comes through `stop`, or its other end is closed. Then removes the socket. Jobs go
    /// on among their members.
    ///
    /// # Errors
    /// [`hectare_wire::Error::Os`] if waiting fails.
    pub fn serve(mut self, mut stop: UnixStream) -> Result<()> {
        info!(dir = %self.place.dir.path().display(), pid = std::process::id(), protocol = VERSION, "ready");
        sd_notify::notify("READY=1");
        self.registry.open();
        loop {
            let woken = self.wait(&stop)?;
            // The dead first: requests may need what they held.
            for id in woken.dead {
                self.drop_dead(id);
            }
            for id in woken.busy {
                if let Some(end) = self.read(id) {
                    self.drop_client(id, end);
                }
            }
            if woken.connection {
                self.accept();
            }
            self.serve_parked();
            self.limiter.tell();
            if woken.reload {
                self.reload();
            }
            match self.place.check(&self.closer) {
                EndpointState::Early => {}
                EndpointState::Same => {
                    self.drop_unjoined();
                    self.registry.follow_agents();
                    self.registry.drop_late();
                    self.registry.mark_missing();
                }
                EndpointState::Made => self.registry.mark_all(),
                EndpointState::Lost => {
                    warn!("another daemon has the run directory now; members go to it");
                    break;
                }
            }
            if woken.stop {
                let _ = stop.read(&mut [0]);
                self.registry.close();
                break;
            }
        }
        sd_notify::notify("STOPPING=1");
        self.limiter.finish();
        info!(clients = self.clients.len(), "stopping");
        self.place.leave();
        Ok(())
    }

    /// Applies new settings, if there are any. Whatever the old ones granted remains.
    fn reload(&mut self) {
        let Some(reload) = &mut self.reload else { return };
        let _ = reload.asked.read(&mut [0; 64]);
        sd_notify::reloading();
        if let Some(config) = (reload.load)() {
            self.max_clients = config.max_clients;
            self.max_clients_per_process = config.max_clients_per_process;
            self.registry.configure(&config);
            info!("configuration loaded again");
        }
        sd_notify::notify("READY=1");
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

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_wire::RunDir;

    /// A daemon that ends removes directories and sockets; the next one would lose its own if it was there already.
    #[test]
    fn the_run_directory_is_locked_until_all_else_has_left_it() {
        /// Dropped with what loads the configuration: the metrics' socket goes with that.
        struct Last(RunDir);
        impl Drop for Last {
            fn drop(&mut self) {
                assert!(self.0.lock().unwrap().is_none(), "the next daemon could be here");
            }
        }
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        let config = Config { run_dir: Some(dir.path().into()), ..Config::default() };
        let ((_asks, asked), (stops, stop)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let last = Last(dir.clone());
        let server = Server::start(&config).unwrap().reload_with(asked, move || {
            let _ = &last;
            None
        });
        drop(stops);
        server.serve(stop).unwrap();
        assert!(dir.lock().unwrap().is_some());
    }
}
