//! The caller of a program on several hosts: it starts the parts on the hosts, passes signals on and output back, and names the
//! process that failed first.
use super::super::Run;
use super::super::output::Output;
use super::super::signals::{Signals, ends};
use super::super::supervise::{Cause, code_of};
use super::address::is_here;
use super::host::{Host, State, check_answers};
use super::message::{Make, News, Order, Prepare};
use super::remote::{Event, Line, Outlets};
use super::start::{prepare_make, start_all};
use crate::cli::failure::{HostFailed, Usage};
use crate::hosts::{Place, Plan};
use crate::logging::Sink;
use anyhow::{Context, Result, bail};
use hectare_wire::{RunDir, check_job_name};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::poll;
use rustix::process::{Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How much longer than its processes a part may take to end.
const PART_WITHIN: Duration = Duration::from_secs(5);

/// The same of a part that has not begun its processes: its daemon does not answer.
const UNBEGUN_WITHIN: Duration = Duration::from_secs(1);

/// How long it is waited for orders to be written, before this process stops.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// How long a remote shell may take to end when it has closed its output.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// The first failure of a rank: its rank, its status, what it is a case of, and when it becomes the one that is named.
struct First {
    rank: u32,
    status: ExitStatus,
    cause: Cause,
    decided_at: Instant,
}

struct Conductor<'a> {
    what: &'a Run,
    hosts: Vec<Host>,
    events: Receiver<Event>,
    outlets: Outlets,
    voice: &'a Sink,
    first: Option<First>,
    code: Option<u8>,
    /// When the remote shells of those that were told to end are killed.
    kill_at: Option<Instant>,
}

