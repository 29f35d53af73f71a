//! Bytes of a checkpoint's files for workers whose hosts do not have all of them.
use super::files::{self, Span};
use crate::array::exchange::exchange_parcels;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use std::path::PathBuf;

/// Who reads what of a checkpoint's files.
#[derive(Debug)]
pub(super) struct Readers {
    /// The lowest worker that has each file.
    pub(super) of: Vec<usize>,
    /// Whether every worker has every file, and reads for itself.
    pub(super) all: bool,
    /// The files that this worker has.
    pub(super) mine: Vec<bool>,
}

/// The files of an opened checkpoint.
#[derive(Debug)]
pub(super) struct Source {
    /// That of the first.
    pub(super) path: PathBuf,
    /// The number of the save.
    pub(super) id: u64,
    pub(super) readers: Readers,
}

impl Source {
    /// The place of one of them.
    pub(super) fn place(&self, file: usize) -> PathBuf {
        files::place(&self.path, self.id, file)
    }

    pub(super) fn wrong(&self, what: String) -> Error {
        Error::Format { file: self.path.display().to_string(), what }
    }

    /// The bytes of some spans, in order, each worker's its own. Collective, unless every worker has every file.
    pub(super) fn fetch(
        &self,
        context: &mut Context<'_>,
        site: Site,
        wanted: Result<Vec<Span>>,
    ) -> Result<Vec<u8>> {
        if self.readers.all {
            return wanted.and_then(|wanted| self.read(&wanted));
        }
        let wanted = context.agree_on_same(site, wanted)?;
        // Of each worker, what it wants of this one.
        let mut asked = Vec::new();
        let (mine, is_mine) = (context.rank() as usize, |span: &Span| self.readers.mine[span.file]);
        let elsewhere: Vec<Span> = wanted.iter().filter(|span| !is_mine(span)).copied().collect();
        context.exchange_values(site, &elsewhere, |_, mut spans: Vec<Span>| {
            spans.retain(|span| self.readers.of.get(span.file) == Some(&mine));
            asked.push(spans);
            Ok(())
        })?;
        let parcels = asked.iter().map(|spans| self.read(spans)).collect();
        let mut parts = vec![Vec::new(); context.size()];
        exchange_parcels(context, site, parcels, &mut |rank, parcel| {
            parts[rank] = parcel.to_vec();
            Ok(())
        })?;
        let mut at = vec![0; parts.len()];
        let mut all = Vec::with_capacity(wanted.iter().map(|span| span.bytes as usize).sum());
        let gathered = wanted.iter().try_for_each(|span| {
            if is_mine(span) {
                all.extend(self.read(std::slice::from_ref(span))?);
                return Ok(());
            }
            let reader = self.readers.of[span.file];
            let end = at[reader] + span.bytes as usize;
            let bytes = parts[reader].get(at[reader]..end);
            all.extend(bytes.ok_or_else(|| self.wrong("a worker sent less than was asked for".into()))?);
            at[reader] = end;
            Ok(())
        });
        context.agree_on_same(site, gathered)?;
        Ok(all)
    }

    /// The bytes of spans in files that this worker has.
    fn read(&self, spans: &[Span]) -> Result<Vec<u8>> {
        let mut all = vec![0; spans.iter().map(|span| span.bytes as usize).sum()];
        self.read_into(spans, &mut all)?;
        Ok(all)
    }

    /// The same into memory that is as long as they are.
    pub(super) fn read_into(&self, spans: &[Span], mut all: &mut [u8]) -> Result<()> {
        for span in spans {
            let (bytes, rest) = all.split_at_mut(span.bytes as usize);
            files::read_at(&self.place(span.file), span.offset, bytes)?;
            all = rest;
        }
        Ok(())
    }
}
