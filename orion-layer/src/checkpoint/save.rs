//! Writing a checkpoint.
use super::contents::{Block, Contents, MARK, StoredArray, StoredEntries, StoredValue, type_name};
use crate::array::share::share_bytes;
use crate::array::{DistArray, SparseArray, Value};
use crate::checksum::{Checksum, checksum};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file::NewFile;
use crate::site::Site;
use hectare_dsm::{Element, bytemuck};
use serde::Serialize;
use std::path::Path;

/// Blocks of a sparse array, about, so that many workers find shares of about the same size.
const BLOCKS: usize = 256;
/// The most entries of a block.
const BLOCK_ENTRIES: usize = 1 << 16;

/// A checkpoint being written: see [`Context::save_checkpoint`]. All calls are collective; worker 0 writes.
#[derive(Debug)]
pub struct CheckpointWriter<'a, 'w> {
    pub(super) context: &'a mut Context<'w>,
    /// On worker 0.
    out: Option<NewFile>,
    at: u64,
    pub(super) contents: Contents,
    /// Whether a step failed, of which all workers know.
    failed: bool,
}

impl CheckpointWriter<'_, '_> {
    /// Stores a value under a name, as JSON. Every worker passes one, that of worker 0 is stored. Collective.
    ///
    /// # Errors
    /// [`Error::Invalid`] for values that JSON cannot hold and for a name that a value has already.
    #[track_caller]
    pub fn value<T: Serialize>(&mut self, name: &str, value: &T) -> Result<()> {
        let site = Site::here();
        let twice = self.contents.values.contains_key(name);
        let stored =
            StoredValue::of(name, value).and_then(|value| once(twice, "value", name).map(|()| value));
        let stored = self.step(site, stored)?;
        self.contents.values.insert(name.into(), stored);
        Ok(())
    }

    /// Stores a dense array under a name. Collective.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`], [`Error::Core`], [`Error::Invalid`] for a name that an array has
    /// already.
    #[track_caller]
    pub fn array<T: Element, const N: usize>(&mut self, name: &str, array: &DistArray<T, N>) -> Result<()> {
        let site = Site::here();
        let (offset, mut checksum) = (self.at, Checksum::new());
        let mut written = once(self.contents.has(name), "array", name);
        if let (Some(out), Ok(())) = (&mut self.out, &written) {
            written = array.for_each_run(self.context, |run| {
                let bytes: &[u8] = bytemuck::cast_slice(run);
                checksum.add(bytes);
                self.at += bytes.len() as u64;
                out.write(bytes)
            });
        }
        self.step(site, written)?;
        let (shape, element) = (array.shape().to_vec(), type_name::<T>());
        let (element_bytes, checksum) = (size_of::<T>(), checksum.value());
        let stored = StoredArray { shape, element, element_bytes, offset, checksum };
        self.contents.arrays.insert(name.into(), stored);
        Ok(())
    }

    /// Stores a sparse array under a name. Collective.
    ///
    /// # Errors
    /// [`Error::Message`] for values that serde cannot encode, and those of [`CheckpointWriter::array`].
    #[track_caller]
    pub fn entries<T: Value, const N: usize>(&mut self, name: &str, array: &SparseArray<T, N>) -> Result<()> {
        let site = Site::here();
        let mine = once(self.contents.has(name), "array", name)
            .and_then(|()| encode(array.local().iter(), array.len()));
        let blocks = self.blocks(site, mine)?;
        let stored = StoredEntries { shape: array.shape().to_vec(), value: type_name::<T>(), blocks };
        self.contents.entries.insert(name.into(), stored);
        Ok(())
    }

    /// Writes the blocks of all workers, as [`encode`] makes them. Collective.
    pub(super) fn blocks(&mut self, site: Site, mine: Result<Vec<u8>>) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let (out, at) = (&mut self.out, &mut self.at);
        let written = share_bytes(self.context, site, mine, |_, bytes| {
            let Some(out) = out else { return Ok(()) };
            let (list, mut rest): (Vec<(u64, u64)>, &[u8]) = postcard::take_from_bytes(bytes)
                .map_err(|error| Error::Message(format!("decoded: {error}")))?;
            for (entries, len) in list {
                let (block, after) = rest.split_at(len as usize);
                out.write(block)?;
                blocks.push(Block { entries, offset: *at, bytes: len, checksum: checksum(block) });
                *at += len;
                rest = after;
            }
            Ok(())
        });
        self.failed |= written.is_err();
        written.map(|()| blocks)
    }

    /// Ends a step that may have failed on some worker.
    fn step<R>(&mut self, site: Site, result: Result<R>) -> Result<R> {
        let result = self.context.agree_on_same(site, result);
        self.failed |= result.is_err();
        result
    }
}

