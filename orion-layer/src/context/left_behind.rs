//! Waiting for others at something else than an exchange, who may have gone to one.
use super::Context;
use super::mailbox::Mailbox;
use crate::fabric::Frames;
use hectare_dsm::Worker;

/// The others' frames and exit notices, for a worker that is not in an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others<'c> {
    frames: Frames<'c>,
    mailbox: &'c Mailbox,
}

impl Others<'_> {
    /// How many workers there are.
    pub(crate) fn size(&self) -> usize {
        self.frames.size()
    }

    /// Whether a worker has posted a frame that this one has not waited for, or has left its exit notice.
    pub(crate) fn has_gone_on(&self, worker: &Worker, rank: usize) -> bool {
        self.frames.frame(worker, rank).is_ok_and(|frame| self.mailbox.is_newer(frame))
            || self.frames.left_by(worker, rank).is_some()
    }
}

impl Context<'_> {
    /// The worker, which is about to wait, and what it may look at meanwhile.
    pub(crate) fn about_to_wait(&mut self) -> (&mut Worker, Others<'_>) {
        let (worker, frames) = self.fabric.split();
        (worker, Others { frames, mailbox: &self.mailbox })
    }
}
