//! How workers of one program tell each other things: a published area each, read by all after a barrier.
use super::farewell::Farewell;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::{Area, AreaSpec, Owned, Rank, Worker, WorkerState};
use std::cell::Cell;
use std::time::Duration;

/// Bytes of a mailbox that carry a message; longer ones go in pieces, one barrier each.
const PAYLOAD: usize = 64 << 10;
/// The head: sequence number, length of the whole message, whether it is a failure, length of the site's text, stamp.
const HEAD: usize = 32;
const SITE: usize = 224;
/// Marks of a letter that carries an error.
const FAILED: u8 = 1;
const FOLLOWED: u8 = 2;
/// The number of a worker's last letter, which is no collective call's.
const LAST: u64 = u64::MAX;

/// One worker's mailbox, and its view of the others'.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// `None` when the last letter is written.
    mine: Option<Owned<u8>>,
    all: Vec<Area<u8>>,
    sequence: u64,
    /// Where the last collective call was.
    last: Option<Site>,
    /// What this worker says of the loop that it is in, as one number; 0 outside of loops.
    stamp: u64,
    /// Whether another worker has been found to say something else. Until all have heard what, nothing is exchanged.
    differs: Cell<bool>,
}

/// What a worker has to say in a collective call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say<'a> {
    /// Its part of the exchange.
    Value(&'a [u8]),
    /// It failed: this is its error.
    Failure(&'a str),
    /// It failed because somebody else did.
    Consequence(&'a str),
}

fn name(rank: usize) -> String {
    format!("orion/mail/{rank}")
}

impl Mailbox {
    /// Opens the mailboxes of workers `0..size`, all of whom call this.
    pub(super) fn open(worker: &mut Worker, size: usize, patience: Duration) -> Result<Mailbox> {
        let mine = worker.create::<u8>(AreaSpec::new(name(worker.rank() as usize)), HEAD + SITE + PAYLOAD)?;
        let mut all = Vec::with_capacity(size);
        for rank in 0..size {
            all.push(worker.attach_within::<u8>(&name(rank), patience)?);
        }
        let mine = Some(mine);
        Ok(Mailbox { mine, all, sequence: 0, last: None, stamp: 0, differs: Cell::new(false) })
    }

    /// Every letter carries `stamp` from now on, and is refused by who has another.
    pub(super) fn set_stamp(&mut self, stamp: u64) -> u64 {
        std::mem::replace(&mut self.stamp, stamp)
    }

    /// Whether a letter was refused because of its stamp, since this was last asked: the same on every worker that took
    /// part in the exchange.
    pub(super) fn take_differs(&mut self) -> bool {
        self.differs.take()
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where the last collective call of the program was.
    pub(super) fn last(&self) -> Option<Site> {
        self.last
    }

    /// What was called until now is not the program's.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }

    /// Writes the last letter, and lends it: it needs no round to be read, and stays when the worker has left.
    pub(super) fn close(&mut self, worker: &Worker, farewell: &Farewell) -> Result<()> {
        let Some(mut mine) = self.mine.take() else { return Ok(()) };
        let bytes = farewell.encode(PAYLOAD)?;
        {
            let mut guard = mine.write(worker)?;
            let letter = guard.range_mut(0..HEAD + SITE + bytes.len());
            letter[..8].copy_from_slice(&LAST.to_le_bytes());
            letter[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            letter[HEAD + SITE..].copy_from_slice(&bytes);
        }
        mine.lend(worker).map_err(hectare_dsm::Error::from)?;
        Ok(())
    }

    /// The last letter of worker `rank`, if it has written one.
    fn farewell(&self, worker: &Worker, rank: usize) -> Option<Farewell> {
        let bytes = self.all[rank].read_lent(worker).ok()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let payload = bytes[HEAD + SITE..].get(..word(8) as usize).filter(|_| word(0) == LAST);
        payload.and_then(Farewell::decode)
    }

    /// Says `say` to all and hears what each of them says; `hear` is called once per worker, by rank,
    /// unless somebody failed.
    ///
    /// An error of one worker is an error of all: [`Error::PeerFailed`] for the others.
    pub(super) fn exchange(
        &mut self,
        worker: &mut Worker,
        site: Site,
        say: Say<'_>,
        mut hear: impl FnMut(Rank, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.differs.get() {
            return Err(self.diverged(
                worker,
                site.to_string(),
                worker.rank() as usize,
                site.to_string().as_bytes(),
            ));
        }
        self.sequence += 1;
        self.last = Some(site);
        let (bytes, failed) = match say {
            Say::Value(bytes) => (bytes, 0),
            Say::Failure(text) => (&text.as_bytes()[..text.len().min(PAYLOAD)], FAILED),
            Say::Consequence(text) => (&text.as_bytes()[..text.len().min(PAYLOAD)], FOLLOWED),
        };
        let mut heard: Vec<Vec<u8>> = Vec::new();
        let mut at = 0;
        loop {
            let piece = &bytes[at.min(bytes.len())..bytes.len().min(at + PAYLOAD)];
            self.write(worker, site, bytes.len(), failed, piece)?;
            worker.barrier()?;
            self.check_failures(worker, site)?;
            if failed != 0 {
                return Ok(());
            }
            let mut longest = 0;
            for rank in 0..self.all.len() {
                let letter = self.read(worker, site, rank)?;
                longest = longest.max(letter.whole);
                let piece = &letter.payload[..letter.whole.saturating_sub(at).min(PAYLOAD)];
                if letter.whole <= PAYLOAD {
                    if at == 0 {
                        hear(rank as Rank, piece)?;
                    }
                } else {
                    heard.resize(self.all.len(), Vec::new());
                    heard[rank].extend_from_slice(piece);
                }
            }
            at += PAYLOAD;
            if at >= longest {
                break;
            }
        }
        for (rank, bytes) in heard.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            hear(rank as Rank, bytes)?;
        }
        Ok(())
    }

    /// The error of the worker that failed first, as far as one can tell; not this worker's own. If none has, that of
    /// letters with different stamps. All workers see the same letters.
    fn check_failures(&self, worker: &Worker, site: Site) -> Result<()> {
        let (mut culprit, mut stranger) = (None, None);
        for rank in 0..self.all.len() {
            let letter = self.read(worker, site, rank)?;
            if letter.stamp != self.stamp {
                stranger = stranger.or(Some(rank));
            }
            if letter.failed == FAILED {
                culprit = Some((rank, letter));
                break;
            }
            if letter.failed == FOLLOWED && culprit.is_none() {
                culprit = Some((rank, letter));
            }
        }
        match culprit {
            Some((rank, letter)) if rank != worker.rank() as usize => {
                let message =
                    String::from_utf8_lossy(&letter.payload[..letter.whole.min(PAYLOAD)]).into_owned();
                Err(Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message })
            }
            Some(_) => Ok(()),
            None => stranger.map_or(Ok(()), |rank| {
                self.differs.set(true);
                let here = site.to_string();
                Err(self.diverged(worker, here.clone(), rank, here.as_bytes()))
            }),
        }
    }

    fn write(&mut self, worker: &Worker, site: Site, whole: usize, failed: u8, piece: &[u8]) -> Result<()> {
        let place = site.to_string();
        // The end of a path says more than its beginning.
        let place = &place.as_bytes()[place.len().saturating_sub(SITE)..];
        let Some(mine) = &mut self.mine else { return Ok(()) };
        let mut guard = mine.write(worker)?;
        let head = guard.range_mut(0..HEAD + SITE + piece.len());
        head[..8].copy_from_slice(&self.sequence.to_le_bytes());
        head[8..16].copy_from_slice(&(whole as u64).to_le_bytes());
        head[16] = failed;
        head[17] = place.len() as u8;
        head[24..32].copy_from_slice(&self.stamp.to_le_bytes());
        head[HEAD..HEAD + place.len()].copy_from_slice(place);
        head[HEAD + SITE..].copy_from_slice(piece);
        Ok(())
    }

    fn read<'w>(&self, worker: &'w Worker, site: Site, rank: usize) -> Result<Letter<'w>> {
        let bytes: &[u8] = self.all[rank].read(worker)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let there = &bytes[HEAD..HEAD + bytes[17] as usize];
        if word(0) != self.sequence {
            return Err(self.behind(worker, site, rank, there, word(0)));
        }
        let here = site.to_string();
        if !here.as_bytes().ends_with(there) {
            return Err(self.diverged(worker, here, rank, there));
        }
        let (whole, stamp) = (word(8) as usize, word(24));
        Ok(Letter { whole, stamp, failed: bytes[16], payload: &bytes[HEAD + SITE..] })
    }

    #[cold]
    fn behind(&self, worker: &Worker, site: Site, rank: usize, there: &[u8], sequence: u64) -> Error {
        if let Some(farewell) = self.farewell(worker, rank) {
            return match farewell {
                Farewell::Returned { place } => {
                    self.diverged(worker, site.to_string(), rank, place.as_bytes())
                }
                Farewell::Failed { message } => {
                    Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message }
                }
            };
        }
        let workers = worker.job().workers().unwrap_or_default();
        let alive =
            workers.iter().any(|other| other.rank as usize == rank && other.state != WorkerState::Dead);
        if alive && sequence != 0 {
            return self.diverged(worker, site.to_string(), rank, there);
        }
        Error::WorkerLost { site: site.to_string(), rank: rank as Rank }
    }

    #[cold]
    fn diverged(&self, worker: &Worker, here: String, rank: usize, there: &[u8]) -> Error {
        Error::Diverged {
            sequence: self.sequence,
            here_rank: worker.rank(),
            here,
            there_rank: rank as Rank,
            there: String::from_utf8_lossy(there).into_owned(),
        }
    }
}

struct Letter<'w> {
    whole: usize,
    stamp: u64,
    failed: u8,
    payload: &'w [u8],
}
