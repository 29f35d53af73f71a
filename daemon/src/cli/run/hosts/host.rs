//! A host of a program as the caller sees it, and whether hosts fit together.
use super::message::Here;
use super::remote::{Line, Remote};
use crate::cli::failure::HostFailed;
use crate::hosts::Place;
use anyhow::Result;
use hectare_wire::TransportChoice;
use std::collections::VecDeque;

/// How many lines of a remote shell are kept until its host has answered.
const MOST_LINES: usize = 100;

/// How far a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Started,
    Here,
    Made,
    Runs,
    /// Its ranks have ended.
    Done,
    /// It cannot be heard any more.
    Gone,
}

pub(super) struct Host {
    pub(super) place: Place,
    pub(super) remote: Remote,
    pub(super) state: State,
    pub(super) at: Option<Here>,
    pub(super) key: (String, String),
    /// Lines of its remote shell on standard error, until it has answered.
    pub(super) said: VecDeque<Line>,
}

impl Host {
    /// The name, with the address if that is known and another word.
    pub(super) fn name(&self) -> String {
        let Host { place, at, .. } = self;
        match place.address.or(at.map(|at| at.address.ip())).map(|address| address.to_string()) {
            Some(address) if address != place.name => format!("{} ({address})", place.name),
            _ => place.name.clone(),
        }
    }

    /// Keeps a line of its remote shell: the last ones say why there is no answer.
    pub(super) fn keep(&mut self, line: Line) {
        if self.said.len() == MOST_LINES {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    pub(super) fn failed(&self, what: String, code: u8) -> anyhow::Error {
        HostFailed { host: self.name(), what, code }.into()
    }
}

/// Whether the hosts have one key, and each an address of its own.
pub(super) fn check_answers(hosts: &[Host]) -> Result<()> {
    let first = &hosts[0];
    for (number, host) in hosts.iter().enumerate() {
        if host.key != first.key {
            let show = |(cluster, fingerprint): &(String, String)| format!("{cluster}, {fingerprint}");
            let what = format!(
                "it has another cluster key ({}) than {} ({}): `hectare key check` shows them",
                show(&host.key),
                first.place.name,
                show(&first.key)
            );
            return Err(host.failed(what, HostFailed::CODE));
        }
        let ip = |host: &Host| host.at.map(|at| at.address.ip());
        if let Some(other) = hosts[..number].iter().find(|other| ip(other) == ip(host)) {
            let what = format!("it has the address of {}: they are one host", other.place.name);
            return Err(host.failed(what, HostFailed::CODE));
        }
        let has_none = |other: &&Host| other.at.is_some_and(|at| at.dpdk.is_none());
        if host.at.is_some_and(|at| at.transport == TransportChoice::Dpdk)
            && let Some(other) = hosts.iter().find(has_none)
        {
            let name = &other.place.name;
            let what = format!(
                "{name} has no DPDK port, and this host is to reach it by DPDK alone (transport = \"dpdk\"): give {name} a port \
                 by [dpdk] in the configuration of its hectared, which is built with DPDK, or choose \"auto\""
            );
            return Err(host.failed(what, HostFailed::CODE));
        }
    }
    Ok(())
}
