//! A host as the caller sees it: the remote shell with the part behind it.
use super::message::{News, Order, Side, greet, meet, receive, send};
use crate::cli::parent_death::die_with_parent;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The most bytes of a line of the remote shell's that are kept.
const LONGEST_LINE: u64 = 4096;

/// A thing that happens to the caller.
#[derive(Debug)]
pub(super) enum Event {
    /// A host's part says something.
    News(usize, News),
    /// A host's remote shell, or `hectare` there, says a line on standard error.
    Line(usize, String),
    /// A part cannot be understood.
    Trouble(usize, String),
    /// The way to a host's part has ended.
    Closed(usize),
    /// Signals to the caller, and how many.
    Signal(Signal, usize),
}

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
    pub(super) fn start(words: &[String], number: usize, events: &Sender<Event>) -> Result<Remote> {
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
        let said = std::thread::spawn(move || read_lines(stderr, number, &lines));
        let events = events.clone();
        std::thread::spawn(move || {
            if let Err(error) = read_news(stdout, number, &events) {
                let _ = events.send(Event::Trouble(number, format!("{error:#}")));
            }
            // Its last line says why it ended.
            let _ = said.join();
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

    /// Waits for it.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
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

fn read_news(from: ChildStdout, number: usize, events: &Sender<Event>) -> Result<()> {
    let mut from = BufReader::new(from);
    if !meet(&mut from, Side::Part)? {
        return Ok(());
    }
    while let Some(news) = receive(&mut from)? {
        if events.send(Event::News(number, news)).is_err() {
            break;
        }
    }
    Ok(())
}

fn read_lines(from: impl Read, number: usize, events: &Sender<Event>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while {
        line.clear();
        matches!(from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..))
    } {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if events.send(Event::Line(number, text)).is_err() {
            break;
        }
    }
}
