//! Checkpoints: what one number of workers saves, another restores bit for bit; everything else is an error on
//! every worker.
mod common;

use common::Scratch;
use hectare_orion::array::{Entry, SparseArray};
use hectare_orion::{Context, DistArray, Error, Result, run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rating {
    stars: f64,
    words: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Progress {
    epoch: usize,
    losses: Vec<f32>,
    rates: BTreeMap<String, f64>,
}

fn progress() -> Progress {
    Progress {
        epoch: 12,
        losses: vec![0.1, 1e-40, f32::INFINITY],
        rates: BTreeMap::from([("u".into(), 0.1 + 0.2)]),
    }
}

/// Floats of all kinds, also some that are no numbers.
fn bits([i, j, k]: [usize; 3]) -> u32 {
    ((i * 31 + j * 7 + k) as u32).wrapping_mul(0x9E37_79B9)
}

const SHAPE: [usize; 3] = [13, 4, 3];

fn dense(w: &mut Context<'_>) -> Result<DistArray<f32, 3>> {
    w.from_fn(SHAPE, |index| f32::from_bits(bits(index)))
}

fn rating(k: usize) -> Rating {
    Rating { stars: k as f64 / 3.0, words: k.is_multiple_of(3).then(|| "so so ".repeat(k % 7)) }
}

fn sparse(w: &mut Context<'_>) -> Result<SparseArray<Rating, 2>> {
    w.entries([3000, 50], 700, |k| ([4 * k, k % 50], rating(k)))
}

fn save(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let (dense, sparse) = (dense(w)?, sparse(w)?);
    let (empty, none) = (w.zeros::<u8, 2>([0, 7])?, w.entries([5], 0, |_| ([0], ()))?);
    w.save_checkpoint(path, |c| {
        c.value("progress", &progress())?;
        c.array("dense", &dense)?;
        c.entries("sparse", &sparse)?;
        c.value("best", &f64::NEG_INFINITY)?;
        c.array("empty", &empty)?;
        c.entries("none", &none)
    })
}

fn check(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let c = w.open_checkpoint(path)?.expect("the file is there");
    assert_eq!(c.value::<Progress>("progress")?, progress());
    assert_eq!(c.value::<f64>("best")?, f64::NEG_INFINITY);
    let dense = c.array::<f32, 3>(w, "dense")?;
    assert_eq!((dense.shape(), dense.name()), (SHAPE, "dense"));
    dense.for_each(w, |index, element| assert_eq!(element.to_bits(), bits(index)))?;
    let sparse = c.entries::<Rating, 2>(w, "sparse")?;
    assert_eq!((sparse.shape(), sparse.len(), sparse.name()), ([3000, 50], 700, "sparse"));
    let expected: Vec<_> =
        (0..700).map(|k| Entry { key: [4 * k as u32, k as u32 % 50], value: rating(k) }).collect();
    assert_eq!(sparse.to_vec(w)?, expected);
    assert_eq!(c.array::<u8, 2>(w, "empty")?.shape(), [0, 7]);
    let none = c.entries::<(), 1>(w, "none")?;
    assert_eq!((none.shape(), none.len()), ([5], 0));
    Ok(())
}

#[test]
fn any_number_of_workers_restores_what_any_number_saved() {
    let scratch = Scratch::new("checkpoints");
    for savers in 1..=3 {
        let path = scratch.0.join(format!("{savers}.ckpt"));
        run(savers, |w| save(w, &path)).unwrap();
        for restorers in 1..=4 {
            run(restorers, |w| check(w, &path)).unwrap();
        }
    }
}

#[test]
fn restored_entries_are_spread_over_the_workers() {
    let scratch = Scratch::new("checkpoint-spread");
    let path = scratch.0.join("state");
    run(1, |w| save(w, &path)).unwrap();
    let shares = run(4, |w| {
        let c = w.open_checkpoint(&path)?.expect("the file is there");
        Ok(c.entries::<Rating, 2>(w, "sparse")?.local().len())
    })
    .unwrap();
    assert_eq!(shares.iter().sum::<usize>(), 700);
    assert!(shares.iter().all(|share| (150..200).contains(share)), "{shares:?}");
}

/// What `restore` fails with: the same on every worker, after which the program goes on.
fn error_of<R>(path: &Path, restore: impl Fn(&mut Context<'_>) -> Result<R> + Sync) -> String {
    let mut first: Option<String> = None;
    for workers in 1..=3 {
        let errors = run(workers, |w| {
            let said = restore(w).err().map_or("no error".into(), |error| error.to_string());
            w.barrier()?;
            Ok(said)
        });
        for error in errors.unwrap() {
            assert!(first.as_ref().is_none_or(|first| *first == error), "{first:?}, then {error}");
            first = Some(error);
        }
    }
    let error = first.unwrap();
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    error
}

#[test]
fn other_programs_checkpoints_are_refused() {
    let scratch = Scratch::new("checkpoint-other");
    let path = scratch.0.join("state");
    run(2, |w| save(w, &path)).unwrap();
    let open = |w: &mut Context<'_>| Ok::<_, Error>(w.open_checkpoint(&path)?.expect("the file is there"));
    for (error, what) in [
        (
            error_of(&path, |w| open(w)?.array::<f32, 3>(w, "weights")),
            "it has no array \"weights\", only [\"dense\", \"empty\"]: is it another program's checkpoint?",
        ),
        (
            error_of(&path, |w| open(w)?.array::<f64, 3>(w, "dense")),
            "array \"dense\" has elements of f32, not of f64",
        ),
        (error_of(&path, |w| open(w)?.array::<u32, 3>(w, "dense")), "has elements of f32, not of u32"),
        (
            error_of(&path, |w| open(w)?.array::<f32, 2>(w, "dense")),
            "array \"dense\" has shape [13, 4, 3], not 2 dimensions",
        ),
        (error_of(&path, |w| open(w)?.array::<f32, 2>(w, "sparse")), "array \"sparse\" is sparse"),
        (error_of(&path, |w| open(w)?.entries::<f32, 3>(w, "dense")), "array \"dense\" is dense"),
        (
            error_of(&path, |w| open(w)?.entries::<f32, 2>(w, "sparse")),
            "has entries of checkpoints::Rating, not of f32",
        ),
        (
            error_of(&path, |w| open(w)?.entries::<Rating, 3>(w, "sparse")),
            "array \"sparse\" has shape [3000, 50], not 3",
        ),
        (error_of(&path, |w| open(w)?.entries::<Rating, 3>(w, "ratings")), "no sparse array \"ratings\""),
        (
            error_of(&path, |w| open(w)?.value::<usize>("step")),
            "no value \"step\", only [\"best\", \"progress\"]",
        ),
        (error_of(&path, |w| open(w)?.value::<usize>("progress")), "value \"progress\": invalid type"),
    ] {
        assert!(error.contains(what), "{error}");
    }
}

/// Whether everything in the checkpoint can be read.
fn read_all(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let c = w.open_checkpoint(path)?.expect("the file is there");
    c.value::<Progress>("progress")?;
    c.value::<f64>("best")?;
    c.array::<f32, 3>(w, "dense")?;
    c.array::<u8, 2>(w, "empty")?;
    c.entries::<Rating, 2>(w, "sparse")?;
    c.entries::<(), 1>(w, "none").map(drop)
}

#[test]
fn a_file_that_was_cut_off_is_refused_wherever_the_cut_is() {
    let scratch = Scratch::new("checkpoint-cut");
    let path = scratch.0.join("state");
    run(2, |w| save(w, &path)).unwrap();
    let whole = fs::read(&path).unwrap();
    let cut = scratch.0.join("cut");
    run(2, |w| {
        for len in (0..whole.len()).step_by(61).chain(whole.len() - 30..whole.len()) {
            if w.rank() == 0 {
                fs::write(&cut, &whole[..len]).unwrap();
            }
            w.barrier()?;
            let error = read_all(w, &cut).unwrap_err().to_string();
            assert!(error.contains("not a checkpoint"), "{len}: {error}");
            w.barrier()?;
        }
        Ok(())
    })
    .unwrap();
    let directory = error_of(&scratch.0, |w| w.open_checkpoint(&scratch.0));
    assert!(directory.contains("not a regular file"), "{directory}");
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    let scratch = Scratch::new("checkpoint-flipped");
    let path = scratch.0.join("state");
    run(2, |w| save(w, &path)).unwrap();
    let whole = fs::read(&path).unwrap();
    let damaged = scratch.0.join("damaged");
    let mut said = std::collections::BTreeSet::new();
    for at in (0..whole.len()).step_by(97).chain(whole.len() - 24..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&damaged, &bytes).unwrap();
        let errors = run(2, |w| {
            let error = read_all(w, &damaged).unwrap_err();
            assert!(matches!(error, Error::Format { .. }), "{error}");
            Ok(error.to_string())
        })
        .unwrap();
        assert_eq!(errors[0], errors[1], "byte {at}");
        said.insert(errors[0].clone());
    }
    let file = damaged.display();
    let expected = [
        format!("{file}: array \"dense\" is damaged: its checksum differs"),
        format!("{file}: array \"sparse\" is damaged: the checksum of a block differs"),
        format!("{file}: its table of contents is damaged: the checksum differs"),
        format!("{file}: not a checkpoint, or one that was cut off"),
    ];
    assert_eq!(said.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn an_old_file_stays_whole_when_saving_fails() {
    let scratch = Scratch::new("checkpoint-failed");
    let path = scratch.0.join("state");
    run(2, |w| save(w, &path)).unwrap();
    let before = fs::read(&path).unwrap();
    for workers in 1..=3 {
        // Errors of all workers, in the closure.
        let said = run(workers, |w| {
            let array = w.zeros::<f32, 1>([100])?;
            let mut said = Vec::new();
            let mut fails = |result: Result<()>| said.push(result.unwrap_err().to_string());
            fails(w.save_checkpoint(&path, |c| {
                c.array("a", &array)?;
                c.array("a", &array)
            }));
            fails(w.save_checkpoint(&path, |c| c.value("map", &BTreeMap::from([((1, 2), 3)]))));
            fails(w.save_checkpoint(&path, |c| {
                c.array("a", &array)?;
                Err(Error::Invalid("changed its mind".into()))
            }));
            // An error that is not passed on does not make a checkpoint without that part.
            fails(w.save_checkpoint(&path, |c| {
                c.value("step", &1)?;
                let _ = c.value("step", &2);
                Ok(())
            }));
            w.barrier()?;
            Ok(said)
        });
        for said in said.unwrap() {
            assert_eq!(said[0], "a checkpoint with two arrays \"a\"");
            assert!(said[1].contains("value \"map\" cannot be stored as JSON"), "{}", said[1]);
            assert_eq!(said[2], "changed its mind");
            assert!(said[3].contains("without a part that failed"), "{}", said[3]);
        }
        // An error of one worker alone: in the closure, and while all encode their entries.
        for failing in 0..workers as u32 {
            let said = run(workers, |w| {
                let entries = w.entries([10], 10, |k| ([k], OnWorker(k)))?;
                let (me, plain) = (w.rank(), w.entries([10], 10, |k| ([k], k))?);
                let alone = w.save_checkpoint(&path, |c| {
                    if me == failing { Err(Error::Invalid("alone".into())) } else { c.entries("e", &plain) }
                });
                w.barrier()?;
                let first = entries.local().first().is_some_and(|entry| entry.value.0 == 0);
                let encoded = w.save_checkpoint(&path, |c| c.entries("e", &entries));
                w.barrier()?;
                let (alone, encoded) = (alone.unwrap_err().to_string(), encoded.unwrap_err());
                assert_eq!(matches!(encoded, Error::PeerFailed { .. }), !first, "{encoded}");
                Ok(alone)
            });
            for (rank, said) in said.unwrap().iter().enumerate() {
                // The others are told that this worker went another way.
                let expected = if rank as u32 == failing { "alone" } else { "programs have diverged" };
                assert!(said.contains(expected), "{said}");
            }
        }
    }
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "a part was left behind");
    // A place where no file can be.
    let nowhere = Path::new("/nowhere/at/all");
    let error = error_of(nowhere, |w| save(w, nowhere));
    assert!(error.contains("No such file"), "{error}");
    assert!(run(2, |w| w.open_checkpoint(nowhere)).unwrap().iter().all(Option::is_none));
}

/// A value of which number 0 cannot be encoded.
#[derive(Debug, Deserialize)]
struct OnWorker(usize);

impl Serialize for OnWorker {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => Err(serde::ser::Error::custom("this one cannot")),
            number => serializer.serialize_u64(number as u64),
        }
    }
}
