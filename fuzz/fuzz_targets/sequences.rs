//! Sequences of requests to the daemon's registry, against a model.
#![no_main]
#[path = "../../daemon/tests/common/protocol.rs"]
mod protocol;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| protocol::sequence(bytes));
