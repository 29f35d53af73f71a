//! The workers of a job on several hosts, seen from the campaign.
use super::cluster::Cluster;
use super::program::{Style, number};
use crate::host::{Log, WATCHDOG, until, within};
use crate::promises::{Judge, Promise, Record, Violation};
use anyhow::{Context, Result, bail};
use hectare_dsm::Version;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Heard {
    judge: Judge,
    /// The last report of each worker on each worker's area.
    seen: HashMap<(usize, u64), Version>,
    ended: HashMap<usize, (Instant, String)>,
}

/// A worker's process.
#[derive(Debug)]
struct Member {
    child: Child,
    stdin: Option<ChildStdin>,
    log: Log,
    host: usize,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All workers, by rank.
#[derive(Debug)]
pub(crate) struct Load {
    members: Vec<Member>,
    heard: Arc<Mutex<Heard>>,
}

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load {
    /// Starts the workers of a job and waits until each sees what each has written.
    pub(crate) fn start(cluster: &Cluster, job: &str, ranks: u32, style: Style, loose: bool) -> Result<Load> {
        let size = cluster.count() * ranks as usize;
        let mut load = Load { members: Vec::new(), heard: Arc::default() };
        for rank in 0..size {
            let host = rank / ranks as usize;
            let loose = if loose { "loose" } else { "strict" };
            let role = ["across", job, &size.to_string(), style.name(), loose];
            let mut command = cluster.role(host, &role)?;
            command.env("HECTARE_JOB", job).env("HECTARE_RANK", rank.to_string());
            let mut child = command.env("HECTARE_SIZE", size.to_string()).spawn()?;
            let log = Log::of(child.stderr.take().context("standard error")?);
            let mut lines = BufReader::new(child.stdout.take().context("standard output")?);
            let heard = load.heard.clone();
            std::thread::spawn(move || {
                let mut line = String::new();
                // A line without an end is one that a death cut off.
                while lines.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
                    let record = line.trim_end().parse();
                    line.clear();
                    hear(&mut locked(&heard), rank, record.unwrap_or_else(Record::Failed));
                }
            });
            let stdin = child.stdin.take();
            load.members.push(Member { child, stdin, log, host });
        }
        load.goes_on(WATCHDOG, &[])?;
        Ok(load)
    }

    pub(crate) fn host_of(&self, rank: usize) -> usize {
        self.members[rank].host
    }

    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn pid(&self, rank: usize) -> u32 {
        self.members[rank].child.id()
    }

    /// Tells all workers something.
    pub(crate) fn order(&mut self, order: &str) -> Result<()> {
        for member in &mut self.members {
            let stdin = member.stdin.as_mut().context("standard input")?;
            writeln!(stdin, "{order}").with_context(|| format!("ordering {order:?}"))?;
        }
        Ok(())
    }

    /// Waits until everybody but the workers `except` sees, of everybody but them, a version that was not there before; for how
    /// long.
    pub(crate) fn goes_on(&self, limit: Duration, except: &[usize]) -> Result<Duration> {
        let ranks: Vec<usize> = (0..self.size()).filter(|rank| !except.contains(rank)).collect();
        let newest = |heard: &Heard, of: usize| {
            let area = number(of as u64);
            ranks.iter().filter_map(|by| heard.seen.get(&(*by, area))).max().copied().unwrap_or_default()
        };
        let before: Vec<Version> = (0..self.size()).map(|of| newest(&locked(&self.heard), of)).collect();
        let late = |heard: &Heard| {
            let pairs = ranks.iter().flat_map(|by| ranks.iter().map(move |of| (*by, *of)));
            let is_late = |(by, of): &(usize, usize)| {
                heard.seen.get(&(*by, number(*of as u64))).is_none_or(|seen| *seen <= before[*of])
            };
            pairs.filter(is_late).collect::<Vec<_>>()
        };
        let waited = within(limit, "the workers", || {
            let heard = locked(&self.heard);
            !heard.judge.violations.is_empty() || !heard.ended.is_empty() || late(&heard).is_empty()
        });
        self.check()?;
        let heard = locked(&self.heard);
        if let Some((rank, (_, error))) = heard.ended.iter().next() {
            let what = format!("the job ended, though no host had failed: rank {rank} said {error}");
            return Err(Violation::new(Promise::D, what).into());
        }
        waited.map_err(|_| {
            let what = format!("after {limit:?}, these (by, of) saw nothing new: {:?}", late(&heard));
            Violation::new(Promise::D, what).into()
        })
    }

