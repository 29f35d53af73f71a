//! Reading a checkpoint.
use super::contents::{Block, Contents, MARK, StoredArray, StoredEntries, TAIL, type_name};
use super::fetch::{Readers, Source};
use super::files::{self, Sight, Span, look_at};
use crate::array::share::share_bytes;
use crate::array::{DistArray, Entries, Entry, SparseArray, Value};
use crate::checksum::{Checksum, checksum};
use crate::context::Context;
use crate::contract::Layout;
use crate::error::{Error, Result};
use crate::file;
use crate::site::Site;
use hectare_dsm::{Element, Rank, bytemuck};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) contents: Contents,
    /// Bytes before the table, in the first file.
    data: u64,
    source: Source,
}

/// A first file: its contents as they lie there, where they begin, and when it was written.
struct First {
    table: Vec<u8>,
    data: u64,
    written: Option<Duration>,
}

/// A file as a worker sees it: the checksum of its table, where that begins, and when it was written.
type Seen = (u64, u64, Option<Duration>);

impl Context<'_> {
    /// Opens a checkpoint; `None` if there is no such file on any host of the job, nor a part of one. Collective.
    ///
    /// One that several hosts saved is in several files, each of which may lie on any host of this job, beside where the first one
    /// is or would be: what other hosts need of it is sent to them.
    ///
    /// # Errors
    /// [`Error::Format`] if it is no checkpoint or damaged, if one of its files is on no host, the first among them, or if two hosts have different
    /// checkpoints by this name (then it says which is older); [`Error::Io`]: the same error on every worker.
    #[track_caller]
    pub fn open_checkpoint(&mut self, path: impl AsRef<Path>) -> Result<Option<Checkpoint>> {
        let (site, path) = (Site::here(), path.as_ref());
        let first = self.agree_on_same(site, First::read(path))?;
        // On several hosts, that which worker 0 has, or the first that has one; all that see one see the same.
        let seen = first.as_ref().map(|first| (checksum(&first.table), first.data, first.written));
        let mut sees = Vec::new();
        self.exchange_values(site, &seen, |_, seen: Option<Seen>| {
            sees.push(seen);
            Ok(())
        })?;
        let Some(reader) = sees.iter().position(Option::is_some) else {
            return self.check_orphans(site, path).map(|()| None);
        };
        let what = |seen: &Option<Seen>| seen.map(|(table, data, _)| (table, data));
        let differs = |seen: &Option<Seen>| seen.is_some() && what(seen) != what(&sees[reader]);
        if let Some(other) = sees.iter().position(differs) {
            let see = [reader, other].map(|rank| {
                let written = sees[rank].and_then(|(.., written)| written);
                (self.worker_and_host(rank as Rank), written)
            });
            return Err(Error::Format { file: path.display().to_string(), what: different(see) });
        }
        let mut table = first.map(|first| first.table);
        if sees.contains(&None) {
            let shown = if self.rank() as usize == reader { table.clone() } else { None };
            share_bytes(self, site, Ok(shown.unwrap_or_default()), &mut |rank, bytes| {
                if rank == reader {
                    table = Some(bytes.to_vec());
                }
                Ok(())
            })?;
        }
        let data = sees[reader].map_or(0, |(_, data, _)| data);
        let opened = Contents::parse(path, &table.unwrap_or_default());
        let contents = self.agree_on_same(site, opened)?;
        let readers = self.readers(site, path, &contents, &sees)?;
        let source = Source { path: path.into(), id: contents.files.id, readers };
        Ok(Some(Checkpoint { contents, data, source }))
    }

    /// Refuses to begin anew where a part of a checkpoint is, whose first file is on no host: the next save would remove it. Collective.
    fn check_orphans(&mut self, site: Site, path: &Path) -> Result<()> {
        let mine = files::orphan(path).map(|file| file.display().to_string());
        let mut found = None;
        self.exchange_values(site, &mine, |rank, orphan: Option<String>| {
            found = found.take().or(orphan.map(|file| (rank, file)));
            Ok(())
        })?;
        let Some((rank, file)) = found else { return Ok(()) };
        let what = format!(
            "{file}, a part of this checkpoint, is where {} sees it, and its first file is on no host of the job: copy that to one of \
             them; or remove the parts to begin anew, if it was never there: a first save that was killed leaves them",
            self.worker_and_host(rank)
        );
        Err(Error::Format { file: path.display().to_string(), what })
    }

    /// Who has which of a checkpoint's files. Collective.
    fn readers<S>(
        &mut self,
        site: Site,
        path: &Path,
        contents: &Contents,
        sees: &[Option<S>],
    ) -> Result<Readers> {
        let (id, me) = (contents.files.id, self.rank() as usize);
        let others = contents.files.others.iter().zip(1..);
        let sight = |((_, bytes), number): (&(usize, u64), usize)| {
            look_at(&files::place(path, id, number), id, number, *bytes)
        };
        let first = if sees[me].is_some() { Sight::Whole } else { Sight::Absent };
        let mine: Vec<Sight> = std::iter::once(first).chain(others.map(sight)).collect();
        let mut of: Vec<[Option<Rank>; 2]> = vec![[None; 2]; mine.len()];
        let mut all = true;
        self.exchange_values(site, &mine, |rank, sights: Vec<Sight>| {
            all &= sights.iter().all(|sight| *sight == Sight::Whole);
            for ([whole, damaged], sight) in of.iter_mut().zip(&sights) {
                let seen = match sight {
                    Sight::Whole => whole,
                    Sight::Damaged => damaged,
                    Sight::Absent => continue,
                };
                *seen = seen.or(Some(rank));
            }
            Ok(())
        })?;
        let found = of.iter().enumerate().map(|(number, [whole, damaged])| {
            let missing = || {
                let damaged = damaged.map(|rank| self.worker_and_host(rank));
                contents.files.missing(path, number, damaged)
            };
            whole.map(|rank| rank as usize).ok_or_else(missing)
        });
        let mine = mine.iter().map(|sight| *sight == Sight::Whole).collect();
        Ok(Readers { of: found.collect::<Result<_>>()?, all, mine })
    }
}

