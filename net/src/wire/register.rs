//! Registers: what a host says about itself to another, of which only the present value counts.
use super::FrameError;
use super::bytes::{Put, Reader};
use crate::types::{
    AreaId, Cause, Description, ElementType, GroupId, HelloError, HostId, MAX_MEMBERS, NameError, PeerFailed,
    Place, Version,
};

/// A register and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Register {
    /// How far the sender's workers are.
    Clock {
        /// The lowest clock of the sender's own workers.
        clock: u64,
        /// The lowest clock of all workers that it knows of.
        lowest: u64,
        /// How many groups of the sender the receiver has named in subscriptions, as far as the sender knows.
        subscriptions: u32,
        /// Which groups the sender has named to the receiver: a number of that set.
        named: u32,
        /// The clock counts when the receiver has published these groups' states of these rounds of the sender.
        covers: Vec<(GroupId, u64)>,
    },
    /// A host and a group of the receiver.
    Subscription(GroupId, Subscription),
    /// An area of a group to which the receiver subscribes, or `None` if it was deleted.
    Member(AreaId, Option<Description>),
    /// An area of the sender, for the directory; `None` if it was deleted.
    Name(AreaId, Option<Stated>),
    /// To the directory: so many areas of the sender were accepted before its or the directory's agent started.
    Restated(u32),
    /// The directory's answer to `Name`.
    Named(AreaId, Result<(), NameError>),
    /// To the directory: a name is looked up; `None` when the answer came. The index is used again.
    Lookup(u32, Option<Wanted>),
    /// The directory's answer to the `Lookup` of that serial.
    Found(u32, u64, Result<AreaId, NameError>),
    /// To the owner: another host asked for its area with another name, type or length, or for one that it keeps. From the
    /// directory, or, of a type or length, from that host.
    Conflict(AreaId, HostId, NameError),
    /// To the directory: the sender has heard nothing of a host for the time-out (`true`), or does again.
    Suspect(HostId, bool),
    /// The directory's decision: the job ends.
    Verdict(PeerFailed),
    /// The sender's workers and areas are gone, by its program's end.
    Left,
    /// A group of the sender: the answer to the receiver's last forced sync of it.
    Forced(GroupId, Forced),
    /// A group of the sender: there is no memory for the copies that the receiver would be sent, whose subscription says this
    /// state (the first number). The second one counts, as each is news.
    Unsent(GroupId, u64, u64),
    /// To who has copies of a group of the sender: it goes to another host. That one is subscribed to from now on.
    Moving(GroupId, Owner),
    /// To the next owner's host: the sender has left a group to it; `None` when that has answered.
    Handover(GroupId, Option<Handover>),
    /// The answer to a hand-over of this epoch.
    Taken(GroupId, u64),
    /// From the sender's RDMA driver to the receiver's: where and how lines may be placed.
    Card(Vec<u8>),
    /// To the sender of a placed cut: where it may write the lines of each member that it has announced; `None` if it may not, and is to
    /// send them.
    Grant(GroupId, u64, Option<Vec<Place>>),
    /// To who has copies of an area of the sender: whether its owner has dropped it, so that nobody gives it.
    Ownerless(AreaId, bool),
    /// Of 64 workers of the sender from this rank on, those that have failed: a bit for each.
    Failed(u32, u64),
}

/// Where a group's owner is, as of one hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The host.
    pub host: HostId,
    /// Rises with each change of owner.
    pub epoch: u64,
}

/// A group that goes to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// That of the new owner.
    pub epoch: u64,
    /// The worker that it is given to.
    pub rank: u32,
}

/// A host's statement on an area of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Its description.
    pub description: Description,
    /// The directory accepted it before.
    pub accepted: bool,
    /// Why other hosts cannot have it, if they cannot: its name is not taken by it.
    pub kept: Option<NameError>,
}

/// The area that is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The type that its elements have to have; any if `None`.
    pub element: Option<ElementType>,
    /// The bytes that it has to have; any number if `None`.
    pub bytes: Option<u64>,
    /// How often it was asked for before: who asks again is told again that there is none.
    pub asked: u32,
}

