//! A model on its way, in a file: from it, a run that was cut short goes on and ends with the same bits.

use super::model::Model;
use super::whole_file;
use anyhow::{Context, Result, bail, ensure};
use fnv::FnvHasher;
use std::fs;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::path::Path;

/// The header of the file, before its epochs: a model of another shape or seed is not gone on with.
fn title(model: &Model<f32>, seed: u64) -> String {
    let (layout, rows) = (model.layout(), [model.users.rows(), model.items.rows()]);
    let [users, items] = rows;
    let step = layout.step.name();
    format!(
        "matrix_completion: rank {} step {step} seed {seed} users {users} items {items} epochs ",
        layout.rank
    )
}

/// The checksum of the bytes of a file: FNV-1a (Fowler, Noll and Vo, 1991), 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = FnvHasher::default();
    hash.write(bytes);
    hash.finish()
}

/// Writes the model after `epochs` epochs. A file that was there stays whole until the new one is complete.
///
/// # Errors
/// When the file cannot be written.
pub fn save(path: &Path, model: &Model<f32>, seed: u64, epochs: usize) -> Result<()> {
    let mut bytes = format!("{}{epochs}\n", title(model, seed)).into_bytes();
    for value in model.users.as_slice().iter().chain(model.items.as_slice()) {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(checksum(&bytes).to_le_bytes());
    whole_file::write(path, &bytes)
        .with_context(|| format!("checkpoint {} cannot be written", path.display()))
}

/// Reads a model back; how many epochs it has learnt, 0 if there is no file.
///
/// # Errors
/// When the file cannot be read, is damaged, or is of a run with another model.
pub fn load(path: &Path, model: &mut Model<f32>, seed: u64) -> Result<usize> {
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
    let title = title(model, seed);
    let epochs = head.strip_prefix(title.as_str());
    let epochs =
        epochs.with_context(|| format!("checkpoint {} is of another run: {head}", path.display()))?;
    let (users, items) = (model.users.as_mut_slice(), model.items.as_mut_slice());
    let values = data.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value));
    ensure!(data.len() == 4 * (users.len() + items.len()), "{}", damaged());
    users.iter_mut().chain(items).zip(values).for_each(|(place, value)| *place = value);
    epochs.parse().with_context(damaged)
}
