//! Files that each process reads for itself: they have to be the same for all, on all hosts.
use fnv::FnvHasher;
use hectare::{Job, Rank};
use std::fs;
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// A file as a process sees it: whether there is one, its length, and a hash of its bytes.
pub(crate) type Seen = [u64; 3];

/// Looks at a file, or at all files of a folder. What is neither is not looked into: a pipe can be read once.
pub(crate) fn see(path: &Path) -> io::Result<Seen> {
    let (mut len, mut hash) = (0, FnvHasher::default());
    match read(path, &mut len, &mut hash) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok([0; 3]),
        read => read.map(|()| [1, len, hash.finish()]),
    }
}

fn read(path: &Path, len: &mut u64, hash: &mut FnvHasher) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        let mut all =
            fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        all.sort();
        for name in all {
            hash.write(name.as_encoded_bytes());
            read(&path.join(name), len, hash)?;
        }
    }
    if !metadata.is_file() {
        return Ok(());
    }
    let (mut file, mut block) = (fs::File::open(path)?, vec![0; 1 << 16]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(()),
            found => {
                *len += found as u64;
                hash.write(&block[..found]);
            }
        }
    }
}

/// The difference between the files that two workers see, in words.
pub(crate) fn difference(job: &Job, [first, second]: [(Rank, Seen); 2]) -> String {
    let said = |rank: Rank| {
        let host = job.hosts().iter().position(|ranks| ranks.contains(&rank));
        match host.and_then(|host| job.host_name(host)) {
            Some(host) => format!("worker {rank} (host {host})"),
            None => format!("worker {rank}"),
        }
    };
    let bytes = |[is_there, len, _]: Seen| match is_there {
        0 => "no file".to_owned(),
        _ => format!("{len} bytes"),
    };
    let (one, other) = (said(first.0), said(second.0));
    match bytes(first.1) == bytes(second.1) {
        true => format!("{one} and {other} see different files of {}: copy one to all hosts", bytes(first.1)),
        false => format!(
            "{one} sees {}, {other} {}: copy one to all hosts, or remove it from all",
            bytes(first.1),
            bytes(second.1)
        ),
    }
}
