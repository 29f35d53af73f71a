//! Checkpoints that are damaged or cannot be written: an error on every worker, and the old file stays whole.
use crate::common;
use crate::common::state;

use common::Scratch;
use hectare_orion::collections::Last;
use hectare_orion::{Context, Error, Result, run};
use serde::{Deserialize, Serialize};
use state::{Progress, Rating, error_of, save};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Whether everything in the checkpoint can be read.
fn read_all(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let c = w.open_checkpoint(path)?.expect("the file is there");
    c.value::<Progress>("progress")?;
    c.value::<f64>("best")?;
    c.array::<f32, 3>(w, "dense")?;
    c.array::<u8, 2>(w, "empty")?;
    c.entries::<Rating, 2>(w, "sparse")?;
    c.map::<String, Rating, _>(w, "map", Last)?.delete(w)?;
    c.vector::<f32>(w, "list")?.delete(w)?;
    c.map::<u8, u8, _>(w, "nobody", Last)?.delete(w)?;
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
    for at in (0..whole.len()).step_by(199).chain(whole.len() - 24..whole.len()) {
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
        format!("{file}: map \"map\" is damaged: the checksum of a block differs"),
        format!("{file}: vector \"list\" is damaged: the checksum of a block differs"),
        format!("{file}: its table of contents is damaged: the checksum differs"),
        format!("{file}: not a checkpoint, or a truncated one"),
    ];
    assert_eq!(said, expected.into());
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

/// A pipe opens only when somebody writes into it: nobody waits for that.
#[test]
fn a_pipe_is_no_file_to_be_read() {
    let scratch = Scratch::new("checkpoint-pipe");
    let pipe = scratch.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = error_of(&pipe, |w| w.open_checkpoint(&pipe));
    assert!(said.contains("not a regular file"), "{said}");
    let said = run(2, |w| w.npy_file::<f32, 1>(&pipe).map(drop)).unwrap_err().to_string();
    assert!(said.contains("not a regular file"), "{said}");
    let parser = hectare_orion::array::text::movielens;
    let said = run(2, |w| w.text_file(&pipe, parser).map(drop)).unwrap_err().to_string();
    assert!(said.contains("not a regular file"), "{said}");
}
