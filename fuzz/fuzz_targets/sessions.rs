//! Any bytes as datagrams to a host: before a handshake, in one, and in a session.
#![no_main]
#[path = "../../net/session/tests/sessions/inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inputs::run(bytes));
