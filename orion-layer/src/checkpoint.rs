//! Checkpoints: arrays and values in one file, to go on from after a failure, with any number of workers.
//!
//! The file is written beside its place and renamed, so that a crash leaves the old one whole. Data first, then a
//! table of contents in JSON, its length, and a mark: a file that was cut off has no mark. Numbers are
//! little-endian; every array has a checksum.
use crate::array::DistArray;
use crate::context::{Context, Site};
use crate::error::{Error, Result};
use crate::file::NewFile;
use hectare_dsm::{Element, bytemuck};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const MARK: &[u8; 8] = b"HA-CKPT1";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    values: BTreeMap<String, serde_json::Value>,
    arrays: BTreeMap<String, Stored>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    shape: Vec<usize>,
    element: String,
    element_bytes: usize,
    offset: u64,
    checksum: u64,
}

/// FNV-1a over words of eight bytes, however the bytes come in pieces: finds damage, not malice.
#[derive(Clone, Copy)]
struct Checksum {
    hash: u64,
    word: u64,
    bits: u32,
}

impl Checksum {
    const fn new() -> Checksum {
        Checksum { hash: 0xcbf2_9ce4_8422_2325, word: 0, bits: 0 }
    }

    fn mix(hash: u64, word: u64) -> u64 {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    }

    fn add(&mut self, bytes: &[u8]) {
        // Up to the end of a word that an earlier piece began.
        let lead = if self.bits == 0 { 0 } else { (8 - self.bits as usize / 8).min(bytes.len()) };
        let (lead, rest) = bytes.split_at(lead);
        lead.iter().for_each(|byte| self.add_byte(*byte));
        let (words, rest) = rest.as_chunks::<8>();
        self.hash = words.iter().fold(self.hash, |hash, word| Self::mix(hash, u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.add_byte(*byte));
    }

    fn add_byte(&mut self, byte: u8) {
        self.word |= u64::from(byte) << self.bits;
        self.bits += 8;
        if self.bits == 64 {
            *self = Checksum { hash: Self::mix(self.hash, self.word), word: 0, bits: 0 };
        }
    }

    fn value(&self) -> u64 {
        Self::mix(self.hash, self.word)
    }
}

/// A checkpoint being written: see [`Context::save_checkpoint`].
#[derive(Debug)]
pub struct Saving<'a, 'w> {
    context: &'a Context<'w>,
    out: NewFile,
    at: u64,
    contents: Contents,
}

impl Saving<'_, '_> {
    /// Stores a value under a name.
    ///
    /// # Errors
    /// [`Error::Message`] for values that JSON cannot hold.
    pub fn value<T: Serialize>(&mut self, name: &str, value: &T) -> Result<()> {
        let value =
            serde_json::to_value(value).map_err(|error| Error::Message(format!("encoded: {error}")))?;
        self.contents.values.insert(name.into(), value);
        Ok(())
    }

    /// Stores an array under a name.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`], [`Error::Core`].
    pub fn array<T: Element, const N: usize>(&mut self, name: &str, array: &DistArray<T, N>) -> Result<()> {
        let mut checksum = Checksum::new();
        let offset = self.at;
        array.for_each_run(self.context, |run| {
            let bytes: &[u8] = bytemuck::cast_slice(run);
            checksum.add(bytes);
            self.at += bytes.len() as u64;
            self.out.write(bytes)
        })?;
        let (shape, element) = (array.shape().to_vec(), type_name::<T>().into());
        let checksum = checksum.value();
        let stored = Stored { shape, element, element_bytes: size_of::<T>(), offset, checksum };
        self.contents.arrays.insert(name.into(), stored);
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let table = serde_json::to_vec(&self.contents)
            .map_err(|error| Error::Message(format!("encoded: {error}")))?;
        self.out.write(&table)?;
        self.out.write(&(table.len() as u64).to_le_bytes())?;
        self.out.write(MARK)?;
        self.out.finish()
    }
}

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    contents: Contents,
}