fn finish(mut out: NewFile, contents: &Contents) -> Result<()> {
    let table = serde_json::to_vec(contents).map_err(|error| Error::Message(format!("encoded: {error}")))?;
    out.write(&table)?;
    out.write(&(table.len() as u64).to_le_bytes())?;
    out.write(&checksum(&table).to_le_bytes())?;
    out.write(MARK)?;
    out.finish()
}

pub(super) fn once(twice: bool, kind: &str, name: &str) -> Result<()> {
    if twice { Err(Error::Invalid(format!("a checkpoint with two {kind}s {name:?}"))) } else { Ok(()) }
}

/// Blocks of this worker's items, of which all workers have `len`: how many and how long each is, then the blocks.
pub(super) fn encode<I: Serialize>(items: impl Iterator<Item = I>, len: usize) -> Result<Vec<u8>> {
    let wrong = |error| Error::Message(format!("encoded: {error}"));
    let each = (len / BLOCKS).clamp(1, BLOCK_ENTRIES);
    let (mut list, mut bytes) = (Vec::new(), Vec::new());
    let mut items = items.peekable();
    while items.peek().is_some() {
        let (before, mut count) = (bytes.len(), 0u64);
        for item in items.by_ref().take(each) {
            bytes = postcard::to_extend(&item, bytes).map_err(wrong)?;
            count += 1;
        }
        list.push((count, (bytes.len() - before) as u64));
    }
    let mut all = postcard::to_stdvec(&list).map_err(wrong)?;
    all.append(&mut bytes);
    Ok(all)
}

impl Context<'_> {
    /// Writes a checkpoint: `save` stores arrays and values. An old file of this name stays whole until the new
    /// one is complete. Collective, with all that `save` does.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-doc-{}.ckpt", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let u = w.fill([10, 3], 0.5f32)?;
    ///     let ratings = w.entries([10, 10], 10, |k| ([k, k], 1.0f32))?;
    ///     w.save_checkpoint(&path, |c| {
    ///         c.value("pass", &7)?;
    ///         c.entries("ratings", &ratings)?;
    ///         c.array("u", &u)
    ///     })
    /// })?;
    /// hectare_orion::run(3, |w| {
    ///     let c = w.open_checkpoint(&path)?.expect("the file was just written");
    ///     let (pass, u) = (c.value::<usize>("pass")?, c.array::<f32, 2>(w, "u")?);
    ///     assert_eq!((pass, u.read(w)?[[9, 2]]), (7, 0.5));
    ///     assert_eq!(c.entries::<f32, 2>(w, "ratings")?.len(), 10);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] and those of `save`: the same error on every worker, or [`Error::PeerFailed`] for what only
    /// one of them can have. [`Error::Diverged`] where one worker's `save` does other things than that of the
    /// others.
    #[track_caller]
    pub fn save_checkpoint(
        &mut self,
        path: impl AsRef<Path>,
        save: impl FnOnce(&mut CheckpointWriter<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let site = Site::here();
        let out = self.root(|| NewFile::create(path.as_ref())).transpose();
        let out = self.agree_on_same(site, out)?;
        let mut saving =
            CheckpointWriter { context: self, out, at: 0, contents: Contents::default(), failed: false };
        let saved = save(&mut saving);
        if saving.failed {
            // All workers know; the part that is written is removed.
            let passed_over =
                || Error::Invalid("a checkpoint was to be saved without a part that failed".into());
            return saved.and_then(|()| Err(passed_over()));
        }
        saving.step(site, saved)?;
        let CheckpointWriter { out, contents, .. } = saving;
        let finished = out.map_or(Ok(()), |out| finish(out, &contents));
        self.agree_on_same(site, finished)
    }
}
