//! Messages between the command that was called and its parts on the hosts, over the pipes of a remote shell.
//!
//! Each side begins with a line that has the version: whatever the remote shell or its startup files print before it is skipped.
//! Then come frames: four bytes of length, a message as in the control protocol of a host, and the end of a line, since `srun` and
//! others pass output on line by line.
use anyhow::{Context, Result, bail, ensure};
use hectare_wire::{Cipher, FrameError, JobHost, TransportChoice, decode, encode_within};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The version of these messages.
pub(super) const VERSION: u32 = 7;
const CALLER: &str = "hectare-run";
const PART: &str = "hectare-part";
/// Lines before that of the version are skipped, up to this number of bytes.
const MOST_BEFORE: u64 = 256 << 10;
/// The most bytes of a message: more than the arguments and variables with which Linux starts a program.
const MOST: usize = 4 << 20;
/// The most bytes of a piece in which output travels.
pub(super) const PIECE: usize = 32 << 10;

/// To a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Say where the others reach this host.
    Prepare(Prepare),
    /// Make this host's part of the job.
    Make(Box<Make>),
    /// Start the ranks.
    Go,
    /// A signal for the processes, by its number.
    Signal(i32),
    /// `bytes` of output are written: the part may send as many more.
    Written { error: bool, bytes: usize },
    /// End the processes at once.
    Kill,
    /// All hosts are done.
    Leave,
}

/// The question for an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prepare {
    /// The run directory of the host's daemon, if the user has named one.
    pub(super) run_dir: Option<String>,
    /// The address, if the list of hosts has it.
    pub(super) address: Option<IpAddr>,
    /// The interface whose address it is to be.
    pub(super) interface: Option<String>,
    /// Names or addresses of the other hosts, to which the routes lead.
    pub(super) others: Vec<String>,
    /// The port; 0 for one that is free.
    pub(super) port: u16,
    /// How its agent is to reach the others; none for what its configuration says.
    pub(super) transport: Option<TransportChoice>,
}

/// Where a host is, and how it reaches others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Here {
    pub(super) address: SocketAddr,
    /// Its port of DPDK, if it has one.
    pub(super) dpdk: Option<Ipv4Addr>,
    pub(super) transport: TransportChoice,
}

/// A job and what to start in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Make {
    pub(super) job: String,
    pub(super) id: [u8; 16],
    pub(super) index: u16,
    pub(super) hosts: Vec<JobHost>,
    pub(super) silence_ms: u64,
    pub(super) cipher: Cipher,
    /// The program and its arguments.
    pub(super) program: Vec<String>,
    /// Where it is started.
    pub(super) directory: String,
    /// Variables added to its environment.
    pub(super) variables: Vec<(String, String)>,
    pub(super) plain: bool,
    pub(super) keep_going: bool,
    pub(super) grace_s: u64,
}

/// From a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum News {
    /// Here the others reach this host, so it reaches them, and this is the key that it has.
    Here { at: Here, cluster: String, fingerprint: String },
    /// The job is made.
    Made,
    /// Bytes for standard output, or for standard error.
    Output { error: bool, bytes: Vec<u8> },
    /// A rank has failed; its status as `wait` gives it, and whether it says that it failed because another one had.
    Failed { rank: u32, status: i32, follows: bool },
    /// The job has ended here, since a host is lost. Said before the failures of the ranks that follow from it.
    Lost { host: String, cause: String },
    /// No rank runs, and none will.
    Done,
    /// It could not be done: the message, and the exit code.
    Refused { code: u8, what: String },
}

/// Who writes the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Part,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Caller => CALLER,
            Side::Part => PART,
        }
    }
}

/// Writes this side's first line.
pub(super) fn greet(to: &mut impl Write, own: Side) -> Result<()> {
    writeln!(to, "{} {VERSION}", own.word())?;
    Ok(to.flush()?)
}

/// Reads the first line of the other side, and skips what stands before it; `false` at the end.
pub(super) fn meet(from: &mut impl BufRead, theirs: Side) -> Result<bool> {
    let mut from = from.take(MOST_BEFORE);
    let mut line = Vec::new();
    while {
        line.clear();
        from.read_until(b'\n', &mut line)? > 0
    } {
        let text = String::from_utf8_lossy(&line);
        if let Some(version) = text.trim_end().strip_prefix(theirs.word()) {
            let version = version.trim();
            ensure!(
                version == VERSION.to_string(),
                "it speaks version {version} of the launcher's protocol, and this one version {VERSION}"
            );
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that a message is not too long to be sent.
pub(super) fn check_length(message: &impl Serialize) -> Result<(), FrameError> {
    encode_within(message, MOST).map(drop)
}

/// Writes a message.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> Result<()> {
    let bytes = encode_within(message, MOST)?;
    let frame = [&(bytes.len() as u32).to_le_bytes()[..], &bytes, b"\n"].concat();
    to.write_all(&frame)?;
    Ok(to.flush()?)
}

/// Reads a message; `None` at the end.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>> {
    let mut length = [0; 4];
    let mut had = 0;
    while had < 4 {
        match from.read(&mut length[had..]) {
            Ok(0) if had == 0 => return Ok(None),
            Ok(0) => bail!("it ends within a message"),
            Ok(count) => had += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    ensure!(length <= MOST, "a message of {length} bytes");
    let mut bytes = vec![0; length + 1];
    from.read_exact(&mut bytes).context("it ends within a message")?;
    ensure!(bytes.pop() == Some(b'\n'), "a message of {length} bytes that does not end there");
    Ok(Some(decode(&bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sides_meet_behind_whatever_a_shell_prints() {
        let mut pipe = b"Welcome!\nhectare\n".to_vec();
        greet(&mut pipe, Side::Part).unwrap();
        send(&mut pipe, &News::Made).unwrap();
        send(&mut pipe, &News::Output { error: true, bytes: vec![7; PIECE] }).unwrap();
        let mut from = &pipe[..];
        assert!(meet(&mut from, Side::Part).unwrap());
        assert_eq!(receive(&mut from).unwrap(), Some(News::Made));
        assert!(
            matches!(receive(&mut from).unwrap(), Some(News::Output { error: true, bytes }) if bytes.len() == PIECE)
        );
        assert_eq!(receive::<News>(&mut from).unwrap(), None);
    }

    #[test]
    fn another_version_and_no_answer_are_told_apart() {
        let other = format!("{PART} {}\n", VERSION + 1);
        let error = meet(&mut other.as_bytes(), Side::Part).unwrap_err().to_string();
        let (theirs, ours) = (format!("version {}", VERSION + 1), format!("version {VERSION}"));
        assert!(error.contains(&theirs) && error.contains(&ours), "{error}");
        assert!(!meet(&mut &b"sh: hectare: not found\n"[..], Side::Part).unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// No bytes stop a side but by an error or an end.
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..64), frame in any::<bool>()) {
            let mut all = if frame { (bytes.len() as u32).to_le_bytes().to_vec() } else { Vec::new() };
            all.extend(&bytes);
            all.push(b'\n');
            let mut from = &all[..];
            while let Ok(Some(_)) = receive::<Order>(&mut from) {}
            let _ = meet(&mut &all[..], Side::Caller);
        }
    }
}
