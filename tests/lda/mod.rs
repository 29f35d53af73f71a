//! The example `lda`: the serial twin, counts that are conserved, what it learns, bad input.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../../examples/lda/main.rs"]
mod lda;

mod bags;
mod files;
mod going_on;
mod warp;

use crate::common::program::refuses;
use clap::Parser;
use hectare::orion::array::random::Stream;
use hectare::orion::parallel_for;
use hectare::orion::relax::Consistency;
use lda::{Corpus, Instructions, Model, Options, Rounds, Sampler, numbers, padded};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

fn options(more: &[&str]) -> Options {
    let small =
        ["lda", "--documents", "150", "--words", "400", "--length", "60", "--topics", "20", "--quiet"];
    Options::parse_from(small.iter().chain(more))
}

fn gibbs(more: &[&str]) -> Options {
    options(&[&["--sampler", "gibbs"], more].concat())
}

#[test]
fn a_worker_alone_gives_the_bits_of_the_serial_twin_in_its_order() {
    let o = gibbs(&["--passes", "4"]);
    let corpus = Corpus::load(&o).unwrap();
    let order = Mutex::new(Vec::new());
    let models = hectare::run(1, |w| {
        let sampler = lda::sampler(&o, &corpus);
        let mut model = Model::new(w, &o, &corpus, Consistency::Bsp)?;
        // A loop that touches the same, and so visits tokens in the same order.
        let Model { tokens, doc_topic, word_topic, totals, .. } = &mut model;
        let place = Rounds { rounds: o.rounds() };
        parallel_for!(w, unordered, read tokens, write [doc_topic, word_topic], relax totals, schedule = place;
        for ((d, v), token) in tokens {
            let (_, _) = (doc_topic.row_mut(d), word_topic.row_mut(v));
            totals.add([0, 0], 0);
            order.lock().unwrap().push(token.number as usize);
        })?;
        let mut models = Vec::new();
        for pass in 0..o.passes() {
            model.pass(w, &sampler, numbers(&o, pass))?;
            let totals = model.totals.to_vec(w)?;
            models.push((model.doc_topic.to_vec(w)?, model.word_topic.to_vec(w)?, totals));
        }
        Ok(models)
    });
    let (order, mut twin) = (order.into_inner().unwrap(), Vec::new());
    assert_ne!(order, (0..corpus.train.len()).collect::<Vec<_>>(), "the loop has an order of its own");
    lda::serial(&o, &corpus, &order, &mut |model| {
        twin.push((model.doc_topic.clone(), model.word_topic.clone(), model.totals.clone()));
    })
    .unwrap();
    assert_eq!(models.unwrap()[0], twin);
}