impl First {
    fn read(path: &Path) -> Result<Option<First>> {
        let io = |source| file::failed(path, source);
        let wrong = |what: &str| Error::Format { file: path.display().to_string(), what: what.into() };
        // Before it is opened: a pipe is open only when somebody writes into it.
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io(source)),
        };
        let Some(before) = metadata.len().checked_sub(TAIL as u64).filter(|_| metadata.is_file()) else {
            return Err(wrong("not a checkpoint: too short, or not a regular file"));
        };
        let mut file = File::open(path).map_err(io)?;
        let mut tail = [0; TAIL];
        file.seek(SeekFrom::Start(before)).map_err(io)?;
        file.read_exact(&mut tail).map_err(io)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| tail[at + k]));
        let data = before.checked_sub(word(0)).filter(|_| tail[16..] == *MARK);
        let data = data.ok_or_else(|| wrong("not a checkpoint, or a truncated one"))?;
        file.seek(SeekFrom::Start(data)).map_err(io)?;
        let mut table = vec![0; word(0) as usize];
        file.read_exact(&mut table).map_err(io)?;
        if checksum(&table) != word(8) {
            return Err(wrong("its table of contents is damaged: the checksum differs"));
        }
        let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Some(First { table, data, written }))
    }
}

/// That two workers see different first files, and which is older, as far as the times of the files say it.
fn different([(a, of_a), (b, of_b)]: [(String, Option<Duration>); 2]) -> String {
    let older = of_a.zip(of_b).filter(|(of_a, of_b)| of_a != of_b).map(|(of_a, of_b)| {
        let older = if of_a < of_b { &a } else { &b };
        format!(
            "; by the times of the files, that of {older} is {:.1} s older, unless one is a copy with the time of its copying",
            of_a.abs_diff(of_b).as_secs_f64()
        )
    });
    format!(
        "{a} and {b} see different checkpoints: remove the one that is not wanted{}",
        older.unwrap_or_default()
    )
}

