//! The file of the cluster's key: made once, copied to every host, readable by its owner alone.
use hectare_session::{ClusterKey, KeyError};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest key file, comments included.
const LONGEST: u64 = 16 << 10;

/// Errors of using or making a key file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is no such file.
    #[error(
        "there is no cluster key {}: make one on one host by `hectare key new`, and copy it to the others",
        path.display()
    )]
    NotThere {
        /// The file.
        path: PathBuf,
    },
    /// Others may read or write it.
    #[error("cluster key {} has mode {mode:04o}: others can read it; `chmod 600 {}`", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("cluster key {} belongs to user {owner}, not to {own}", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// It is not a key.
    #[error("{}: {source}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        source: KeyError,
    },
    /// The name of the cluster cannot be one.
    #[error(transparent)]
    Name(KeyError),
    /// The file exists, and is not overwritten: hosts with the old key could not talk to those with the new one.
    #[error("{} exists already; keys are never overwritten: remove it first, or name another file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cluster key {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Its error.
        source: Error,
    },
}

/// Reads a key.
///
/// # Errors
/// [`KeyFileError`]: a file that is not there, that others may read, that is somebody else's (but root's), or that
/// is no key.
pub fn load(path: &Path) -> Result<ClusterKey, KeyFileError> {
    let system = |source: Error| KeyFileError::System { path: path.to_owned(), source };
    // Non-blocking, in case this is a pipe.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(Error::from) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(KeyFileError::NotThere { path: path.to_owned() });
        }
        Err(error) => return Err(system(error)),
    };
    // Checked on the open file, so that the same file is read.
    let about = file.metadata().map_err(system)?;
    if !about.is_file() {
        return Err(system(Error::other("it is not a file")));
    }
    let (owner, own) = (about.uid(), rustix::process::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(KeyFileError::Owner { path: path.to_owned(), owner, own });
    }
    if about.mode() & 0o077 != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode: about.mode() & 0o7777 });
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).map_err(system)?;
    let text = String::from_utf8_lossy(&text);
    ClusterKey::parse(&text).map_err(|source| KeyFileError::NotAKey { path: path.to_owned(), source })
}

/// Makes a key of a cluster of this name, from the system's randomness, in a file of mode 0600.
///
/// # Errors
/// [`KeyFileError::Exists`] for a file that is there; names that cannot be a cluster's; what the system refuses.
pub fn make(path: &Path, cluster: &str) -> Result<ClusterKey, KeyFileError> {
    let system = |source: Error| KeyFileError::System { path: path.to_owned(), source };
    let mut secret = [0; 32];
    let random = SystemRandom::new().fill(&mut secret);
    random.map_err(|_| system(Error::other("the system provides no random numbers")))?;
    let key = ClusterKey::new(cluster, secret).map_err(KeyFileError::Name)?;
    let opened = File::options().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(KeyFileError::Exists { path: path.to_owned() });
        }
        Err(error) => return Err(system(error)),
    };
    let written = file.write_all(key.to_text().as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half of a key is useless, and would prevent the next attempt.
        let _ = std::fs::remove_file(path);
        system(error)
    })?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::{KeyFileError, load, make};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.key");
        assert!(load(&path).unwrap_err().to_string().contains("`hectare key new`"));
        let key = make(&path, "lab").unwrap();
        assert_eq!(load(&path).unwrap(), key);
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(matches!(make(&path, "lab"), Err(KeyFileError::Exists { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it is not touched");
        assert_ne!(make(&directory.path().join("other"), "lab").unwrap(), key);

        for open in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(open)).unwrap();
            let error = load(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("{open:04o}")), "{error}");
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
        assert_eq!(load(&path).unwrap(), key);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.key");
        assert!(matches!(make(&path, "a b"), Err(KeyFileError::Name(_))));
        assert!(!path.exists());
        make(&path, "lab").unwrap();
        std::fs::write(&path, "hectare-cluster-key 1\ncluster lab\nkey 12\n").unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("cluster.key") && error.contains("64 hexadecimal digits"), "{error}");
        std::fs::write(&path, [0xff; 1000]).unwrap();
        assert!(matches!(load(&path), Err(KeyFileError::NotAKey { .. })));
        assert!(load(directory.path()).unwrap_err().to_string().contains("not a file"));
        let nowhere = directory.path().join("no/such/key");
        assert!(matches!(make(&nowhere, "lab"), Err(KeyFileError::System { .. })));
    }
}
