//! The thread of the agent: it polls the socket and the memory for a while after the last work, then sleeps.
//!
//! It sleeps on the socket. The memory's bell is a futex, so a second thread sleeps on that and wakes the first. It does so only while the
//! first one sleeps, so that a publication never causes a needless wake-up. Waiting on both at once would need `io_uring`; polling the
//! bell at intervals would cost a wake-up per millisecond, and up to a millisecond of delay.
use crate::failure::Failure;
use crate::relay::Relay;
use crate::window::Questions;
use hectare_dsm::agent::Bell;
use hectare_session::{Batch, Time};
use hectare_transport::{Idle, Sending, Transport};
use std::cell::Cell;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Bursts between two looks for datagrams.
const BURSTS: usize = 8;
/// The longest sleep on the bell.
const LONGEST: Duration = Duration::from_secs(1);
/// Between two questions whether the program has ended.
const ASKS: Duration = Duration::from_millis(200);
/// For so long, workers are given time to end a round that is under way when something has come; a yield may last longer.
const ROUND: Duration = Duration::from_micros(5);
/// For so long after it, to answer.
const ANSWER: Duration = Duration::from_micros(2);
/// For how long others are told that the job has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// How far this host's part of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It runs, or is about to.
    Runs,
    /// No worker is here. Programs without one may come with the next daemon, unless all workers have come and gone.
    Waits,
    /// It has ended.
    Over,
    /// It never began, since the job did not start on another host: there is nothing to tell, and perhaps nobody to tell it.
    GivenUp,
}

