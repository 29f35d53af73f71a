//! A model on its way, in a file: from it, a run that was cut short goes on and ends with the same bits.

use super::data::{DataSet, Rating};
use super::model::Model;
use super::new_file;
use anyhow::{Context, Result, bail, ensure};
use fnv::FnvHasher;
use std::fs;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::path::Path;

/// How a file begins.
const PROGRAM: &str = "matrix_completion: ";

/// The header of the file, before its epochs, as pairs of words: a model of another shape, seed or data is not gone on with.
pub fn title(model: &Model<f32>, seed: u64, data: &DataSet) -> String {
    let (layout, users, items) = (model.layout(), model.users.rows(), model.items.rows());
    let mut hash = FnvHasher::default();
    hash.write_u64(data.mean.to_bits());
    for Rating { user, item, value } in &data.train {
        [*user, *item, value.to_bits()].iter().for_each(|word| hash.write_u32(*word));
    }
    format!(
        "{PROGRAM}rank {} step {} seed {seed} users {users} items {items} ratings {} hash {:016x} epochs ",
        layout.rank,
        layout.step.name(),
        data.train.len(),
        hash.finish()
    )
}

/// The difference between a header and the title that is wanted.
fn difference(head: &str, title: &str) -> String {
    let pairs = |text: &str| -> Vec<[String; 2]> {
        let words: Vec<&str> = text.trim_start_matches(PROGRAM).split_whitespace().collect();
        words.as_chunks().0.iter().map(|pair: &[&str; 2]| pair.map(str::to_owned)).collect()
    };
    let (there, here) = (pairs(head), pairs(title));
    match there.iter().zip(&here).find(|(there, here)| there != here) {
        Some(([what, _], [wanted, _])) if what == "hash" && wanted == "hash" => {
            "has other ratings, or another split of them".into()
        }
        Some(([what, there], [wanted, here])) if what == wanted => {
            format!("has {what} {there}, and this run has {what} {here}")
        }
        _ => format!("is of another version of this program: {head}"),
    }
}

/// The checksum of the bytes of a file: FNV-1a (Fowler, Noll and Vo, 1991), 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = FnvHasher::default();
    hash.write(bytes);
    hash.finish()
}

/// Writes the model after `epochs` epochs, under its [`title`]. A file that was there stays whole until the new one is complete.
///
/// # Errors
/// When the file cannot be written.
pub fn save(path: &Path, model: &Model<f32>, title: &str, epochs: usize) -> Result<()> {
    let mut bytes = format!("{title}{epochs}\n").into_bytes();
    for value in model.users.as_slice().iter().chain(model.items.as_slice()) {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(checksum(&bytes).to_le_bytes());
    new_file::write(path, &bytes).with_context(|| format!("checkpoint {} cannot be written", path.display()))
}

/// Reads a model back; how many epochs it has learnt, 0 if there is no file.
///
/// # Errors
/// When the file cannot be read, is damaged, or is of a run with another model.
pub fn load(path: &Path, model: &mut Model<f32>, title: &str) -> Result<usize> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => bail!("checkpoint {} cannot be read: {error}", path.display()),
    };
    let damaged = || format!("{} is no whole checkpoint of this program", path.display());
    let (bytes, sum) = bytes.split_last_chunk().with_context(damaged)?;
    ensure!(checksum(bytes) == u64::from_le_bytes(*sum), "{}", damaged());
    let line = bytes.iter().position(|byte| *byte == b'\n').with_context(damaged)?;
    let (head, data) = (String::from_utf8_lossy(&bytes[..line]), &bytes[line + 1..]);
    let epochs = head.strip_prefix(title).with_context(|| {
        let (path, difference) = (path.display(), difference(&head, title));
        format!(
            "checkpoint {path} is of another run, which {difference}: run with the same, or name another file"
        )
    })?;
    let (users, items) = (model.users.as_mut_slice(), model.items.as_mut_slice());
    let values = data.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value));
    ensure!(data.len() == 4 * (users.len() + items.len()), "{}", damaged());
    users.iter_mut().chain(items).zip(values).for_each(|(place, value)| *place = value);
    epochs.parse().with_context(damaged)
}
