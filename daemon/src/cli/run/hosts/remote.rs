//! A host as the caller sees it: the remote shell with the part behind it.
use super::super::output::Piece;
use super::credit::{Credit, Held};
use super::message::{News, Order, Side, greet, meet, receive, send};
use crate::cli::parent_death::die_with_parent;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The most bytes of a line of the remote shell's that are kept.
const LONGEST_LINE: u64 = 4096;

/// How long the last lines of a remote shell are waited for: what it has started may hold its standard error open, as the master of
/// shared connections of `ssh` does.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks whether a remote shell has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// A thing that happens to the caller.
#[derive(Debug)]
pub(super) enum Event {
    /// A host's part says something other than output.
    News(usize, News),
    /// A host's remote shell, or `hectare` there, says a line on standard error.
    Line(usize, Line),
    /// A part cannot be understood.
    Trouble(usize, String),
    /// The way to a host's part has ended.
    Closed(usize),
    /// Signals to the caller, and how many.
    Signal(Signal, usize),
}

/// A line of a remote shell, and its share of what may wait to be written.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) held: Held,
}

/// Where output goes: standard output and standard error.
pub(super) type Outlets = [Sender<Piece>; 2];

/// The remote shell of a host.
#[derive(Debug)]
pub(super) struct Remote {
    child: Child,
    /// To the thread that writes: a host that reads nothing holds nobody up.
    orders: Sender<Queued>,
}

/// An order on its way to be written, and whom to tell when it is: the sender is dropped then.
type Queued = (Order, Option<Sender<()>>);

impl Remote {
    /// Starts the part of the host with this number by a command.
    pub(super) fn start(
        words: &[String],
        number: usize,
        events: &Sender<Event>,
        outlets: Outlets,
    ) -> Result<Remote> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the caller, who passes it on.
        command.process_group(0);
        die_with_parent(&mut command);
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", words[0]))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = stdin.zip(stdout).zip(stderr);
        let ((stdin, stdout), stderr) = pipes.context("pipes of a process")?;
        let (orders, queue) = channel();
        std::thread::spawn(move || write_orders(stdin, &queue));
        let lines = events.clone();
        let (reading, said) = channel::<()>();
        std::thread::spawn(move || {
            let _reading = reading;
            read_lines(stderr, number, &lines);
        });
        let (events, written) = (events.clone(), orders.clone());
        std::thread::spawn(move || {
            if let Err(error) = read_news(stdout, number, &events, &outlets, &written) {
                let _ = events.send(Event::Trouble(number, format!("{error:#}")));
            }
            drop((outlets, written));
            // Its last line says why it ended.
            let _ = said.recv_timeout(LAST_LINES_WITHIN);
            let _ = events.send(Event::Closed(number));
        });
        Ok(Remote { child, orders })
    }

    /// Tells the part something; one that is gone hears nothing.
    pub(super) fn tell(&self, order: Order) {
        let _ = self.orders.send((order, None));
    }

    /// The same; `written` is dropped when that is done, or cannot be.
    pub(super) fn tell_and_drop(&self, order: Order, written: &Sender<()>) {
        let _ = self.orders.send((order, Some(written.clone())));
    }

    /// How the remote shell has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends the remote shell itself.
    pub(super) fn kill(&mut self) {
        if self.ended().is_none() {
            // It is not waited for yet, so its id means its group.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }

    /// Waits so long for its end, then kills it.
    pub(super) fn wait_or_kill(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        while self.ended().is_none() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.kill();
        self.child.wait().ok()
    }
}

fn write_orders(mut to: ChildStdin, queue: &Receiver<Queued>) {
    let mut write = || -> Result<()> {
        greet(&mut to, Side::Caller)?;
        queue.iter().try_for_each(|(order, _written)| send(&mut to, &order))
    };
    // A failure to write shows at the reading end.
    let _ = write();
}

fn read_news(
    from: ChildStdout,
    number: usize,
    events: &Sender<Event>,
    outlets: &Outlets,
    orders: &Sender<Queued>,
) -> Result<()> {
    let mut from = BufReader::new(from);
    if !meet(&mut from, Side::Part)? {
        return Ok(());
    }
    while let Some(news) = receive(&mut from)? {
        let is_heard = match news {
            News::Output { error, bytes } => {
                let (orders, written) = (orders.clone(), Order::Written { error, bytes: bytes.len() });
                // The part has credit for them: no more than that waits here.
                let tell = move || drop(orders.send((written, None)));
                outlets[usize::from(error)].send((bytes, Box::new(tell))).is_ok()
            }
            news => events.send(Event::News(number, news)).is_ok(),
        };
        if !is_heard {
            break;
        }
    }
    Ok(())
}

fn read_lines(from: impl Read, number: usize, events: &Sender<Event>) {
    let mut from = BufReader::new(from);
    let credit = Arc::new(Credit::new());
    let mut line = Vec::new();
    while {
        line.clear();
        matches!(from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..))
    } {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        let held = credit.hold(line.len());
        if events.send(Event::Line(number, Line { text, held })).is_err() {
            break;
        }
    }
}
