//! How workers of one program tell each other things: a letter of each in every collective call, which say where it was
//! posted, so that programs that diverge are found.
use super::farewell::Farewell;
use crate::error::{Error, Result};
use crate::fabric::Fabric;
use crate::site::Site;
use hectare_dsm::Rank;
use std::cell::Cell;

/// Bytes of a mailbox that carry a message; longer ones go in pieces, one barrier each.
const PAYLOAD: usize = 64 << 10;
/// The head: sequence number, length of the whole message, whether it is a failure, length of the site's text, stamp.
const HEAD: usize = 32;
const SITE: usize = 224;
/// Bytes of a letter.
pub(super) const LETTER: usize = HEAD + SITE + PAYLOAD;
/// Marks of a letter that carries an error.
const FAILED: u8 = 1;
const FOLLOWED: u8 = 2;
/// The number of a worker's last letter, which is no collective call's.
const LAST: u64 = u64::MAX;

/// What one worker has to say in the next letter, and what it has found in those of others.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
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

impl Mailbox {
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

    /// Leaves the last letter.
    pub(super) fn close(&self, fabric: &mut dyn Fabric, farewell: &Farewell) -> Result<()> {
        let bytes = farewell.encode(PAYLOAD)?;
        fabric.leave(HEAD + SITE + bytes.len(), &mut |letter| {
            letter[..8].copy_from_slice(&LAST.to_le_bytes());
            letter[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            letter[HEAD + SITE..].copy_from_slice(&bytes);
        })
    }

    /// Says `say` to all and hears what each of them says; `hear` is called once per worker, by rank,
    /// unless somebody failed.
    ///
    /// An error of one worker is an error of all: [`Error::PeerFailed`] for the others.
    pub(super) fn exchange(
        &mut self,
        fabric: &mut dyn Fabric,
        site: Site,
        say: Say<'_>,
        mut hear: impl FnMut(Rank, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.differs.get() {
            return Err(self.diverged(
                fabric,
                site.to_string(),
                fabric.rank() as usize,
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
            self.post(fabric, site, bytes.len(), failed, piece)?;
            self.check_failures(fabric, site)?;
            if failed != 0 {
                return Ok(());
            }
            let mut longest = 0;
            for rank in 0..fabric.size() {
                let letter = self.read(fabric, site, rank)?;
                longest = longest.max(letter.whole);
                let piece = &letter.payload[..letter.whole.saturating_sub(at).min(PAYLOAD)];
                if letter.whole <= PAYLOAD {
                    if at == 0 {
                        hear(rank as Rank, piece)?;
                    }
                } else {
                    heard.resize(fabric.size(), Vec::new());
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
    fn check_failures(&self, fabric: &dyn Fabric, site: Site) -> Result<()> {
        let (mut culprit, mut stranger) = (None, None);
        for rank in 0..fabric.size() {
            let letter = self.read(fabric, site, rank)?;
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
            Some((rank, letter)) if rank != fabric.rank() as usize => {
                let message =
                    String::from_utf8_lossy(&letter.payload[..letter.whole.min(PAYLOAD)]).into_owned();
                Err(Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message })
            }
            Some(_) => Ok(()),
            None => stranger.map_or(Ok(()), |rank| {
                self.differs.set(true);
                let here = site.to_string();
                Err(self.diverged(fabric, here.clone(), rank, here.as_bytes()))
            }),
        }
    }

    /// Posts a letter, and waits for those of the others.
    fn post(
        &self,
        fabric: &mut dyn Fabric,
        site: Site,
        whole: usize,
        failed: u8,
        piece: &[u8],
    ) -> Result<()> {
        let place = site.to_string();
        // The end of a path says more than its beginning.
        let place = &place.as_bytes()[place.len().saturating_sub(SITE)..];
        fabric.post(HEAD + SITE + piece.len(), &mut |head| {
            head[..8].copy_from_slice(&self.sequence.to_le_bytes());
            head[8..16].copy_from_slice(&(whole as u64).to_le_bytes());
            head[16] = failed;
            head[17] = place.len() as u8;
            head[24..32].copy_from_slice(&self.stamp.to_le_bytes());
            head[HEAD..HEAD + place.len()].copy_from_slice(place);
            head[HEAD + SITE..].copy_from_slice(piece);
        })
    }

    fn read<'f>(&self, fabric: &'f dyn Fabric, site: Site, rank: usize) -> Result<Letter<'f>> {
        let bytes = fabric.letter(rank)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let there = &bytes[HEAD..HEAD + bytes[17] as usize];
        if word(0) != self.sequence {
            return Err(self.behind(fabric, site, rank, there, word(0)));
        }
        let here = site.to_string();
        if !here.as_bytes().ends_with(there) {
            return Err(self.diverged(fabric, here, rank, there));
        }
        let (whole, stamp) = (word(8) as usize, word(24));
        Ok(Letter { whole, stamp, failed: bytes[16], payload: &bytes[HEAD + SITE..] })
    }

    #[cold]
    fn behind(&self, fabric: &dyn Fabric, site: Site, rank: usize, there: &[u8], sequence: u64) -> Error {
        if let Some(farewell) = farewell(fabric, rank) {
            return match farewell {
                Farewell::Returned { place } => {
                    self.diverged(fabric, site.to_string(), rank, place.as_bytes())
                }
                Farewell::Failed { message } => {
                    Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message }
                }
            };
        }
        if sequence != 0 && fabric.is_alive(rank) {
            return self.diverged(fabric, site.to_string(), rank, there);
        }
        Error::WorkerLost { site: site.to_string(), rank: rank as Rank }
    }

    #[cold]
    fn diverged(&self, fabric: &dyn Fabric, here: String, rank: usize, there: &[u8]) -> Error {
        Error::Diverged {
            sequence: self.sequence,
            here_rank: fabric.rank(),
            here,
            there_rank: rank as Rank,
            there: String::from_utf8_lossy(there).into_owned(),
        }
    }
}

struct Letter<'f> {
    whole: usize,
    stamp: u64,
    failed: u8,
    payload: &'f [u8],
}

/// The last letter of worker `rank`, if it has left one.
fn farewell(fabric: &dyn Fabric, rank: usize) -> Option<Farewell> {
    let bytes = fabric.left_by(rank)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
    let payload = bytes[HEAD + SITE..].get(..word(8) as usize).filter(|_| word(0) == LAST);
    payload.and_then(Farewell::decode)
}

#[cfg(test)]
mod tests;
