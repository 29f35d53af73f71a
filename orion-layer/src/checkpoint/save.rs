//! Writing a checkpoint.
use super::contents::{Block, Contents, MARK, Piece, StoredArray, StoredEntries, StoredValue, type_name};
use super::files::{self, Files, Span};
use super::writers::Writers;
use crate::array::exchange::exchange_parcels;
use crate::array::{DistArray, SparseArray, Value};
use crate::checksum::{Checksum, checksum};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file::NewFile;
use crate::site::Site;
use hectare_dsm::{Element, bytemuck};
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Blocks of a sparse array, about, so that many workers find shares of about the same size.
const BLOCKS: usize = 256;
/// The most entries of a block.
const BLOCK_ENTRIES: usize = 1 << 16;

/// A checkpoint being written: see [`Context::save_checkpoint`]. All calls are collective; the first worker of each host writes
/// what the workers of that hold.
#[derive(Debug)]
pub struct CheckpointWriter<'a, 'w> {
    pub(super) context: &'a mut Context<'w>,
    /// On the first worker of a host.
    out: Option<NewFile>,
    at: u64,
    writers: Writers,
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
        let rows = array.rows_by_host(&self.context.fabric);
        let written = once(self.contents.has(name), "array", name).and_then(|()| self.pieces(array, &rows));
        let mine = self.step(site, written)?;
        let mut of_files = vec![Vec::new().into_iter(); self.writers.files];
        self.context.exchange_values(site, &mine, |_, pieces: Vec<Piece>| {
            if let Some(file) = pieces.first().map(|piece| piece.span.file) {
                of_files[file] = pieces.into_iter();
            }
            Ok(())
        })?;
        let missing = || Error::Message("found: a host has stored less than it holds".into());
        let in_order =
            rows.iter().map(|(host, _)| of_files[self.writers.file_of(*host)].next().ok_or_else(missing));
        let pieces = in_order.collect::<Result<Vec<Piece>>>()?;
        let (shape, element) = (array.shape().to_vec(), type_name::<T>());
        let stored = StoredArray { shape, element, element_bytes: size_of::<T>(), pieces };
        self.contents.arrays.insert(name.into(), stored);
        Ok(())
    }

    /// Writes the rows that this worker stores for its host, if it is the first one there.
    fn pieces<T: Element, const N: usize>(
        &mut self,
        array: &DistArray<T, N>,
        rows: &[(usize, Range<usize>)],
    ) -> Result<Vec<Piece>> {
        let (host, file) = (self.writers.host(), self.writers.file());
        let Some(out) = &mut self.out else { return Ok(Vec::new()) };
        let mut pieces = Vec::new();
        for (_, rows) in rows.iter().filter(|(of, _)| *of == host) {
            let (offset, mut checksum) = (self.at, Checksum::new());
            array.for_each_run_of(self.context, rows, |run| {
                let bytes: &[u8] = bytemuck::cast_slice(run);
                checksum.add(bytes);
                self.at += bytes.len() as u64;
                out.write(bytes)
            })?;
            let span = Span { file, offset, bytes: self.at - offset };
            pieces.push(Piece { span, checksum: checksum.value() });
        }
        Ok(pieces)
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
        let context = &mut *self.context;
        let (file, writer) = (self.writers.file(), self.writers.writer());
        let parcels = mine.map(|mine| {
            let mut parcels = vec![Vec::new(); context.size()];
            parcels[writer] = mine;
            parcels
        });
        // By rank.
        let mut written: Vec<(usize, Vec<Block>)> = Vec::new();
        let (out, at) = (&mut self.out, &mut self.at);
        let sent = exchange_parcels(context, site, parcels, &mut |rank, bytes| {
            let (Some(out), false) = (&mut *out, bytes.is_empty()) else { return Ok(()) };
            let (list, mut rest): (Vec<(u64, u64)>, &[u8]) = postcard::take_from_bytes(bytes)
                .map_err(|error| Error::Message(format!("decoded: {error}")))?;
            let mut blocks = Vec::new();
            for (entries, len) in list {
                let (block, after) = rest.split_at(len as usize);
                out.write(block)?;
                let span = Span { file, offset: *at, bytes: len };
                blocks.push(Block { entries, span, checksum: checksum(block) });
                *at += len;
                rest = after;
            }
            written.push((rank, blocks));
            Ok(())
        });
        self.failed |= sent.is_err();
        sent?;
        let mut all = Vec::new();
        context.exchange_values(site, &written, |_, written: Vec<(usize, Vec<Block>)>| {
            all.extend(written);
            Ok(())
        })?;
        all.sort_by_key(|(rank, _)| *rank);
        Ok(all.into_iter().flat_map(|(_, blocks)| blocks).collect())
    }

    /// Ends a step that may have failed on some worker.
    fn step<R>(&mut self, site: Site, result: Result<R>) -> Result<R> {
        let result = self.context.agree_on_same(site, result);
        self.failed |= result.is_err();
        result
    }
}

