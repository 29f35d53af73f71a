//! The cost of bringing a sparse array into its place: random numbers, balanced cuts, cells, and reading text.
//!
//! `cargo bench -p hectare-data --bench placing [-- --quick] [-- PART_OF_A_CASE]`
//!
//! The column `aim` is what each case should need on one core of a machine of 2024.
use hectare_data::entries::{Entries, Entry};
use hectare_data::grid::Grid;
use hectare_data::random::{Permutation, Stream};
use hectare_data::text::{Share, csv, libsvm, movielens, read_entries, read_rows, whitespace};
use hectare_dependence::cuts::Cuts;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// A rating per entry, as in MovieLens-10M.
const ENTRIES: usize = 10_000_000;
const USERS: usize = 480_000;
const ITEMS: usize = 17_800;

struct Bench {
    repeats: usize,
    filter: Option<String>,
}

impl Bench {
    fn from_args() -> Bench {
        let mut bench = Bench { repeats: 15, filter: None };
        for arg in std::env::args().skip(1) {
            match arg.as_str() {
                "--quick" => bench.repeats = 3,
                "--bench" => {}
                other if other.starts_with("--") => {
                    eprintln!("unknown option {other}; there are --quick and a part of a case's name");
                    std::process::exit(2);
                }
                other => bench.filter = Some(other.to_owned()),
            }
        }
        println!(
            "{:<36} {:>10} {:>10} {:>12} {:<8} {:>12}",
            "case", "median/ms", "best/ms", "speed", "", "aim"
        );
        bench
    }

    /// Times `act` on what `prepare` makes, and prints how many of `unit` it does in a second.
    fn case<A, B>(
        &self,
        (name, aim): (&str, &str),
        (count, unit): (f64, &str),
        mut prepare: impl FnMut() -> A,
        mut act: impl FnMut(A) -> B,
    ) {
        if self.filter.as_ref().is_some_and(|part| !name.contains(part.as_str())) {
            return;
        }
        let mut time = || {
            let input = prepare();
            let start = Instant::now();
            black_box(act(black_box(input)));
            start.elapsed().as_secs_f64()
        };
        time();
        let mut times: Vec<f64> = (0..self.repeats).map(|_| time()).collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let speed = count / median;
        println!(
            "{name:<36} {:>10.2} {:>10.2} {speed:>12.1} {unit:<8} {aim:>12}",
            median * 1e3,
            times[0] * 1e3
        );
    }
}

fn main() {
    let bench = Bench::from_args();
    random(&bench);
    placing(&bench);
    text(&bench);
}

fn random(bench: &Bench) {
    let stream = Stream::new(1, "bench");
    let million = 1 << 20;
    let mut numbers = vec![0.0f32; million];
    let count = (million as f64 / 1e6, "M/s");
    bench.case(
        ("random/uniform f32", ">50 M/s"),
        count,
        || (),
        |()| {
            stream.fill_uniform(&mut numbers, 0, 0.0..1.0);
            numbers[7]
        },
    );
    bench.case(
        ("random/normal f32", ">20 M/s"),
        count,
        || (),
        |()| {
            stream.fill_normal(&mut numbers, 0, 0.1);
            numbers[7]
        },
    );
    let mut numbers = vec![0.0f64; million];
    bench.case(
        ("random/normal f64", ">20 M/s"),
        count,
        || (),
        |()| {
            stream.fill_normal(&mut numbers, 0, 0.1);
            numbers[7]
        },
    );
    bench.case(("random/permutation", "-"), count, || (), |()| Permutation::new(stream, million).table());
}

fn placing(bench: &Bench) {
    let count = (ENTRIES as f64 / 1e6, "M/s");
    for (name, skew) in [("even", 1), ("skewed", 2)] {
        let entries = ratings(skew);
        let parts = [48, 48];
        let stream = Stream::new(1, "sample");
        let case = format!("{name}/histograms and cuts, 48x48");
        bench.case((&case, "<20 ms"), count, || (), |()| entries.balanced_cuts(parts, stream));
        let cuts: [Cuts; 2] = entries.balanced_cuts(parts, stream);
        let case = format!("{name}/placing into 48x48");
        let input = || (entries.clone(), cuts.clone());
        bench.case((&case, "<200 ms"), count, input, |(entries, cuts)| Grid::place(entries, cuts));
        let grid = Grid::place(entries.clone(), cuts);
        let case = format!("{name}/shuffling within cells");
        bench.case(
            (&case, "-"),
            count,
            || grid.clone(),
            |mut grid| {
                grid.shuffle(stream);
                grid
            },
        );
    }
}

/// Ratings in random order; with `skew` above 1, small indices are more frequent.
fn ratings(skew: i32) -> Entries<f32, 2> {
    let stream = Stream::new(1, "ratings");
    let index = |at, extent: usize| (stream.uniform(at).powi(skew) * extent as f64) as u32;
    let entry = |at| Entry { key: [index(2 * at, USERS), index(2 * at + 1, ITEMS)], value: (at % 5) as f32 };
    Entries::from_vec([USERS, ITEMS], (0..ENTRIES as u64).map(entry).collect())
        .expect("keys are below the extents")
}

/// Reads a file and says how many entries it has.
type Reader = fn(&Path) -> usize;

/// Files of a million lines, read from the page cache.
fn text(bench: &Bench) {
    let stream = Stream::new(1, "text");
    let number = |at: u64, below| stream.below(at, below) + 1;
    let line = |pattern: &dyn Fn(u64) -> String| (0..1_000_000).map(pattern).collect::<String>();
    let rating = |at| (number(3 * at, 6040), number(3 * at + 1, 3449), number(3 * at + 2, 5));
    let path = std::env::temp_dir().join(format!("hectare-bench-{}", std::process::id()));
    let files: [(&str, String, Reader); 4] = [
        (
            "text/whitespace f32",
            line(&|at| {
                let (user, item, stars) = rating(at);
                format!("{user} {item} {stars}\n")
            }),
            |path| read_entries(path, Share::ALL, whitespace::<f32, 2>).expect("a good file").len(),
        ),
        (
            "text/movielens",
            line(&|at| {
                let (user, item, stars) = rating(at);
                format!("{user}::{item}::{stars}::97830{at:04}\n")
            }),
            |path| read_entries(path, Share::ALL, movielens).expect("a good file").len(),
        ),
        ("text/csv f64", line(&|at| format!("{at},{:.9}\n", stream.normal(at))), |path| {
            read_entries(path, Share::ALL, csv::<f64, 1>).expect("a good file").len()
        }),
        (
            "text/libsvm",
            line(&|at| {
                format!("{} {}\n", at % 2, (1..15).map(|k| format!("{}:1 ", k * 8)).collect::<String>())
            }),
            |path| read_rows(path, Share::ALL, libsvm).expect("a good file").len(),
        ),
    ];
    for (name, text, read) in files {
        std::fs::write(&path, &text).expect("a place for temporary files");
        bench.case((name, ">100 MB/s"), (text.len() as f64 / 1e6, "MB/s"), || (), |()| read(&path));
    }
    std::fs::remove_file(&path).expect("the file is still there");
}
