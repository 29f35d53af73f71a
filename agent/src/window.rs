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
    AgentReply, AgentRequest, AgentSocket, Received, Result, RunDir, Socket, decode, encode,
    listen_again_as_agent, listen_as_agent,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// The most connections at a time; a further one replaces the one that has been silent for longest.
const VISITORS: usize = 32;
/// How long the agent's thread may take.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How often the thread checks whether the agent has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How often it checks whether its socket is there, as the daemon does with its own.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The pause after a system call that failed for want of something.
const PAUSE: Duration = Duration::from_millis(100);

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
    place: Arc<Place>,
    keepers: Arc<AtomicUsize>,
    for_good: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Where the agent is asked. Others may remove its socket, or the run directory.
#[derive(Debug)]
struct Place {
    dir: RunDir,
    job: String,
    boot: u64,
    /// The socket, if it could be made.
    socket: Mutex<Option<AgentSocket>>,
    ended: AtomicBool,
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Option<AgentSocket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the socket, in place of those of agents before this one.
    fn take(&self) -> Result<Socket> {
        let (listener, socket) = listen_as_agent(&self.dir, &self.job, self.boot)?;
        *self.lock() = Some(socket);
        Ok(listener)
    }

    /// Makes the socket again if it is not there, and nobody else has its place: the listener that is new.
    fn keep(&self) -> Result<Option<Socket>> {
        let mut socket = self.lock();
        // Acquire: pairs with the release in `leave`, which removes the socket after it.
        if self.ended.load(Ordering::Acquire) || socket.as_ref().is_some_and(AgentSocket::is_there) {
            return Ok(None);
        }
        let Some((listener, made)) = listen_again_as_agent(&self.dir, &self.job, self.boot)? else {
            return Ok(None);
        };
        *socket = Some(made);
        Ok(Some(listener))
    }

    /// Removes the socket, which is not made again.
    fn leave(&self) {
        // Release: pairs with the acquire in `keep`, and with that of the thread.
        self.ended.store(true, Ordering::Release);
        if let Some(socket) = self.lock().take() {
            socket.remove();
        }
    }
}

impl Window {
    /// Opens the window of an agent, of the start `boot`, in the run directory of its daemon.
    pub(crate) fn open(
        order: &Order,
        boot: u64,
        dir: &RunDir,
        waker: Waker,
    ) -> io::Result<(Window, Questions)> {
        let (socket, ended) = Default::default();
        let place = Arc::new(Place { dir: dir.clone(), job: order.job.clone(), boot, socket, ended });
        let listener = place.take();
        let is_failing = listener.is_err();
        if let Err(error) = &listener {
            warn!(job = order.job, %error, "nobody can ask the agent how it stands; it tries again to listen");
        }
        let (send, questions) = channel();
        let asked = Arc::<AtomicBool>::default();
        let asker = Asker { asked: asked.clone(), questions: send, waker };
        let (keepers, for_good) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let mut visitors = Visitors {
            listener: listener.ok(),
            place: place.clone(),
            checked: Instant::now(),
            is_failing,
            order: order.clone(),
            asker,
            visitors: Vec::new(),
            keepers: keepers.clone(),
        };
        let is_for_good = for_good.clone();
        let serve = move || {
            // Acquire: pairs with the release in `Place::leave`.
            while !visitors.place.ended.load(Ordering::Acquire) {
                visitors.turn();
            }
            visitors.part(is_for_good.load(Ordering::Relaxed));
        };
        let thread = Some(std::thread::Builder::new().name("window".into()).spawn(serve)?);
        Ok((Window { place, keepers, for_good, thread }, Questions { asked, questions }))
    }

    /// Whether somebody wants the agent to stay.
    pub(crate) fn is_kept(&self) -> bool {
        self.keepers.load(Ordering::Relaxed) > 0
    }

    /// Closes it: the agent ends, and is not to be followed by another if it is `for_good`.
    pub(crate) fn close(mut self, for_good: bool) {
        self.for_good.store(for_good, Ordering::Relaxed);
        self.place.leave();
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
    listener: Option<Socket>,
    place: Arc<Place>,
    /// When the socket was looked for last.
    checked: Instant,
    /// Whether the last try to let somebody in failed, so that one warning is enough.
    is_failing: bool,
    order: Order,
    asker: Asker,
    visitors: Vec<Visitor>,
    keepers: Arc<AtomicUsize>,
}

impl Visitors {
    /// Waits for the next one who comes, asks or goes, but not long.
    fn turn(&mut self) {
        if self.checked.elapsed() >= CHECK_EVERY {
            self.checked = Instant::now();
            self.check();
        }
        // Those who have it stay are never sent away.
        let more = self.visitors.iter().filter(|visitor| visitor.keeps).count() < VISITORS;
        let listener = self.listener.as_ref().filter(|_| more);
        let more = listener.is_some();
        let sockets = self.visitors.iter().map(|visitor| &visitor.socket);
        let all = sockets.chain(listener);
        let mut set: Vec<PollFd<'_>> = all.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut set, Some(&LOOK)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return,
            // Out of memory.
            Err(_) => return std::thread::sleep(PAUSE),
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

    /// Looks whether the socket is there, and makes it again if not.
    fn check(&mut self) {
        match self.place.keep() {
            Ok(None) => {}
            Ok(Some(listener)) => {
                info!(job = self.order.job, "the agent's socket was not there; it is made again");
                (self.listener, self.is_failing) = (Some(listener), false);
            }
            Err(error) => self.fail(&error, "the agent's socket is not there, and cannot be made yet"),
        }
    }

    /// Says once that nobody can ask the agent.
    fn fail(&mut self, error: &hectare_wire::Error, what: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            warn!(job = self.order.job, %error, "nobody can ask the agent how it stands: {what}");
        }
    }

    /// Lets the next one in.
    fn welcome(&mut self) {
        match self.listener.as_ref().map_or(Ok(None), Socket::accept) {
            Ok(Some(socket)) => {
                self.is_failing = false;
                let silent = self.visitors.iter().enumerate().filter(|(_, visitor)| !visitor.keeps);
                let longest = silent.min_by_key(|(_, visitor)| visitor.heard).map(|(place, _)| place);
                if let Some(place) = longest.filter(|_| self.visitors.len() >= VISITORS) {
                    self.visitors.swap_remove(place);
                }
                self.visitors.push(Visitor { socket, keeps: false, heard: Instant::now() });
            }
            Ok(None) => {}
            Err(error) => {
                self.fail(&error, "no connection can be taken");
                // Out of descriptors, most likely: the connection waits, and this must not spin on it.
                std::thread::sleep(PAUSE);
            }
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
