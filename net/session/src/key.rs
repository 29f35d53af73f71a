//! The key that the hosts of a cluster share, and what is derived from it.
use ring::{digest, hkdf, hmac};
use std::fmt;

/// The identity of a job: 16 bytes that all hosts of the job were given.
pub type JobId = [u8; 16];

/// The key of a cluster. Who has it may join any job on the cluster's hosts.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    cluster: String,
    secret: [u8; 32],
}

/// A text that is no cluster key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The first line is another.
    #[error("not a cluster key: the first line is not `{first}`; `hectare key new` makes one", first = ClusterKey::FIRST_LINE)]
    Form,
    /// The name of the cluster is missing or has other characters than letters, digits, `-`, `_` and `.`.
    #[error(
        "a cluster key needs a line `cluster NAME`, with a name of 1 to 64 letters, digits, `-`, `_` or `.`"
    )]
    Cluster,
    /// The key is missing or is no key.
    #[error("a cluster key needs a line `key` with 64 hexadecimal digits, not all of them 0")]
    Secret,
    /// A line that means nothing.
    #[error("line {line} of the cluster key is neither a comment nor a known setting")]
    Line {
        /// Its number, from 1.
        line: usize,
    },
}

impl ClusterKey {
    const FIRST_LINE: &str = "hectare-cluster-key 1";

    /// The key `secret` of the cluster `cluster`.
    ///
    /// # Errors
    /// If the name has other characters than letters, digits, `-`, `_` and `.`, or is empty or longer than 64 bytes, or if
    /// the secret is all zeros.
    pub fn new(cluster: &str, secret: [u8; 32]) -> Result<ClusterKey, KeyError> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if cluster.is_empty() || cluster.len() > 64 || !cluster.chars().all(good) {
            return Err(KeyError::Cluster);
        }
        if secret == [0; 32] {
            return Err(KeyError::Secret);
        }
        Ok(ClusterKey { cluster: cluster.to_owned(), secret })
    }

    /// The name of the cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The key as the text of a file, which [`parse`](Self::parse) reads.
    pub fn to_text(&self) -> String {
        let hex: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}\ncluster {}\nkey {hex}\n", Self::FIRST_LINE, self.cluster)
    }

    /// Reads what [`to_text`](Self::to_text) wrote. Empty lines, and lines that begin with `#`, mean nothing.
    ///
    /// # Errors
    /// If the text is no cluster key.
    pub fn parse(text: &str) -> Result<ClusterKey, KeyError> {
        let mut lines = (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        if lines.next().is_none_or(|(_, line)| line != Self::FIRST_LINE) {
            return Err(KeyError::Form);
        }
        let (mut cluster, mut secret) = (None, None);
        for (number, line) in lines {
            match line.split_once(' ') {
                Some(("cluster", name)) if cluster.is_none() => cluster = Some(name.trim()),
                Some(("key", hex)) if secret.is_none() => {
                    secret = Some(from_hex(hex.trim()).ok_or(KeyError::Secret)?)
                }
                _ => return Err(KeyError::Line { line: number }),
            }
        }
        ClusterKey::new(cluster.ok_or(KeyError::Cluster)?, secret.ok_or(KeyError::Secret)?)
    }

    /// `out` bytes for one use, so that no two uses share a key (RFC 5869).
    fn derive<const N: usize>(&self, usage: &[u8], job: &[u8]) -> [u8; N] {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"hectare cluster 1");
        expand(&salt.extract(&self.secret), &[usage, b"\0", self.cluster.as_bytes(), b"\0", job])
    }

    /// By which a Hello shows that its sender has the cluster's key.
    pub(crate) fn hello_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.derive::<32>(b"hello", &[]))
    }

    /// The key by which hosts that meet before there is a job show each other that they have the cluster's key.
    pub fn meeting_key(&self) -> [u8; 32] {
        self.derive(b"meeting", &[])
    }

    /// The pre-shared key of the handshakes of a job.
    pub(crate) fn job_key(&self, job: &JobId) -> [u8; 32] {
        self.derive(b"job", job)
    }

    /// Names the job to those who know it, and nothing to others.
    pub(crate) fn job_tag(&self, job: &JobId) -> [u8; 8] {
        self.derive(b"job tag", job)
    }

    /// A short text that differs from key to key, for people to see whether two hosts have the same one. It tells nothing
    /// else of the key.
    ///
    /// ```
    /// use hectare_session::ClusterKey;
    /// let of = |secret| ClusterKey::new("lab", secret).map(|key| key.fingerprint());
    /// assert_eq!(of([7; 32])?.len(), 16);
    /// assert_ne!(of([7; 32])?, of([8; 32])?);
    /// # Ok::<(), hectare_session::KeyError>(())
    /// ```
    pub fn fingerprint(&self) -> String {
        self.derive::<8>(b"fingerprint", &[]).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Names the cluster. It is no secret.
    pub(crate) fn cluster_tag(&self) -> [u8; 8] {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"hectare cluster tag\0");
        context.update(self.cluster.as_bytes());
        let mut tag = [0; 8];
        tag.copy_from_slice(&context.finish().as_ref()[..8]);
        tag
    }
}

