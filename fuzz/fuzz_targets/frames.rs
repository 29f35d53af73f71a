//! Raw bytes as packets between hosts, and bytes as choices of frames.
#![no_main]
#[path = "../../net/tests/common/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    frames::raw(bytes);
    frames::written(&mut frames::Choices(bytes));
});
