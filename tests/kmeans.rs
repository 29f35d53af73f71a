//! The example `kmeans`: first centers, the serial twin, mini-batches under every consistency, files, bad input.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../examples/kmeans/main.rs"]
mod kmeans;

use crate::common::program::{command, refuses};
use clap::Parser;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::Consistency;
use kmeans::{Centers, Instructions, Kernel, LANES, Options, Trained, load, serial, train};
use std::fs;
use std::path::PathBuf;

fn options(more: &[&str]) -> Options {
    let small =
        ["kmeans", "--quiet", "--count", "3000", "--columns", "5", "--clusters", "12", "--passes", "5"];
    Options::parse_from(small.iter().chain(more))
}

fn bits(centers: &Centers) -> Vec<u32> {
    centers.rows().iter().map(|x| x.to_bits()).collect()
}

fn losses(curve: &kmeans::training::Curve) -> Vec<f64> {
    curve.points().map(|point| point.1).collect()
}

fn twin(o: &Options) -> (Centers, Vec<f64>) {
    let (columns, points) = load(o).unwrap();
    let Trained { centers, curve, .. } = serial(o, columns, &points).unwrap();
    (centers, losses(&curve))
}

/// The square of a distance, in doubles.
fn square(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hectare-kmeans-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn first_centers_are_points_that_lie_apart_and_the_same_on_any_number_of_workers() {
    let o = options(&["--passes", "0"]);
    let (centers, _) = twin(&o);
    for workers in [1, 2, 3] {
        let all = hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap();
        assert!(all.iter().all(|found| bits(&found.centers) == bits(&centers)), "{workers} workers");
    }
    let (columns, points) = load(&o).unwrap();
    let mut chosen: Vec<&[f32]> = centers.rows().chunks(columns).collect();
    // They were moved to the middle and back.
    let is_near = |center: &[f32]| points.chunks(columns).any(|point| square(point, center) < 1e-9);
    assert!(chosen.iter().all(|center| is_near(center)));
    chosen.sort_by(|a, b| a.partial_cmp(b).unwrap());
    chosen.dedup();
    assert_eq!(chosen.len(), o.clusters);
    // Centers at random would be in fewer of the planted clusters: those have a standard deviation of 1.
    let (_, spread) = twin(&options(&["--passes", "1"]));
    assert!(spread[0] < 2.0 * columns as f64, "{spread:?}");
}

#[test]
fn every_instruction_set_finds_the_nearest_two_with_the_same_bits() {
    for (columns, clusters) in [(1, 1), (3, 2), (5, 7), (16, 50), (33, 13)] {
        let random = Stream::new(3, "kernel");
        let mut numbers = vec![0.0f32; (clusters + LANES) * columns];
        random.fill_uniform(&mut numbers, 0, -1.0..1.0);
        let (rows, points) = numbers.split_at(clusters * columns);
        let centers = Centers::of(columns, rows);
        let all = Instructions::all().into_iter().map(|i| Kernel::with(i, &centers).nearest(points));
        let all: Vec<_> = all.collect();
        assert!(all.iter().all(|other| *other == all[0]), "{columns} {clusters}: {all:?}");
        for lane in 0..LANES {
            let point: Vec<f32> = points.iter().skip(lane).step_by(LANES).copied().collect();
            let mut squares: Vec<f64> = rows.chunks(columns).map(|center| square(&point, center)).collect();
            let own = squares[all[0].cluster[lane] as usize];
            squares.sort_by(f64::total_cmp);
            assert!(own - squares[0] < 1e-5, "{columns} {clusters} {lane}: {own} {squares:?}");
            let length = square(&point, &vec![0.0; columns]);
            let second = 2.0 * f64::from(all[0].second[lane]) + length;
            assert!(clusters == 1 || (second - squares[1]).abs() < 1e-5, "{second} {squares:?}");
        }
    }
}

#[test]
fn what_bounds_leave_out_changes_no_label() {
    // Far from zero, and with points that lie on each other and between centers.
    let folder = folder("labels");
    let file = folder.join("p.txt");
    let stream = Stream::new(5, "points");
    let number = |at: u64| 1000.0 + stream.below(at, 40) as f64 / 4.0;
    let lines: String = (0..2000)
        .map(|at| format!("{} {} {}\n", number(3 * at), number(3 * at + 1), number(3 * at + 2)))
        .collect();
    fs::write(&file, lines).unwrap();
    for passes in ["0", "1", "2", "7", "40"] {
        let o = options(&["--points", file.to_str().unwrap(), "--clusters", "30", "--passes", passes]);
        let (columns, points) = load(&o).unwrap();
        let trained = serial(&o, columns, &points).unwrap();
        for (point, label) in points.chunks(columns).zip(&trained.labels) {
            let squares = trained.centers.rows().chunks(columns).map(|center| square(point, center));
            let least = squares.clone().fold(f64::INFINITY, f64::min);
            let own = squares.clone().nth(*label as usize).unwrap();
            assert!(own - least < 1e-3, "{passes} passes: {own} {least}");
        }
        let sum: f64 = points
            .chunks(columns)
            .zip(&trained.labels)
            .map(|(point, label)| {
                square(point, &trained.centers.rows()[*label as usize * columns..][..columns])
            })
            .sum();
        if let Some(loss) = losses(&trained.curve).last() {
            assert!((loss / (sum / 2000.0) - 1.0).abs() < 1e-4, "{passes} passes: {loss} {}", sum / 2000.0);
        }
        for workers in [1, 3] {
            let found = hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap().swap_remove(0);
            let differ = found.labels.iter().zip(&trained.labels).filter(|(a, b)| a != b).count();
            assert!(differ <= if workers == 1 { 0 } else { 4 }, "{workers} workers, {passes}: {differ}");
        }
    }
    // It ends when nothing changes any more.
    let o = options(&["--points", file.to_str().unwrap(), "--clusters", "3", "--passes", "1000"]);
    let (_, curve) = twin(&o);
    assert!(curve.len() < 1000, "{}", curve.len());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_baseline_is_a_single_cluster() {
    let o = options(&["--clusters", "1", "--passes", "1"]);
    let (columns, points) = load(&o).unwrap();
    let alone = serial(&o, columns, &points).unwrap().curve;
    let one = losses(&alone)[0];
    let near = |found: f64| (found / one - 1.0).abs() < 1e-5;
    assert!(near(alone.baseline().unwrap()) && alone.warning().is_none(), "{alone:?}");
    for workers in [1, 3] {
        let all = hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap();
        let curve = &all[0].curve;
        assert!(near(curve.baseline().unwrap()) && curve.warning().is_none(), "{workers}: {curve:?}");
    }
}

#[test]
fn passes_give_what_the_serial_twin_gives() {
    let o = options(&[]);
    let (centers, curve) = twin(&o);
    assert!(curve.windows(2).all(|pair| pair[1] <= pair[0]) && curve[4] < curve[0], "{curve:?}");
    for workers in [1, 2, 3, 4] {
        let mut first = Vec::new();
        for found in hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap() {
            if workers == 1 {
                assert_eq!(bits(&found.centers), bits(&centers));
            }
            assert!(first.is_empty() || first == bits(&found.centers));
            first = bits(&found.centers);
            // Sums of doubles in another order.
            for (a, b) in losses(&found.curve).iter().zip(&curve) {
                assert!((a / b - 1.0).abs() < 1e-6, "{workers} workers: {a} {b}");
            }
        }
    }
}

#[test]
fn mini_batches_find_centers_as_good_under_every_consistency() {
    let o = options(&["--batch", "200"]);
    let (_, curve) = twin(&o);
    let (_, lloyd) = twin(&options(&[]));
    assert!(curve[4] < 1.05 * lloyd[4], "{curve:?} {lloyd:?}");
    let kinds = [Consistency::Serializable, Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];
    for consistency in kinds {
        for workers in [1, 3] {
            let all = hectare::run(workers, |w| train(w, &o, consistency)).unwrap();
            let end = losses(&all[0].curve)[4];
            // Fewer points between two changes of the centers may find better ones. Where nobody waits, what a worker that
            // gets no core contributes may come late by a pass.
            let margin = if workers > 1 && consistency == Consistency::Async { 1.5 } else { 1.05 };
            assert!(end < margin * curve[4], "{consistency}, {workers} workers: {end} {curve:?}");
            // All have the same centers, and each point counts once in every pass.
            assert!(all.iter().all(|other| bits(&other.centers) == bits(&all[0].centers)));
            assert_eq!(all[0].centers.points(), (3000 * o.passes) as f64);
        }
    }
}

#[test]
fn points_come_from_files() {
    let folder = std::env::temp_dir().join(format!("hectare-kmeans-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let o = options(&[]);
    let (columns, points) = load(&o).unwrap();
    let line = |point: &[f32], between: &str| {
        point.iter().map(|x| x.to_string()).collect::<Vec<_>>().join(between) + "\n"
    };
    for (name, between) in [("p.txt", " "), ("p.csv", ",")] {
        let text: String = points.chunks(columns).map(|point| line(point, between)).collect();
        fs::write(folder.join(name), text).unwrap();
    }
    hectare::run(2, |w| kmeans::points(w, &o)?.save_npy(w, folder.join("p.npy"))).unwrap();
    for name in ["p.txt", "p.csv", "p.npy"] {
        let path = folder.join(name);
        let from_file = options(&["--points", path.to_str().unwrap()]);
        assert_eq!(load(&from_file).unwrap(), (columns, points.clone()), "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn other_numbers_in_npy_files_are_read_and_models_saved_and_loaded() {
    let folder = folder("files");
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let number = |[i, k]: [usize; 2]| ((i * 7919 + k * 104_729) % 251) as i64;
    hectare::run(2, |w| {
        w.from_fn([300, 4], number)?.save_npy(w, at("i8.npy"))?;
        w.from_fn([300, 4], |index| number(index) as u8)?.save_npy(w, at("u1.npy"))?;
        w.from_fn([300, 4], |index| number(index) as f64)?.save_npy(w, at("f8.npy"))?;
        w.from_fn([300, 4], |index| number(index) as f32)?.save_npy(w, at("f4.npy"))
    })
    .unwrap();
    let expected = load(&options(&["--points", &at("f4.npy")])).unwrap();
    for name in ["i8.npy", "u1.npy", "f8.npy"] {
        assert_eq!(load(&options(&["--points", &at(name)])).unwrap(), expected, "{name}");
    }
    // Twelve passes at once, and five and seven.
    let small = ["--points", &at("i8.npy"), "--clusters", "6"];
    let whole = options(
        &[&small[..], &["--passes", "12", "--save", &at("c.npy"), "--labels", &at("l.npy")]].concat(),
    );
    let five = options(&[&small[..], &["--passes", "5", "--save", &at("five.npy")]].concat());
    let seven =
        ["--points", &at("i8.npy"), "--passes", "7", "--load", &at("five.npy"), "--save", &at("c2.npy")];
    let predict =
        ["--points", &at("i8.npy"), "--passes", "0", "--load", &at("c.npy"), "--labels", &at("l2.npy")];
    let (seven, predict) = (options(&seven), options(&predict));
    for parallel in [true, false] {
        for o in [&whole, &five, &seven, &predict] {
            match parallel {
                true => drop(hectare::run(2, |w| train(w, o, Consistency::Bsp)).unwrap()),
                false => drop(serial(o, expected.0, &expected.1).unwrap()),
            }
        }
        let saved = |name: &str| {
            let name = at(name);
            hectare::run(1, |w| w.npy_file::<f32, 2>(&name)?.to_vec(w)).unwrap().swap_remove(0)
        };
        assert_eq!(saved("c.npy").len(), 24);
        for (a, b) in saved("c.npy").iter().zip(saved("c2.npy")) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
        let labels = |name: &str| {
            let name = at(name);
            hectare::run(1, |w| w.npy_file::<u32, 1>(&name)?.to_vec(w)).unwrap().swap_remove(0)
        };
        assert_eq!(labels("l.npy").len(), 300);
        assert_eq!(labels("l.npy"), labels("l2.npy"));
        fs::remove_file(at("c.npy")).unwrap();
        fs::remove_file(at("l2.npy")).unwrap();
    }
    let (columns, points) = load(&whole).unwrap();
    hectare::run(1, |w| w.from_slice([2, 3], &[1.0f32; 6])?.save_npy(w, at("three.npy"))).unwrap();
    let other = options(&["--points", &at("i8.npy"), "--load", &at("three.npy")]);
    let error = serial(&other, columns, &points).unwrap_err().to_string();
    assert!(error.contains("three.npy: centers of 3 numbers, but the points have 4"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn bad_input_is_one_line_and_a_code() {
    let file = std::env::temp_dir().join(format!("hectare-kmeans-bad-{}.txt", std::process::id()));
    fs::write(&file, "1 2 3\n1 two 3\n").unwrap();
    refuses(
        "kmeans",
        &[
            (&["--points", file.to_str().unwrap()], "two"),
            (&["--points", "/nowhere"], "/nowhere"),
            (&["--clusters", "0"], "--clusters 0"),
            (&["--workers", "0"], "--workers 0"),
            (&["--workers", "1,2"], "only with --all"),
            (&["--consistency", "async"], "has but one"),
            (&["--count", "100", "--batch", "10", "--every", "per-pass:0"], "`every = PerPass(0)`"),
        ],
    );
    for (text, says) in [
        ("1 2\n3 NaN\n", ":2: column 2: expected a finite f32, found \"NaN\""),
        ("1 2\n\n-inf 1\n", ":3: column 1: expected a finite f32, found \"-inf\""),
        ("", ": 0 rows of 0 numbers: no points"),
        ("# nothing\n\n", ": 0 rows of 0 numbers: no points"),
        ("1 2\n3 4\n", ": 2 points are too few for 50 clusters"),
    ] {
        fs::write(&file, text).unwrap();
        let says = format!("{}{says}", file.display());
        for more in [&["--workers", "2"][..], &["--serial"], &["--batch", "1", "--workers", "2"]] {
            refuses("kmeans", &[(&[&["--points", file.to_str().unwrap()], more].concat(), &says)]);
        }
    }
    let npy = file.with_extension("npy");
    for (bad, row, column, says) in
        [(f64::NAN, 2, 1, "NaN"), (f64::NEG_INFINITY, 0, 0, "-inf"), (1e300, 1, 1, "inf")]
    {
        let number = |index| if index == [row, column] { bad } else { 1.0 };
        hectare::run(2, |w| w.from_fn([3, 2], number)?.save_npy(w, &npy)).unwrap();
        let says = format!(
            "{}: row {}, column {} (from 1): {says} is no coordinate",
            npy.display(),
            row + 1,
            column + 1
        );
        refuses("kmeans", &[(&["--points", npy.to_str().unwrap(), "--workers", "2"], &says)]);
    }
    fs::remove_file(&npy).unwrap();
    refuses("kmeans", &[(&["--count", "30"], "--count: 30 points are too few for 50 clusters")]);
    let both = ["--batch", "10", "--labels", "l.npy"];
    refuses("kmeans", &[(&both, "--labels: only with whole passes")]);
    // Squares of their distances do not fit.
    fs::write(&file, "1e30 2\n-1e30 4\n5 6\n").unwrap();
    for more in [&["--workers", "2"][..], &["--serial"], &["--batch", "2", "--workers", "2"]] {
        let args = [&["--points", file.to_str().unwrap(), "--clusters", "2", "--quiet"], more].concat();
        refuses("kmeans", &[(&args, "pass 1: the mean square distance is")]);
    }
    fs::remove_file(&file).unwrap();
}

#[test]
fn one_of_several_processes_without_a_job_says_so() {
    let mut command = command("kmeans");
    command.args(["--quiet", "--count", "100", "--clusters", "2", "--passes", "1"]);
    let output = command.env("RANK", "0").env("WORLD_SIZE", "2").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let note = "note: WORLD_SIZE says that this is one of 2 processes, and each runs alone";
    assert!(output.status.success() && said.starts_with(note), "{said}");
}