#[test]
fn counts_are_conserved_on_any_number_of_workers() {
    let o = gibbs(&["--passes", "3"]);
    let corpus = Corpus::load(&o).unwrap();
    let width = padded(o.topics);
    let kinds = lda::KINDS.into_iter().cycle();
    for (workers, kind) in [1, 2, 3, 4, 7, 2, 4, 2, 3, 4].into_iter().zip(kinds) {
        let shares = Mutex::new(vec![Vec::<i32>::new(); workers]);
        hectare::run(workers, |w| {
            let mut model = Model::new(w, &o, &corpus, kind)?;
            for pass in 0..=o.passes() {
                let mut all = Vec::new();
                model.tokens.for_each_local(|[d, v], token| {
                    all.push([d, v, token.topic.load(Relaxed).into()]);
                });
                let mut own = vec![0; (corpus.documents + corpus.words.len()) * width];
                for [d, v, topic] in all {
                    own[d * width + topic] += 1;
                    own[(corpus.documents + v) * width + topic] += 1;
                }
                let mut counted = model.doc_topic.to_vec(w)?;
                counted.extend(model.word_topic.to_vec(w)?);
                shares.lock().unwrap()[w.rank() as usize] = own;
                w.barrier()?;
                let shares = shares.lock().unwrap();
                let sum = |at: usize| shares.iter().map(|own| own[at]).sum::<i32>();
                assert!(
                    (0..counted.len()).all(|at| counted[at] == sum(at)),
                    "pass {pass}, {workers} workers"
                );
                drop(shares);
                w.barrier()?;
                let doc_topic = model.doc_topic.to_vec(w)?;
                assert_eq!(doc_topic.iter().sum::<i32>() as usize, corpus.train.len());
                assert_eq!(model.word_topic.to_vec(w)?.iter().sum::<i32>() as usize, corpus.train.len());
                let totals = model.totals.to_vec(w)?;
                for (topic, total) in totals.iter().enumerate() {
                    let count: i32 = doc_topic.iter().skip(topic).step_by(width).sum();
                    assert_eq!(*total, count, "pass {pass}, {workers} workers, topic {topic}");
                    assert!(topic < o.topics || count == 0);
                }
                model.pass(w, &lda::sampler(&o, &corpus), numbers(&o, pass))?;
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn perplexity_falls_and_hardly_depends_on_the_number_of_workers() {
    let o = gibbs(&["--passes", "40", "--documents", "400"]);
    let corpus = Corpus::load(&o).unwrap();
    let order: Vec<usize> = (0..corpus.train.len()).collect();
    let mut curves = vec![lda::serial(&o, &corpus, &order, &mut |_| ()).unwrap()];
    for workers in [1, 2, 4] {
        curves.push({
            let all = hectare::run(workers, |w| lda::train(w, &o, &corpus, Consistency::Bsp));
            all.unwrap().swap_remove(0)
        });
    }
    let ends: Vec<[f64; 2]> = curves
        .iter()
        .map(|curve| {
            let values: Vec<f64> = curve.points().map(|point| point.1).collect();
            // A single state of so small a chain fluctuates: the mean of its last ones.
            [values[0], values[30..].iter().sum::<f64>() / 10.0]
        })
        .collect();
    for [first, last] in &ends {
        assert!(*last < 0.8 * first, "{ends:?}");
        assert!((last / ends[0][1] - 1.0).abs() < 0.04, "{ends:?}");
    }
}

#[test]
fn all_instructions_draw_the_same_topics_with_the_right_frequencies() {
    for topics in [1, 7, 16, 100, 130, 600] {
        let numbers = Stream::new(3, "counts");
        let row = |seed: u64| -> Vec<i32> {
            let counts = (0..topics as u64).map(|k| numbers.child(seed).below(k, 9) as i32 + 1);
            counts.chain(std::iter::repeat(0)).take(padded(topics)).collect()
        };
        let (doc, word, totals) = (row(1), row(2), row(3).iter().map(|n| 20 * n).collect::<Vec<_>>());
        let old = topics / 2;
        let weights: Vec<f64> = (0..topics)
            .map(|k| {
                let count = |row: &[i32]| f64::from(row[k] - i32::from(k == old));
                (count(&doc) + 0.1) * (count(&word) + 0.01) / (count(&totals) + 0.01 * 500.0)
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        let sampler = Sampler::new(topics, 500, 0.1, 0.01);
        let samplers = Instructions::all().into_iter().map(|it| sampler.clone().with(it));
        let draws = 40_000;
        let drawn: Vec<Vec<usize>> = samplers
            .map(|sampler| {
                let draw = |k| {
                    let (mut doc, mut word) = (doc.clone(), word.clone());
                    let new = sampler.draw(&mut doc, &mut word, &totals, old, numbers.bits(k));
                    assert_eq!(doc[new], row(1)[new] + i32::from(new != old));
                    new
                };
                (0..draws).map(draw).collect()
            })
            .collect();
        assert!(drawn.iter().all(|other| *other == drawn[0]), "{topics} topics");
        for (k, weight) in weights.iter().enumerate() {
            let expected = draws as f64 * weight / sum;
            let found = drawn[0].iter().filter(|topic| **topic == k).count() as f64;
            assert!(
                (found - expected).abs() < 5.0 * expected.sqrt() + 5.0,
                "{topics}, {k}: {found}, {expected}"
            );
        }
    }
}

#[test]
fn text_is_split_into_documents_and_words() {
    let folder = std::env::temp_dir().join(format!("hectare-lda-{}", std::process::id()));
    fs::create_dir_all(folder.join("b")).unwrap();
    let paragraph = "Apple pear APPLE plum it's pear apple; pear plum apple pear.";
    fs::write(folder.join("a.txt"), format!("{paragraph}\n{paragraph}\n \nrare apple {paragraph}\n"))
        .unwrap();
    fs::write(folder.join("b/c.txt"), paragraph).unwrap();
    let file = folder.join("a.txt");
    let load = |path: &Path, more: &[&str]| {
        let from = ["--min-count", "2", "--skip-top", "0", "--text", path.to_str().unwrap()];
        Corpus::load(&options(&[&from, more].concat())).unwrap()
    };
    let (one, lines, all) = (load(&file, &[]), load(&file, &["--lines"]), load(&folder, &[]));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(one.words, ["apple", "pear", "plum"]);
    // Ten known words a paragraph, of which the last is held out.
    assert_eq!((one.documents, one.train.len(), one.held_out.len()), (2, 28, 3));
    // The empty line is a document, so that numbers are those of lines.
    assert_eq!((lines.documents, lines.train.len(), lines.held_out.len()), (4, 28, 3));
    assert_eq!((all.documents, all.train.len() + all.held_out.len()), (2, 41));
}

#[test]
fn bad_input_is_one_line_and_a_code() {
    let file = std::env::temp_dir().join(format!("hectare-lda-empty-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    refuses(
        "lda",
        &[
            (&["--text", path], "the file is empty"),
            (&["--text", "/nowhere"], "cannot read /nowhere"),
            (&["--topics", "0"], "--topics 0: 1 to"),
            (&["--workers", "0"], "--workers 0"),
            (&["--length", "0"], "no words are left"),
            (&["--alpha", "nan"], "above 0"),
            (&["--consistency", "async", "--sampler", "gibbs"], "async may lose counts"),
            (&["--consistency", "bsp"], "`lda` with --sampler gibbs"),
            (&["--rounds", "2"], "--rounds: only with --sampler gibbs"),
            (&["--every", "per-pass:2"], "--every: only with --sampler gibbs"),
            (&["--documents", "20", "--beta", "1e38", "--serial"], "pass 1: the held-out perplexity is"),
            (&["--documents", "20", "--beta", "1e38", "--workers", "2"], "--alpha and --beta are too large"),
        ],
    );
    fs::remove_file(&file).unwrap();
}
