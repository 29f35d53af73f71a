//! Writing log lines to standard error: a bounded queue, and a thread that empties it.
//!
//! Logging never waits. A line for which the queue has no room, or which cannot be written, is dropped and
//! counted; when lines can be written again, one says how many are missing. (Standard error
//! is not made non-blocking instead: that would change it for everybody who shares it, such as the user's shell.)
use crate::lines::Lines;
use crate::metrics::counts::COUNTS;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written.
const MOST_WAITING: usize = 1024;
/// The most bytes of a line. What clients say is cut long before.
const LONGEST_LINE: usize = 16 << 10;
/// How long the last lines are waited for.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

enum Order {
    Write(Vec<u8>),
    /// Answered when all before it is written.
    Answer(SyncSender<()>),
}

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    queue: SyncSender<Order>,
}

impl Sink {
    /// Starts the thread that writes.
    pub(crate) fn start() -> std::io::Result<Sink> {
        let (queue, orders) = sync_channel(MOST_WAITING);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&orders, std::io::stderr()))?;
        Ok(Sink { queue })
    }

    /// Says a line that is not of the log.
    pub(crate) fn say(&self, line: &str) {
        let mut sink = self;
        // It takes every line.
        let _ = sink.write_all(format!("{line}\n").as_bytes());
    }

    /// Waits until everything before is written, or for a second.
    pub(crate) fn finish(&self) {
        let (done, answer) = sync_channel(1);
        if self.queue.try_send(Order::Answer(done)).is_ok() {
            let _ = answer.recv_timeout(LAST_WORDS_WITHIN);
        }
    }
}

impl<'w> MakeWriter<'w> for Sink {
    type Writer = &'w Sink;

    fn make_writer(&'w self) -> &'w Sink {
        self
    }
}

/// Takes a line as a whole, and always: an error would be printed on standard error, which may be what fails.
impl Write for &Sink {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut text = line[..line.len().min(LONGEST_LINE)].to_vec();
        if text.len() < line.len() {
            text.push(b'\n');
        }
        if self.queue.try_send(Order::Write(text)).is_err() {
            COUNTS.log_line_dropped();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn write_all(orders: &Receiver<Order>, out: impl Write) {
    let (mut lines, mut told) = (Lines::new(out), 0);
    for order in orders {
        match order {
            Order::Write(line) => match lines.put(&line) {
                Ok(()) => tell(&mut told),
                Err(_) => COUNTS.log_line_dropped(),
            },
            // Nobody may be waiting any more.
            Order::Answer(done) => drop(done.try_send(())),
        }
    }
}

/// Says how many lines are missing, if it is news.
fn tell(told: &mut u64) {
    let dropped = COUNTS.log_lines_dropped();
    if dropped > *told {
        tracing::warn!(dropped, "lines of the log are missing (the number since the daemon began)");
        // That line may be dropped as well; then the next one says it.
        *told = if COUNTS.log_lines_dropped() == dropped { dropped } else { *told };
    }
}
