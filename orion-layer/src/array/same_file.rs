//! Files of which every worker reads its share: they have to be the same for all, on all hosts.
use crate::checksum::Checksum;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Rank;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The blocks of a file that are looked at, spread evenly over it.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;

/// A file as a worker sees it.
#[derive(PartialEq, Serialize, Deserialize)]
enum Seen {
    /// Its length, and a checksum of blocks of it where workers are on several hosts.
    File { len: u64, checksum: u64 },
    /// Why it cannot be read.
    Unreadable { why: String },
}

fn fingerprint(path: &Path, looks_inside: bool) -> Seen {
    let look = || -> std::io::Result<Seen> {
        let metadata = std::fs::metadata(path)?;
        // A pipe is open only when somebody writes into it.
        if !metadata.is_file() {
            return Ok(Seen::File { len: 0, checksum: 0 });
        }
        let mut file = File::open(path)?;
        let (len, mut checksum) = (metadata.len(), Checksum::new());
        let mut block = Vec::new();
        for number in (0..BLOCKS).filter(|_| looks_inside) {
            // The last ends with the file.
            let start = u128::from(len.saturating_sub(BLOCK)) * u128::from(number) / u128::from(BLOCKS - 1);
            file.seek(SeekFrom::Start(start as u64))?;
            block.clear();
            (&mut file).take(BLOCK).read_to_end(&mut block)?;
            checksum.add(&block);
        }
        Ok(Seen::File { len, checksum: checksum.value() })
    };
    look().unwrap_or_else(|error| Seen::Unreadable { why: error.to_string() })
}

impl Context<'_> {
    /// Compares what the workers see of a file; what differs, the same on every worker. Collective.
    pub(super) fn see_same_file(&mut self, site: Site, path: &Path) -> Result<Result<()>> {
        let seen = fingerprint(path, self.fabric.spans_hosts());
        let (mut expected, mut other) = (None, None);
        self.exchange_values(site, &seen, |rank, there: Seen| {
            match &expected {
                None => expected = Some(there),
                // Who cannot read it says so itself, if none can.
                Some(Seen::Unreadable { .. }) if matches!(there, Seen::Unreadable { .. }) => {}
                Some(first) if *first != there && other.is_none() => other = Some((rank, there)),
                Some(_) => {}
            }
            Ok(())
        })?;
        let (Some(seen), Some((rank, there))) = (expected, other) else { return Ok(Ok(())) };
        let (first, second) = (self.worker_and_host(0), self.worker_and_host(rank));
        let what = match (seen, there) {
            (Seen::File { len, .. }, Seen::File { len: there, .. }) if len == there => {
                format!("{first} and {second} see different files of {len} bytes: copy one to all hosts")
            }
            (Seen::File { len, .. }, Seen::File { len: there, .. }) => {
                format!("{first} sees {len} bytes, {second} {there}")
            }
            (Seen::Unreadable { why }, _) => format!("{first} cannot read it, as {second} can: {why}"),
            (_, Seen::Unreadable { why }) => format!("{second} cannot read it, as {first} can: {why}"),
        };
        Ok(Err(Error::Format { file: path.display().to_string(), what }))
    }

    pub(crate) fn worker_and_host(&self, rank: Rank) -> String {
        match self.fabric.name_of_host(rank as usize) {
            Some(host) => format!("worker {rank} (host {host})"),
            None => format!("worker {rank}"),
        }
    }
}