impl Checkpoint {
    fn open(path: &Path) -> Result<Option<Checkpoint>> {
        let name = || path.display().to_string();
        let wrong = |what: &str| Error::Format { file: name(), what: what.into() };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { file: name(), source }),
        };
        let io = |source| Error::Io { file: name(), source };
        let len = file.metadata().map_err(io)?.len();
        if len < 16 {
            return Err(wrong("not a checkpoint: too short"));
        }
        let mut tail = [0; 16];
        file.seek(SeekFrom::End(-16)).map_err(io)?;
        file.read_exact(&mut tail).map_err(io)?;
        let table = u64::from_le_bytes(std::array::from_fn(|k| tail[k]));
        if tail[8..] != *MARK || table > len - 16 {
            return Err(wrong("not a checkpoint, or one that was cut off"));
        }
        file.seek(SeekFrom::Start(len - 16 - table)).map_err(io)?;
        let mut bytes = vec![0; table as usize];
        file.read_exact(&mut bytes).map_err(io)?;
        let contents = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(&format!("its table of contents is damaged: {error}")))?;
        Ok(Some(Checkpoint { path: path.into(), contents }))
    }

    fn file(&self) -> String {
        self.path.display().to_string()
    }

    /// A value by its name.
    ///
    /// # Errors
    /// [`Error::Format`] if there is none of this name, or one of another type.
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let wrong = |what: String| Error::Format { file: self.file(), what };
        let value = self.contents.values.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contents.values.keys().map(String::as_str).collect();
            wrong(format!("it has no value {name:?}, only {known:?}: is it another program's checkpoint?"))
        })?;
        serde_json::from_value(value.clone()).map_err(|error| wrong(format!("value {name:?}: {error}")))
    }

    /// An array by its name, cut for the workers of this program, however many wrote it. Collective.
    ///
    /// # Errors
    /// [`Error::Format`] if there is none of this name, one of other elements or dimensions, or a damaged one,
    /// and those of [`Context::zeros`].
    #[track_caller]
    pub fn array<T: Element, const N: usize>(
        &self,
        context: &mut Context<'_>,
        name: &str,
    ) -> Result<DistArray<T, N>> {
        let site = Site::here();
        let found = self.find::<T, N>(name).and_then(|found| {
            if context.rank() == 0 {
                self.verify(name, found.0)?;
            }
            Ok(found)
        });
        let (stored, shape) = context.agree_on(site, found)?;
        let array = DistArray::make(context, site, shape, |first, data| {
            let io = |source| Error::Io { file: self.file(), source };
            let mut file = File::open(&self.path).map_err(io)?;
            let offset = stored.offset + first * size_of::<T>() as u64;
            file.seek(SeekFrom::Start(offset)).map_err(io)?;
            file.read_exact(bytemuck::cast_slice_mut(data)).map_err(io)
        })?;
        Ok(array.named(name))
    }

    fn find<T: Element, const N: usize>(&self, name: &str) -> Result<(&Stored, [usize; N])> {
        let wrong = |what: String| Error::Format { file: self.file(), what };
        let stored = self.contents.arrays.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contents.arrays.keys().map(String::as_str).collect();
            wrong(format!("it has no array {name:?}, only {known:?}: is it another program's checkpoint?"))
        })?;
        if stored.element != type_name::<T>() || stored.element_bytes != size_of::<T>() {
            let (found, asked) = (&stored.element, type_name::<T>());
            return Err(wrong(format!("array {name:?} has elements of {found}, not of {asked}")));
        }
        let shape = stored.shape.as_slice().try_into();
        let shape = shape
            .map_err(|_| wrong(format!("array {name:?} has shape {:?}, not {N} dimensions", stored.shape)))?;
        Ok((stored, shape))
    }

    fn verify(&self, name: &str, stored: &Stored) -> Result<()> {
        let io = |source| Error::Io { file: self.file(), source };
        let mut file = File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(stored.offset)).map_err(io)?;
        let elements = stored
            .shape
            .iter()
            .try_fold(stored.element_bytes as u64, |product, extent| product.checked_mul(*extent as u64));
        let mut left = elements.unwrap_or(u64::MAX);
        let mut checksum = Checksum::new();
        let mut block = vec![0; 1 << 20];
        while left > 0 {
            let part = left.min(block.len() as u64) as usize;
            file.read_exact(&mut block[..part]).map_err(io)?;
            checksum.add(&block[..part]);
            left -= part as u64;
        }
        if checksum.value() == stored.checksum {
            return Ok(());
        }
        Err(Error::Format {
            file: self.file(),
            what: format!("array {name:?} is damaged: its checksum differs"),
        })
    }
}

impl Context<'_> {
    /// Writes a checkpoint: worker 0 runs `save`, which stores arrays and values. An old file of this name stays
    /// whole until the new one is complete. Collective.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-doc-{}.ckpt", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let u = w.fill([10, 3], 0.5f32)?;
    ///     w.save_checkpoint(&path, |c| {
    ///         c.value("pass", &7)?;
    ///         c.array("u", &u)
    ///     })
    /// })?;
    /// hectare_orion::run(3, |w| {
    ///     let c = w.open_checkpoint(&path)?.expect("the file was just written");
    ///     let (pass, u) = (c.value::<usize>("pass")?, c.array::<f32, 2>(w, "u")?);
    ///     assert_eq!((pass, u.read(w)?[[9, 2]]), (7, 0.5));
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], those of `save`; [`Error::PeerFailed`] on the other workers.
    #[track_caller]
    pub fn save_checkpoint(
        &mut self,
        path: impl AsRef<Path>,
        save: impl FnOnce(&mut Saving<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let site = Site::here();
        let saved = if self.rank() == 0 { self.write_checkpoint(path.as_ref(), save) } else { Ok(()) };
        self.agree_on(site, saved)
    }

    fn write_checkpoint(
        &self,
        path: &Path,
        save: impl FnOnce(&mut Saving<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let mut saving =
            Saving { context: self, out: NewFile::create(path)?, at: 0, contents: Contents::default() };
        save(&mut saving)?;
        saving.finish()
    }

    /// Opens a checkpoint; `None` if there is no such file. Collective.
    ///
    /// # Errors
    /// [`Error::Format`] if it is no checkpoint or damaged, [`Error::Io`].
    #[track_caller]
    pub fn open_checkpoint(&mut self, path: impl AsRef<Path>) -> Result<Option<Checkpoint>> {
        let opened = Checkpoint::open(path.as_ref());
        self.agree_on(Site::here(), opened)
    }
}
