//! The example `kmeans`: first centers, the serial twin, mini-batches under every consistency, files, bad input.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../examples/kmeans/main.rs"]
mod kmeans;

use crate::common::program::refuses;
use clap::Parser;
use hectare::orion::relax::Consistency;
use kmeans::{Centers, Options, load, points, seed, serial, train};
use std::fs;

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
    let (centers, curve) = serial(o, columns, &points).unwrap();
    (centers, losses(&curve))
}

#[test]
fn first_centers_are_points_that_lie_apart_and_the_same_on_any_number_of_workers() {
    let o = options(&["--passes", "0"]);
    let (centers, _) = twin(&o);
    for workers in [1, 2, 3] {
        let all = hectare::run(workers, |w| {
            let points = points(w, &o)?;
            seed(w, &o, &points)
        });
        assert!(all.unwrap().iter().all(|found| bits(found) == bits(&centers)), "{workers} workers");
    }
    let (columns, points) = load(&o).unwrap();
    let mut chosen: Vec<&[f32]> = centers.rows().chunks(columns).collect();
    assert!(chosen.iter().all(|center| points.chunks(columns).any(|point| point == *center)));
    chosen.sort_by(|a, b| a.partial_cmp(b).unwrap());
    chosen.dedup();
    assert_eq!(chosen.len(), o.clusters);
    // Centers at random would be in fewer of the planted clusters: those have a standard deviation of 1.
    let (_, spread) = twin(&options(&["--passes", "1"]));
    assert!(spread[0] < 2.0 * columns as f64, "{spread:?}");
}

#[test]
fn the_baseline_is_a_single_cluster() {
    let o = options(&["--clusters", "1", "--passes", "1"]);
    let (columns, points) = load(&o).unwrap();
    let alone = serial(&o, columns, &points).unwrap().1;
    let one = losses(&alone)[0];
    let near = |found: f64| (found / one - 1.0).abs() < 1e-5;
    assert!(near(alone.baseline().unwrap()) && alone.warning().is_none(), "{alone:?}");
    for workers in [1, 3] {
        let all = hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap();
        let curve = &all[0].1;
        assert!(near(curve.baseline().unwrap()) && curve.warning().is_none(), "{workers}: {curve:?}");
    }
}

#[test]
fn passes_give_what_the_serial_twin_gives() {
    let o = options(&[]);
    let (centers, curve) = twin(&o);
    assert!(curve.windows(2).all(|pair| pair[1] <= pair[0]) && curve[4] < curve[0], "{curve:?}");
    for workers in [1, 2, 3, 4] {
        for (found, their) in hectare::run(workers, |w| train(w, &o, Consistency::Bsp)).unwrap() {
            if workers == 1 {
                assert_eq!(bits(&found), bits(&centers));
            }
            // Sums of doubles in another order.
            for (a, b) in losses(&their).iter().zip(&curve) {
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
            let end = losses(&all[0].1)[4];
            // Fewer points between two changes of the centers may find better ones. Where nobody waits, what a worker that
            // gets no core contributes may come late by a pass.
            let margin = if workers > 1 && consistency == Consistency::Async { 1.5 } else { 1.05 };
            assert!(end < margin * curve[4], "{consistency}, {workers} workers: {end} {curve:?}");
            // All have the same centers, and each point counts once in every pass.
            assert!(all.iter().all(|other| bits(&other.0) == bits(&all[0].0)));
            assert_eq!(all[0].0.points(), (3000 * o.passes) as f64);
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
    // Squares of their distances do not fit.
    fs::write(&file, "1e30 2\n-1e30 4\n5 6\n").unwrap();
    for more in [&["--workers", "2"][..], &["--serial"], &["--batch", "2", "--workers", "2"]] {
        let args = [&["--points", file.to_str().unwrap(), "--clusters", "2", "--quiet"], more].concat();
        refuses("kmeans", &[(&args, "pass 1: the mean square distance is")]);
    }
    fs::remove_file(&file).unwrap();
}
