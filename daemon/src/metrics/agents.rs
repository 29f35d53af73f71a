//! Metrics of the agents of jobs on several hosts, which are asked for them.
use super::exposition::{
    Exposition,
    Kind::{Counter, Gauge},
};
use crate::ask::standing_of;
use anyhow::Result;
use hectare_wire::{AgentConnection, PeerStanding, RunDir, SessionStanding};
use std::time::Duration;

/// How long a scrape waits for an agent.
const ANSWER: Duration = Duration::from_millis(500);

/// Adds the metrics of a job's agent, if it has one.
pub(super) fn of_agent(out: &mut Exposition, dir: &RunDir, job: &str) -> Result<()> {
    let Some(agent) = AgentConnection::open(dir, job, Some(ANSWER))? else { return Ok(()) };
    let standing = standing_of(&agent)?;
    let age = standing.age_ms as f64 / 1e3;
    out.add(Gauge, "hectare_agent_age_seconds", "How long the job's agent runs.", &[("job", job)], age);
    for (name, cause, value) in &standing.counters {
        let labels = [("job", job), ("cause", cause.as_str())];
        let labels = if cause.is_empty() { &labels[..1] } else { &labels[..] };
        out.add(Counter, &format!("hectare_agent_{name}_total"), help(name), labels, value);
    }
    for peer in &standing.peers {
        of_peer(out, job, peer);
    }
    Ok(())
}

/// The description of a counter of agents.
fn help(name: &str) -> &'static str {
    match name {
        "cuts" => "Differences between two versions, by outcome.",
        "handed_over" => {
            "Areas that workers gave to workers of other hosts: left to those, and taken from them."
        }
        "lines" => "Lines of 64 bytes of areas, by outcome.",
        "skipped_labels" => "Subscribers that got a later state in place of the last one before a barrier.",
        "names" => {
            "Names of areas of this host that were refused, and those of others that were because of this host's, or asked \
             for this host's as something else or in vain."
        }
        "refused_pins" => "States that could not be held to be sent.",
        "bad_packets" => "Packets of peers that are malformed, or that their sender may not send.",
        "bad_datagrams" => "Datagrams that were thrown away, by cause.",
        "moved_peers" => "How often a session went on with another address of its peer.",
        "greetings" => "Hosts that called and were not answered at once, by outcome.",
        "port_frames" => "Frames of the agent's DPDK port.",
        "port_bytes" => "Bytes of the frames of the agent's DPDK port.",
        "port_lost" => {
            "Frames that the agent's DPDK port lost, and datagrams that it could not send, by cause."
        }
        "port_ignored" => {
            "Frames at the agent's DPDK port that were for others, were broken, or claimed its address."
        }
        "rdma" => {
            "Writes of the agent's RDMA device into memory of peers, their bytes, and queue pairs that broke or were closed."
        }
        "refused_callers" => "Hosts that called and were refused, by cause.",
        _ => "Calls of this host that others refused.",
    }
}

fn of_peer(out: &mut Exposition, job: &str, peer: &PeerStanding) {
    let labels = [("job", job), ("peer", peer.name.as_str())];
    let connected = u8::from(peer.session.is_some());
    let help = "1 while there is a session with the host.";
    out.add(Gauge, "hectare_peer_connected", help, &labels, connected);
    let help = "Sessions with the host since the agent's start.";
    out.add(Counter, "hectare_peer_sessions_total", help, &labels, peer.sessions);
    if let Some(session) = &peer.session {
        of_session(out, &labels, session);
    }
}

fn of_session(out: &mut Exposition, labels: &[(&str, &str)], session: &SessionStanding) {
    let mut gauge = |name: &str, help: &str, value: f64| {
        out.add(Gauge, &format!("hectare_peer_{name}"), help, labels, value);
    };
    gauge("round_trip_seconds", "The smoothed round-trip time.", session.round_trip_ns as f64 / 1e9);
    gauge("silent_seconds", "How long nothing was heard of the host.", session.heard_ms as f64 / 1e3);
    gauge("path_mtu_bytes", "The largest packet that the path carries.", f64::from(session.path_mtu));
    gauge("window_bytes", "The congestion window.", session.window as f64);
    let sealed = if session.seal == "none" { 0.0 } else { 1.0 };
    gauge("sealed", "0 if packets are neither authenticated nor encrypted.", sealed);
    let mut count = |name: &str, help: &str, value: u64| {
        out.add(Counter, &format!("hectare_peer_{name}_total"), help, labels, value);
    };
    count("sent_packets", "Packets sent in this session.", session.sent);
    count("sent_bytes", "Bytes sent in this session.", session.sent_bytes);
    count("received_packets", "Packets received in this session.", session.received);
    count("received_bytes", "Bytes received in this session.", session.received_bytes);
    count("lost_packets", "Packets with data taken for lost in this session.", session.lost);
    count("congestion_events", "How often the window shrank in this session.", session.congestion_events);
    count("probes", "Probes after nothing was acknowledged in this session.", session.probes);
    count("black_holes", "How often the path began to swallow large packets.", session.black_holes);
}
