//! Frames: a packet is a sequence of them.
use super::bytes::{Put, Reader};
use super::errors::{get_hello_error, put_hello_error};
use super::register::Register;
use crate::lines::Run;
use crate::types::{GroupId, HelloError, HostId, MAX_MEMBERS, Version};

/// The version of the protocol. Both sides refuse every other one.
pub const VERSION: u16 = 16;

/// Bytes that each run of lines takes beside the lines.
const RUN_HEADER: usize = 6;
/// And in an announcement, which has no lines.
const ANNOUNCED_RUN: usize = 8;

/// Bytes of a data frame with `runs` runs, without its lines.
pub(crate) fn data_cost(runs: usize) -> usize {
    1 + 8 + 2 + 8 + 2 + 2 + runs * RUN_HEADER
}

/// Bytes of an announcement of `runs` runs.
pub(crate) fn announced_cost(runs: usize) -> usize {
    1 + 8 + 2 + 8 + 2 + runs * ANNOUNCED_RUN
}

/// One part of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// The sender.
    Hello(Hello),
    /// The peer's hello is not accepted. Nothing else will be.
    Refused(HelloError),
    /// Nothing but that the sender lives.
    Alive,
    /// The present value of one of the sender's registers.
    Register {
        /// Rises with every value that the sender gives to any of its registers for this receiver.
        serial: u64,
        /// The register and its value.
        register: Register,
    },
    /// All values of registers with lower serials were received, or do not count any more.
    Settled(u64),
    /// A cut is under way.
    Cut(Cut),
    /// Lines of a cut.
    Data(Data<'b>),
    /// The lines of a cut that the sender writes itself into the receiver's memory, when it may.
    Announced(Announced),
}

/// The sender: in every packet until one that has it was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The job.
    pub job: u128,
    /// The sender's shared memory, which outlives its agent.
    pub segment: u64,
    /// The sender's agent; another one after each start.
    pub boot: u64,
    /// The sender's host in the job.
    pub host: HostId,
}

/// A cut: the state of a group's areas that is on its way. In every packet with lines of it until one was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Rises with every cut of the sender.
    pub cut: u64,
    /// The group.
    pub group: GroupId,
    /// The receiver's state, as it numbered it, which these lines change into this one; 0 if all lines are sent.
    pub base: u64,
    /// The sender's round that published it.
    pub round: u64,
    /// The receiver's lowest clock must be at least this less one before it publishes.
    pub label: u64,
    /// How long ago it was published when this was sent, in nanoseconds.
    pub age_ns: u64,
    /// Lines of the cut, of all members.
    pub total: u64,
    /// The sender wants to write the lines itself into the receiver's memory, and announces them.
    pub placed: bool,
    /// The version of each member.
    pub versions: Vec<Version>,
}

/// Lines of one member of a cut that are not in the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The cut.
    pub cut: u64,
    /// The member of its group.
    pub member: u16,
    /// The place of the first line among all lines of the cut.
    pub position: u64,
    /// The runs, of which each has lines.
    pub runs: Vec<Run>,
}

/// Lines of one member of a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<'b> {
    /// The cut.
    pub cut: u64,
    /// The member of its group.
    pub member: u16,
    /// The place of the first line among all lines of the cut.
    pub position: u64,
    runs: &'b [u8],
    /// The bytes of the lines; an area's last line may be short.
    pub bytes: &'b [u8],
}

impl<'b> Data<'b> {
    /// Its runs of lines, of which each has lines.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'b> {
        self.runs.as_chunks::<RUN_HEADER>().0.iter().map(|&[a, b, c, d, e, f]| Run {
            first: u32::from_le_bytes([a, b, c, d]),
            count: u16::from_le_bytes([e, f]).into(),
        })
    }
}

/// Why bytes are not frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than its packet.
    #[error("a frame that is longer than its packet")]
    Truncated,
    /// No frame begins with this.
    #[error("unknown kind {kind} of a frame")]
    Kind {
        /// The byte.
        kind: u8,
    },
    /// A field has an invalid value.
    #[error("an invalid value of {of}")]
    Value {
        /// The field.
        of: &'static str,
    },
    /// The sender speaks another version; what follows may mean anything.
    #[error("version {theirs} of the protocol, not {}", VERSION)]
    Version {
        /// The sender's version.
        theirs: u16,
    },
}

/// All frames of a packet.
///
/// # Errors
/// [`FrameError`], whatever the bytes are. A packet of which one frame has no meaning has none.
pub fn decode(packet: &[u8]) -> Result<Vec<Frame<'_>>, FrameError> {
    let mut reader = Reader::new(packet);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        frames.push(frame(&mut reader)?);
    }
    Ok(frames)
}

fn frame<'b>(from: &mut Reader<'b>) -> Result<Frame<'b>, FrameError> {
    Ok(match from.u8()? {
        1 => {
            let theirs = from.u16()?;
            if theirs != VERSION {
                return Err(FrameError::Version { theirs });
            }
            Frame::Hello(Hello {
                job: from.u128()?,
                segment: from.u64()?,
                boot: from.u64()?,
                host: from.host()?,
            })
        }
        2 => Frame::Alive,
        3 => Frame::Refused(get_hello_error(from)?),
        4 => Frame::Register { serial: from.u64()?, register: Register::get(from)? },
        5 => Frame::Cut(cut(from)?),
        6 => Frame::Data(data(from)?),
        7 => Frame::Announced(announced(from)?),
        8 => Frame::Settled(from.u64()?),
        kind => return Err(FrameError::Kind { kind }),
    })
}

