//! The running job that faults are injected into: its processes, seen from the campaign.
use crate::constants::AREAS;
use crate::host::{Host, Log, WATCHDOG, descriptors, until, within};
use crate::promises::{Judge, Promise, Record, Violation};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Which areas each process of the load owns: two processes of one worker and one of two.
const PROCESSES: [(u64, u64); 3] = [(0, 1), (1, 1), (2, 2)];

#[derive(Debug, Default)]
struct Heard {
    judge: Judge,
    /// Area of a life.
    area_of: HashMap<u64, u64>,
    /// When the owner of an area last saw a new version of it.
    progress: BTreeMap<u64, Instant>,
    answers: Vec<String>,
}

/// A process of the load.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    pub(crate) log: Log,
    pub(crate) areas: std::ops::Range<u64>,
}

/// The processes of the load and what they said.
#[derive(Debug)]
pub(crate) struct Load {
    job: String,
    pub(crate) members: Vec<Member>,
    heard: Arc<Mutex<Heard>>,
}

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn order(&mut self, order: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("its standard input")?;
        writeln!(stdin, "{order}").with_context(|| format!("ordering {order:?}"))
    }

    /// Waits for its death, which somebody ordered.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let mut status = None;
        until("a process of the load to end", || {
            status = self.child.try_wait().unwrap_or_default();
            status.is_some()
        })?;
        status.context("its status")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Load {
    /// Starts the processes and waits until every area is written.
    pub(crate) fn start(host: &Host, job: &str) -> Result<Load> {
        let mut load = Load { job: job.into(), members: Vec::new(), heard: Arc::default() };
        for (first, count) in PROCESSES {
            let member = load.begin(host, first, count)?;
            load.members.push(member);
        }
        load.all_go_on(Instant::now(), &[])?;
        Ok(load)
    }

    fn begin(&self, host: &Host, first: u64, count: u64) -> Result<Member> {
        let mut command = host.role(&["worker", &self.job, &first.to_string(), &count.to_string()])?;
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let log = Log::of(child.stderr.take().context("standard error")?);
        let mut lines = BufReader::new(child.stdout.take().context("standard output")?);
        let heard = self.heard.clone();
        std::thread::spawn(move || {
            let mut line = String::new();
            // A line without an end is one that a death cut off.
            while lines.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
                let record = line.trim_end().parse();
                line.clear();
                hear(&mut locked(&heard), record);
            }
        });
        let stdin = child.stdin.take();
        Ok(Member { child, stdin, log, areas: first..first + count })
    }

    /// Which processes are dead.
    pub(crate) fn dead(&mut self) -> Vec<usize> {
        let ended = |member: &mut Member| matches!(member.child.try_wait(), Ok(Some(_)));
        (0..self.members.len()).filter(|index| ended(&mut self.members[*index])).collect()
    }

    /// Starts a dead process again.
    pub(crate) fn replace(&mut self, host: &Host, index: usize) -> Result<()> {
        let areas = self.members[index].areas.clone();
        let since = Instant::now();
        let member = self.begin(host, areas.start, areas.end - areas.start)?;
        let dead = std::mem::replace(&mut self.members[index], member);
        check_words(&dead.log)?;
        drop(dead);
        // Others that are dead are started afterwards.
        let dead = self.dead();
        self.all_go_on(since, &dead)?;
        Ok(())
    }

    /// Waits until the owner of every area but those of `except` published and saw a version that it began
    /// after `since`; how long that took from then.
    pub(crate) fn all_go_on(&self, since: Instant, except: &[usize]) -> Result<Duration> {
        let (late, took) = self.go_on_within(WATCHDOG, since, except)?;
        if !late.is_empty() {
            let what = format!("the owners of areas {late:?} stood still for {:?}", since.elapsed());
            return Err(Violation::new(Promise::D, what).into());
        }
        Ok(took)
    }

    /// The same, not waiting for longer than `limit`: the areas whose owners stood still, and the time.
    pub(crate) fn go_on_within(
        &self,
        limit: Duration,
        since: Instant,
        except: &[usize],
    ) -> Result<(Vec<u64>, Duration)> {
        let out = |area: &u64| except.iter().any(|index| self.members[*index].areas.contains(area));
        let wanted: Vec<u64> = (0..AREAS.len() as u64).filter(|area| !out(area)).collect();
        let mut late = wanted.clone();
        // `late` shows what went on.
        let _ = within(limit, "the owners", || {
            let heard = locked(&self.heard);
            late.retain(|area| heard.progress.get(area).is_none_or(|at| *at <= since));
            late.is_empty() || !heard.judge.violations.is_empty()
        });
        self.check()?;
        let heard = locked(&self.heard);
        let last = wanted.iter().filter_map(|area| heard.progress.get(area)).max();
        Ok((late, last.map_or(Duration::ZERO, |last| last.saturating_duration_since(since))))
    }

    /// The next answer to an order.
    pub(crate) fn answer(&self) -> Result<String> {
        let mut answer = None;
        let waited = until("an answer", || {
            let mut heard = locked(&self.heard);
            answer = (!heard.answers.is_empty()).then(|| heard.answers.remove(0));
            answer.is_some() || !heard.judge.violations.is_empty()
        });
        self.check()?;
        waited?;
        answer.context("an answer")
    }

    /// The first promise that the records or the words of the processes show as broken.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(violation) = locked(&self.heard).judge.violations.first() {
            return Err(violation.clone().into());
        }
        self.members.iter().try_for_each(|member| check_words(&member.log))
    }

    /// Versions that the workers saw and the judge judged.
    pub(crate) fn seen(&self) -> u64 {
        locked(&self.heard).judge.seen
    }

    /// Descriptors of each process.
    pub(crate) fn descriptors(&self) -> Vec<usize> {
        self.members.iter().map(|member| descriptors(member.pid())).collect()
    }

    /// Lets every process leave.
    pub(crate) fn stop(&mut self) -> Result<()> {
        for member in &mut self.members {
            drop(member.stdin.take());
        }
        for member in &mut self.members {
            let status = member.wait()?;
            if !status.success() {
                bail!("a process of the load ended with {status}: {}", member.log.text());
            }
        }
        self.check()
    }
}

fn hear(heard: &mut Heard, record: std::result::Result<Record, String>) {
    let record = record.unwrap_or_else(Record::Failed);
    heard.judge.hear(&record);
    match record {
        Record::Begun { life, area } => drop(heard.area_of.insert(life, area)),
        Record::Saw { by, area, .. } if heard.area_of.get(&by) == Some(&area) => {
            heard.progress.insert(area, Instant::now());
        }
        Record::Answer(answer) => heard.answers.push(answer),
        _ => {}
    }
}

fn check_words(log: &Log) -> Result<()> {
    let text = log.text();
    match text.contains("panicked") {
        true => Err(Violation::new(Promise::E, format!("a process of the load said: {text}")).into()),
        false => Ok(()),
    }
}
