//! Frames as bytes: what is written is read again, and no bytes make the reader panic.
#[path = "common/frames.rs"]
mod frames;

use frames::Choices;
use hectare_net::HostId;
use hectare_net::wire::{Frame, FrameError, Hello, VERSION, decode, encode};
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_written_is_read_again(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        frames::written(&mut Choices(&bytes));
    }

    #[test]
    fn a_packet_that_is_cut_short_is_none(bytes in prop::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>()) {
        let packet = frames::written(&mut Choices(&bytes));
        let end = at.index(packet.len());
        let whole = decode(&packet).expect("just written");
        match decode(&packet[..end]) {
            // Only between two frames.
            Ok(frames) => prop_assert_eq!(&frames[..], &whole[..frames.len()]),
            Err(error) => prop_assert_eq!(error, FrameError::Truncated),
        }
    }
}

/// A fixed number of inputs, as the fuzzer makes them; `examples/frames.rs` makes as many as one likes.
#[test]
fn no_bytes_make_the_reader_panic() {
    frames::random(100_000, 1);
}

#[test]
fn another_version_is_named() {
    let mut packet = Vec::new();
    encode(&Frame::Hello(Hello { job: 1, segment: 2, boot: 3, host: HostId(4) }), &mut packet);
    packet[1] += 1;
    assert_eq!(decode(&packet), Err(FrameError::Version { theirs: VERSION + 1 }));
    assert_eq!(decode(&packet[..3]), Err(FrameError::Version { theirs: VERSION + 1 }), "whatever follows");
}