impl Checkpoint {
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
            self.verify(name, stored, context.rank() as usize)?;
            Ok((stored, shape))
        });
        let (stored, shape) = context.agree_on_same(site, found)?;
        // As a new array is cut.
        let rows = Layout::even(0, shape.first().copied().unwrap_or(0), context.size());
        // A shape without elements may have any other extents.
        let row_bytes = shape.iter().skip(1).fold(size_of::<T>(), |all, next| all.saturating_mul(*next));
        let mine = rows.range(context.rank() as usize);
        let bytes = (mine.start * row_bytes) as u64..(mine.end * row_bytes) as u64;
        let spans = within(stored.pieces.iter().map(|piece| piece.span), bytes);
        let fetched = match self.source.readers.all {
            true => None,
            false => Some(self.source.fetch(context, site, Ok(spans.clone()))?),
        };
        let array = DistArray::make(context, site, shape, |_, data| {
            let data = bytemuck::cast_slice_mut(data);
            match &fetched {
                Some(bytes) => data.copy_from_slice(bytes),
                None => self.source.read_into(&spans, data)?,
            }
            Ok(())
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
        let found = self.find_entries::<T, N>(name);
        let found = found.map(|(stored, shape)| {
            let share = stored.blocks.len() * me / all..stored.blocks.len() * (me + 1) / all;
            (&stored.blocks[share], shape)
        });
        let blocks = found.as_ref().map_or(&[][..], |(blocks, _)| blocks);
        let bytes = self.block_bytes(context, site, ("array", name), blocks);
        let mine = found.and_then(|(blocks, shape)| {
            let list = self.read_blocks::<Entry<T, N>>(("array", name), blocks, &bytes?)?;
            Entries::from_vec(shape, list).map_err(|error| self.wrong(format!("array {name:?}: {error}")))
        });
        let mine = context.agree_on_same(site, mine)?;
        Ok(SparseArray::make(context, site, mine)?.named(name))
    }

    pub(super) fn wrong(&self, what: String) -> Error {
        self.source.wrong(what)
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

    /// Whether some bytes lie in the data of their file.
    fn holds(&self, span: &Span) -> bool {
        let data = match span.file {
            0 => Some(self.data),
            file => self.contents.files.others.get(file - 1).map(|(_, bytes)| *bytes),
        };
        span.offset.checked_add(span.bytes).is_some_and(|end| data.is_some_and(|data| end <= data))
    }

    /// Whether an array is whole. One worker looks at each file, once.
    fn verify(&self, name: &str, stored: &StoredArray, me: usize) -> Result<()> {
        let mut extents = stored.shape.iter();
        let bytes = extents.try_fold(stored.element_bytes as u64, |all, next| all.checked_mul(*next as u64));
        let mut pieces = stored.pieces.iter();
        let stored_bytes = pieces.try_fold(0u64, |all, piece| all.checked_add(piece.span.bytes));
        let is_held = stored.pieces.iter().all(|piece| self.holds(&piece.span));
        if bytes.is_none() || bytes != stored_bytes || !is_held {
            return Err(self.wrong(format!("array {name:?} is not as long as its shape {:?}", stored.shape)));
        }
        for piece in stored.pieces.iter().filter(|piece| self.source.readers.of[piece.span.file] == me) {
            let path = self.source.place(piece.span.file);
            let io = |source| file::failed(&path, source);
            let mut file = File::open(&path).map_err(io)?;
            file.seek(SeekFrom::Start(piece.span.offset)).map_err(io)?;
            let (mut found, mut left) = (Checksum::new(), piece.span.bytes);
            let mut block = vec![0; 1 << 20];
            while left > 0 {
                let part = left.min(block.len() as u64) as usize;
                file.read_exact(&mut block[..part]).map_err(io)?;
                found.add(&block[..part]);
                left -= part as u64;
            }
            if found.value() != piece.checksum {
                let place = match piece.span.file {
                    0 => String::new(),
                    _ => format!(" in {}", path.display()),
                };
                return Err(self.wrong(format!("array {name:?} is damaged: its checksum differs{place}")));
            }
        }
        Ok(())
    }

    /// The bytes of some blocks of what is called `kind` and `name`. Collective, unless every worker has every file.
    pub(super) fn block_bytes(
        &self,
        context: &mut Context<'_>,
        site: Site,
        (kind, name): (&str, &str),
        blocks: &[Block],
    ) -> Result<Vec<u8>> {
        let outside = || self.wrong(format!("{kind} {name:?} is damaged: a block lies outside of the file"));
        let spans = blocks.iter().map(|block| match self.holds(&block.span) {
            true => Ok(block.span),
            false => Err(outside()),
        });
        self.source.fetch(context, site, spans.collect())
    }

    /// The items of some blocks of what is called `kind` and `name`, whose bytes these are.
    pub(super) fn read_blocks<I: DeserializeOwned>(
        &self,
        (kind, name): (&str, &str),
        blocks: &[Block],
        mut bytes: &[u8],
    ) -> Result<Vec<I>> {
        let damaged = |what: &str| self.wrong(format!("{kind} {name:?} is damaged: {what}"));
        let mut list = Vec::new();
        for block in blocks {
            let (mut rest, after) = bytes.split_at(block.span.bytes as usize);
            bytes = after;
            if checksum(rest) != block.checksum {
                return Err(damaged("the checksum of a block differs"));
            }
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

/// Those bytes, counted through spans that follow each other, that lie in `range`.
fn within(spans: impl Iterator<Item = Span>, range: Range<u64>) -> Vec<Span> {
    let (mut found, mut at) = (Vec::new(), 0);
    for span in spans {
        let (from, to) = (range.start.clamp(at, at + span.bytes), range.end.clamp(at, at + span.bytes));
        if from < to {
            found.push(Span { file: span.file, offset: span.offset + from - at, bytes: to - from });
        }
        at += span.bytes;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_of_two_checkpoints_is_named() {
        let say = |a, b| different([("worker 0".into(), a), ("worker 1".into(), b)]);
        let at = |ms| Some(Duration::from_millis(ms));
        for (a, b, older) in [(5000, 7500, "worker 0"), (7500, 5000, "worker 1")] {
            let named =
                format!("not wanted; by the times of the files, that of {older} is 2.5 s older, unless");
            assert!(say(at(a), at(b)).contains(&named), "{}", say(at(a), at(b)));
        }
        for said in [say(at(3), None), say(at(3), at(3))] {
            assert_eq!(
                said,
                "worker 0 and worker 1 see different checkpoints: remove the one that is not wanted"
            );
        }
    }
}
