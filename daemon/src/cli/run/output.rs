//! The output of the processes, on its way to the launcher's own standard output and error.
use crate::lines::Lines;
use crate::logging::Sink;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of a line that is copied in one piece, so that no program fills the memory of this one.
const LONGEST_PIECE: u64 = 64 << 10;
/// Descendants that ended processes leave behind may hold their output open: those are not waited for long.
const LAST_OUTPUT_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks whether it is written.
const PAUSE: Duration = Duration::from_millis(20);

/// One of the launcher's streams.
struct Stream {
    name: &'static str,
    lines: Mutex<To>,
    lost: Mutex<u64>,
    /// How many threads are writing to it, or wait to.
    waiting: AtomicUsize,
}

impl Stream {
    fn new(name: &'static str, to: To) -> Arc<Stream> {
        Arc::new(Stream { name, lines: Mutex::new(to), lost: Mutex::new(0), waiting: AtomicUsize::new(0) })
    }
}

/// Passes bytes on.
type PassOn = Box<dyn Fn(&[u8]) -> std::io::Result<()> + Send>;

/// Where a stream goes.
enum To {
    /// Not `std::io::stdout`, which keeps what it could not write and tries it again in pieces.
    File(Lines<File>),
    /// To whoever started this part of a program on several hosts.
    Caller(PassOn),
}

/// Bytes to be written, and what is to be done after that.
pub(super) type Piece = (Vec<u8>, Box<dyn FnOnce() + Send>);

/// Both streams, and the threads that copy to them.
pub(super) struct Output {
    streams: [Arc<Stream>; 2],
    copying: Sender<()>,
    done: Receiver<()>,
    voice: Sink,
}

impl Output {
    pub(super) fn new(voice: Sink) -> Result<Output> {
        let stream = |name, fd: std::os::fd::BorrowedFd<'_>| -> Result<Arc<Stream>> {
            let file = File::from(fd.try_clone_to_owned().context("dup")?);
            Ok(Stream::new(name, To::File(Lines::new(file))))
        };
        let streams = [
            stream("standard output", std::io::stdout().as_fd())?,
            stream("standard error", std::io::stderr().as_fd())?,
        ];
        Ok(Output::with(streams, voice))
    }

    /// The same for the output of a part, which `pass_on` passes on: whether it is standard error, and the bytes.
    pub(super) fn to_caller<F>(pass_on: F, voice: Sink) -> Output
    where
        F: Fn(bool, &[u8]) -> std::io::Result<()> + Clone + Send + 'static,
    {
        let stream = |name, error| {
            let pass_on = pass_on.clone();
            Stream::new(name, To::Caller(Box::new(move |bytes| pass_on(error, bytes))))
        };
        Output::with([stream("standard output", false), stream("standard error", true)], voice)
    }

    fn with(streams: [Arc<Stream>; 2], voice: Sink) -> Output {
        let (copying, done) = channel();
        Output { streams, copying, done, voice }
    }

    /// A thread that writes what it is sent, in this order, and ends when nobody can send any more.
    pub(super) fn queue(&self, error: bool) -> Sender<Piece> {
        let (sender, pieces) = channel::<Piece>();
        let to = self.streams[usize::from(error)].clone();
        let (copying, voice) = (self.copying.clone(), self.voice.clone());
        std::thread::spawn(move || {
            let _copying = copying;
            for (bytes, written) in pieces {
                to.put(&bytes, &voice);
                written();
            }
        });
        sender
    }

    /// Copies what a process prints, each line behind `prefix`, in a thread for each stream; without one, as it is.
    pub(super) fn copy(
        &self,
        stdout: Option<impl Read + Send + 'static>,
        stderr: Option<impl Read + Send + 'static>,
        prefix: Option<&str>,
    ) {
        let [out, err] = self.streams.clone();
        if let Some(from) = stdout {
            self.copy_stream(from, out, prefix);
        }
        if let Some(from) = stderr {
            self.copy_stream(from, err, prefix);
        }
    }

    fn copy_stream(&self, from: impl Read + Send + 'static, to: Arc<Stream>, prefix: Option<&str>) {
        let (copying, voice) = (self.copying.clone(), self.voice.clone());
        let prefix = prefix.map(str::to_owned);
        std::thread::spawn(move || {
            let _copying = copying;
            let mut from = BufReader::new(from);
            let Some(prefix) = prefix else { return copy_as_it_is(from, &to, &voice) };
            let mut line = prefix.clone().into_bytes();
            while let Ok(1..) = from.by_ref().take(LONGEST_PIECE).read_until(b'\n', &mut line) {
                if line.last() != Some(&b'\n') {
                    line.push(b'\n');
                }
                to.put(&line, &voice);
                line.truncate(prefix.len());
            }
        });
    }

    /// Waits for what ended processes printed last, and says what was lost. A reader may take its time, unless this process is told
    /// to end.
    pub(super) fn finish(self, mut is_to_end: impl FnMut() -> bool) {
        let Output { streams, copying, done, voice } = self;
        drop(copying);
        let mut until = Instant::now() + LAST_OUTPUT_WITHIN;
        // An end of the channel is the end of all copying.
        while done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            let is_to_end = is_to_end();
            if !is_to_end && streams.iter().any(|stream| stream.is_awaited()) {
                until = Instant::now() + LAST_OUTPUT_WITHIN;
            }
            if Instant::now() >= until {
                break;
            }
        }
        for stream in streams {
            let lost = *stream.lost.lock().unwrap_or_else(PoisonError::into_inner);
            if lost > 0 {
                voice.say(&format!("hectare: {lost} lines for {} are lost", stream.name));
            }
            if stream.is_awaited() {
                voice.say(&format!("hectare: nobody reads {}: the last lines are lost", stream.name));
            }
        }
        voice.finish();
    }
}

fn copy_as_it_is(mut from: impl BufRead, to: &Stream, voice: &Sink) {
    while let Ok(bytes) = from.fill_buf() {
        if bytes.is_empty() {
            return;
        }
        to.put(bytes, voice);
        let count = bytes.len();
        from.consume(count);
    }
}

impl To {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            To::File(lines) => lines.put(bytes),
            To::Caller(pass_on) => pass_on(bytes),
        }
    }
}

impl Stream {
    /// Whether its reader holds up a thread.
    fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Writes a line. One that cannot be written is lost, which ends nobody: the process goes on, and may do so for
    /// its files and its job.
    fn put(&self, line: &[u8], voice: &Sink) {
        // A count for a message: nothing is read by its means.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Held while it is written, so that lines of several processes do not mix.
        let put = self.lines.lock().unwrap_or_else(PoisonError::into_inner).put(line);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Err(error) = put {
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            *lost += 1;
            if *lost == 1 {
                let name = self.name;
                voice.say(&format!(
                    "hectare: {name} cannot be written ({error}); the processes go on without it"
                ));
            }
        }
    }
}
