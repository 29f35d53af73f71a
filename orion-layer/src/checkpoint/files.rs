//! The files of a checkpoint: one on one host; on several, one of each host, of which that of worker 0 has the table of contents.
//!
//! `model.ckpt` has the table, and what the workers of worker 0's host held. `model.ckpt.ID.1` and so on have what those of the
//! other hosts held. The number of the save in their names keeps the files of the last save whole until all of the next one are
//! there and `model.ckpt` names them.
use crate::error::{Error, Result};
use crate::file;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The last bytes of a file beside the first: what it is.
const MARK: &[u8; 8] = b"HA-PART1";
/// The number of the save, that of the file, the mark.
pub(super) const TAIL: usize = 24;

/// The files beside the first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    /// The number of the save.
    pub(super) id: u64,
    /// The hosts that wrote them, by their numbers in the job; and how many bytes of data each has.
    pub(super) others: Vec<(usize, u64)>,
}

/// Some bytes in one of the files.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The place of file `number` of the checkpoint at `path`.
pub(super) fn place(path: &Path, id: u64, number: usize) -> PathBuf {
    if number == 0 {
        return path.into();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{id:016x}.{number}"));
    name.into()
}

/// The end of file `number`.
pub(super) fn tail(id: u64, number: usize) -> [u8; TAIL] {
    let mut tail = [0; TAIL];
    tail[..8].copy_from_slice(&id.to_le_bytes());
    tail[8..16].copy_from_slice(&(number as u64).to_le_bytes());
    tail[16..].copy_from_slice(MARK);
    tail
}

/// How a worker sees a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sight {
    Absent,
    /// It is there, and cut off, of another save, or not to be read.
    Damaged,
    Whole,
}

/// How this worker sees a file beside the first.
pub(super) fn look_at(path: &Path, id: u64, number: usize, bytes: u64) -> Sight {
    let is_whole = || -> io::Result<bool> {
        // A pipe would be open only when somebody writes into it.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(false);
        }
        let mut file = File::open(path)?;
        let mut found = [0; TAIL];
        file.seek(SeekFrom::Start(bytes))?;
        file.read_exact(&mut found)?;
        Ok(found == tail(id, number) && file.metadata()?.len() == bytes + TAIL as u64)
    };
    match is_whole() {
        Ok(true) => Sight::Whole,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Sight::Absent,
        Ok(false) | Err(_) => Sight::Damaged,
    }
}

/// Reads bytes of a file.
pub(super) fn read_at(path: &Path, offset: u64, bytes: &mut [u8]) -> Result<()> {
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    });
    read.map_err(|source| file::failed(path, source))
}

/// Whether this is what comes after `FILE.` in the name of a file that a process began to write and that it will not complete: it was
/// killed (`NewFile`).
fn is_left(rest: &str) -> bool {
    let mut words = rest.rsplit('.');
    let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u32>().is_ok());
    let is_part = words.next() == Some("part") && is_number(words.next());
    let process = words.next().filter(|word| is_number(Some(word)));
    is_part && process.is_some_and(|process| !Path::new("/proc").join(process).exists())
}

/// The save of which a file is, if this is what comes after `FILE.` in the name of one beside the first.
fn save_of(rest: &str) -> Option<u64> {
    let (id, number) = rest.split_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    u64::from_str_radix(id, 16).ok().filter(|_| id.len() == 16 && is_number)
}

/// The files in the directory of a checkpoint's first one whose names begin as that one's, each with what comes after `FILE.`.
fn beside(path: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let first = path.file_name().and_then(|name| name.to_str()).map(|first| format!("{first}."));
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let rest = entry.file_name().to_str()?.strip_prefix(first.as_deref()?)?.to_owned();
        Some((entry.path(), rest))
    })
}

/// Removes the files of other saves than `id` beside the first, which nothing names any more, and what processes that were killed
/// left. What cannot be removed stays: it does no harm, and the next save tries again.
pub(super) fn remove_old(path: &Path, id: u64) {
    let is_old = |rest: &str| is_left(rest) || save_of(rest).is_some_and(|of| of != id);
    for (old, _) in beside(path).filter(|(_, rest)| is_old(rest)) {
        let _ = std::fs::remove_file(old);
    }
}

/// A file of a checkpoint without the first one, which has to be somewhere.
pub(super) fn orphan(path: &Path) -> Option<PathBuf> {
    beside(path).filter(|(_, rest)| save_of(rest).is_some()).map(|(file, _)| file).min()
}

impl Files {
    /// How many there are, with the first.
    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The error of a file that no host of the job has whole; a damaged one lies where this worker is.
    pub(super) fn missing(&self, path: &Path, number: usize, damaged: Option<String>) -> Error {
        let (place, all) = (place(path, self.id, number), self.len());
        let host = self.others.get(number - 1).map_or(0, |(host, _)| *host);
        let fault = match damaged {
            Some(worker) => {
                format!("is damaged or of another save where {worker} sees it, and on no other host")
            }
            None => "is on no host of the job".into(),
        };
        let what = format!(
            "{}, part {} of {all} of this checkpoint, {fault}: host {host} of the job that saved it wrote it there; copy it beside the \
             others, on any host of this job",
            place.display(),
            number + 1,
        );
        Error::Format { file: path.display().to_string(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_saves_are_removed_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("hectare-parts-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("m.ckpt");
        let kept =
            [path.clone(), place(&path, 7, 1), directory.join("m.ckpt.old"), directory.join("n.ckpt.1.1")];
        assert_eq!(orphan(&path), None);
        let kept_too = directory.join(format!("m.ckpt.{:016x}.x", 8));
        let part = |of: &Path, process: u32| PathBuf::from(format!("{}.{process}.0.part", of.display()));
        // No process has so high a number.
        let old = [
            place(&path, 8, 1),
            place(&path, 9, 12),
            part(&path, u32::MAX),
            part(&place(&path, 7, 1), u32::MAX),
        ];
        let kept =
            [kept.as_slice(), &[part(&path, std::process::id()), directory.join("m.ckpt.x.0.part")]].concat();
        kept.iter().chain([&kept_too]).chain(&old).for_each(|file| std::fs::write(file, "x").unwrap());
        assert_eq!(orphan(&path), Some(place(&path, 7, 1)));
        remove_old(&path, 7);
        assert!(kept.iter().chain([&kept_too]).all(|file| file.exists()));
        assert!(old.iter().all(|file| !file.exists()));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
