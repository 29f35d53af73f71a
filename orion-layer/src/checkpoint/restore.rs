//! Reading a checkpoint.
use super::contents::{Block, Contents, MARK, StoredArray, StoredEntries, TAIL, type_name};
use crate::array::{DistArray, Entries, Entry, SparseArray, Value};
use crate::checksum::{Checksum, checksum};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file;
use crate::site::Site;
use hectare_dsm::{Element, bytemuck};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    pub(super) contents: Contents,
    /// Bytes before the table.
    data: u64,
}

impl Context<'_> {
    /// Opens a checkpoint; `None` if there is no such file. Collective.
    ///
    /// # Errors
    /// [`Error::Format`] if it is no checkpoint or damaged, [`Error::Io`]: the same error on every worker.
    #[track_caller]
    pub fn open_checkpoint(&mut self, path: impl AsRef<Path>) -> Result<Option<Checkpoint>> {
        let opened = Checkpoint::open(path.as_ref());
        self.agree_on_same(Site::here(), opened)
    }
}

impl Checkpoint {
    fn open(path: &Path) -> Result<Option<Checkpoint>> {
        let io = |source| file::failed(path, source);
        let wrong = |what: String| Error::Format { file: path.display().to_string(), what };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io(source)),
        };
        let metadata = file.metadata().map_err(io)?;
        let Some(before) = metadata.len().checked_sub(TAIL as u64).filter(|_| metadata.is_file()) else {
            return Err(wrong("not a checkpoint: too short, or not a regular file".into()));
        };
        let mut tail = [0; TAIL];
        file.seek(SeekFrom::Start(before)).map_err(io)?;
        file.read_exact(&mut tail).map_err(io)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| tail[at + k]));
        let data = before.checked_sub(word(0)).filter(|_| tail[16..] == *MARK);
        let data = data.ok_or_else(|| wrong("not a checkpoint, or one that was cut off".into()))?;
        file.seek(SeekFrom::Start(data)).map_err(io)?;
        let mut table = vec![0; word(0) as usize];
        file.read_exact(&mut table).map_err(io)?;
        if checksum(&table) != word(8) {
            return Err(wrong("its table of contents is damaged: the checksum differs".into()));
        }
        let contents = serde_json::from_slice(&table)
            .map_err(|error| wrong(format!("its table of contents cannot be read: {error}")))?;
        Ok(Some(Checkpoint { path: path.into(), contents, data }))
    }

    /// A value by its name. Not collective.
    ///
    /// # Errors
    /// [`Error::Format`] if there is none of this name, or one of another type.
    pub fn value<T: Serialize + DeserializeOwned>(&self, name: &str) -> Result<T> {
        let stored = self.look_up(&self.contents.values, "value", name)?;
        stored.get().map_err(|error| self.wrong(format!("value {name:?}: {error}")))
    }

    /// A dense array by its name, cut for the workers of this program, however many wrote it. Collective.
    ///
    /// # Errors
    /// [`Error::Format`] if there is none of this name, one of other elements or dimensions, or a damaged one,
    /// [`Error::Io`]: the same error on every worker. And those of [`Context::zeros`].
    #[track_caller]
    pub fn array<T: Element, const N: usize>(
        &self,
        context: &mut Context<'_>,
        name: &str,
    ) -> Result<DistArray<T, N>> {
        let site = Site::here();
        let found = self.find_array::<T, N>(name).and_then(|(stored, shape)| {
            // One worker looks at all of it, once.
            context.root(|| self.verify(name, stored)).unwrap_or(Ok(()))?;
            Ok((stored.offset, shape))
        });
        let (start, shape) = context.agree_on_same(site, found)?;
        let array = DistArray::make(context, site, shape, |first, data| {
            self.read_at(start + first * size_of::<T>() as u64, bytemuck::cast_slice_mut(data))
        })?;
        Ok(array.named(name))
    }

    /// A sparse array by its name, spread over the workers of this program, however many wrote it. Collective.
    ///
    /// # Errors
    /// Those of [`Checkpoint::array`].
    #[track_caller]
    pub fn entries<T: Value, const N: usize>(
        &self,
        context: &mut Context<'_>,
        name: &str,
    ) -> Result<SparseArray<T, N>> {
        let site = Site::here();
        let (me, all) = (context.rank() as usize, context.size());
        let mine = self.find_entries::<T, N>(name).and_then(|(stored, shape)| {
            let share = stored.blocks.len() * me / all..stored.blocks.len() * (me + 1) / all;
            let list = self.read_blocks::<Entry<T, N>>(("array", name), &stored.blocks[share])?;
            Entries::from_vec(shape, list).map_err(|error| self.wrong(format!("array {name:?}: {error}")))
        });
        let mine = context.agree_on_same(site, mine)?;
        Ok(SparseArray::make(context, site, mine)?.named(name))
    }

    pub(super) fn wrong(&self, what: String) -> Error {
        Error::Format { file: self.path.display().to_string(), what }
    }

    pub(super) fn look_up<'a, S>(
        &self,
        stored: &'a BTreeMap<String, S>,
        kind: &str,
        name: &str,
    ) -> Result<&'a S> {
        stored.get(name).ok_or_else(|| {
            let known: Vec<&str> = stored.keys().map(String::as_str).collect();
            self.wrong(format!(
                "it has no {kind} {name:?}, only {known:?}: is it another program's checkpoint?"
            ))
        })
    }

    fn shape<const N: usize>(&self, name: &str, shape: &[usize]) -> Result<[usize; N]> {
        let dimensions = || self.wrong(format!("array {name:?} has shape {shape:?}, not {N} dimensions"));
        shape.try_into().map_err(|_| dimensions())
    }

    fn find_array<T: Element, const N: usize>(&self, name: &str) -> Result<(&StoredArray, [usize; N])> {
        if self.contents.entries.contains_key(name) {
            return Err(self.wrong(format!("array {name:?} is sparse: read it as entries")));
        }
        let stored = self.look_up(&self.contents.arrays, "array", name)?;
        if stored.element != type_name::<T>() || stored.element_bytes != size_of::<T>() {
            let (found, asked) = (&stored.element, type_name::<T>());
            return Err(self.wrong(format!("array {name:?} has elements of {found}, not of {asked}")));
        }
        Ok((stored, self.shape(name, &stored.shape)?))
    }

    fn find_entries<T: Value, const N: usize>(&self, name: &str) -> Result<(&StoredEntries, [usize; N])> {
        if self.contents.arrays.contains_key(name) {
            return Err(self.wrong(format!("array {name:?} is dense: read it as an array")));
        }
        let stored = self.look_up(&self.contents.entries, "sparse array", name)?;
        if stored.value != type_name::<T>() {
            let (found, asked) = (&stored.value, type_name::<T>());
            return Err(self.wrong(format!("array {name:?} has entries of {found}, not of {asked}")));
        }
        Ok((stored, self.shape(name, &stored.shape)?))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(bytes)
        });
        read.map_err(|source| file::failed(&self.path, source))
    }

    /// Whether some bytes lie before the table.
    fn holds(&self, offset: u64, bytes: Option<u64>) -> bool {
        bytes.and_then(|bytes| offset.checked_add(bytes)).is_some_and(|end| end <= self.data)
    }

    fn verify(&self, name: &str, stored: &StoredArray) -> Result<()> {
        let mut extents = stored.shape.iter();
        let bytes = extents.try_fold(stored.element_bytes as u64, |all, next| all.checked_mul(*next as u64));
        let Some(mut left) = bytes.filter(|_| self.holds(stored.offset, bytes)) else {
            return Err(self.wrong(format!("array {name:?} is not as long as its shape {:?}", stored.shape)));
        };
        let io = |source| file::failed(&self.path, source);
        let mut file = File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(stored.offset)).map_err(io)?;
        let mut found = Checksum::new();
        let mut block = vec![0; 1 << 20];
        while left > 0 {
            let part = left.min(block.len() as u64) as usize;
            file.read_exact(&mut block[..part]).map_err(io)?;
            found.add(&block[..part]);
            left -= part as u64;
        }
        if found.value() != stored.checksum {
            return Err(self.wrong(format!("array {name:?} is damaged: its checksum differs")));
        }
        Ok(())
    }

    /// The items of some blocks of what is called `kind` and `name`.
    pub(super) fn read_blocks<I: DeserializeOwned>(
        &self,
        (kind, name): (&str, &str),
        blocks: &[Block],
    ) -> Result<Vec<I>> {
        let damaged = |what: &str| self.wrong(format!("{kind} {name:?} is damaged: {what}"));
        let mut list = Vec::new();
        for block in blocks {
            if !self.holds(block.offset, Some(block.bytes)) {
                return Err(damaged("a block lies outside of the file"));
            }
            let mut bytes = vec![0; block.bytes as usize];
            self.read_at(block.offset, &mut bytes)?;
            if checksum(&bytes) != block.checksum {
                return Err(damaged("the checksum of a block differs"));
            }
            let mut rest = &bytes[..];
            for _ in 0..block.entries {
                let (entry, after) = postcard::take_from_bytes::<I>(rest).map_err(|error| {
                    self.wrong(format!("{kind} {name:?}: an entry cannot be read: {error}"))
                })?;
                list.push(entry);
                rest = after;
            }
            if !rest.is_empty() {
                return Err(damaged("a block has more than its entries"));
            }
        }
        list.shrink_to_fit();
        Ok(list)
    }
}