    /// Nobody writes any more: waits until all see the same.
    pub(crate) fn comes_to_rest(&self, limit: Duration) -> Result<Duration> {
        let states = || {
            let heard = locked(&self.heard);
            let of = |of: usize| {
                (0..self.size()).map(|by| heard.seen.get(&(by, number(of as u64))).copied()).collect()
            };
            (0..self.size()).map(of).collect::<Vec<Vec<Option<Version>>>>()
        };
        let (mut last, mut since) = (states(), Instant::now());
        let waited = within(limit, "replicas that are alike", || {
            let now = states();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let alike = last.iter().all(|seen| seen.iter().all(|version| *version == seen[0]));
            // Ten reports long.
            alike && since.elapsed() > Duration::from_millis(200) || !self.is_well()
        });
        self.check()?;
        let what = || format!("versions by owner, as each worker sees them: {last:?}");
        waited.map_err(|_| Violation::new(Promise::F, what()).into())
    }

    /// Waits until the workers of `hosts` have heard that a host has failed; how long it took, and what they said.
    pub(crate) fn hear_of_the_end(
        &self,
        limit: Duration,
        since: Instant,
        hosts: impl Fn(usize) -> bool,
    ) -> Result<(Duration, Vec<(usize, String)>)> {
        let ranks: Vec<usize> = (0..self.size()).filter(|rank| hosts(self.host_of(*rank))).collect();
        let heard_by = |heard: &Heard| ranks.iter().filter(|rank| heard.ended.contains_key(rank)).count();
        let waited = within(limit, "the end", || {
            let heard = locked(&self.heard);
            heard_by(&heard) == ranks.len() || !heard.judge.violations.is_empty()
        });
        self.check()?;
        let heard = locked(&self.heard);
        let silent: Vec<usize> =
            ranks.iter().copied().filter(|rank| !heard.ended.contains_key(rank)).collect();
        if waited.is_err() {
            let what = format!("after {limit:?}, ranks {silent:?} had not heard that a host failed");
            return Err(Violation::new(Promise::D, what).into());
        }
        let of = |rank: &usize| heard.ended.get(rank).map(|(at, text)| (*rank, *at, text.clone()));
        let said: Vec<_> = ranks.iter().filter_map(of).collect();
        let took =
            said.iter().map(|(_, at, _)| at.saturating_duration_since(since)).max().unwrap_or_default();
        Ok((took, said.into_iter().map(|(rank, _, text)| (rank, text)).collect()))
    }

    fn is_well(&self) -> bool {
        let heard = locked(&self.heard);
        heard.judge.violations.is_empty() && heard.ended.is_empty()
    }

    /// The first promise that the records or the words of the processes show as broken.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(violation) = locked(&self.heard).judge.violations.first() {
            return Err(violation.clone().into());
        }
        for (rank, member) in self.members.iter().enumerate() {
            let text = member.log.text();
            if text.contains("panicked") {
                return Err(Violation::new(Promise::E, format!("rank {rank} said: {text}")).into());
            }
        }
        Ok(())
    }

    pub(crate) fn sightings(&self) -> u64 {
        locked(&self.heard).judge.seen
    }

    /// Lets every worker leave, but those of `killed`, and waits for them.
    pub(crate) fn leave(&mut self, limit: Duration, killed: &[usize]) -> Result<()> {
        for member in &mut self.members {
            drop(member.stdin.take());
        }
        for rank in 0..self.size() {
            let member = &mut self.members[rank];
            let mut status = None;
            let ended = within(limit, "a worker to leave", || {
                status = member.child.try_wait().unwrap_or_default();
                status.is_some()
            });
            if ended.is_err() {
                let what = format!("rank {rank} did not leave within {limit:?}");
                return Err(Violation::new(Promise::D, what).into());
            }
            let status = status.context("a status")?;
            if !status.success() && !killed.contains(&rank) {
                bail!("rank {rank} ended with {status}: {}", self.members[rank].log.text());
            }
        }
        self.check()
    }

    /// Waits for the death of a worker that was killed.
    pub(crate) fn wait_for(&mut self, rank: usize) -> Result<()> {
        let child = &mut self.members[rank].child;
        until("a killed worker's end", || matches!(child.try_wait(), Ok(Some(_)))).map(drop)
    }
}

fn hear(heard: &mut Heard, rank: usize, record: Record) {
    heard.judge.hear(&record);
    match record {
        Record::Saw { area, version, .. } => drop(heard.seen.insert((rank, area), version)),
        Record::Ended(error) => drop(heard.ended.insert(rank, (Instant::now(), error))),
        _ => {}
    }
}
