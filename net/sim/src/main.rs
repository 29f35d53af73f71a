//! Runs seeds, and says which broke a promise.
use clap::Parser;
use hectare_net::Mutant;
use hectare_sim::{Options, Overrides, replay, run};

/// Hosts of a job on virtual time, with faults and a judge.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of seeds.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// This seed alone, with what it consists of.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    overrides: Overrides,
    /// An error in the node, by name.
    #[arg(long)]
    mutant: Option<String>,
    /// Prints all that happens.
    #[arg(long)]
    verbose: bool,
    /// Goes on after a broken promise.
    #[arg(long)]
    all: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mutant = match &arguments.mutant {
        None => None,
        Some(name) => {
            let known = Mutant::ALL.into_iter().find(|mutant| format!("{mutant:?}") == *name);
            Some(known.ok_or_else(|| anyhow::anyhow!("no mutant {name}; there are {:?}", Mutant::ALL))?)
        }
    };
    let seeds = match arguments.seed {
        Some(seed) => seed..seed + 1,
        None => arguments.first..arguments.first + arguments.seeds,
    };
    let (mut broken, mut events, mut virtual_ns) = (0, 0, 0);
    let began = std::time::Instant::now();
    for seed in seeds.clone() {
        let mut options = Options::of(seed);
        options.mutant = mutant;
        options.verbose = arguments.verbose;
        arguments.overrides.apply(&mut options);
        if arguments.seed.is_some() {
            println!("{options:#?}");
        }
        let outcome = run(options.clone());
        events += outcome.events;
        virtual_ns += outcome.ended_ns;
        if arguments.seed.is_some() {
            println!(
                "{:#?}\ntrace {:016x}, {} events, {:.3} s",
                outcome.counters,
                outcome.trace,
                outcome.events,
                outcome.ended_ns as f64 / 1e9
            );
        }
        if !outcome.broken.is_empty() {
            broken += 1;
            outcome.broken.iter().for_each(|broken| println!("seed {seed}: {broken}"));
            println!("  {}", replay(&options));
            if !arguments.all {
                break;
            }
        }
    }
    println!(
        "{} seeds, {events} events, {:.0} s of virtual time in {:.1} s: {broken} broke a promise",
        seeds.end - seeds.start,
        virtual_ns as f64 / 1e9,
        began.elapsed().as_secs_f64()
    );
    std::process::exit(i32::from(broken > 0))
}
