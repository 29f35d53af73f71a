//! The log lines of strangers that are refused.
use crate::network::World;
use hectare_session::{self as session, Batch, ClusterKey, Config, Endpoint, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Counts the lines about refused callers, and those that are told by their number alone.
#[derive(Clone, Default)]
struct Counted {
    lines: Arc<AtomicU64>,
    left_out: Arc<AtomicU64>,
}

impl Visit for Counted {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "left_out" {
            self.left_out.fetch_add(value, Ordering::Relaxed);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" && format!("{value:?}") == "a caller was refused" {
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Subscriber for Counted {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The first datagram of a stranger with another key.
fn hello() -> Vec<u8> {
    let key = ClusterKey::new("lab", [9; 32]).unwrap();
    let mut stranger = Endpoint::new(Config::new(session::HostId(1), 1, [1; 16], key, [2; 32]), [3; 32]);
    stranger.connect(Time::ZERO, session::HostId(0), "10.0.0.1:7000".parse().unwrap());
    stranger.handle_timeout(Time::ZERO);
    let mut buffer = vec![0; 65_507];
    let mut batch = Batch::new(&mut buffer, 1);
    stranger.transmit(Time::ZERO, &mut batch);
    batch.bytes().to_vec()
}

#[test]
fn strangers_do_not_flood_the_log_and_no_line_is_lost() {
    let (counted, hello) = (Counted::default(), hello());
    let count = 500;
    let since = std::time::Instant::now();
    tracing::subscriber::with_default(counted.clone(), || {
        let mut world = World::new(2, 10);
        let (now, from) = (Time::from_nanos(world.now), "10.9.9.9:1".parse().unwrap());
        let mut relay = world.hosts[0].relay.take().unwrap();
        for _ in 0..count {
            relay.receive(now, from, false, &mut hello.clone());
            relay.work(now);
        }
        assert_eq!(relay.counters().1.refused_key, count);
    });
    let (lines, left_out) = (counted.lines.load(Ordering::Relaxed), counted.left_out.load(Ordering::Relaxed));
    assert!(lines > 0 && lines <= 10 * (1 + since.elapsed().as_secs()), "{lines} lines");
    assert_eq!(lines + left_out, count);
}