/// A subscriber's side of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its progress with the last cut.
    pub stage: Stage,
    /// The last cut that it has dealt with; not one that is under way.
    pub cut: u64,
    /// The number of what it has published, for cuts to be relative to.
    pub state: u64,
    /// The owner's round of what it has published; 0 if that is not known.
    pub round: u64,
    /// At least this long between the beginnings of cuts, in microseconds.
    pub interval_us: u64,
    /// The last forced sync that it asked for; they are counted.
    pub forced: u32,
    /// The version of each member with copies that it has published.
    pub have: Vec<Option<Version>>,
}

/// The answer to a forced sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forced {
    /// The last one that it answers.
    pub forced: u32,
    /// The subscriber has what it asked for when it has published this round of the owner; 0: it had it.
    pub round: u64,
    /// That is what the owner had written when it was asked, and not an older state, after which the subscriber's clocks keep it.
    pub is_newest: bool,
    /// The owner could not publish.
    pub postponed: bool,
}

/// How far a subscriber is with the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does not subscribe any more.
    Off,
    /// It takes the next cut: all up to this one are published, or were given up.
    Free,
    /// This cut is complete and not published yet.
    Complete,
    /// This cut was refused, since an earlier one is complete and not published yet.
    Busy,
}

/// Which register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Key {
    Verdict,
    Clock,
    Left,
    Restated,
    Suspect(HostId),
    Subscription(GroupId),
    Member(AreaId),
    Name(AreaId),
    Named(AreaId),
    Lookup(u32),
    Found(u32),
    Conflict(AreaId, HostId),
    Forced(GroupId),
    Unsent(GroupId),
    Moving(GroupId),
    Handover(GroupId),
    Taken(GroupId),
    Card,
    Grant(GroupId),
    Ownerless(AreaId),
    Failed(u32),
}

