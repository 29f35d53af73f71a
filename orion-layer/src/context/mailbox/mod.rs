//! How workers of one program tell each other things: a frame of each in every collective call, which say where it was
//! posted, so that programs that diverge are found.
use super::exit_notice::ExitNotice;
use crate::error::{Error, Result};
use crate::fabric::Fabric;
use crate::site::Site;
use bytemuck::Zeroable;
use hectare_dsm::Rank;
use std::cell::Cell;

/// Bytes of a mailbox that carry a message; longer ones go in pieces, one barrier each.
const PAYLOAD: usize = 64 << 10;
/// Bytes of the text of a place.
const SITE: usize = 224;
/// Bytes of a frame.
pub(super) const FRAME_BYTES: usize = size_of::<Head>() + PAYLOAD;
/// Marks of a frame that carries an error.
const FAILED: u8 = 1;
const FOLLOWED: u8 = 2;
/// The number of a worker's exit notice, which is no collective call's.
const LAST: u64 = u64::MAX;

/// The beginning of a frame, before its payload.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Head {
    /// Which collective call this is.
    sequence: u64,
    /// Bytes of the whole message.
    whole: u64,
    fingerprint: u64,
    /// Whether the message is an error; one of the marks above.
    failed: u8,
    site_len: u8,
    unused: [u8; 6],
    /// Where the call is.
    site: [u8; SITE],
}

impl Head {
    fn site(&self) -> &[u8] {
        &self.site[..self.site_len as usize]
    }
}

/// The head and the payload of a frame, which may lie at any address.
fn split(frame: &[u8]) -> (Head, &[u8]) {
    let (head, payload) = frame.split_at(size_of::<Head>());
    (bytemuck::pod_read_unaligned(head), payload)
}

/// The head and the payload of a frame that is to be written.
fn write(frame: &mut [u8], head: &Head, payload: &[u8]) {
    let (place, rest) = frame.split_at_mut(size_of::<Head>());
    place.copy_from_slice(bytemuck::bytes_of(head));
    rest.copy_from_slice(payload);
}

/// Is called with the reply of each worker. Not generic: exchanges are called from everywhere, and compiled once.
pub(crate) type OnReply<'r> = dyn FnMut(Rank, &[u8]) -> Result<()> + 'r;

/// The state of one worker's collective calls: its next frame, and what it has found in those of others.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    sequence: u64,
    /// Where the last collective call was.
    last: Option<Site>,
    /// The fingerprint of the loop that this worker is in; 0 outside of loops.
    fingerprint: u64,
    /// Whether another worker has been found to say something else: all calls fail until [`Mailbox::take_divergence`].
    has_diverged: Cell<bool>,
    /// Whether the last exchange failed because of another worker.
    has_followed: bool,
}

