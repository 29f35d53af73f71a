//! The bodies of the fuzz targets in `fuzz/`, run for a fixed number of inputs that are the same every time.
#[path = "common/protocol.rs"]
mod protocol;
use hectare_testing::Random;
use hectare_wire::{JobSettings, Request, Stall, encode};

fn bytes(random: &mut Random, longest: usize) -> Vec<u8> {
    (0..random.below(longest)).map(|_| random.next() as u8).collect()
}

#[test]
fn raw_bytes_are_understood_or_refused() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..100_000 {
        let mut bytes = bytes(&mut random, 80);
        protocol::raw(&bytes);
        // Small numbers, as variants and lengths are.
        bytes.iter_mut().for_each(|byte| *byte %= 24);
        protocol::raw(&bytes);
    }
    // Messages with a mistake.
    let settings =
        JobSettings { bytes: Some(1 << 40), stall: Some(Stall::KillAfterMs(7)), ..Default::default() };
    let messages = [
        encode(&Request::Create { job: "a".repeat(100), settings, keep: true }).unwrap(),
        encode(&Request::Attach { job: "a".into(), rank: Some(u32::MAX) }).unwrap(),
        encode(&Request::Adopt { job: "a".into(), keep: true, ranks: vec![0, 7, u32::MAX] }).unwrap(),
        encode(&Request::Remove { job: "a".into(), force: true }).unwrap(),
    ];
    for message in messages {
        for at in 0..message.len() {
            protocol::raw(&message[..at]);
            for bit in 0..8 {
                let mut wrong = message.clone();
                wrong[at] ^= 1 << bit;
                protocol::raw(&wrong);
            }
        }
    }
}

#[test]
fn sequences_of_requests_do_what_the_model_does() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..2000 {
        protocol::sequence(&bytes(&mut random, 600));
    }
}
