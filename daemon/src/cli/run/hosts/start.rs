//! The parts of a program on its hosts: what they are told, and how they are started.
use super::super::{PART, Run};
use super::host::{Host, State};
use super::message::{Make, check_length};
use super::remote::{Event, Outlets, Remote};
use super::words::{for_host, words};
use crate::cli::failure::Usage;
use crate::hosts::{Place, Plan};
use anyhow::{Context, Result};
use hectare_wire::JobHost;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

/// All that a part is told but its number and the addresses.
pub(super) fn prepare_make(what: &Run, plan: &Plan, job: String, id: [u8; 16]) -> Result<Make> {
    let directory = match &what.on.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().context("the current directory")?,
    };
    let directory = directory.to_str().context("the directory's name is no UTF-8")?.to_owned();
    let hosts = plan.places.iter().map(|place| JobHost {
        name: place.name.clone(),
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        ranks: place.ranks.end - place.ranks.start,
        dpdk: None,
    });
    let make = Make {
        job,
        id,
        index: 0,
        hosts: hosts.collect(),
        silence_ms: u64::try_from(what.on.timeout().as_millis()).unwrap_or(u64::MAX).max(1),
        cipher: what.on.cipher(),
        program: what.program.clone(),
        directory,
        variables: what.on.variables()?,
        plain: what.no_prefix,
        keep_going: what.keep_going,
        grace_s: what.grace_s,
    };
    check_length(&make).context("the program's arguments and variables are too long for hosts").usage()?;
    Ok(make)
}

/// Starts the parts of all hosts; those `here` without the remote shell.
pub(super) fn start_all(
    what: &Run,
    (plan, here): (&Plan, &[bool]),
    events: &Sender<Event>,
    outlets: &Outlets,
) -> Result<Vec<Host>> {
    let rsh = words(what.on.rsh()).usage()?;
    let own = std::env::current_exe().context("this program's name")?;
    let own = own.to_str().context("this program's name is no UTF-8")?.to_owned();
    let called = std::env::args().next().unwrap_or_default();
    // Called by its path, it is in the same place on the others; called by its name, it is where their shells find it.
    let there = if called.contains('/') { own.clone() } else { "hectare".to_owned() };
    let there = what.on.remote_hectare.clone().unwrap_or(there);
    let start = |(number, place): (usize, &Place)| {
        let mut command = match here[number] {
            true => vec![own.clone()],
            false => {
                let mut command = for_host(&rsh, &place.name);
                command.push(there.clone());
                command
            }
        };
        command.push(PART.into());
        let remote = Remote::start(&command, number, events, outlets.clone()).or_else(|error| {
            // A remote shell that there is not, or that is no program, is one that was not meant.
            let kind = error.downcast_ref().map(std::io::Error::kind);
            match kind {
                Some(ErrorKind::NotFound | ErrorKind::PermissionDenied) => Err(error).usage(),
                _ => Err(error),
            }
        })?;
        let key = (String::new(), String::new());
        let (place, state, said) = (place.clone(), State::Started, VecDeque::new());
        Ok(Host { place, remote, state, at: None, key, said })
    };
    plan.places.iter().enumerate().map(start).collect()
}