/// The outcome of a worker's step, which it sends in a collective call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    /// Its part of the exchange.
    Value(&'a [u8]),
    /// It failed: this is its error.
    Failure(&'a str),
    /// It failed because somebody else did.
    Consequence(&'a str),
}

impl Mailbox {
    /// Every frame carries `fingerprint` from now on, and is refused by who has another.
    pub(super) fn set_fingerprint(&mut self, fingerprint: u64) -> u64 {
        std::mem::replace(&mut self.fingerprint, fingerprint)
    }

    /// Whether a frame was refused because of its fingerprint, since this was last asked: the same on every worker that took
    /// part in the exchange.
    pub(super) fn take_divergence(&mut self) -> bool {
        self.has_diverged.take()
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where the last collective call of the program was.
    pub(super) fn last(&self) -> Option<Site> {
        self.last
    }

    /// Whether the last collective call failed because of another worker: if the program ends now, that is why.
    pub(super) fn has_followed(&self) -> bool {
        self.has_followed
    }

    /// The number of the loop that this worker is in ([`Mailbox::set_fingerprint`]).
    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Calls until now are not the program's.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }

    /// Leaves the last frame.
    pub(super) fn close(&self, fabric: &mut dyn Fabric, exit_notice: &ExitNotice) -> Result<()> {
        let bytes = exit_notice.encode(PAYLOAD)?;
        let head = Head { sequence: LAST, whole: bytes.len() as u64, ..Head::zeroed() };
        fabric.leave(size_of::<Head>() + bytes.len(), &mut |frame| write(frame, &head, &bytes))
    }

    /// Whether this frame is one that this worker has not waited for.
    pub(super) fn is_newer(&self, frame: &[u8]) -> bool {
        split(frame).0.sequence > self.sequence
    }

    /// Says `outcome` to all and gets the reply of each of them; `on_reply` is called once per worker, by rank,
    /// unless somebody failed.
    ///
    /// An error of one worker is an error of all: [`Error::PeerFailed`] for the others.
    pub(super) fn exchange(
        &mut self,
        fabric: &mut dyn Fabric,
        site: Site,
        outcome: Outcome<'_>,
        on_reply: &mut OnReply<'_>,
    ) -> Result<()> {
        let exchanged = self.exchange_frames(fabric, site, outcome, on_reply);
        self.has_followed = match &exchanged {
            Ok(()) => matches!(outcome, Outcome::Consequence(_)),
            // Its own error is the cause of what the others get.
            Err(error) => error.is_consequence() && !matches!(outcome, Outcome::Failure(_)),
        };
        exchanged
    }

    fn exchange_frames(
        &mut self,
        fabric: &mut dyn Fabric,
        site: Site,
        outcome: Outcome<'_>,
        on_reply: &mut OnReply<'_>,
    ) -> Result<()> {
        if self.has_diverged.get() {
            return Err(self.diverged(
                fabric,
                site.to_string(),
                fabric.rank() as usize,
                site.to_string().as_bytes(),
            ));
        }
        self.sequence += 1;
        self.last = Some(site);
        let (bytes, failed) = match outcome {
            Outcome::Value(bytes) => (bytes, 0),
            Outcome::Failure(text) => (&text.as_bytes()[..text.len().min(PAYLOAD)], FAILED),
            Outcome::Consequence(text) => (&text.as_bytes()[..text.len().min(PAYLOAD)], FOLLOWED),
        };
        let mut replies: Vec<Vec<u8>> = Vec::new();
        let mut at = 0;
        loop {
            let piece = &bytes[at.min(bytes.len())..bytes.len().min(at + PAYLOAD)];
            self.post(fabric, site, bytes.len(), failed, piece)?;
            let longest = self.check_failures(fabric, site)?;
            if failed != 0 {
                return Ok(());
            }
            for rank in 0..fabric.size() {
                let frame = self.read(fabric, site, rank)?;
                let piece = &frame.payload[..frame.whole.saturating_sub(at).min(PAYLOAD)];
                if longest <= PAYLOAD {
                    on_reply(rank as Rank, piece)?;
                } else {
                    // Short ones wait for the long ones of lower ranks.
                    replies.resize(fabric.size(), Vec::new());
                    replies[rank].extend_from_slice(piece);
                }
            }
            at += PAYLOAD;
            if at >= longest {
                break;
            }
        }
        for (rank, bytes) in replies.iter().enumerate() {
            on_reply(rank as Rank, bytes)?;
        }
        Ok(())
    }

    /// The error of the worker that failed first, as far as one can tell; not this worker's own. If none has, that of
    /// frames with different fingerprints. All workers see the same frames. Else how long the longest message is.
    fn check_failures(&self, fabric: &dyn Fabric, site: Site) -> Result<usize> {
        let (mut culprit, mut stranger, mut longest) = (None, None, 0);
        for rank in 0..fabric.size() {
            let frame = self.read(fabric, site, rank)?;
            longest = longest.max(frame.whole);
            if frame.fingerprint != self.fingerprint {
                stranger = stranger.or(Some(rank));
            }
            if frame.failed == FAILED {
                culprit = Some((rank, frame));
                break;
            }
            if frame.failed == FOLLOWED && culprit.is_none() {
                culprit = Some((rank, frame));
            }
        }
        match culprit {
            Some((rank, frame)) if rank != fabric.rank() as usize => {
                let message =
                    String::from_utf8_lossy(&frame.payload[..frame.whole.min(PAYLOAD)]).into_owned();
                Err(Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message })
            }
            Some(_) => Ok(longest),
            None => stranger.map_or(Ok(longest), |rank| {
                self.has_diverged.set(true);
                let here = site.to_string();
                Err(self.diverged(fabric, here.clone(), rank, here.as_bytes()))
            }),
        }
    }

    /// Posts a frame, and waits for those of the others.
    fn post(
        &self,
        fabric: &mut dyn Fabric,
        site: Site,
        whole: usize,
        failed: u8,
        piece: &[u8],
    ) -> Result<()> {
        let text = site.to_string();
        // The end of a path says more than its beginning.
        let text = &text.as_bytes()[text.len().saturating_sub(SITE)..];
        let mut head = Head {
            sequence: self.sequence,
            whole: whole as u64,
            fingerprint: self.fingerprint,
            failed,
            site_len: text.len() as u8,
            ..Head::zeroed()
        };
        head.site[..text.len()].copy_from_slice(text);
        fabric.post(size_of::<Head>() + piece.len(), &mut |frame| write(frame, &head, piece))?;
        (0..fabric.size()).try_for_each(|rank| match split(fabric.frame(rank)?).0.sequence {
            // Older ones are of those who have ended.
            sequence if sequence < self.sequence => fabric.await_notice(rank),
            _ => Ok(()),
        })
    }

    fn read<'f>(&self, fabric: &'f dyn Fabric, site: Site, rank: usize) -> Result<Frame<'f>> {
        let (head, payload) = split(fabric.frame(rank)?);
        if head.sequence != self.sequence {
            return Err(self.behind(fabric, site, rank, &head));
        }
        let here = site.to_string();
        if !here.as_bytes().ends_with(head.site()) {
            return Err(self.diverged(fabric, here, rank, head.site()));
        }
        let Head { whole, fingerprint, failed, .. } = head;
        Ok(Frame { whole: whole as usize, fingerprint, failed, payload })
    }

    #[cold]
    fn behind(&self, fabric: &dyn Fabric, site: Site, rank: usize, head: &Head) -> Error {
        // Others may have ended because of it.
        if let Some(rank) = (0..fabric.size()).find(|rank| self.is_lost(fabric, *rank)) {
            return lost(fabric, site, rank);
        }
        if let Some(exit_notice) = exit_notice(fabric, rank) {
            return match exit_notice {
                ExitNotice::Returned { place } => {
                    self.diverged(fabric, site.to_string(), rank, place.as_bytes())
                }
                ExitNotice::Failed { message } => {
                    Error::PeerFailed { site: site.to_string(), rank: rank as Rank, message }
                }
            };
        }
        // Where one has died after its frame, another may be a call ahead.
        let has_died = |rank: &usize| exit_notice(fabric, *rank).is_none() && !fabric.is_alive(*rank);
        if let Some(rank) = (0..fabric.size()).find(has_died) {
            return lost(fabric, site, rank);
        }
        if head.sequence != 0 {
            return self.diverged(fabric, site.to_string(), rank, head.site());
        }
        lost(fabric, site, rank)
    }

    /// Whether a worker has died before it came to this call.
    fn is_lost(&self, fabric: &dyn Fabric, rank: usize) -> bool {
        let is_outdated = |frame: &[u8]| split(frame).0.sequence < self.sequence;
        fabric.frame(rank).is_ok_and(is_outdated)
            && exit_notice(fabric, rank).is_none()
            && !fabric.is_alive(rank)
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

struct Frame<'f> {
    whole: usize,
    fingerprint: u64,
    failed: u8,
    payload: &'f [u8],
}

fn lost(fabric: &dyn Fabric, site: Site, rank: usize) -> Error {
    Error::WorkerLost { site: site.to_string(), rank: rank as Rank, host: fabric.other_host(rank) }
}

/// The exit notice of worker `rank`, if it has left one.
fn exit_notice(fabric: &dyn Fabric, rank: usize) -> Option<ExitNotice> {
    let (head, payload) = split(fabric.left_by(rank)?);
    let notice = payload.get(..head.whole as usize).filter(|_| head.sequence == LAST);
    notice.and_then(ExitNotice::decode)
}

#[cfg(test)]
mod tests;
