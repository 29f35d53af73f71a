//! The status of an agent: its peers, sessions and counters, for `hectare peers`, `hectare trace` and metrics.
use crate::order::Order;
use crate::relay::{Peer, Relay};
use hectare_session::{LinkStatus, Suite, Time};
use hectare_wire::{AgentStatus, Cipher, PeerStanding, SessionStanding, TraceAnswer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Headers of UDP and IP.
const HEADERS: [usize; 2] = [28, 48];

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// The status of the agent that was started by `order`.
pub(crate) fn standing(order: &Order, relay: &Relay, now: Time) -> AgentStatus {
    let own = order.hosts.own();
    let name = |index: u16| order.hosts.hosts.get(usize::from(index)).map_or("", |host| &host.name);
    let peers = relay.peers().map(|(host, peer, status)| {
        let placing = relay.placing(host);
        let link = match placing.is_up {
            true => "rdma".to_owned(),
            false => peer.reach.link().to_string(),
        };
        let why = match (placing.is_up, placing.why.is_empty()) {
            (true, _) => format!("{}; small cuts and control by {}", placing.why, peer.reach.link()),
            (false, true) => peer.reach.why().to_owned(),
            (false, false) => format!("{}; {}", peer.reach.why(), placing.why),
        };
        PeerStanding {
            host: host.0,
            name: name(host.0).into(),
            address: peer.reach.address(),
            link,
            link_reason: why,
            since_ms: millis(now.since(peer.since)),
            sessions: peer.sessions,
            reason: peer.reason.map(|reason| reason.to_string()),
            session: session(peer, status, now),
        }
    });
    AgentStatus {
        job: order.job.clone(),
        pid: std::process::id(),
        host: order.hosts.index,
        name: own.name.clone(),
        address: own.address,
        boot: relay.boot(),
        age_ms: now.as_nanos() / 1_000_000,
        transport: order.hosts.transport.name().into(),
        port: order.dpdk.is_some().then(|| own.port()).flatten(),
        failure: relay.failure().map(ToString::to_string),
        peers: peers.collect(),
        counters: counters(relay),
    }
}

/// The recorded steps of an area's versions on the host of `order`, from number `after` on.
pub(crate) fn trace(order: &Order, relay: &mut Relay, now: Time, (area, after): (&str, u64)) -> TraceAnswer {
    let (owner, steps, next, dropped) = match relay.follow(now, area, after) {
        Some((owner, steps, next, dropped)) => (Some(owner.0), steps, next, dropped),
        None => (None, Vec::new(), after, false),
    };
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TraceAnswer {
        owner,
        host: order.hosts.index,
        hosts: order.hosts.hosts.iter().map(|host| host.name.clone()).collect(),
        steps,
        next,
        dropped,
        boot: relay.boot(),
        now_ns: now.as_nanos(),
        unix_ns: nanos(unix),
    }
}

fn session(peer: &Peer, status: Option<LinkStatus>, now: Time) -> Option<SessionStanding> {
    let (boot, status) = (peer.boot?, status?);
    let headers = HEADERS[usize::from(peer.reach.address().is_ipv6())];
    let seal = match status.suite {
        Suite::Aes128Gcm => Cipher::Aes128Gcm,
        _ => Cipher::None,
    };
    Some(SessionStanding {
        boot,
        seal: seal.name().into(),
        heard_ms: millis(now.since(status.last_heard)),
        round_trip_ns: nanos(status.round_trip),
        min_round_trip_ns: nanos(status.min_round_trip),
        path_mtu: (status.max_datagram + headers) as u32,
        window: status.window,
        in_flight: status.in_flight,
        sent: status.sent,
        sent_bytes: status.sent_bytes,
        received: status.received,
        received_bytes: status.received_bytes,
        acked: status.acked,
        lost: status.lost,
        congestion_events: status.congestion_events,
        probes: status.probes,
        black_holes: status.black_holes,
    })
}

/// The counters of the node, the sessions, the placer and the transport: a name, a cause or an empty text, and the value.
fn counters(relay: &Relay) -> Vec<(String, String, u64)> {
    let (node, sessions) = relay.counters();
    let all = [
        ("cuts", "sent", node.cuts),
        ("cuts", "refused", node.cuts_refused),
        ("cuts", "arrived", node.arrivals),
        ("cuts", "overtaken", node.cuts_overtaken),
        ("cuts", "ahead", node.cuts_ahead),
        ("cuts", "joined", node.cuts_joined),
        ("cuts", "held", node.cuts_held),
        ("lines", "sent", node.lines_sent),
        ("lines", "placed", node.lines_placed),
        ("lines", "resent", node.lines_resent),
        ("lines", "received", node.lines_received),
        ("lines", "stale", node.stale_lines),
        ("names", "refused", node.names_refused),
        ("names", "conflicted", node.conflicts),
        ("handed_over", "left", node.left),
        ("handed_over", "taken", node.taken),
        ("skipped_labels", "", node.skipped_labels),
        ("refused_pins", "", node.pins_refused),
        ("bad_packets", "malformed", node.malformed),
        ("bad_packets", "violation", node.violations),
        ("bad_datagrams", "malformed", sessions.malformed),
        ("bad_datagrams", "unknown_session", sessions.unknown_session),
        ("bad_datagrams", "forged", sessions.forged),
        ("bad_datagrams", "replayed", sessions.replayed),
        ("bad_datagrams", "too_old", sessions.too_old),
        ("bad_datagrams", "other_link", relay.strange()),
        ("moved_peers", "", sessions.moved),
        ("greetings", "cookie", sessions.cookies),
        ("greetings", "forgotten", sessions.half_open_forgotten),
        ("greetings", "unanswered", sessions.answers_dropped),
        ("greetings", "crossed", sessions.crossed),
        ("refused_callers", "version", sessions.refused_version),
        ("refused_callers", "cluster", sessions.refused_cluster),
        ("refused_callers", "key", sessions.refused_key),
        ("refused_callers", "job", sessions.refused_job),
        ("refused_callers", "suite", sessions.refused_suite),
        ("refused_callers", "host", sessions.refused_host),
        ("refused_callers", "boot", sessions.refused_boot),
        ("refused_callers", "identity", sessions.refused_identity),
        ("refused_by_peers", "", sessions.refused_by_peer),
    ];
    let placed = relay.placed();
    let all = all.iter().chain(&placed).chain(relay.transport_counters());
    all.map(|(name, cause, value)| ((*name).into(), (*cause).into(), *value)).collect()
}
