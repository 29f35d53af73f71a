//! The part of a run on one host: it makes this host's part of the job, starts its ranks, and does what the caller says.
//!
//! When the caller is gone, by whatever means, its pipe ends; then all processes of the part are killed.
use super::super::output::Output;
use super::super::processes::{Process, Program};
use super::super::room::check_room;
use super::super::signals::{Signals, ends};
use super::super::supervise::Supervisor;
use super::super::terminal::Terminal;
use super::address::{Place, own_place};
use super::credit::Credit;
use super::message::{Here, Make, News, Order, PIECE, Prepare, Side, greet, meet, receive, send};
use crate::cli::{exit, failure::HostFailed, output::one_line};
use crate::config::Config;
use crate::key_file;
use crate::logging::Sink;
use anyhow::{Context, Result};
use hectare_dsm::Job;
use hectare_wire::{Connection, JobHost, JobHosts, JobSettings, Member, Request, RunDir};
use rustix::process::Signal;
use std::fs::File;
use std::io::BufReader;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Who started this part: the other end of standard output.
#[derive(Debug)]
struct Caller {
    to: Mutex<File>,
    /// How much of standard output and of standard error it takes.
    credit: [Credit; 2],
}

impl Caller {
    fn tell(&self, news: &News) -> std::io::Result<()> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut *to, news).map_err(std::io::Error::other)
    }

    /// Passes on what a process has printed.
    fn output(&self, error: bool, bytes: &[u8]) -> std::io::Result<()> {
        bytes.chunks(PIECE).try_for_each(|piece| {
            self.credit[usize::from(error)].take(piece.len());
            self.tell(&News::Output { error, bytes: piece.to_vec() })
        })
    }

    /// Says who has failed. A caller that is gone ends this part by the end of its pipe.
    fn failed(&self, rank: u32, status: ExitStatus, follows: bool) {
        let _ = self.tell(&News::Failed { rank, status: status.into_raw(), follows });
    }
}

/// The orders of the caller.
type Orders = BufReader<File>;

/// A job that is made, and what holds it.
struct Made {
    dir: RunDir,
    member: Member,
    shared: Job,
    make: Make,
}

/// Runs the part. What goes wrong is the caller's to say.
///
/// # Errors
/// Standard input and output that are not the caller's.
pub(in super::super) fn part(dir: &RunDir) -> Result<u8> {
    let end = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from).context("dup");
    let mut out = end(std::io::stdout().as_fd())?;
    let mut orders = BufReader::new(end(std::io::stdin().as_fd())?);
    greet(&mut out, Side::Part)?;
    let caller = Arc::new(Caller { to: Mutex::new(out), credit: [Credit::new(), Credit::new()] });
    match run(dir, &caller, &mut orders) {
        Ok(()) => Ok(0),
        Err(error) => {
            // Nothing runs yet: this host cannot take part.
            let code = match exit::code_of(&error) {
                1 => HostFailed::CODE,
                code => code,
            };
            caller.tell(&News::Refused { code, what: one_line(&error) })?;
            caller.tell(&News::Done)?;
            // The caller ends it, so that it has read this before it sees the end.
            while receive::<Order>(&mut orders)?.is_some_and(|order| order != Order::Leave) {}
            Ok(code)
        }
    }
}

fn run(dir: &RunDir, caller: &Arc<Caller>, orders: &mut Orders) -> Result<()> {
    if !meet(orders, Side::Caller)? {
        return Ok(());
    }
    let Some((made, signals)) = prepare(dir, caller, orders)? else { return Ok(()) };
    let Made { dir, member, shared, make } = made;
    let ranks = |hosts: &[JobHost]| hosts.iter().map(|host| host.ranks).sum::<u32>();
    let index = usize::from(make.index);
    let (first, size) = (ranks(&make.hosts[..index]), ranks(&make.hosts));
    let own = first..first + make.hosts[index].ranks;
    own.clone().for_each(|rank| drop(shared.expect(rank)));
    let program = Program {
        words: make.program,
        variables: make.variables,
        size,
        writes: false,
        prefixed: !make.plain,
    };
    let voice = Sink::start().context("starting a thread")?;
    let to = caller.clone();
    let output = Output::to_caller(move |error, bytes| to.output(error, bytes), voice.clone());
    let on_failure = |rank, status| {
        if let Err(hectare_dsm::Error::PeerFailed { host, cause }) = shared.check_hosts() {
            let _ = caller.tell(&News::Lost { host, cause });
        }
        caller.failed(rank, status, shared.is_consequence(rank));
    };
    let mut supervisor = Supervisor {
        processes: Vec::new(),
        signals: &signals,
        shared: &shared,
        voice: &voice,
        keep_going: make.keep_going,
        is_launched: false,
        grace: Duration::from_secs(make.grace_s),
        terminal: Terminal::none(),
        wait_for_terminal: Vec::new(),
        kill_at: None,
        kills: 0,
        has_said_what_is_left: false,
        first_failure: None,
        on_failure: Some(&on_failure),
    };
    let started: Result<()> = own.clone().try_for_each(|rank| {
        supervisor.processes.push(Process::start(&dir, &program, &make.job, rank, &output)?);
        Ok(())
    });
    if let Err(error) = &started {
        supervisor.end(Signal::TERM);
        caller.tell(&News::Refused { code: exit::code_of(error), what: one_line(error) })?;
    }
    let (left, leave) = channel::<()>();
    std::thread::scope(|scope| -> Result<()> {
        let signals = &signals;
        scope.spawn(move || {
            let _left = left;
            obey(orders, signals, &caller.credit);
        });
        let ended = supervisor.supervise();
        let mut is_to_end = supervisor.kill_at.is_some();
        output.finish(|| {
            is_to_end |= signals.came().iter().any(|(signal, _)| ends(*signal));
            is_to_end
        });
        match ended {
            Ok(_) => {}
            Err(error) => caller.tell(&News::Refused { code: 1, what: one_line(&error) })?,
        }
        caller.tell(&News::Done)?;
        // The job is here until all hosts are done: others may still read what this one has published.
        let _ = leave.recv();
        Ok(())
    })?;
    drop(member);
    Ok(())
}

