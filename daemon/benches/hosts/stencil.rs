//! Sweeps of a stencil over two arrays that are swapped after each: on two hosts, and as two processes of one.
use super::{Cluster, best, figure, in_role, median};
use hectare_orion::{Result, parallel_for};
use std::time::Instant;

/// Rows and columns of the grid, of 8 bytes each.
const SIDE: usize = 2048;
const SWEEPS: usize = 40;
const WARM: usize = 8;
const ROUNDS: usize = 3;

/// Seconds per sweep, after the first ones: over two arrays, or over one whose odd rows follow from the even ones and these from those.
pub(crate) fn play(kind: &str) -> Result<()> {
    hectare_orion::run(1, |w| {
        let heat = |[i, j]: [usize; 2]| ((i * 31 + j * 17) % 101) as f64;
        let (mut a, mut b) = (w.from_fn([SIDE, SIDE], heat)?, w.from_fn([SIDE, SIDE], heat)?);
        let mut since = Instant::now();
        for sweep in 0..SWEEPS + WARM {
            if sweep == WARM {
                since = Instant::now();
            }
            if kind == "two" {
                parallel_for!(w, unordered, read a, write b;
                for i in 1..SIDE - 1 {
                    let (above, row, below) = (a.row(i - 1), a.row(i), a.row(i + 1));
                    let out = b.row_mut(i);
                    for j in 1..SIDE - 1 {
                        out[j] = 0.25 * (above[j] + below[j] + row[j - 1] + row[j + 1]);
                    }
                })?;
                std::mem::swap(&mut a, &mut b);
                continue;
            }
            for odd in [1, 0] {
                parallel_for!(w, unordered, write a;
                for i in 1..SIDE / 2 - 1 {
                    for j in 1..SIDE - 1 {
                        a[[2 * i + odd, j]] = 0.25
                            * (a[[2 * i + odd - 1, j]] + a[[2 * i + odd + 1, j]])
                            + 0.25 * (a[[2 * i + odd - 1, j - 1]] + a[[2 * i + odd + 1, j + 1]]);
                    }
                })?;
            }
        }
        let seconds = since.elapsed().as_secs_f64() / SWEEPS as f64;
        w.root(|| {
            println!("figure {seconds}");
            let said = w.explain().iter().filter_map(|one| one.between_hosts.clone()).collect::<Vec<_>>();
            let sent = said.iter().flat_map(|said| &said.links).filter(|link| link.from == 0);
            println!(
                "counted {}",
                sent.filter_map(|link| link.measured).sum::<f64>() / said.len().max(1) as f64
            );
            eprintln!("{}", w.explain());
        });
        let reports = w.reports()?;
        w.root(|| eprintln!("of all workers and sweeps together: {reports:?}"));
        Ok(())
    })?;
    Ok(())
}

fn run(cluster: &Cluster, hosts: &str, kind: &str) -> (f64, f64) {
    let said = cluster.run(&["--hosts", hosts, "--timeout", "60"], &in_role(&format!("stencil {kind}")));
    assert_eq!(said.code, 0, "{said:?}");
    if std::env::var_os("HOSTS_DETAILS").is_some() {
        eprintln!("{}", said.err);
    }
    let counted = said.out.lines().find_map(|line| line.split_once("counted ")).expect("a line that says it");
    (figure(&said.out), counted.1.parse().expect("bytes"))
}

pub(crate) fn measure(cluster: &Cluster, mtu: u32) {
    println!("\na stencil over {SIDE} x {SIDE} numbers of 8 bytes, MTU {mtu}: seconds per sweep");
    measure_kind(cluster, "two", "two arrays");
    measure_kind(cluster, "one", "one array, odd rows and even rows in turn");
}

fn measure_kind(cluster: &Cluster, kind: &str, what: &str) {
    println!("  {what}");
    let (two, one) = (cluster.list(1), cluster.list(2));
    let one = one.split(',').next().expect("a host").to_owned();
    let (mut apart, mut together, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (seconds, bytes) = run(cluster, &two, kind);
        apart.push(seconds);
        counted.push(bytes);
        together.push(run(cluster, &one, kind).0);
    }
    let of = |what: &str, times: &mut Vec<f64>| {
        println!("    {what:<31} median {:.5}  best {:.5}", median(times), best(times));
    };
    of("a worker on each of two hosts", &mut apart);
    of("two workers on one host", &mut together);
    println!("    one host over two: {:.2} (medians)", median(&mut together) / median(&mut apart));
    let least = SIDE * size_of::<f64>();
    let bytes = median(&mut counted);
    println!(
        "    bytes sent by a host in a loop: {bytes:.0}, {:.2} of the row that has to cross",
        bytes / least as f64
    );
}
