use super::*;
use std::error::Error as _;

/// Each variant that holds another error says so, once, and gives it.
#[test]
fn a_cause_is_said_once_and_can_be_had() {
    let io = || std::io::Error::from_raw_os_error(13);
    let closed = || hectare_wire::Error::Closed;
    let os = || hectare_wire::Error::Os { call: "connect", source: io() };
    for (error, cause) in [
        (Error::Daemon { job: "j".into(), source: closed() }, closed().to_string()),
        (Error::Daemon { job: "j".into(), source: os() }, os().to_string()),
        (Error::Os { call: "mmap", source: io() }, io().to_string()),
        (Error::Spawn { rank: 3, source: io() }, io().to_string()),
    ] {
        assert_eq!(error.to_string().matches(&cause).count(), 1, "{error}");
        assert_eq!(error.source().unwrap().to_string(), cause);
    }
    let error = Error::Os { call: "mmap", source: io() };
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    assert_eq!(source.unwrap().raw_os_error(), Some(13));
    assert!(Error::ForkedChild.source().is_none());
}

#[test]
fn main_prints_what_display_says() {
    let error = Error::InvalidArea { name: "x".into(), what: "no elements".into() };
    assert_eq!(format!("Error: {error:?}"), "Error: area \"x\": no elements");
}

#[test]
fn durations_are_rounded() {
    let cases = [
        (0, "0 s"),
        (400, "0.4 us"),
        (1_234, "1.2 us"),
        (45_600, "46 us"),
        (999_499, "999 us"),
        (999_600, "1 ms"),
        (2_000_000, "2 ms"),
        (20_049_000, "20 ms"),
        (999_600_000, "1 s"),
        (1_500_034_000, "1.5 s"),
        (9_960_000_000, "10 s"),
        (10_000_123_456, "10 s"),
        (180_400_000_000, "180 s"),
    ];
    for (nanos, text) in cases {
        let waited = Duration::from_nanos(nanos);
        let error = Error::TimedOut { what: "w".into(), waited, missing: "m".into() };
        assert_eq!(error.to_string(), format!("waited {text} for w: m"));
    }
}