/// Runs the program on the hosts of a plan; the exit code. Each host's daemon is that of the named run directory, or of its user's.
///
/// # Errors
/// A host that cannot take part, before anything is started: [`HostFailed`].
pub(in super::super) fn conduct(named: Option<&RunDir>, what: &Run, plan: &Plan) -> Result<u8> {
    let mut id = [0; 16];
    let random = SystemRandom::new().fill(&mut id);
    random.map_err(|_| anyhow::anyhow!("the system provides no random numbers"))?;
    let own = || format!("run-{}", id[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let job = what.job.clone().unwrap_or_else(own);
    check_job_name(&job).map_err(hectare_wire::Error::Refused)?;
    let run_dir = named.map(path_of).transpose()?;
    let make = prepare_make(what, plan, job, id)?;
    // Names may be looked up for long: Ctrl-C still ends this process meanwhile.
    let here: Vec<bool> = plan.places.iter().map(|place| is_here(&place.name, place.address)).collect();
    let signals = Arc::new(Signals::catch()?);
    let voice = Sink::start().context("starting a thread")?;
    let output = Output::new(voice.clone())?;
    let (sender, events) = channel();
    let outlets = [output.queue(false), output.queue(true)];
    let hosts = start_all(what, (plan, &here), &sender, &outlets)?;
    let heard = signals.clone();
    std::thread::spawn(move || pass_signals_on(&heard, &sender));
    let mut conductor =
        Conductor { what, hosts, events, outlets, voice: &voice, first: None, code: None, kill_at: None };
    let ended = conductor.run(run_dir.as_deref(), plan, make);
    conductor.finish();
    let Conductor { events, outlets, kill_at, .. } = conductor;
    drop(outlets);
    let mut is_to_end = kill_at.is_some();
    output.finish(|| {
        is_to_end |= events.try_iter().any(|event| matches!(event, Event::Signal(signal, _) if ends(signal)));
        is_to_end
    });
    ended
}

/// A run directory as other hosts are told.
fn path_of(dir: &RunDir) -> Result<String> {
    let path = std::path::absolute(dir.path()).context("the run directory")?;
    let path = path.into_os_string().into_string();
    path.map_err(|path| anyhow::anyhow!("--run-dir {}: it is no UTF-8", path.display())).usage()
}

fn pass_signals_on(signals: &Signals, events: &Sender<Event>) {
    loop {
        let mut fds: Vec<_> = signals.fds().collect();
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for (signal, count) in signals.came() {
            if events.send(Event::Signal(signal, count)).is_err() {
                return;
            }
        }
    }
}

impl Conductor<'_> {
    fn run(&mut self, run_dir: Option<&str>, plan: &Plan, mut make: Make) -> Result<u8> {
        let deadline = Instant::now() + self.what.on.timeout();
        for (number, host) in self.hosts.iter().enumerate() {
            let others = plan.places.iter().enumerate().filter(|(other, _)| *other != number);
            let name = |place: &Place| place.address.map_or_else(|| place.name.clone(), |a| a.to_string());
            host.remote.tell(Order::Prepare(Prepare {
                run_dir: run_dir.map(str::to_owned),
                address: host.place.address,
                interface: self.what.on.interface.clone(),
                others: others.map(|(_, place)| name(place)).collect(),
                port: self.what.on.port(),
                transport: self.what.on.transport,
            }));
        }
        if let Some(code) = self.gather(State::Here, deadline)? {
            return Ok(code);
        }
        check_answers(&self.hosts)?;
        for (host, known) in make.hosts.iter_mut().zip(&self.hosts) {
            let at = known.at.context("an answer without an address")?;
            (host.address, host.dpdk) = (at.address, at.dpdk);
        }
        for (index, host) in (0..).zip(&self.hosts) {
            host.remote.tell(Order::Make(Box::new(Make { index, ..make.clone() })));
        }
        if let Some(code) = self.gather(State::Made, deadline)? {
            return Ok(code);
        }
        for host in &mut self.hosts {
            host.state = State::Runs;
            host.remote.tell(Order::Go);
        }
        self.supervise()
    }

    /// Waits until all hosts are so far. A signal that ends programs ends this one: its exit code.
    fn gather(&mut self, state: State, deadline: Instant) -> Result<Option<u8>> {
        while let Some(waited_for) = self.hosts.iter().find(|host| host.state < state) {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = match self.events.recv_timeout(left) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return Err(self.silent(waited_for)),
                Err(RecvTimeoutError::Disconnected) => bail!("all threads have ended"),
            };
            match event {
                Event::Signal(Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT, _) => {
                    let Event::Signal(signal, _) = event else { continue };
                    return Ok(u8::try_from(128 + signal.as_raw()).ok());
                }
                Event::Signal(..) => {}
                Event::Line(number, line) => self.hosts[number].keep(line),
                Event::News(number, News::Here { at, cluster, fingerprint }) => {
                    let host = &mut self.hosts[number];
                    (host.at, host.key) = (Some(at), (cluster, fingerprint));
                    host.state = State::Here;
                }
                Event::News(number, News::Made) => self.hosts[number].state = State::Made,
                Event::News(number, News::Refused { code, what }) => {
                    return Err(self.hosts[number].failed(what, code));
                }
                Event::News(..) => {}
                Event::Trouble(number, what) => return Err(self.hosts[number].failed(what, HostFailed::CODE)),
                Event::Closed(number) => {
                    let what = self.why_closed(number);
                    return Err(self.hosts[number].failed(what, HostFailed::CODE));
                }
            }
        }
        for number in 0..self.hosts.len() {
            for line in std::mem::take(&mut self.hosts[number].said) {
                self.pass_on(number, line);
            }
        }
        Ok(None)
    }

    fn silent(&self, host: &Host) -> anyhow::Error {
        let address = host.at.map(|at| format!(" ({})", at.address.ip()));
        let address =
            address.or(host.place.address.map(|address| format!(" ({address})"))).unwrap_or_default();
        let said =
            host.said.back().map(|line| format!("; its last words: {}", line.text)).unwrap_or_default();
        let what = format!("no answer within {} s{said}", self.what.on.timeout().as_secs_f64());
        HostFailed { host: format!("{}{address}", host.place.name), what, code: HostFailed::CODE }.into()
    }

    fn why_closed(&mut self, number: usize) -> String {
        let host = &mut self.hosts[number];
        let status = host.remote.wait_or_kill(CLOSED_WITHIN);
        let status = status.map_or_else(|| "ended".to_owned(), |status| status.to_string());
        let said = host.said.back().map(|line| format!(": {}", line.text)).unwrap_or_default();
        format!("the remote shell ended before `hectare` there was done ({status}){said}")
    }

    /// Goes with the processes until all hosts are done.
    fn supervise(&mut self) -> Result<u8> {
        while self.hosts.iter().any(|host| host.state == State::Runs) {
            let decide = self.first.as_ref().filter(|_| self.code.is_none()).map(|first| first.decided_at);
            let next = decide.into_iter().chain(self.kill_at).min();
            let event = match next {
                Some(at) => self.events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(event) => self.on(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("all threads have ended"),
            }
            if decide.is_some_and(|at| Instant::now() >= at) {
                self.decide();
            }
            if self.kill_at.is_some_and(|at| Instant::now() >= at) {
                self.give_up();
            }
        }
        self.decide();
        Ok(self.code.unwrap_or(0))
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Signal(signal, count) => self.on_signal(signal, count),
            Event::Line(number, line) => self.pass_on(number, line),
            Event::News(number, News::Failed { rank, status, follows }) => {
                self.rank_failed(number, rank, ExitStatus::from_raw(status), follows);
            }
            Event::News(number, News::Lost { host, cause }) => self.host_lost(number, &host, &cause),
            Event::News(number, News::Done) => self.hosts[number].state = State::Done,
            Event::News(number, News::Refused { code, what }) => self.host_failed(number, &what, code),
            Event::News(_, News::Here { .. } | News::Made | News::Output { .. }) => {}
            Event::Trouble(number, what) => self.lost(number, &what),
            Event::Closed(number) => {
                let what = self.why_closed(number);
                self.lost(number, &what);
            }
        }
    }

    /// Says what a host cannot do, and ends the others.
    fn host_failed(&mut self, number: usize, what: &str, code: u8) {
        if self.kill_at.is_none() || self.code.is_none() {
            self.voice.say(&format!(
                "hectare: host {}: {what}; the others are terminated",
                self.hosts[number].name()
            ));
        }
        self.code.get_or_insert(code);
        self.end(Signal::TERM);
    }

    /// The agent on a host says that another one is lost, or its own. What ranks fail of then is a consequence.
    fn host_lost(&mut self, number: usize, host: &str, cause: &str) {
        if self.kill_at.is_none() {
            let by = self.hosts[number].name();
            let is_itself = host.split(" (").next() == Some(&self.hosts[number].place.name);
            let says = if is_itself { String::new() } else { format!(", says host {by}") };
            self.voice
                .say(&format!("hectare: host {host} is lost{says}: {cause}; the others are terminated"));
        }
        self.code.get_or_insert(HostFailed::CODE);
        self.end(Signal::TERM);
    }

    fn lost(&mut self, number: usize, what: &str) {
        let before = std::mem::replace(&mut self.hosts[number].state, State::Gone);
        if before == State::Runs {
            self.host_failed(number, what, HostFailed::CODE);
        }
    }

    fn rank_failed(&mut self, number: usize, rank: u32, status: ExitStatus, follows: bool) {
        let told_to_end = self.kill_at.is_some();
        let cause = Cause::of(status, follows);
        let decided_at = Instant::now() + cause.worse_within();
        match &mut self.first {
            _ if self.code.is_some() || told_to_end => {
                if !told_to_end && self.what.keep_going {
                    self.voice.say(&format!(
                        "hectare: rank {rank} on host {} failed: {status}",
                        self.hosts[number].name()
                    ));
                }
                self.code.get_or_insert(code_of(status));
            }
            None => self.first = Some(First { rank, status, cause, decided_at }),
            Some(first) if cause < first.cause => {
                let decided_at = decided_at.min(first.decided_at);
                *first = First { rank, status, cause, decided_at };
            }
            Some(_) => {}
        }
    }

    /// Names the first failure, if there is one that is not named yet, and ends the others.
    fn decide(&mut self) {
        let Some(First { rank, status, .. }) = self.first.take() else { return };
        if self.code.is_some() {
            return;
        }
        self.code = Some(code_of(status));
        let number = self.hosts.iter().position(|host| host.place.ranks.contains(&rank));
        let host = number.map(|number| self.hosts[number].name()).unwrap_or_default();
        let others = if self.what.keep_going { "go on" } else { "are terminated" };
        self.voice
            .say(&format!("hectare: rank {rank} on host {host} failed first: {status}; the others {others}"));
        if !self.what.keep_going {
            self.end(Signal::TERM);
        }
    }

    /// Writes a line of a host's remote shell behind the host's name.
    fn pass_on(&self, number: usize, line: Line) {
        let Line { text, held } = line;
        let bytes = format!("{}: {text}\n", self.hosts[number].place.name).into_bytes();
        // It ends after all that send.
        let _ = self.outlets[1].send((bytes, Box::new(move || drop(held))));
    }

    fn tell_all(&self, order: &Order) {
        self.hosts.iter().for_each(|host| host.remote.tell(order.clone()));
    }

    fn on_signal(&mut self, signal: Signal, count: usize) {
        match signal {
            Signal::CHILD => {}
            Signal::TSTP => {
                // It must be on its way: the threads that write it stop with this process.
                let (written, all_written) = channel();
                for host in &self.hosts {
                    host.remote.tell_and_drop(Order::Signal(signal.as_raw()), &written);
                }
                drop(written);
                let _ = all_written.recv_timeout(WRITTEN_WITHIN);
                let since = Instant::now();
                // It stops here, and goes on when it is told to.
                let _ = kill_process(getpid(), Signal::STOP);
                self.kill_at = self.kill_at.map(|at| at + since.elapsed());
                self.tell_all(&Order::Signal(Signal::CONT.as_raw()));
            }
            Signal::INT | Signal::QUIT if self.kill_at.is_some() || count > 1 => {
                self.voice.say("hectare: the processes are killed");
                self.tell_all(&Order::Kill);
                self.kill_at = Some(Instant::now() + PART_WITHIN);
            }
            Signal::INT | Signal::QUIT | Signal::TERM | Signal::HUP => self.end(signal),
            other => self.tell_all(&Order::Signal(other.as_raw())),
        }
    }

    /// Has all parts end their processes; they kill them after the grace.
    fn end(&mut self, signal: Signal) {
        self.tell_all(&Order::Signal(signal.as_raw()));
        if self.kill_at.is_none() {
            self.kill_at = Some(Instant::now() + Duration::from_secs(self.what.grace_s) + PART_WITHIN);
        }
    }

    /// Gives up those that do not say that their processes have ended.
    fn give_up(&mut self) {
        for number in 0..self.hosts.len() {
            if self.hosts[number].state == State::Runs {
                let name = self.hosts[number].name();
                self.voice.say(&format!("hectare: host {name} does not say that its processes have ended"));
                self.hosts[number].state = State::Gone;
                self.code.get_or_insert(HostFailed::CODE);
            }
        }
    }

    /// Has all parts leave the job, and waits for their remote shells for a while.
    fn finish(&mut self) {
        self.tell_all(&Order::Leave);
        // Who never answered would not hear it either.
        let silent = self.hosts.iter_mut().filter(|host| host.state == State::Started);
        silent.for_each(|host| host.remote.kill());
        let has_begun = self.hosts.iter().any(|host| host.state >= State::Runs);
        let until = Instant::now() + if has_begun { PART_WITHIN } else { UNBEGUN_WITHIN };
        while Instant::now() < until && self.hosts.iter_mut().any(|host| host.remote.ended().is_none()) {
            let event = self.events.recv_timeout(Duration::from_millis(10));
            if let Ok(Event::Signal(Signal::INT | Signal::QUIT, _)) = event {
                break;
            }
        }
        for host in &mut self.hosts {
            let _ = host.remote.wait_or_kill(Duration::ZERO);
        }
    }
}
