//! The agent's control socket in the run directory, at which programs of its host ask for its status.
//!
//! A thread of its own serves it, and passes the requests on to the agent's thread, which reads one word of memory to see that there
//! are none.
use crate::order::Order;
use crate::relay::Relay;
use crate::standing::{standing, trace};
use hectare_session::Time;
use hectare_transport::Waker;
use hectare_wire::{
    AgentReply, AgentRequest, AgentSocket, Received, RunDir, Socket, decode, encode, listen_as_agent,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tracing::warn;

/// The most connections at a time; a further one replaces the one that has been silent for longest.
const VISITORS: usize = 32;
/// How long the agent's thread may take.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How often the thread checks whether the agent has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

type Question = Box<dyn FnOnce(&mut Relay, Time) + Send>;

/// The questions of those who ask, for the agent's thread.
pub struct Questions {
    asked: Arc<AtomicBool>,
    questions: Receiver<Question>,
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Questions {
    /// No questions of any peer.
    pub fn none() -> Questions {
        Questions { asked: Arc::default(), questions: channel().1 }
    }

    /// Whether something was asked.
    pub(crate) fn are_there(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Answers what was asked.
    pub(crate) fn answer(&self, relay: &mut Relay, now: Time) {
        // Acquire: pairs with the release in `Asker::ask`. The question was sent before.
        if self.asked.swap(false, Ordering::Acquire) {
            self.questions.try_iter().for_each(|question| question(relay, now));
        }
    }
}

/// Asks the agent's thread.
struct Asker {
    asked: Arc<AtomicBool>,
    questions: Sender<Question>,
    waker: Waker,
}

impl Asker {
    fn ask<T: Send + 'static>(&self, look: impl FnOnce(&mut Relay, Time) -> T + Send + 'static) -> Option<T> {
        let (tell, told) = channel();
        self.questions.send(Box::new(move |relay, now| drop(tell.send(look(relay, now))))).ok()?;
        // Release: pairs with the acquire in `Questions::answer`.
        self.asked.store(true, Ordering::Release);
        self.waker.wake();
        told.recv_timeout(TIME_LIMIT).ok()
    }
}

/// The window, as long as this value is there.
#[derive(Debug)]
pub(crate) struct Window {
    place: AgentSocket,
    keepers: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    for_good: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Window {
    /// Opens the window of an agent, of the start `boot`, in the run directory of its daemon.
    pub(crate) fn open(
        order: &Order,
        boot: u64,
        dir: &RunDir,
        waker: Waker,
    ) -> io::Result<(Window, Questions)> {
        let failed = |error: hectare_wire::Error| io::Error::other(error.to_string());
        let (listener, place) = listen_as_agent(dir, &order.job, boot).map_err(failed)?;
        let (send, questions) = channel();
        let asked = Arc::<AtomicBool>::default();
        let mut window = Window {
            place,
            keepers: Arc::default(),
            ended: Arc::default(),
            for_good: Arc::default(),
            thread: None,
        };
        let asker = Asker { asked: asked.clone(), questions: send, waker };
        let (keepers, ended, for_good) =
            (window.keepers.clone(), window.ended.clone(), window.for_good.clone());
        let mut visitors = Visitors { listener, order: order.clone(), asker, visitors: Vec::new(), keepers };
        let serve = move || {
            // Acquire: pairs with the release in `Window::close`.
            while !ended.load(Ordering::Acquire) {
                visitors.turn();
            }
            visitors.part(for_good.load(Ordering::Relaxed));
        };
        window.thread = Some(std::thread::Builder::new().name("window".into()).spawn(serve)?);
        Ok((window, Questions { asked, questions }))
    }

    /// Whether somebody wants the agent to stay.
    pub(crate) fn is_kept(&self) -> bool {
        self.keepers.load(Ordering::Relaxed) > 0
    }

    /// Closes it: the agent ends, and is not to be followed by another if it is `for_good`.
    pub(crate) fn close(mut self, for_good: bool) {
        self.place.remove();
        self.for_good.store(for_good, Ordering::Relaxed);
        // Release: pairs with the acquire of the thread.
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Visitor {
    socket: Socket,
    keeps: bool,
    /// When it came, or asked last.
    heard: Instant,
}

/// Who asks.
struct Visitors {
    listener: Socket,
    order: Order,
    asker: Asker,
    visitors: Vec<Visitor>,
    keepers: Arc<AtomicUsize>,
}

impl Visitors {
    /// Waits for the next one who comes, asks or goes, but not long.
    fn turn(&mut self) {
        // Those who have it stay are never sent away.
        let more = self.visitors.iter().filter(|visitor| visitor.keeps).count() < VISITORS;
        let sockets = self.visitors.iter().map(|visitor| &visitor.socket);
        let all = sockets.chain(more.then_some(&self.listener));
        let mut set: Vec<PollFd<'_>> = all.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        if poll(&mut set, Some(&LOOK)).is_err() {
            return;
        }
        let ready: Vec<bool> = set.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(set);
        for place in (0..ready.len() - usize::from(more)).rev() {
            if ready[place] && self.serve(place).is_none() {
                self.visitors.swap_remove(place);
            }
        }
        if more && ready.last() == Some(&true) {
            self.welcome();
        }
        let keepers = self.visitors.iter().filter(|visitor| visitor.keeps).count();
        self.keepers.store(keepers, Ordering::Relaxed);
    }

    /// Lets the next one in.
    fn welcome(&mut self) {
        match self.listener.accept() {
            Ok(Some(socket)) => {
                let silent = self.visitors.iter().enumerate().filter(|(_, visitor)| !visitor.keeps);
                let longest = silent.min_by_key(|(_, visitor)| visitor.heard).map(|(place, _)| place);
                if let Some(place) = longest.filter(|_| self.visitors.len() >= VISITORS) {
                    self.visitors.swap_remove(place);
                }
                self.visitors.push(Visitor { socket, keeps: false, heard: Instant::now() });
            }
            Ok(None) => {}
            Err(error) => warn!(%error, "nobody can ask the agent now"),
        }
    }

    /// Answers one question; none if the visitor has to go.
    fn serve(&mut self, place: usize) -> Option<()> {
        let Ok(Received::Message(bytes, _)) = self.visitors[place].socket.receive() else { return None };
        self.visitors[place].heard = Instant::now();
        let reply = match decode::<AgentRequest>(&bytes) {
            Ok(AgentRequest::Stay) => {
                self.visitors[place].keeps = true;
                AgentReply::Stays
            }
            Ok(AgentRequest::Status) => {
                let order = self.order.clone();
                let standing = self.asker.ask(move |relay, now| standing(&order, relay, now));
                standing.map_or(AgentReply::Busy, |standing| AgentReply::Status(Box::new(standing)))
            }
            Ok(AgentRequest::Trace { area, after }) => {
                let order = self.order.clone();
                let steps = self.asker.ask(move |relay, now| trace(&order, relay, now, (&area, after)));
                steps.map_or(AgentReply::Busy, |steps| AgentReply::Trace(Box::new(steps)))
            }
            Err(error) => AgentReply::Malformed { what: error.to_string() },
        };
        // Who does not read its answers goes.
        self.visitors[place].socket.send(&encode(&reply).ok()?, None).ok()
    }

    fn part(&self, for_good: bool) {
        let Ok(reply) = encode(&AgentReply::EndsForGood) else { return };
        for keeper in self.visitors.iter().filter(|visitor| visitor.keeps && for_good) {
            // It may be gone.
            let _ = keeper.socket.send(&reply, None);
        }
    }
}