impl Register {
    /// Which register this is a value of.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Register::Clock { .. } => Key::Clock,
            Register::Subscription(group, _) => Key::Subscription(*group),
            Register::Member(area, _) => Key::Member(*area),
            Register::Name(area, _) => Key::Name(*area),
            Register::Restated(_) => Key::Restated,
            Register::Named(area, _) => Key::Named(*area),
            Register::Lookup(index, _) => Key::Lookup(*index),
            Register::Found(index, ..) => Key::Found(*index),
            Register::Conflict(area, host, _) => Key::Conflict(*area, *host),
            Register::Suspect(host, _) => Key::Suspect(*host),
            Register::Verdict(_) => Key::Verdict,
            Register::Left => Key::Left,
            Register::Forced(group, _) => Key::Forced(*group),
            Register::Unsent(group, ..) => Key::Unsent(*group),
            Register::Moving(group, _) => Key::Moving(*group),
            Register::Handover(group, _) => Key::Handover(*group),
            Register::Taken(group, _) => Key::Taken(*group),
            Register::Card(_) => Key::Card,
            Register::Grant(group, ..) => Key::Grant(*group),
            Register::Ownerless(area, _) => Key::Ownerless(*area),
            Register::Failed(first, _) => Key::Failed(*first),
        }
    }

    pub(super) fn put(&self, to: &mut Vec<u8>) {
        match self {
            Register::Clock { clock, lowest, subscriptions, named, covers } => {
                to.u8(1);
                to.u64(*clock);
                to.u64(*lowest);
                to.u32(*subscriptions);
                to.u32(*named);
                to.u8(u8::try_from(covers.len()).expect("fewer than fit into a packet"));
                for &(group, round) in covers {
                    to.group(group);
                    to.u64(round);
                }
            }
            Register::Subscription(group, subscription) => {
                to.u8(2);
                to.group(*group);
                subscription.put(to);
            }
            Register::Member(area, description) => {
                to.u8(3);
                to.area(*area);
                to.option(description.as_ref(), |to, description| to.description(description));
            }
            Register::Name(area, name) => {
                to.u8(4);
                to.area(*area);
                to.option(name.as_ref(), |to, stated| stated.put(to));
            }
            Register::Restated(count) => {
                to.u8(5);
                to.u32(*count);
            }
            Register::Named(area, result) => {
                to.u8(6);
                to.area(*area);
                put_result(to, result.as_ref(), |_, ()| {});
            }
            Register::Lookup(index, wanted) => {
                to.u8(7);
                to.u32(*index);
                to.option(wanted.as_ref(), |to, wanted| wanted.put(to));
            }
            Register::Found(index, serial, result) => {
                to.u8(8);
                to.u32(*index);
                to.u64(*serial);
                put_result(to, result.as_ref(), |to, area| to.area(*area));
            }
            Register::Conflict(area, host, error) => {
                to.u8(9);
                to.area(*area);
                to.host(*host);
                put_name_error(to, error);
            }
            Register::Suspect(host, silent) => {
                to.u8(10);
                to.host(*host);
                to.u8((*silent).into());
            }
            Register::Verdict(failed) => {
                to.u8(11);
                put_failed(to, failed);
            }
            Register::Left => to.u8(12),
            Register::Forced(group, forced) => {
                to.u8(13);
                to.group(*group);
                forced.put(to);
            }
            Register::Unsent(group, state, count) => {
                to.u8(14);
                to.group(*group);
                to.u64(*state);
                to.u64(*count);
            }
            Register::Moving(group, owner) => {
                to.u8(15);
                to.group(*group);
                to.host(owner.host);
                to.u64(owner.epoch);
            }
            Register::Handover(group, handover) => {
                to.u8(16);
                to.group(*group);
                to.option(handover.as_ref(), |to, handover| {
                    to.u64(handover.epoch);
                    to.u32(handover.rank);
                });
            }
            Register::Taken(group, epoch) => {
                to.u8(17);
                to.group(*group);
                to.u64(*epoch);
            }
            Register::Card(bytes) => {
                to.u8(18);
                to.u8(u8::try_from(bytes.len()).expect("a card is short"));
                to.put(bytes);
            }
            Register::Grant(group, cut, places) => {
                to.u8(19);
                to.group(*group);
                to.u64(*cut);
                to.option(places.as_ref(), |to, places| {
                    to.u8(u8::try_from(places.len()).expect("a cut has few members"));
                    for place in places {
                        to.u64(place.address);
                        to.u32(place.key);
                    }
                });
            }
            Register::Ownerless(area, is) => {
                to.u8(20);
                to.area(*area);
                to.u8((*is).into());
            }
            Register::Failed(first, ranks) => {
                to.u8(21);
                to.u32(*first);
                to.u64(*ranks);
            }
        }
    }

    pub(super) fn get(from: &mut Reader<'_>) -> Result<Register, FrameError> {
        Ok(match from.u8()? {
            1 => {
                let (clock, lowest, subscriptions) = (from.u64()?, from.u64()?, from.u32()?);
                let (named, covers) = (from.u32()?, from.u8()?);
                let covers = (0..covers)
                    .map(|_| Ok((from.group()?, from.u64()?)))
                    .collect::<Result<_, FrameError>>()?;
                Register::Clock { clock, lowest, subscriptions, named, covers }
            }
            2 => Register::Subscription(from.group()?, Subscription::get(from)?),
            3 => Register::Member(from.area()?, from.option(Reader::description)?),
            4 => Register::Name(from.area()?, from.option(Stated::get)?),
            5 => Register::Restated(from.u32()?),
            6 => Register::Named(from.area()?, get_result(from, |_| Ok(()))?),
            7 => Register::Lookup(from.u32()?, from.option(Wanted::get)?),
            8 => Register::Found(from.u32()?, from.u64()?, get_result(from, |from| from.area())?),
            9 => Register::Conflict(from.area()?, from.host()?, get_name_error(from)?),
            10 => Register::Suspect(from.host()?, from.bool()?),
            11 => Register::Verdict(get_failed(from)?),
            12 => Register::Left,
            13 => Register::Forced(from.group()?, Forced::get(from)?),
            14 => Register::Unsent(from.group()?, from.u64()?, from.u64()?),
            15 => Register::Moving(from.group()?, Owner { host: from.host()?, epoch: from.u64()? }),
            16 => Register::Handover(
                from.group()?,
                from.option(|from| Ok(Handover { epoch: from.u64()?, rank: from.u32()? }))?,
            ),
            17 => Register::Taken(from.group()?, from.u64()?),
            18 => {
                let len = from.u8()?;
                Register::Card(from.take(len.into())?.to_vec())
            }
            19 => Register::Grant(from.group()?, from.u64()?, from.option(get_places)?),
            20 => Register::Ownerless(from.area()?, from.bool()?),
            21 => Register::Failed(from.u32()?, from.u64()?),
            _ => return Err(FrameError::Value { of: "a register" }),
        })
    }
}

