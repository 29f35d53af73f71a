//! Raw bytes as messages of the control protocol.
#![no_main]
#[path = "../../daemon/tests/common/protocol.rs"]
mod protocol;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| protocol::raw(bytes));
