//! The run directory: where a user's daemon is found.
use crate::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The name of the daemon's socket in the run directory.
pub const SOCKET: &str = "control";
/// The longest path that the address of a Unix socket holds.
const LONGEST_SOCKET: usize = 107;
/// The name of the socket of metrics in the run directory.
pub const METRICS: &str = "metrics";

/// The directory of one daemon, of mode 0700 and of the user that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The run directory of this user: `HECTARE_RUN_DIR` if it is set, else `/run/user/UID/hectare` where
    /// `/run/user/UID` exists, else `/tmp/hectare-UID`.
    pub fn of_user() -> RunDir {
        if let Some(path) = std::env::var_os("HECTARE_RUN_DIR").filter(|path| !path.is_empty()) {
            return RunDir::at(path);
        }
        let user = rustix::process::geteuid().as_raw();
        let runtime = PathBuf::from(format!("/run/user/{user}"));
        if runtime.is_dir() {
            RunDir::at(runtime.join("hectare"))
        } else {
            RunDir::at(format!("/tmp/hectare-{user}"))
        }
    }

    /// The run directory at this path.
    pub fn at(path: impl Into<PathBuf>) -> RunDir {
        RunDir { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// The path of the socket at which metrics are, if the daemon is told to have one.
    pub fn metrics(&self) -> PathBuf {
        self.path.join(METRICS)
    }

    /// Makes the directory if there is none, and checks it as [`RunDir::check`] does.
    ///
    /// # Errors
    /// [`Error::RunDir`].
    pub fn make(&self) -> Result<()> {
        self.check_length()?;
        match std::fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(self.wrong(format!("cannot be made: {error}")))
            }
            _ => self.check(),
        }
    }

    /// Makes a directory in this one, if there is none, open to this user alone; its path. Where this one is gone, only its
    /// daemon makes it again: whoever else did would give it the mode of his umask, which the daemon refuses.
    ///
    /// # Errors
    /// Those of the system; [`NotFound`](std::io::ErrorKind::NotFound) if this directory is gone.
    pub fn make_inner(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.path.join(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(path),
        }
    }

    fn check_length(&self) -> Result<()> {
        let length = self.socket().as_os_str().len();
        if length > LONGEST_SOCKET {
            let by = length - LONGEST_SOCKET;
            return Err(
                self.wrong(format!("is {by} bytes too long for the path of a socket: choose a shorter one"))
            );
        }
        Ok(())
    }

    /// Checks that the directory is one (no link to one), is of this user, and open to nobody else.
    ///
    /// # Errors
    /// [`Error::NoDaemon`] if there is none, [`Error::RunDir`] if it is wrong.
    pub fn check(&self) -> Result<()> {
        self.check_length()?;
        let about = match std::fs::symlink_metadata(&self.path) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoDaemon { dir: self.path.clone() });
            }
            Err(error) => return Err(self.wrong(format!("cannot be looked at: {error}"))),
        };
        if !about.is_dir() {
            return Err(self.wrong("is not a directory".into()));
        }
        let user = rustix::process::geteuid().as_raw();
        if about.uid() != user {
            return Err(self.wrong(format!("belongs to user {}, not to user {user}", about.uid())));
        }
        let mode = about.mode() & 0o777;
        if mode != 0o700 {
            return Err(self.wrong(format!("has mode {mode:04o}, it must be 0700: chmod 0700 it")));
        }
        Ok(())
    }

    /// Takes the lock of the directory's daemon, which is on the directory itself: nothing in it can be removed to
    /// make room for a second daemon. It is held as long as the descriptor is open; the kernel gives it back when the
    /// process ends in whatever way. `None` if another process has it.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn lock(&self) -> Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            let directory = rustix::fs::open(&self.path, flags, Mode::empty())
                .map_err(|error| Error::os("opening the run directory", error))?;
            match rustix::fs::flock(&directory, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                // It may have been replaced meanwhile; then this is the lock of nothing.
                Ok(()) if self.is(&directory) => return Ok(Some(directory)),
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(Error::os("flock of the run directory", error)),
            }
        }
    }

    /// Whether the directory at this path is the one that is open here.
    pub fn is(&self, directory: &OwnedFd) -> bool {
        let there = std::fs::symlink_metadata(&self.path).map(|about| (about.dev(), about.ino()));
        let open = rustix::fs::fstat(directory).map(|about| (about.st_dev, about.st_ino));
        matches!((there, open), (Ok(there), Ok(open)) if there == open)
    }

    fn wrong(&self, what: String) -> Error {
        Error::RunDir { dir: self.path.clone(), what }
    }
}