fn get_places(from: &mut Reader<'_>) -> Result<Vec<Place>, FrameError> {
    let members = from.u8()?;
    if usize::from(members) > MAX_MEMBERS {
        return Err(FrameError::Value { of: "the number of a cut's members" });
    }
    (0..members).map(|_| Ok(Place { address: from.u64()?, key: from.u32()? })).collect()
}

impl Forced {
    fn put(self, to: &mut Vec<u8>) {
        to.u32(self.forced);
        to.u64(self.round);
        to.u8(u8::from(self.is_newest));
        to.u8(u8::from(self.postponed));
    }

    fn get(from: &mut Reader<'_>) -> Result<Forced, FrameError> {
        let (forced, round) = (from.u32()?, from.u64()?);
        Ok(Forced { forced, round, is_newest: from.bool()?, postponed: from.bool()? })
    }
}

impl Stated {
    fn put(&self, to: &mut Vec<u8>) {
        to.description(&self.description);
        to.u8(self.accepted.into());
        put_result(to, self.kept.as_ref().map_or(Ok(&()), Err), |_, ()| {});
    }

    fn get(from: &mut Reader<'_>) -> Result<Stated, FrameError> {
        let (description, accepted) = (from.description()?, from.bool()?);
        Ok(Stated { description, accepted, kept: get_result(from, |_| Ok(()))?.err() })
    }
}

impl Wanted {
    fn put(&self, to: &mut Vec<u8>) {
        to.name(&self.name);
        to.option(self.element.as_ref(), |to, &element| to.element(element));
        to.option(self.bytes.as_ref(), |to, &bytes| to.u64(bytes));
        to.u32(self.asked);
    }

    fn get(from: &mut Reader<'_>) -> Result<Wanted, FrameError> {
        Ok(Wanted {
            name: from.name()?,
            element: from.option(Reader::element)?,
            bytes: from.option(Reader::u64)?,
            asked: from.u32()?,
        })
    }
}

impl Subscription {
    fn put(&self, to: &mut Vec<u8>) {
        assert!(self.have.len() <= MAX_MEMBERS);
        to.u8(match self.stage {
            Stage::Off => 0,
            Stage::Free => 1,
            Stage::Complete => 2,
            Stage::Busy => 3,
        });
        for value in [self.cut, self.state, self.round, self.interval_us] {
            to.u64(value);
        }
        to.u32(self.forced);
        to.u8(self.have.len() as u8);
        self.have.iter().for_each(|have| to.option(have.as_ref(), Put::version));
    }

    fn get(from: &mut Reader<'_>) -> Result<Subscription, FrameError> {
        let stage = match from.u8()? {
            0 => Stage::Off,
            1 => Stage::Free,
            2 => Stage::Complete,
            3 => Stage::Busy,
            _ => return Err(FrameError::Value { of: "a stage" }),
        };
        let (cut, state, round, interval_us) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?);
        let (forced, members) = (from.u32()?, from.u8()?);
        if usize::from(members) > MAX_MEMBERS {
            return Err(FrameError::Value { of: "the number of a subscription's members" });
        }
        let have = (0..members).map(|_| from.option(Reader::version)).collect::<Result<_, _>>()?;
        Ok(Subscription { stage, cut, state, round, interval_us, forced, have })
    }
}

fn put_result<T>(to: &mut Vec<u8>, result: Result<&T, &NameError>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    match result {
        Ok(value) => {
            to.u8(0);
            put(to, value);
        }
        Err(error) => put_name_error(to, error),
    }
}