fn cut(from: &mut Reader<'_>) -> Result<Cut, FrameError> {
    let (cut, group, base, round) = (from.u64()?, from.group()?, from.u64()?, from.u64()?);
    let (label, age_ns, total, members) = (from.u64()?, from.u64()?, from.u64()?, from.u8()?);
    if members == 0 || usize::from(members) > MAX_MEMBERS {
        return Err(FrameError::Value { of: "the number of a cut's members" });
    }
    if total > u64::from(members) << 32 {
        return Err(FrameError::Value { of: "the number of a cut's lines" });
    }
    let placed = from.bool()?;
    let versions = (0..members).map(|_| from.version()).collect::<Result<_, _>>()?;
    Ok(Cut { cut, group, base, round, label, age_ns, total, placed, versions })
}

fn data<'b>(from: &mut Reader<'b>) -> Result<Data<'b>, FrameError> {
    let (cut, member, position) = (from.u64()?, from.u16()?, from.u64()?);
    let (runs, len) = (from.u16()?, from.u16()?);
    let data = Data {
        cut,
        member,
        position,
        runs: from.take(usize::from(runs) * RUN_HEADER)?,
        bytes: from.take(len.into())?,
    };
    check_runs(position, data.runs())?;
    Ok(data)
}

fn announced(from: &mut Reader<'_>) -> Result<Announced, FrameError> {
    let (cut, member, position, runs) = (from.u64()?, from.u16()?, from.u64()?, from.u16()?);
    let runs: Vec<Run> = (0..runs)
        .map(|_| Ok(Run { first: from.u32()?, count: from.u32()? }))
        .collect::<Result<_, FrameError>>()?;
    check_runs(position, runs.iter().copied())?;
    Ok(Announced { cut, member, position, runs })
}

fn check_runs(position: u64, mut runs: impl Iterator<Item = Run>) -> Result<(), FrameError> {
    let mut end = position;
    let is_good = runs.all(|run| {
        let goes_on = end.checked_add(run.count.into());
        end = goes_on.unwrap_or(end);
        goes_on.is_some() && run.count > 0 && run.first.checked_add(run.count - 1).is_some()
    });
    if is_good { Ok(()) } else { Err(FrameError::Value { of: "a run of lines" }) }
}

/// Appends a frame to `packet`.
///
/// # Panics
/// If lists are longer than what a frame can hold: members of cuts and subscriptions, groups that a clock names.
pub fn encode(frame: &Frame<'_>, packet: &mut Vec<u8>) {
    match frame {
        Frame::Hello(hello) => {
            packet.u8(1);
            packet.u16(VERSION);
            packet.u128(hello.job);
            packet.u64(hello.segment);
            packet.u64(hello.boot);
            packet.host(hello.host);
        }
        Frame::Alive => packet.u8(2),
        Frame::Refused(error) => {
            packet.u8(3);
            put_hello_error(packet, error);
        }
        Frame::Register { serial, register } => {
            packet.u8(4);
            packet.u64(*serial);
            register.put(packet);
        }
        Frame::Cut(cut) => {
            assert!((1..=MAX_MEMBERS).contains(&cut.versions.len()));
            packet.u8(5);
            packet.u64(cut.cut);
            packet.group(cut.group);
            for value in [cut.base, cut.round, cut.label, cut.age_ns, cut.total] {
                packet.u64(value);
            }
            packet.u8(cut.versions.len() as u8);
            packet.u8(cut.placed.into());
            cut.versions.iter().for_each(|version| packet.version(version));
        }
        Frame::Settled(serial) => {
            packet.u8(8);
            packet.u64(*serial);
        }
        Frame::Data(data) => {
            let runs: Vec<Run> = data.runs().collect();
            put_data_header(packet, data.cut, data.member, data.position, &runs, data.bytes.len());
            packet.put(data.bytes);
        }
        Frame::Announced(announced) => {
            packet.u8(7);
            packet.u64(announced.cut);
            packet.u16(announced.member);
            packet.u64(announced.position);
            packet.u16(u16::try_from(announced.runs.len()).expect("a packet has fewer runs"));
            for run in &announced.runs {
                packet.u32(run.first);
                packet.u32(run.count);
            }
        }
    }
}

/// A data frame up to its bytes, which are gathered from elsewhere.
pub(crate) fn put_data_header(
    packet: &mut Vec<u8>,
    cut: u64,
    member: u16,
    position: u64,
    runs: &[Run],
    bytes: usize,
) {
    packet.u8(6);
    packet.u64(cut);
    packet.u16(member);
    packet.u64(position);
    packet.u16(u16::try_from(runs.len()).expect("a packet has fewer runs"));
    packet.u16(u16::try_from(bytes).expect("a packet is shorter"));
    for run in runs {
        packet.u32(run.first);
        packet.u16(u16::try_from(run.count).expect("runs are cut to 16 bits"));
    }
}
