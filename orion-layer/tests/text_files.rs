//! Sparse arrays from text files: the same on any number of workers, and the same error on every worker.
use crate::common;

use common::Scratch;
use hectare_orion::array::text::{LabelledRow, csv, libsvm, libsvm_from, movielens, tsv, whitespace};
use hectare_orion::array::{Entry, SparseArray};
use hectare_orion::{Context, Error, Result, run};
use hectare_testing::skip;
use std::fs;
use std::path::Path;

/// The result of every worker, which must be the same.
fn same<R: Send + PartialEq + std::fmt::Debug>(
    workers: usize,
    program: impl Fn(&mut Context<'_>) -> Result<R> + Sync,
) -> R {
    let mut all = run(workers, program).unwrap();
    let first = all.swap_remove(0);
    all.iter().for_each(|other| assert_eq!(*other, first, "on {workers} workers"));
    first
}

fn error_of<R>(result: Result<R>) -> Result<String> {
    Ok(result.err().map_or("no error".into(), |error| error.to_string()))
}

#[test]
fn every_line_becomes_one_entry_on_any_number_of_workers() {
    let scratch = Scratch::new("lines");
    let text: String = (0..997).map(|k| format!("{} {} {}\n", k * 7 % 500, k * 13 % 300, k)).collect();
    let path = scratch.file("ratings", &text);
    let expected: Vec<Entry<f32, 2>> = {
        let entry = |k: u32| Entry { key: [k * 7 % 500, k * 13 % 300], value: k as f32 };
        let mut list: Vec<_> = (0..997).map(entry).collect();
        list.sort_by_key(|entry| entry.key);
        list
    };
    for workers in 1..=4 {
        let found = same(workers, |w| {
            let ratings = w.text_file(&path, whitespace::<f32, 2>)?;
            assert_eq!((ratings.len(), ratings.shape()), (997, [500, 300]));
            assert_eq!(ratings.histogram(1).total(), 997);
            ratings.to_vec(w)
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn ready_parsers_are_used_as_they_are() {
    let scratch = Scratch::new("formats");
    let ml = scratch.file("ml", "1::1193::5::978300760\n6040::14::4::978301968\n");
    let commas = scratch.file("csv", "user,item,rating\n0,1,2\n3,4,5\n");
    let tabs = scratch.file("tsv", "0\tan apple\n7\ta pear\n");
    let rows = scratch.file("libsvm", "# two classes\n+1 1:0.5 3:1\n\n-1 2:2\n-1\n");
    for workers in [1, 2, 3] {
        same(workers, |w| {
            let shape = w.text_file(&ml, movielens)?.shape();
            assert_eq!(shape, [6040, 1193]);
            let table: SparseArray<i64, 2> = w.text_file(&commas, csv)?;
            assert_eq!((table.len(), table.shape()), (2, [4, 5]));
            let words: SparseArray<String, 1> = w.text_file(&tabs, tsv)?;
            let words: Vec<String> = words.to_vec(w)?.into_iter().map(|entry| entry.value).collect();
            assert_eq!(words, ["an apple", "a pear"]);
            let examples = w.text_rows(&rows, libsvm)?.to_vec(w)?;
            assert_eq!(examples.iter().map(|row| row.key).collect::<Vec<_>>(), [[0], [1], [2]]);
            assert_eq!(examples[0].value, LabelledRow { label: 1.0, features: vec![(0, 0.5), (2, 1.0)] });
            assert_eq!(examples[2].value, LabelledRow { label: -1.0, features: vec![] });
            let from_0 = w.text_rows(&rows, libsvm_from(0))?.to_vec(w)?;
            assert_eq!(from_0[1].value.features, [(2, 2.0)]);
            Ok(())
        });
    }
}

#[test]
fn a_bad_line_is_the_same_error_on_every_worker() {
    let scratch = Scratch::new("bad-lines");
    let mut lines: Vec<String> = (0..400).map(|k| format!("{k} {k} 1.5")).collect();
    lines[123] = "123 123 much".into();
    lines[399] = "-1 0 1".into();
    let path = scratch.file("ratings", &(lines.join("\n") + "\n"));
    let rows = scratch.file("rows", "+1 1:1\n-1 2:x\n");
    for workers in 1..=4 {
        // The first of two bad lines, wherever they are parsed.
        let error = same(workers, |w| error_of(w.text_file(&path, whitespace::<f32, 2>)));
        assert_eq!(error, format!("{}:124: expected a number, found \"much\"", path.display()));
        let error = same(workers, |w| error_of(w.text_rows(&rows, libsvm)));
        assert_eq!(error, format!("{}:2: expected a number, found \"x\"", rows.display()));
        let kinds = run(workers, |w| {
            let result = w.text_file(&path, |_, _| Err::<Option<([usize; 1], u8)>, _>("no good".into()));
            // The program goes on after the error.
            w.barrier()?;
            Ok(matches!(result, Err(Error::Parse { line: 1, .. })))
        });
        assert!(kinds.unwrap().into_iter().all(|parse| parse));
    }
}

#[test]
fn a_given_shape_holds_all_keys_or_names_the_line() {
    let scratch = Scratch::new("shape");
    let path = scratch.file("ratings", "0 0 1\n2 3 1\n1 1 1\n");
    for workers in 1..=3 {
        same(workers, |w| {
            let ratings = w.text_file_with_shape(&path, [10, 20], whitespace::<f32, 2>)?;
            assert_eq!(ratings.shape(), [10, 20]);
            Ok(())
        });
        let error = same(workers, |w| error_of(w.text_file_with_shape(&path, [10, 3], whitespace::<f32, 2>)));
        assert_eq!(
            error,
            format!("{}:2: the entry at [2, 3] lies outside the shape [10, 3]", path.display())
        );
        let error =
            same(workers, |w| error_of(w.text_file_with_shape(&path, [1 << 33, 4], whitespace::<f32, 2>)));
        assert!(error.contains("dimension 0 would have extent 8589934592"), "{error}");
    }
}

#[test]
fn files_that_are_not_there_or_not_text() {
    let scratch = Scratch::new("no-text");
    let binary = scratch.0.join("binary");
    fs::write(&binary, [b"0 0 1\n0 1 ".as_slice(), &[0xff, 0xfe], b"\n"].concat()).unwrap();
    let empty = scratch.file("empty", "");
    for workers in [1, 3] {
        let missing = same(workers, |w| error_of(w.text_file("/nowhere/at/all", movielens)));
        assert_eq!(missing, "/nowhere/at/all: No such file or directory (os error 2)");
        let directory = same(workers, |w| error_of(w.text_file(&scratch.0, movielens)));
        assert_eq!(directory, format!("{}: not a regular file", scratch.0.display()));
        let not_text = same(workers, |w| error_of(w.text_file(&binary, whitespace::<f32, 2>)));
        assert!(not_text.ends_with(":2: byte 5 of this line is not UTF-8"), "{not_text}");
        let nothing = same(workers, |w| {
            let nothing = w.text_file(&empty, whitespace::<f32, 2>)?;
            assert!(nothing.to_vec(w)?.is_empty());
            Ok((nothing.shape(), nothing.len()))
        });
        assert_eq!(nothing, ([0, 0], 0));
    }
}

#[test]
fn nobody_waits_for_a_worker_whose_parser_panics_or_that_does_not_come() {
    let scratch = Scratch::new("gone");
    let path = scratch.file("ratings", &"0 0 1\n".repeat(100));
    for workers in 2..=3 {
        let panicked = run(workers, |w| {
            let me = w.rank();
            let ratings = w.text_file(&path, |line, at| match me {
                1 => panic!("the parser of worker 1"),
                _ => whitespace::<f32, 2>(line, at),
            });
            ratings.map(drop)
        });
        assert!(panicked.unwrap_err().to_string().contains("the parser of worker 1"));
        let gone = run(workers, |w| match w.rank() {
            1 => Ok(None),
            _ => Ok(Some(w.text_file(&path, whitespace::<f32, 2>).unwrap_err())),
        });
        for (rank, error) in gone.unwrap().into_iter().enumerate() {
            assert_eq!(rank == 1, error.is_none());
            assert!(error.is_none_or(|error| matches!(error, Error::Diverged { there_rank: 1, .. })));
        }
    }
}

/// MovieLens-1M and a9a, where they are (they are not part of the project).
#[test]
fn real_files() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !data.join("ml1m.train.txt").exists() || !data.join("a9a").exists() {
        return skip("shared data", data.display());
    }
    for workers in [1, 2, 3] {
        same(workers, |w| {
            let train = w.text_file(data.join("ml1m.train.txt"), whitespace::<f32, 2>)?;
            assert_eq!((train.len(), train.shape()), (899_742, [6040, 3449]));
            let shape = train.shape();
            let test = w.text_file_with_shape(data.join("ml1m.test.txt"), shape, whitespace::<f32, 2>)?;
            assert_eq!((test.len(), test.shape()), (99_972, shape));
            let rows = w.text_rows(data.join("a9a"), libsvm)?;
            assert_eq!(rows.shape(), [32_560]);
            let sum: f64 = rows.local().iter().map(|row| row.value.features.len() as f64).sum();
            // 13.87 of the 123 features are set in a row, on average.
            let mean = w.all_reduce(sum, |a, b| a + b)? / 32_560.0;
            assert!((13.8..13.95).contains(&mean), "{mean}");
            Ok(())
        });
    }
}
