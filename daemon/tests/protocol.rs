//! The bodies of the fuzz targets in `fuzz/`, run for a fixed number of inputs that are the same every time.
#[path = "common/protocol.rs"]
mod protocol;
use hectare_wire::{JobSettings, Request, Stall, encode};

/// xorshift64 (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, longest: u64) -> Vec<u8> {
        (0..self.next() % longest).map(|_| (self.next() >> 20) as u8).collect()
    }
}

#[test]
fn raw_bytes_are_understood_or_refused() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..100_000 {
        let mut bytes = random.bytes(80);
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
        protocol::sequence(&random.bytes(600));
    }
}
