//! Failures, and the advice for each.
use std::fmt;
use std::io;

/// Why there is no device, registered memory or queue pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// libibverbs is not there, or is too old.
    NoLibrary {
        /// The loader's message.
        why: String,
    },
    /// There is no such device, or none at all.
    NoDevice {
        /// The device that was asked for.
        asked: Option<String>,
        /// The devices that there are.
        found: Vec<String>,
    },
    /// A device does not open.
    Open {
        /// Its name.
        device: String,
        /// The system's error number.
        code: i32,
    },
    /// Its first port has no link.
    PortDown {
        /// Its name.
        device: String,
    },
    /// Its first port has no address with which peers can be reached.
    NoGid {
        /// Its name.
        device: String,
        /// The address that its GID should have, or the kind of GID.
        wanted: String,
    },
    /// Memory cannot be registered.
    Memory {
        /// How many bytes.
        bytes: usize,
        /// How many the process may lock; none for any number.
        limit: Option<u64>,
        /// The system's error number.
        code: i32,
    },
    /// A call of the library fails.
    Call {
        /// The name of the call.
        call: &'static str,
        /// The system's error number.
        code: i32,
    },
    /// The peer's link is of another kind: InfiniBand on one side, RoCE on the other.
    OtherLink,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = |code: &i32| io::Error::from_raw_os_error(*code);
        match self {
            Error::NoLibrary { why } => write!(
                f,
                "libibverbs does not load ({why}): install it (Debian: libibverbs1 and ibverbs-providers)"
            ),
            Error::NoDevice { asked: None, .. } => f.write_str(
                "there is no RDMA device: load the driver of the card, or make one over an interface with `rdma link add rxe0 \
                 type rxe netdev eth1`",
            ),
            Error::NoDevice { asked: Some(asked), found } if found.is_empty() => {
                write!(f, "there is no RDMA device {asked}, nor any other: load the driver of the card")
            }
            Error::NoDevice { asked: Some(asked), found } => {
                write!(f, "there is no RDMA device {asked}: name one of {}", found.join(", "))
            }
            Error::Open { device, code } => write!(
                f,
                "RDMA device {device} does not open: {}; may this user read and write /dev/infiniband/uverbs*?",
                cause(code)
            ),
            Error::PortDown { device } => {
                write!(f, "port 1 of RDMA device {device} has no link: set its interface up, or check the cable")
            }
            Error::NoGid { device, wanted } => write!(
                f,
                "RDMA device {device} has no GID for {wanted}: give its interface an IP address of the link with the peers"
            ),
            Error::Memory { bytes, limit: Some(limit), code } if u64::try_from(*bytes).is_ok_and(|bytes| bytes > *limit) => {
                write!(
                    f,
                    "{bytes} bytes cannot be registered, as the process may lock {limit} ({}): raise the limit (`ulimit -l`, or \
                     LimitMEMLOCK= of the service)",
                    cause(code)
                )
            }
            Error::Memory { bytes, limit, code } => {
                let limit = limit.map_or_else(|| "any number".into(), |limit| limit.to_string());
                write!(
                    f,
                    "{bytes} bytes cannot be registered: {}; the process may lock {limit} in all (`ulimit -l`)",
                    cause(code)
                )
            }
            Error::Call { call, code } => write!(
                f,
                "{call}: {}; the device's driver refuses it, and `dmesg` may say why",
                cause(code)
            ),
            Error::OtherLink => f.write_str(
                "the peer's RDMA device is on another kind of link: use InfiniBand on both hosts, or RoCE on both",
            ),
        }
    }
}

impl std::error::Error for Error {}

/// A queue pair that has failed, and will not work again: it is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The peer does not answer (IBV_WC_RETRY_EXC_ERR): its host, its queue pair or the path is gone.
    Unanswered,
    /// The peer does not let this memory be written (IBV_WC_REM_ACCESS_ERR): its registration has ended, or never was.
    Forbidden,
    /// The peer could not carry it out (IBV_WC_REM_OP_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ABORT_ERR).
    Refused,
    /// The memory to send from is not registered (IBV_WC_LOC_PROT_ERR).
    Unregistered,
    /// Given up with the queue pair (IBV_WC_WR_FLUSH_ERR), since it failed or was closed.
    Flushed,
    /// Another status of a completion, by its number.
    Other(i32),
    /// The device does not take a request; the system's error number.
    Post(i32),
}

impl Broken {
    pub(crate) fn of_status(status: i32) -> Broken {
        match status {
            4 | 8 => Broken::Unregistered,
            5 => Broken::Flushed,
            9 | 11 | 16 => Broken::Refused,
            10 => Broken::Forbidden,
            12 | 13 => Broken::Unanswered,
            other => Broken::Other(other),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Unanswered => {
                f.write_str("the peer's device does not answer: its host or the path is gone")
            }
            Broken::Forbidden => f.write_str("the peer does not let this memory be written"),
            Broken::Refused => f.write_str("the peer's device refuses the write"),
            Broken::Unregistered => f.write_str("memory of this host is not registered"),
            Broken::Flushed => f.write_str("the queue pair was closed"),
            Broken::Other(status) => write!(f, "completion with status {status}"),
            Broken::Post(code) => {
                write!(f, "the device takes no requests: {}", io::Error::from_raw_os_error(*code))
            }
        }
    }
}

impl std::error::Error for Broken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let device = || "mlx5_0".to_owned();
        let memory = |limit| Error::Memory { bytes: 1 << 30, limit, code: libc::ENOMEM };
        for (error, advice) in [
            (Error::NoLibrary { why: "no file".into() }, "install it"),
            (Error::NoDevice { asked: None, found: vec![] }, "load the driver"),
            (Error::NoDevice { asked: Some("x".into()), found: vec![] }, "load the driver"),
            (Error::NoDevice { asked: Some("x".into()), found: vec![device()] }, "name one of mlx5_0"),
            (Error::Open { device: device(), code: libc::EACCES }, "/dev/infiniband"),
            (Error::PortDown { device: device() }, "set its interface up"),
            (
                Error::NoGid { device: device(), wanted: "10.0.0.1".into() },
                "give its interface an IP address",
            ),
            (memory(Some(65536)), "raise the limit"),
            (memory(None), "ulimit -l"),
            (Error::Call { call: "ibv_create_qp", code: libc::EINVAL }, "dmesg"),
            (Error::OtherLink, "on both"),
        ] {
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
