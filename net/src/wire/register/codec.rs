//! Registers as bytes: a number that says which one it is, then its fields.
use super::{Forced, Handover, Left, Owner, Register, Stage, Stated, Subscription, Wanted};
use crate::types::{GroupId, MAX_MEMBERS, NameError, Place};
use crate::wire::FrameError;
use crate::wire::bytes::{Put, Reader};
use crate::wire::errors::{get_failed, get_name_error, name_error, put_failed, put_name_error};

impl Register {
    pub(in crate::wire) fn put(&self, to: &mut Vec<u8>) {
        match self {
            Register::Clock { clock, lowest, subscriptions, named, covers, ahead } => {
                to.u8(1);
                to.u64(*clock);
                to.u64(*lowest);
                to.u32(*subscriptions);
                to.u32(*named);
                put_covers(to, covers);
                to.option(ahead.as_ref(), |to, covers| put_covers(to, covers));
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
                owner.put(to);
            }
            Register::Handover(group, handover) => {
                to.u8(16);
                to.group(*group);
                to.option(handover.as_ref(), |to, left| left.put(to));
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
                to.option(places.as_ref(), |to, places| put_places(to, places));
            }
            Register::Ownerless(area, is) => {
                to.u8(20);
                to.area(*area);
                to.u8((*is).into());
            }
            Register::Workers { first, failed, left } => {
                to.u8(21);
                to.u32(*first);
                to.u64(*failed);
                to.u64(*left);
            }
            Register::Deleted(area, is_answer) => {
                to.u8(22);
                to.area(*area);
                to.u8((*is_answer).into());
            }
            Register::Deserted => to.u8(23),
        }
    }

    pub(in crate::wire) fn get(from: &mut Reader<'_>) -> Result<Register, FrameError> {
        Ok(match from.u8()? {
            1 => Register::Clock {
                clock: from.u64()?,
                lowest: from.u64()?,
                subscriptions: from.u32()?,
                named: from.u32()?,
                covers: get_covers(from)?,
                ahead: from.option(get_covers)?,
            },
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
            15 => Register::Moving(from.group()?, Owner::get(from)?),
            16 => Register::Handover(from.group()?, from.option(Left::get)?),
            17 => Register::Taken(from.group()?, from.u64()?),
            18 => {
                let len = from.u8()?;
                Register::Card(from.take(len.into())?.to_vec())
            }
            19 => Register::Grant(from.group()?, from.u64()?, from.option(get_places)?),
            20 => Register::Ownerless(from.area()?, from.bool()?),
            21 => Register::Workers { first: from.u32()?, failed: from.u64()?, left: from.u64()? },
            22 => Register::Deleted(from.area()?, from.bool()?),
            23 => Register::Deserted,
            _ => return Err(FrameError::Value { of: "a register" }),
        })
    }
}

fn put_covers(to: &mut Vec<u8>, covers: &[(GroupId, u64)]) {
    to.u8(u8::try_from(covers.len()).expect("fewer than fit into a packet"));
    for &(group, round) in covers {
        to.group(group);
        to.u64(round);
    }
}

fn get_covers(from: &mut Reader<'_>) -> Result<Vec<(GroupId, u64)>, FrameError> {
    let covers = from.u8()?;
    (0..covers).map(|_| Ok((from.group()?, from.u64()?))).collect()
}

fn put_places(to: &mut Vec<u8>, places: &[Place]) {
    to.u8(u8::try_from(places.len()).expect("a cut has few members"));
    for place in places {
        to.u64(place.address);
        to.u32(place.key);
    }
}

fn get_places(from: &mut Reader<'_>) -> Result<Vec<Place>, FrameError> {
    let members = from.u8()?;
    if usize::from(members) > MAX_MEMBERS {
        return Err(FrameError::Value { of: "the number of a cut's members" });
    }
    (0..members).map(|_| Ok(Place { address: from.u64()?, key: from.u32()? })).collect()
}

impl Owner {
    fn put(self, to: &mut Vec<u8>) {
        to.host(self.host);
        to.u64(self.epoch);
    }

    fn get(from: &mut Reader<'_>) -> Result<Owner, FrameError> {
        Ok(Owner { host: from.host()?, epoch: from.u64()? })
    }
}

impl Left {
    fn put(&self, to: &mut Vec<u8>) {
        to.u64(self.handover.epoch);
        to.u32(self.handover.rank);
        to.u8(u8::try_from(self.versions.len()).expect("a group has few members"));
        self.versions.iter().for_each(|version| to.version(version));
    }

    fn get(from: &mut Reader<'_>) -> Result<Left, FrameError> {
        let handover = Handover { epoch: from.u64()?, rank: from.u32()? };
        let members = from.u8()?;
        if usize::from(members) > MAX_MEMBERS {
            return Err(FrameError::Value { of: "the number of a group's members" });
        }
        let versions = (0..members).map(|_| from.version()).collect::<Result<_, _>>()?;
        Ok(Left { handover, versions })
    }
}

impl Forced {
    fn put(self, to: &mut Vec<u8>) {
        to.u32(self.forced);
        to.u64(self.round);
        to.u8(u8::from(self.is_newest));
        to.u8(u8::from(self.postponed));
        to.u8(u8::from(self.is_not_taken));
    }

    fn get(from: &mut Reader<'_>) -> Result<Forced, FrameError> {
        let (forced, round) = (from.u32()?, from.u64()?);
        let (is_newest, postponed, is_not_taken) = (from.bool()?, from.bool()?, from.bool()?);
        Ok(Forced { forced, round, is_newest, postponed, is_not_taken })
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
        to.u32(self.number);
        to.u8(match self.stage {
            Stage::Off => 0,
            Stage::Free => 1,
            Stage::Complete => 2,
            Stage::Busy => 3,
        });
        for value in [self.cut, self.state, self.round, self.epoch, self.interval_us] {
            to.u64(value);
        }
        to.u32(self.forced);
        to.u8(self.have.len() as u8);
        self.have.iter().for_each(|have| to.option(have.as_ref(), Put::version));
    }

    fn get(from: &mut Reader<'_>) -> Result<Subscription, FrameError> {
        let number = from.u32()?;
        let stage = match from.u8()? {
            0 => Stage::Off,
            1 => Stage::Free,
            2 => Stage::Complete,
            3 => Stage::Busy,
            _ => return Err(FrameError::Value { of: "a stage" }),
        };
        let (cut, state, round) = (from.u64()?, from.u64()?, from.u64()?);
        let (epoch, interval_us) = (from.u64()?, from.u64()?);
        let (forced, members) = (from.u32()?, from.u8()?);
        if usize::from(members) > MAX_MEMBERS {
            return Err(FrameError::Value { of: "the number of a subscription's members" });
        }
        let have = (0..members).map(|_| from.option(Reader::version)).collect::<Result<_, _>>()?;
        Ok(Subscription { number, stage, cut, state, round, epoch, interval_us, forced, have })
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
