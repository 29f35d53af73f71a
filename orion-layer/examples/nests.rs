//! Random nests on random numbers of workers, as many as one likes: ordered and unordered loops of any kind, wavefronts in two and
//! three dimensions, and loops whose subscripts come from data. What ran is compared with what must hold of it, and replayed bit
//! for bit.
//!
//! `cargo run --release -p hectare-orion --example nests -- COUNT [SEED]` runs the nests of COUNT seeds from SEED on. Of one that goes
//! wrong it prints the command that runs it again, and exits with 1.
#[path = "../tests/common/mod.rs"]
mod common;

use common::oracle::{Tally, run_nests};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let (count, first) = (numbers.next().unwrap_or(2000), numbers.next().unwrap_or(0));
    let mut tally = Tally::new();
    for seed in first..first.saturating_add(count) {
        if let Err(what) = common::watchdog::watched(&format!("seed {seed}"), || run_nests(seed, &mut tally))
        {
            println!(
                "{what}\nto run it again: cargo run --release -p hectare-orion --example nests -- 1 {seed}"
            );
            return ExitCode::FAILURE;
        }
    }
    println!("{count} nests from seed {first} on:");
    tally.iter().for_each(|(way, loops)| println!("{loops:8} loops: {way}"));
    ExitCode::SUCCESS
}
