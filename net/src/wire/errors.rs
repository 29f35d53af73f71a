//! Why names and hosts were refused and hosts failed, as bytes.
use super::FrameError;
use super::bytes::{Put, Reader};
use crate::types::{Cause, HelloError, NameError, PeerFailed};

pub(super) fn put_name_error(to: &mut Vec<u8>, error: &NameError) {
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

pub(super) fn get_name_error(from: &mut Reader<'_>) -> Result<NameError, FrameError> {
    let kind = from.u8()?;
    name_error(kind, from)
}

pub(super) fn name_error(kind: u8, from: &mut Reader<'_>) -> Result<NameError, FrameError> {
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

pub(super) fn put_failed(to: &mut Vec<u8>, failed: &PeerFailed) {
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

pub(super) fn get_failed(from: &mut Reader<'_>) -> Result<PeerFailed, FrameError> {
    let host = from.host()?;
    let cause = match from.u8()? {
        1 => Cause::Silent,
        2 => Cause::Unreachable { from: from.host()? },
        3 => Cause::Refused { from: from.host()?, why: get_hello_error(from)? },
        _ => return Err(FrameError::Value { of: "the cause of a failure" }),
    };
    Ok(PeerFailed { host, cause })
}
