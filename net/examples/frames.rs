//! Bytes as packets between hosts, as many as one likes: a fuzzer that needs no nightly toolchain and no guide. Each turn
//! reads noise, writes frames and reads them, and reads them with bits changed.
//!
//! `cargo run --release -p hectare-net --example frames -- TURNS [SEED]`
#[path = "../tests/common/frames.rs"]
mod frames;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let turns: u64 = arguments.next().map_or(1_000_000, |turns| turns.parse().expect("a number"));
    let seed: u64 = arguments.next().map_or(1, |seed| seed.parse().expect("a number"));
    for part in 0..turns.div_ceil(1_000_000) {
        frames::random(1_000_000.min(turns - part * 1_000_000), seed.wrapping_add(part));
        println!("{} turns", (part + 1) * 1_000_000);
    }
}
