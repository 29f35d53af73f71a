//! Pictures of schedules: each iteration lies in one rectangle, and the book shows those that are drawn today.
use hectare_orion::schedule::{Verdict, Wavefront};
use hectare_orion::{Context, Explanation, Result, parallel_for, run};
use std::collections::BTreeMap;
use std::path::Path;

/// The loops that the book has a picture of, each with the words by which its schedule is known.
fn all() -> Vec<(&'static str, &'static str, Explanation)> {
    let of = |workers: usize, program: fn(&mut Context<'_>) -> Result<()>| {
        let explained = run(workers, |w| {
            program(w)?;
            Ok(w.explain().remove(0))
        });
        explained.unwrap().remove(0)
    };
    let blocks = of(3, |w| {
        let x = w.range(0..90)?;
        let mut y = w.zeros::<f64, 1>([90])?;
        parallel_for!(w, unordered, read x, write y; for i in 0..90 { y[i] = 2.0 * x[i] as f64; })
    });
    let columns = of(3, |w| {
        let mut a = w.zeros::<f64, 2>([60, 90])?;
        parallel_for!(w, ordered, write a; for i in 1..60 { for j in 0..90 { a[[i, j]] += a[[i - 1, j]]; } })
    });
    let rotation = of(3, |w| {
        let mut u = w.zeros::<f64, 1>([60])?;
        let mut v = w.zeros::<f64, 1>([90])?;
        parallel_for!(w, unordered, write u, write v;
        for i in 0..60 {
            for j in 0..90 {
                u[i] += v[j];
                v[j] += 1.0;
            }
        })
    });
    let rotation_of_three = of(2, |w| {
        let mut u = w.zeros::<f64, 1>([24])?;
        let mut v = w.zeros::<f64, 1>([24])?;
        let mut t = w.zeros::<f64, 1>([24])?;
        parallel_for!(w, unordered, write u, write v, write t;
        for i in 0..24 {
            for j in 0..24 {
                for k in 0..24 {
                    u[i] += v[j] * t[k];
                    v[j] += 1.0;
                    t[k] += 2.0;
                }
            }
        })
    });
    let wavefront = of(3, |w| {
        let mut a = w.zeros::<f64, 2>([10, 42])?;
        let schedule = Wavefront { outer: 0, inner: 1, by_index: true, ahead: 1, blocks: 8 };
        parallel_for!(w, ordered, write a, schedule = schedule;
        for i in 1..10 {
            for j in 1..41 {
                a[[i, j]] = a[[i - 1, j]] + a[[i, j - 1]] + a[[i - 1, j + 1]];
            }
        })
    });
    let serial = of(3, |w| {
        let mut a = w.zeros::<f64, 1>([90])?;
        parallel_for!(w, ordered, write a; for i in 1..90 { a[i] += a[i - 1]; })
    });
    vec![
        ("blocks", "fully parallel, in blocks of i", blocks),
        ("one-dimension", "one dimension, in blocks of j", columns),
        ("rotation", "rotation: ", rotation),
        ("rotation-of-three", "rotation: ", rotation_of_three),
        ("wavefront", "wavefront", wavefront),
        ("serial", "serial", serial),
    ]
}

/// The rectangles of a picture that have a title which begins like this, and the titles.
fn rects(svg: &str) -> Vec<([f64; 4], &str)> {
    let number = |line: &str, name: &str| -> f64 {
        let from = line.find(&format!(" {name}='")).unwrap() + name.len() + 3;
        line[from..].split('\'').next().unwrap().parse().unwrap()
    };
    let titled = svg.lines().filter_map(|line| {
        let title = line.split("<title>").nth(1)?.split("</title>").next()?;
        Some((["x", "y", "width", "height"].map(|name| number(line, name)), title))
    });
    titled.collect()
}

#[test]
fn each_iteration_is_in_one_rectangle() {
    for (name, schedule, explanation) in all() {
        let chosen = explanation.candidates.iter().find(|one| matches!(one.verdict, Verdict::Chosen(_)));
        assert!(chosen.unwrap().name.starts_with(schedule), "{name}: {}", chosen.unwrap().name);
        let svg = explanation.to_svg();
        let tiles = explanation.tiles.iter().flatten().flatten().filter(|tile| !tile.is_empty()).count();
        // Each tile in the chart of steps, and in at least one plane.
        let mut of_title = BTreeMap::<&str, Vec<[f64; 4]>>::new();
        rects(&svg).into_iter().for_each(|(rect, title)| of_title.entry(title).or_default().push(rect));
        assert_eq!(of_title.len(), tiles, "{name}");
        assert!(of_title.values().all(|rects| rects.len() >= 2), "{name}");
        // Those of the planes cover each plane once: as much as it has, and no two meet.
        let mut planes: Vec<[f64; 4]> =
            of_title.values().flat_map(|rects| rects[..rects.len() - 1].iter().copied()).collect();
        planes.sort_by(|a, b| a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])));
        for (at, a) in planes.iter().enumerate() {
            for b in &planes[at + 1..] {
                let apart = |d: usize| a[d] + a[d + 2] <= b[d] + 0.02 || b[d] + b[d + 2] <= a[d] + 0.02;
                assert!(apart(0) || apart(1), "{name}: {a:?} and {b:?}");
            }
        }
        let drawn: f64 = planes.iter().map(|[_, _, width, height]| width * height).sum();
        let frames = svg.lines().filter(|line| line.contains("fill='none'")).count() - explanation.workers;
        let one = if explanation.dims.len() == 1 { 320.0 * 48.0 } else { 320.0 * 320.0 };
        let whole = one * if frames > 1 { 0.25 * frames as f64 } else { 1.0 };
        assert!((drawn / whole - 1.0).abs() < 0.01, "{name}: {drawn} of {whole}");
    }
}

/// `HECTARE_BLESS=1` writes the pictures of the book.
#[test]
fn the_book_shows_the_schedules_of_today() {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/images");
    for (name, _, mut explanation) in all() {
        let file = images.join(format!("schedule-{name}.svg"));
        // Lines of this file change.
        explanation.loop_name = "loop".into();
        let svg = explanation.to_svg();
        if std::env::var_os("HECTARE_BLESS").is_some() {
            std::fs::write(&file, &svg).unwrap();
        }
        let shown = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(shown == svg, "{} is another picture: run this test with HECTARE_BLESS=1", file.display());
    }
}
