//! A loop of the loop layer, whose parts go from worker to worker: on two hosts, and as two processes of one.
use super::{Cluster, best, figure, in_role, median, sent};
use hectare_orion::{Result, axpy, dot, parallel_for};
use std::time::Instant;

const USERS: usize = 6040;
const FILMS: usize = 3706;
const RATINGS: usize = 1_000_000;
const RANK: usize = 100;
const PASSES: usize = 40;
const ROUNDS: usize = 3;

/// Seconds per pass of matrix factorization of the extents of MovieLens 1M, after the first.
pub(crate) fn play() -> Result<()> {
    hectare_orion::run(1, |w| {
        let scatter = |k: usize, by: usize, of: usize| (k as u64 * by as u64 % 1_000_003) as usize % of;
        let place = |k| [scatter(k, 7919, USERS), scatter(k, 104_729, FILMS)];
        let ratings = w.entries([USERS, FILMS], RATINGS, |k| (place(k), 1.0 + (k % 5) as f32))?;
        let mut users = w.uniform([USERS, RANK], 0.0..0.1f32, 1)?;
        let mut films = w.uniform([FILMS, RANK], 0.0..0.1f32, 2)?;
        let mut since = Instant::now();
        for pass in 0..=PASSES {
            if pass == 1 {
                since = Instant::now();
            }
            parallel_for!(w, unordered, read ratings, write [users, films];
            for ((user, film), stars) in ratings {
                let (a, b) = (users.row_mut(user), films.row_mut(film));
                let error = 0.01 * (stars - dot(a, b));
                axpy(error, b, a);
                axpy(error, a, b);
            })?;
        }
        let seconds = since.elapsed().as_secs_f64() / PASSES as f64;
        w.root(|| {
            println!("figure {seconds}");
            let said = w.explain().iter().find_map(|one| one.between_hosts.clone());
            let sent = said.iter().flat_map(|said| &said.links).filter(|link| link.from == 0);
            println!("counted {}", sent.filter_map(|link| link.measured).sum::<f64>());
            println!("said {}", said.map_or(0.0, |said| said.handed + said.begun));
        });
        let since = Instant::now();
        for _ in 0..100 {
            w.barrier()?;
        }
        let barrier_ms = since.elapsed().as_secs_f64() * 10.0;
        let reports = w.reports()?;
        w.root(|| {
            eprintln!("a barrier: {barrier_ms:.3} ms; of all workers and passes together: {reports:?}")
        });
        Ok(())
    })?;
    Ok(())
}

struct Run {
    /// Of a pass.
    seconds: f64,
    /// Bytes that the first host sent, of all the run, per pass.
    sent: f64,
    /// The same of passes after the first, as the agent counts.
    counted: f64,
    /// Bytes that all hosts send in a pass, by `explain`.
    explained: f64,
}

fn run(cluster: &Cluster, hosts: &str) -> Run {
    let before = sent(cluster).1;
    let said = cluster.run(&["--hosts", hosts, "--timeout", "60"], &in_role("loop"));
    assert_eq!(said.code, 0, "{said:?}");
    if std::env::var_os("HOSTS_DETAILS").is_some() {
        eprintln!("{}", said.err);
    }
    let of = |what: &str| {
        let found = said.out.lines().find_map(|line| line.split_once(what)).expect("a line that says it");
        found.1.parse().expect("bytes")
    };
    let sent = (sent(cluster).1 - before) as f64 / (PASSES + 1) as f64;
    Run { seconds: figure(&said.out), sent, counted: of("counted "), explained: of("said ") }
}

/// The same where each host sends a gigabit a second at most.
pub(crate) fn measure_slow(cluster: &Cluster, mtu: u32) {
    const RATE: u64 = 1_000_000_000;
    let (two, one) = (cluster.list(1), cluster.list(2));
    let one = one.split(',').next().expect("a host").to_owned();
    let (mut apart, mut together, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    crate::planned::limit(cluster, RATE);
    for _ in 0..ROUNDS {
        let said = run(cluster, &two);
        apart.push(said.seconds);
        sent.push(said.counted);
        together.push(run(cluster, &one).seconds);
    }
    let (least_apart, least_together) = (best(&apart), best(&together));
    let (apart, together, sent) = (median(&mut apart), median(&mut together), median(&mut sent));
    let link = (FILMS * RANK * size_of::<f32>()) as f64 * 8.0 / RATE as f64;
    println!(
        "\nthe same, MTU {mtu}, each host sends {} Gbit/s at most: seconds per pass",
        RATE / 1_000_000_000
    );
    println!(
        "  a worker on each of two hosts   median {apart:.4}  best {least_apart:.4}, {sent:.0} bytes sent"
    );
    println!("  two workers on one host         median {together:.4}  best {least_together:.4}");
    println!("  what must cross at that rate           {link:.4}");
    println!("  the longer of the last two over the first: {:.2} (medians)", together.max(link) / apart);
}

pub(crate) fn measure(cluster: &Cluster, mtu: u32) {
    println!(
        "\nmatrix factorization, {RATINGS} ratings, {USERS} by {FILMS}, rank {RANK}, MTU {mtu}: seconds per pass"
    );
    let (two, one) = (cluster.list(1), cluster.list(2));
    let one = one.split(',').next().expect("a host").to_owned();
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    let (mut sent, mut counted, mut explained) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..ROUNDS {
        let said = run(cluster, &two);
        apart.push(said.seconds);
        sent.push(said.sent);
        counted.push(said.counted);
        explained = said.explained / 2.0;
        together.push(run(cluster, &one).seconds);
    }
    println!("  a worker on each of two hosts   median {:.4}  best {:.4}", median(&mut apart), best(&apart));
    println!(
        "  two workers on one host         median {:.4}  best {:.4}",
        median(&mut together),
        best(&together)
    );
    println!("  one host over two: {:.2} (medians)", median(&mut together) / median(&mut apart));
    // Each film's row has to go to the other host and back: half of the rows from each.
    let least = (FILMS * RANK * size_of::<f32>()) as f64;
    println!("  {:.2} of what has to cross is what `explain` says", explained / least);
    for (what, bytes) in [("counted by agents", &mut counted), ("of the whole run, per pass", &mut sent)] {
        let bytes = median(bytes);
        println!("  bytes sent by a host, {what}: {bytes:.0}, {:.2} of what has to cross", bytes / least);
    }
}
