//! Many hosts of a job on virtual time: the nodes of `hectare-net` over links and memories that are models, with faults, and
//! a judge that knows what every host published.
//!
//! All of a run follows from its seed. Seeds with a broken promise are replayed by `cargo run --release -p hectare-sim -- --seed N`.
#![forbid(unsafe_code)]
mod force_requests;
mod groups;
mod judge;
mod memory;
mod network;
mod options;
mod random;
mod world;

pub use judge::{Broken, Promise};
pub use options::{MS, Mode, Options, Overrides};
pub use world::{Outcome, World};

/// Runs a seed.
#[must_use]
pub fn run(options: Options) -> Outcome {
    World::new(options).run()
}

/// The command that runs these options again.
#[must_use]
pub fn replay(options: &Options) -> String {
    let mutant = options.mutant.map_or(String::new(), |mutant| format!(" --mutant {mutant:?}"));
    let overrides = options::Overrides::of(options);
    format!("cargo run --release -p hectare-sim -- --seed {}{overrides}{mutant}", options.seed)
}