fn get_result<T>(
    from: &mut Reader<'_>,
    value: impl FnOnce(&mut Reader<'_>) -> Result<T, FrameError>,
) -> Result<Result<T, NameError>, FrameError> {
    match from.u8()? {
        0 => Ok(Ok(value(from)?)),
        kind => Ok(Err(name_error(kind, from)?)),
    }
}

fn put_name_error(to: &mut Vec<u8>, error: &NameError) {
    match *error {
        NameError::Taken { by } => {
            to.u8(1);
            to.host(by);
        }
        NameError::Type { there, here, asked_by } => {
            to.u8(2);
            to.element(there);
            to.element(here);
            to.host(asked_by);
        }
        NameError::Length { there, here, asked_by } => {
            to.u8(3);
            to.u64(there);
            to.u64(here);
            to.host(asked_by);
        }
        NameError::Memory => to.u8(4),
        NameError::Members { by } => {
            to.u8(5);
            to.host(by);
        }
        NameError::Deleted => to.u8(6),
        NameError::Long { by } => {
            to.u8(7);
            to.host(by);
        }
        NameError::Unknown => to.u8(8),
        NameError::Group { by } => {
            to.u8(9);
            to.host(by);
        }
        NameError::Local { by } => {
            to.u8(10);
            to.host(by);
        }
        NameError::Unsent { by } => {
            to.u8(11);
            to.host(by);
        }
    }
}

fn get_name_error(from: &mut Reader<'_>) -> Result<NameError, FrameError> {
    let kind = from.u8()?;
    name_error(kind, from)
}

fn name_error(kind: u8, from: &mut Reader<'_>) -> Result<NameError, FrameError> {
    Ok(match kind {
        1 => NameError::Taken { by: from.host()? },
        2 => NameError::Type { there: from.element()?, here: from.element()?, asked_by: from.host()? },
        3 => NameError::Length { there: from.u64()?, here: from.u64()?, asked_by: from.host()? },
        4 => NameError::Memory,
        5 => NameError::Members { by: from.host()? },
        6 => NameError::Deleted,
        7 => NameError::Long { by: from.host()? },
        8 => NameError::Unknown,
        9 => NameError::Group { by: from.host()? },
        10 => NameError::Local { by: from.host()? },
        11 => NameError::Unsent { by: from.host()? },
        _ => return Err(FrameError::Value { of: "the reason why a name was refused" }),
    })
}

pub(super) fn put_hello_error(to: &mut Vec<u8>, error: &HelloError) {
    match *error {
        HelloError::Version { theirs, ours } => {
            to.u8(1);
            to.u16(theirs);
            to.u16(ours);
        }
        HelloError::Job => to.u8(2),
        HelloError::Host { says } => {
            to.u8(3);
            to.host(says);
        }
        HelloError::Segment => to.u8(4),
    }
}

pub(super) fn get_hello_error(from: &mut Reader<'_>) -> Result<HelloError, FrameError> {
    Ok(match from.u8()? {
        1 => HelloError::Version { theirs: from.u16()?, ours: from.u16()? },
        2 => HelloError::Job,
        3 => HelloError::Host { says: from.host()? },
        4 => HelloError::Segment,
        _ => return Err(FrameError::Value { of: "the reason why a host was refused" }),
    })
}

fn put_failed(to: &mut Vec<u8>, failed: &PeerFailed) {
    to.host(failed.host);
    match failed.cause {
        Cause::Silent => to.u8(1),
        Cause::Unreachable { from } => {
            to.u8(2);
            to.host(from);
        }
        Cause::Refused { from, why } => {
            to.u8(3);
            to.host(from);
            put_hello_error(to, &why);
        }
    }
}

fn get_failed(from: &mut Reader<'_>) -> Result<PeerFailed, FrameError> {
    let host = from.host()?;
    let cause = match from.u8()? {
        1 => Cause::Silent,
        2 => Cause::Unreachable { from: from.host()? },
        3 => Cause::Refused { from: from.host()?, why: get_hello_error(from)? },
        _ => return Err(FrameError::Value { of: "the cause of a failure" }),
    };
    Ok(PeerFailed { host, cause })
}