/// Never shows the secret.
impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterKey").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

/// HKDF-Expand (RFC 5869 section 2.3).
pub(crate) fn expand<const N: usize>(key: &hkdf::Prk, info: &[&[u8]]) -> [u8; N] {
    struct Bytes(usize);
    impl hkdf::KeyType for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = [0; N];
    key.expand(info, Bytes(N)).and_then(|okm| okm.fill(&mut out)).expect("a few blocks of output");
    out
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, at) in out.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{ClusterKey, KeyError};

    #[test]
    fn the_text_of_a_key_is_read_again() {
        let key = ClusterKey::new("lab-1", std::array::from_fn(|at| at as u8)).unwrap();
        assert_eq!(ClusterKey::parse(&key.to_text()), Ok(key.clone()));
        assert_eq!(ClusterKey::parse(&format!("# mine\n\n{}\n", key.to_text())), Ok(key.clone()));
        assert!(!format!("{key:?}").contains("1f"), "the secret is not shown");
    }

    #[test]
    fn a_text_that_is_no_key_is_refused_by_what_is_wrong() {
        let text = ClusterKey::new("lab", [7; 32]).unwrap().to_text();
        let refused = |from: &str, to: &str| ClusterKey::parse(&text.replacen(from, to, 1)).unwrap_err();
        assert_eq!(refused("key 1", "key 2"), KeyError::Form);
        assert_eq!(refused("cluster lab\n", ""), KeyError::Cluster);
        assert_eq!(refused("cluster lab", "cluster a b"), KeyError::Cluster);
        assert_eq!(refused("key 07", "key 0"), KeyError::Secret);
        assert_eq!(refused("key 07", "key zz"), KeyError::Secret);
        assert_eq!(refused("cluster lab", "cluster lab\ncluster lab"), KeyError::Line { line: 3 });
        assert_eq!(refused("cluster lab", "cluster lab\nmore of it"), KeyError::Line { line: 3 });
        assert_eq!(ClusterKey::new("a", [0; 32]), Err(KeyError::Secret));
    }

    #[test]
    fn every_use_has_a_key_of_its_own() {
        let key = ClusterKey::new("lab", [7; 32]).unwrap();
        let other = ClusterKey::new("lob", [7; 32]).unwrap();
        let keys = [
            key.job_key(&[1; 16]),
            key.job_key(&[2; 16]),
            other.job_key(&[1; 16]),
            key.derive(b"hello", &[]),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[..at].iter().all(|before| before != one));
        }
        assert_ne!(key.cluster_tag(), other.cluster_tag());
    }
}
