//! Counters of an endpoint, and the state of a link.
use crate::cipher::Suite;
use crate::refusal::Refusal;
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// Counts since the start of an endpoint. Everything that was thrown away is in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // The names say it.
pub struct Counters {
    /// Datagrams that are no packets of this protocol.
    pub malformed: u64,
    /// Packets of sessions that are not known: of an earlier boot, most often.
    pub unknown_session: u64,
    /// How often a session went on with another address of its peer.
    pub moved: u64,
    /// Packets that did not open: changed on the way, or forged.
    pub forged: u64,
    /// Packets that came twice.
    pub replayed: u64,
    /// Packets that came so late that nobody knows whether they came before.
    pub too_old: u64,
    /// Hellos that were answered with a cookie.
    pub cookies: u64,
    /// Handshakes that were forgotten half done, because there were too many.
    pub half_open_forgotten: u64,
    /// Answers to greetings that were not sent, because there were too many.
    pub answers_dropped: u64,
    /// Hellos that were left unanswered because the own Hello to that host has precedence.
    pub crossed: u64,
    pub refused_version: u64,
    pub refused_cluster: u64,
    pub refused_key: u64,
    pub refused_job: u64,
    pub refused_suite: u64,
    pub refused_host: u64,
    pub refused_boot: u64,
    pub refused_identity: u64,
    /// Refusals that were received.
    pub refused_by_peer: u64,
}

impl Counters {
    pub(crate) fn refused(&mut self, why: Refusal) {
        *match why {
            Refusal::Version { .. } => &mut self.refused_version,
            Refusal::Cluster => &mut self.refused_cluster,
            Refusal::Key => &mut self.refused_key,
            Refusal::Job => &mut self.refused_job,
            Refusal::Suite => &mut self.refused_suite,
            Refusal::Host { .. } => &mut self.refused_host,
            Refusal::Boot => &mut self.refused_boot,
            Refusal::Identity => &mut self.refused_identity,
        } += 1;
    }
}

/// How a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkStatus {
    /// The peer's address.
    pub address: SocketAddr,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
    /// The shortest round-trip time that was seen.
    pub min_round_trip: Duration,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes on the way.
    pub in_flight: u64,
    /// The largest UDP payload that the path is known to carry.
    pub max_datagram: usize,
    /// How packets are sealed.
    pub suite: Suite,
    /// When the last packet came, or the session began.
    pub last_heard: Time,
    /// Packets that were sent, of all kinds.
    pub sent: u64,
    /// The bytes of their UDP payloads.
    pub sent_bytes: u64,
    /// Packets that came and were taken, of all kinds.
    pub received: u64,
    /// The bytes of their UDP payloads.
    pub received_bytes: u64,
    /// The node's packets that arrived.
    pub acked: u64,
    /// The node's packets that were taken for lost.
    pub lost: u64,
    /// How often the congestion window shrank.
    pub congestion_events: u64,
    /// How often everything was lost for so long that the window began anew.
    pub persistent_congestions: u64,
    /// Probes after nothing was acknowledged.
    pub probes: u64,
    /// How often the path began to swallow large packets.
    pub black_holes: u64,
}