/// Ends the first file, which names the others.
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
    /// On several hosts, the first worker of each writes what the workers there hold: that of worker 0's host to `path`, which
    /// names the others, `path.ID.1` and so on. Files of earlier saves are removed when all are complete.
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
        let (site, path) = (Site::here(), path.as_ref());
        let writers = Writers::of(self);
        let mut id = 0;
        if writers.files > 1 {
            self.exchange_values(site, &self.root(new_id), |_, told: Option<u64>| {
                id = told.unwrap_or(id);
                Ok(())
            })?;
        }
        let (is_writer, number) = (writers.is_writer(), writers.file());
        let place = files::place(path, id, number);
        let take_back = || {
            if is_writer && number > 0 {
                let _ = std::fs::remove_file(&place);
            }
        };
        let out = is_writer.then(|| NewFile::create(&place)).transpose();
        let out = self.agree_on_same(site, out)?;
        let contents = Contents::default();
        let mut saving = CheckpointWriter { context: self, out, at: 0, writers, contents, failed: false };
        let saved = save(&mut saving);
        if saving.failed {
            // All workers know; the part that is written is removed.
            let passed_over =
                || Error::Invalid("a checkpoint was to be saved without a part that failed".into());
            return saved.and_then(|()| Err(passed_over()));
        }
        saving.step(site, saved)?;
        let CheckpointWriter { mut out, at, writers, mut contents, .. } = saving;
        if writers.files > 1 {
            let mut others = vec![(0, 0); writers.files - 1];
            let mine = is_writer.then_some((writers.host(), at));
            self.exchange_values(site, &mine, |_, told: Option<(usize, u64)>| {
                if let Some((host, bytes)) = told
                    && let Some(index) = writers.file_of(host).checked_sub(1)
                {
                    others[index] = (host, bytes);
                }
                Ok(())
            })?;
            contents.files = Files { id, others };
            // What is complete stays only if all of it is: a part alone keeps programs from beginning anew.
            let ended = out.take_if(|_| number > 0).map_or(Ok(()), |mut out| {
                out.write(&files::tail(id, number))?;
                out.finish()
            });
            self.agree_on_same(site, ended).inspect_err(|_| take_back())?;
        }
        let finished = out.map_or(Ok(()), |out| finish(out, &contents));
        let finished = self.agree_on_same(site, finished);
        match finished {
            // Nothing refers to the files of the last save any more.
            Ok(()) if is_writer => files::remove_old(path, id),
            Err(_) => take_back(),
            Ok(()) => {}
        }
        finished
    }
}

/// A number that no other save has, as far as anybody can tell.
fn new_id() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut mixed = Checksum::new();
    mixed.add(&now.as_nanos().to_le_bytes());
    mixed.add(&u64::from(std::process::id()).to_le_bytes());
    mixed.value()
}
