//! The notice that a worker leaves when its program ends: those who wait for it in a collective call say why it does not come.
use super::{Context, collective};
use crate::error::{Error, Result};
use crate::site::Site;
use serde::{Deserialize, Serialize};

/// How a worker's program has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ExitNotice {
    /// It came to its end here: whoever waits for it runs another program.
    Returned { place: String },
    /// It returned an error, or panicked.
    Failed { message: String },
}

impl ExitNotice {
    /// Its bytes, at most `most`.
    pub(super) fn encode(&self, most: usize) -> Result<Vec<u8>> {
        // Lengths take a few bytes more.
        let room = most / 2;
        let cut = |text: &str| text.chars().take(room / 4).collect::<String>();
        collective::encode(&match self {
            ExitNotice::Returned { place } => ExitNotice::Returned { place: cut(place) },
            ExitNotice::Failed { message } => ExitNotice::Failed { message: cut(message) },
        })
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<ExitNotice> {
        collective::decode(bytes).ok()
    }
}

/// Where a program stands after its last collective call.
fn past(last: Option<Site>) -> String {
    match last {
        Some(site) => format!("past {site}"),
        None => "before any collective call".into(),
    }
}

impl Context<'_> {
    /// Notes how the program has ended.
    pub(super) fn ended<R>(&mut self, result: &Result<R>) {
        self.failed = result.as_ref().err().map(ToString::to_string);
        if result.as_ref().is_err_and(Error::is_consequence) {
            self.fabric.worker.note_consequence(true);
        }
    }
}

/// Tells those who may wait for this worker that it does not come: without a round, for nobody may be there any more.
impl Drop for Context<'_> {
    fn drop(&mut self) {
        let past = past(self.mailbox.last());
        let exit_notice = match self.failed.take() {
            Some(message) => ExitNotice::Failed { message },
            None if std::thread::panicking() => {
                // As of `unwrap`, on what a collective call returned.
                self.fabric.worker.note_consequence(self.mailbox.has_followed());
                ExitNotice::Failed { message: format!("its program panicked, {past}") }
            }
            None => ExitNotice::Returned { place: format!("the end of its program, {past}") },
        };
        // Who cannot write it is told to be lost, as who was killed is.
        let _ = self.mailbox.close(&mut self.fabric, &exit_notice);
    }
}