/// Runs an agent whose time began at `since`, until the job has failed or is given up, or `stage` has said that this host's part of
/// the program is over, and others have all that it had.
///
/// # Errors
/// If the transport is broken.
pub fn serve(
    mut relay: Relay,
    transport: &mut impl Transport,
    since: Instant,
    questions: &Questions,
    mut stage: impl FnMut() -> Stage,
) -> io::Result<Option<Failure>> {
    let now = || Time::from_nanos(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let waker = transport.waker();
    if let Some(descriptor) = relay.memory().placer().event_descriptor() {
        transport.watch(descriptor);
    }
    let sleeper = Sleeper::start(LONGEST, move || waker.wake())?;
    let mut idle = Idle::default();
    let (mut asked, mut failed) = (Instant::now(), None);
    loop {
        let was_in_round = relay.memory().agent().is_in_round();
        let came = transport.receive(&mut |from, congested, datagram| {
            relay.receive(now(), from, congested, datagram);
        })?;
        relay.work(now());
        if came > 0 && !was_in_round {
            attend(&mut relay, &mut idle, &now);
        }
        if questions.are_there() {
            relay.note_transport(transport.counters());
            questions.answer(&mut relay, now());
        }
        let sent = transmit(&mut relay, transport, &now)?;
        if relay.failure().is_some() && failed.get_or_insert_with(Instant::now).elapsed() > FAREWELL {
            return Ok(relay.failure().cloned());
        }
        if asked.elapsed() > ASKS {
            asked = Instant::now();
            match stage() {
                Stage::Waits if relay.memory().is_deserted() => relay.leave(),
                Stage::Runs | Stage::Waits => {}
                Stage::Over => relay.leave(),
                // After a failure of a host, the others are told of it first.
                Stage::GivenUp if relay.failure().is_none() => return Ok(None),
                Stage::GivenUp => {}
            }
        }
        if relay.is_done() {
            return Ok(None);
        }
        let time = now();
        let longest = relay.next_timeout(time).since(time).min(ASKS);
        let bell = relay.memory().bell();
        let worked = came > 0 || sent > 0 || bell.has_rung();
        if idle.is_to_sleep(worked || longest.is_zero())
            && relay.may_sleep()
            && let Some(longest) = bell.before_sleep(longest)
        {
            sleeper.sleep_on(bell);
            transport.wait(longest)?;
        }
    }
}

/// Something came. If it has opened a round, workers drive that, who may share this processor, and may answer at once: what they
/// say goes along with what is to be said of the round, in one datagram.
fn attend(relay: &mut Relay, idle: &mut Idle, now: &impl Fn() -> Time) {
    let (since, mut gave_way) = (Instant::now(), false);
    while relay.memory().agent().is_in_round() && since.elapsed() < ROUND && idle.give_way() {
        gave_way = true;
    }
    if gave_way {
        relay.work(now());
        let (since, bell) = (Instant::now(), relay.memory().bell());
        while !bell.has_rung() && since.elapsed() < ANSWER && idle.give_way() {}
        if bell.has_rung() {
            relay.work(now());
        }
    }
}

/// Sends what there is, but no more than some bursts; how many.
fn transmit(relay: &mut Relay, transport: &mut impl Transport, now: &impl Fn() -> Time) -> io::Result<usize> {
    for sent in 0..BURSTS {
        let max_packets = transport.facts().max_packets;
        let mut batch = Batch::new(transport.buffer(), max_packets);
        relay.transmit(now(), &mut batch);
        let Some(to) = batch.destination() else { return Ok(sent) };
        let sending = Sending { to, bytes: batch.bytes().len(), segment: batch.segment_size() };
        transport.send(sending)?;
    }
    Ok(BURSTS)
}

/// The thread that sleeps on the bell.
struct Sleeper {
    bells: Sender<Bell>,
    /// One word for each bell that it is done with.
    done: Receiver<()>,
    /// Whether it sleeps.
    sleeps: Cell<bool>,
}

impl Sleeper {
    /// A thread that sleeps for `longest` at most, and calls `wake` when it has slept.
    fn start(longest: Duration, wake: impl Fn() + Send + 'static) -> io::Result<Sleeper> {
        let (bells, asked) = channel::<Bell>();
        let (tell, done) = channel();
        std::thread::Builder::new().name("bell".into()).spawn(move || {
            while let Ok(bell) = asked.recv() {
                bell.wait(longest);
                let _ = tell.send(());
                wake();
            }
        })?;
        Ok(Sleeper { bells, done, sleeps: Cell::new(false) })
    }

    /// Has the thread sleep on the bell, if it does not.
    fn sleep_on(&self, bell: Bell) {
        if self.sleeps.get() && self.done.try_recv().is_err() {
            return;
        }
        self.sleeps.set(self.bells.send(bell).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dsm::Job;

    #[test]
    fn who_sleeps_is_woken_for_the_end_of_a_round_that_the_agent_waits_for_since() {
        let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
        let (mut agent, mut worker) = (job.agent().unwrap(), job.worker().unwrap());
        agent.ring_for_chosen();
        agent.look(&mut Vec::new());
        let (tell, told) = channel();
        // It wakes for nothing else: without a watchdog, a sleep that nobody ends would last an hour.
        let hour = Duration::from_secs(3600);
        let sleeper = Sleeper::start(hour, move || {
            let _ = tell.send(());
        })
        .unwrap();
        sleeper.sleep_on(agent.bell(false));
        // It may sleep by now, or not yet.
        assert!(told.recv_timeout(Duration::from_millis(20)).is_err(), "nothing has rung");
        agent.look(&mut Vec::new());
        let bell = agent.bell(true);
        assert!(bell.before_sleep(hour).is_some_and(|longest| longest < hour), "its driver may be dead");
        sleeper.sleep_on(bell);
        worker.sync().unwrap();
        told.recv_timeout(Duration::from_secs(60)).expect("the thread sleeps on");
        // Of a round that is not waited for, it hears nothing.
        agent.look(&mut Vec::new());
        sleeper.sleep_on(agent.bell(false));
        worker.sync().unwrap();
        assert!(told.recv_timeout(Duration::from_millis(20)).is_err(), "nobody waits for this one");
        // One that has ended is not waited for.
        let bell = agent.bell(true);
        assert!(bell.has_rung() && bell.before_sleep(hour).is_none());
    }
}
