//! Frames as bytes: what is written is read again, and no bytes make the reader panic.
#[path = "common/frames.rs"]
mod frames;

use frames::{Choices, raw};
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

/// A fixed number of inputs, as the fuzzer makes them: noise, and packets with bytes changed.
#[test]
fn no_bytes_make_the_reader_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..100_000 {
        let len = random() % 200;
        let noise: Vec<u8> = (0..len).map(|_| random() as u8 & if len % 2 == 0 { 255 } else { 7 }).collect();
        raw(&noise);
        let mut packet = frames::written(&mut Choices(&noise));
        for _ in 0..=random() % 3 {
            let at = random() as usize % packet.len();
            packet[at] ^= 1 << (random() % 8);
        }
        raw(&packet);
    }
}

#[test]
fn another_version_is_named() {
    let mut packet = Vec::new();
    encode(&Frame::Hello(Hello { job: 1, segment: 2, boot: 3, host: HostId(4) }), &mut packet);
    packet[1] += 1;
    assert_eq!(decode(&packet), Err(FrameError::Version { theirs: VERSION + 1 }));
    assert_eq!(decode(&packet[..3]), Err(FrameError::Version { theirs: VERSION + 1 }), "whatever follows");
}
