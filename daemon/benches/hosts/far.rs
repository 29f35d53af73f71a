//! A network with a long way: a loop whose clocks cross it, under each consistency, barriers with and without data, hand-overs, and how
//! old what others write is.
use super::{Cluster, figure, in_role, median};
use hectare_hosts::Settings;
use hectare_orion::relax::{AdaRevision, Consistency, Every};
use hectare_orion::{Result, parallel_for};
use std::time::{Duration, Instant, SystemTime};

/// How long an area is watched, and how long its reader waits for it at most.
const WATCHED: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(20);

/// Barriers that are timed, after the first of them.
const BARRIERS: u64 = 200;
const WARM: u64 = 20;
/// Elements that each worker writes before a barrier: 64 bytes.
const WRITTEN: usize = 8;

const ONE_WAY: Duration = Duration::from_millis(5);
const EXAMPLES: usize = 20_000;
const FEATURES: usize = 124;
const OF_EACH: usize = 14;
/// Clocks of a pass.
const CLOCKS: usize = 16;
const PASSES: usize = 20;
const ROUNDS: usize = 3;

const CASES: [(&str, Consistency); 3] =
    [("bsp", Consistency::Bsp), ("bounded:2", Consistency::Bounded(2)), ("async", Consistency::Async)];

/// Milliseconds per pass of logistic regression of about the extents of a9a, after the first.
pub(crate) fn play(consistency: &str) -> Result<()> {
    let consistency = CASES.into_iter().find(|(name, _)| *name == consistency).expect("a case").1;
    hectare_orion::run(1, |w| {
        let features = |k: usize| -> [u32; OF_EACH] {
            std::array::from_fn(|at| ((k * 7919 + at * 104_729 + k / 3 * at) % FEATURES) as u32)
        };
        let label = |k: usize| if features(k)[0] < 30 { 1.0f32 } else { 0.0 };
        let examples = w.entries([EXAMPLES], EXAMPLES, |k| ([k], (features(k), label(k))))?;
        let zeros = w.zeros::<f32, 1>([FEATURES])?;
        let mut weights = w.buffered(zeros, AdaRevision::new(0.1))?;
        let mut since = Instant::now();
        for pass in 0..=PASSES {
            if pass == 1 {
                since = Instant::now();
            }
            parallel_for!(w, unordered, buffer weights, consistency = consistency, every = Every::PerPass(CLOCKS);
            for ((_k), example) in examples {
                let (features, label) = example;
                let margin: f32 = features.iter().map(|feature| weights.get(*feature as usize)).sum();
                let error = 1.0 / (1.0 + (-margin).exp()) - label;
                for feature in features {
                    weights.add(*feature as usize, error);
                }
            })?;
        }
        let ms = since.elapsed().as_secs_f64() * 1e3 / PASSES as f64;
        w.root(|| println!("figure {ms}"));
        Ok(())
    })?;
    Ok(())
}

/// The mean age in milliseconds of an area that a worker of the other host writes each millisecond.
pub(crate) fn watch() -> hectare_dsm::Result<()> {
    let (mut worker, _) = crate::support::worker()?;
    let now =
        || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let until = Instant::now() + WATCHED;
    if worker.rank() == 0 {
        let mut mine = worker.create::<u64>("written", 8)?;
        while Instant::now() < until {
            mine.write(&worker)?.fill(now());
            worker.sync()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    } else {
        let theirs = worker.attach_within::<u64>("written", LONG)?;
        let mut ages = Vec::new();
        while Instant::now() < until {
            worker.service()?;
            ages.push(now().saturating_sub(theirs.read(&worker)?[0]) as f64 / 1e6);
            std::thread::sleep(Duration::from_micros(200));
        }
        // Not those of the start.
        let ages = &ages[ages.len() / 4..];
        println!("figure {}", ages.iter().sum::<f64>() / ages.len() as f64);
    }
    worker.barrier()?;
    Ok(())
}

/// The mean time in milliseconds of a barrier before which each of two workers writes, and after which each reads what the other one
/// wrote; and of one without data. (Not the median: workers that start a way apart pass two barriers at once, and then wait for two
/// ways.)
pub(crate) fn exchange() -> hectare_dsm::Result<()> {
    let (mut worker, _) = crate::support::worker()?;
    let (own, other) = (worker.rank(), 1 - worker.rank());
    let mut mine = worker.create::<u64>(format!("of/{own}"), WRITTEN)?;
    let theirs = worker.attach_within::<u64>(&format!("of/{other}"), LONG)?;
    for with_data in [true, false] {
        let mut since = Instant::now();
        for turn in 1..=WARM + BARRIERS {
            if with_data {
                mine.write(&worker)?.fill(turn);
            }
            worker.barrier()?;
            if with_data {
                assert_eq!(*theirs.read(&worker)?, [turn; WRITTEN], "what was written before the barrier");
            }
            if turn == WARM {
                since = Instant::now();
            }
        }
        if own == 0 {
            println!("figure {}", since.elapsed().as_secs_f64() * 1e3 / BARRIERS as f64);
        }
    }
    Ok(())
}

/// The figures of both kinds of barrier.
fn exchanges(cluster: &Cluster) -> [f64; 2] {
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "60"], &in_role("exchange"));
    assert_eq!(said.code, 0, "{said:?}");
    let figures: Vec<f64> =
        said.out.lines().filter_map(|line| line.split("figure ").nth(1)?.parse().ok()).collect();
    figures.try_into().expect("a figure of each kind")
}

pub(crate) fn measure() {
    let settings = Settings { delay: ONE_WAY, ..Settings::default() };
    let Some(cluster) = Cluster::with(2, &settings) else {
        return println!("not measured: no network namespaces");
    };
    let (mut with_data, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let [exchange, barrier] = exchanges(&cluster);
        with_data.push(exchange);
        without.push(barrier);
    }
    println!(
        "\na way of {ONE_WAY:?}: a barrier takes {:.1} ms, with 64 bytes of each worker {:.1}",
        median(&mut without),
        median(&mut with_data)
    );
    let mut there_and_back: Vec<f64> = (0..ROUNDS).map(|_| crate::of_role(&cluster, "handed")).collect();
    println!(
        "  an area of 64 bytes is given to the other host in {:.1} ms",
        median(&mut there_and_back) / 2e3
    );
    println!(
        "\nlogistic regression, {EXAMPLES} examples, {OF_EACH} of {FEATURES} features each, {CLOCKS} clocks a pass, a way of \
         {ONE_WAY:?}: ms a pass"
    );
    let mut all: [Vec<f64>; CASES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for ((name, _), figures) in CASES.iter().zip(&mut all) {
            let role = format!("{} {name}", in_role("far"));
            let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "60"], &role);
            assert_eq!(said.code, 0, "{said:?}");
            figures.push(figure(&said.out));
        }
    }
    let mut ages: Vec<f64> = (0..ROUNDS).map(|_| crate::of_role(&cluster, "watch")).collect();
    println!(
        "  an area that is written each millisecond is {:.1} ms old on the other host",
        median(&mut ages)
    );
    let medians = all.map(|mut figures| median(&mut figures));
    for ((name, _), ms) in CASES.iter().zip(medians) {
        println!("  {name:<12} {ms:>8.1}   {:.2} of bsp", ms / medians[0]);
    }
}