/// Answers the caller's questions, and makes the job; `None` if the caller is gone or gave up before the ranks were to start.
fn prepare(dir: &RunDir, caller: &Caller, orders: &mut Orders) -> Result<Option<(Made, Signals)>> {
    let mut reserved = None;
    let mut made = None;
    let mut key = None;
    let mut dir = dir.clone();
    while let Some(order) = receive(orders)? {
        match order {
            Order::Prepare(prepare) => {
                if let Some(named) = &prepare.run_dir {
                    dir = RunDir::at(named);
                }
                // Whether there is a daemon is told before anything is made.
                drop(Connection::open(&dir)?);
                // Alone, a host proves nothing to nobody.
                let loaded = if prepare.others.is_empty() { None } else { Some(cluster_key()?) };
                // A job on one host needs no agent.
                let alone = prepare.others.is_empty();
                let prepare = if alone { Prepare { transport: None, ..prepare } } else { prepare };
                let place = own_place(&prepare, &if alone { Config::default() } else { config()? })?;
                let at = Here { address: place.address, dpdk: place.dpdk, transport: place.transport };
                let shown = loaded.as_ref().map(|(_, key)| (key.cluster().to_owned(), key.fingerprint()));
                let (cluster, fingerprint) = shown.unwrap_or_default();
                (reserved, key) = (Some(place), loaded.map(|(path, _)| path));
                caller.tell(&News::Here { at, cluster, fingerprint })?;
            }
            Order::Make(make) => {
                made = Some(make_job(&dir, *make, key.as_deref(), reserved.take())?);
                caller.tell(&News::Made)?;
            }
            Order::Go => {
                let made = made.take().context("ranks before their job")?;
                std::env::set_current_dir(&made.make.directory).with_context(|| {
                    format!("the directory {} is not there; --directory names another", made.make.directory)
                })?;
                return Ok(Some((made, Signals::catch()?)));
            }
            Order::Leave | Order::Kill => break,
            Order::Signal(_) | Order::Written { .. } => {}
        }
    }
    if let Some(Made { shared, make, .. }) = &made {
        give_up(shared, &make.hosts[usize::from(make.index)].name);
    }
    Ok(None)
}

/// Ends a job that does not start on another host: its agent is not to wait for that one.
pub(super) fn give_up(shared: &Job, own: &str) {
    // Where it cannot be told, the agent ends after the time-out.
    let _ = shared.end(own, "the program does not start on all hosts");
}

/// The configuration of this host's daemon.
pub(super) fn config() -> Result<Config> {
    Ok(Config::load(None).map_err(|error| crate::cli::BadConfig(format!("{error:#}")))?)
}

/// The key of the cluster, and where it is.
pub(super) fn cluster_key() -> Result<(PathBuf, hectare_session::ClusterKey)> {
    let path = config()?.key_path();
    let key = key_file::load(&path)?;
    let path = std::path::absolute(&path).with_context(|| format!("the path of {}", path.display()))?;
    Ok((path, key))
}

fn make_job(dir: &RunDir, make: Make, key: Option<&Path>, reserved: Option<Place>) -> Result<Made> {
    let connection = Connection::open(dir)?;
    let (job, settings) = (make.job.clone(), JobSettings::default());
    let transport = reserved.as_ref().map(|place| place.transport).unwrap_or_default();
    // The agent takes the port. Between the two of them somebody else could; then the agent says so.
    drop(reserved);
    let request = if make.hosts.len() > 1 {
        let key = key.context("hosts before their preparation")?;
        let key_file = key.to_str().with_context(|| format!("{} is no UTF-8", key.display()))?.to_owned();
        let Make { id, index, silence_ms, cipher, ref hosts, .. } = make;
        let hosts = hosts.clone();
        let hosts = Box::new(JobHosts { id, index, hosts, key_file, silence_ms, cipher, transport });
        Request::CreateOnHosts { job, settings, keep: false, hosts }
    } else {
        // A job on one host needs no agent.
        Request::Create { job, settings, keep: false }
    };
    anyhow::ensure!(usize::from(make.index) < make.hosts.len(), "a job without this host");
    connection.order(&request)?;
    let member = Member::hold(dir, &make.job)?;
    let memory = member.memory().try_clone_to_owned().context("dup")?;
    check_room(&memory, &make.job, make.hosts.iter().map(|host| host.ranks).sum())?;
    Ok(Made { dir: dir.clone(), member, shared: Job::from_descriptor(memory)?, make })
}

/// Does what the caller says until all hosts are done, or it is gone.
fn obey(orders: &mut Orders, signals: &Signals, credit: &[Credit; 2]) {
    let kill = || signals.raise(Signal::KILL);
    loop {
        match receive(orders) {
            Ok(Some(Order::Signal(number))) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    signals.raise(signal);
                }
            }
            Ok(Some(Order::Written { error, bytes })) => credit[usize::from(error)].give(bytes),
            Ok(Some(Order::Leave)) => return,
            Ok(Some(Order::Kill)) => kill(),
            Ok(Some(Order::Prepare(_) | Order::Make(_) | Order::Go)) => {}
            Ok(None) | Err(_) => return kill(),
        }
    }
}
