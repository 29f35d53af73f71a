//! The fuzz targets of the control protocol, as plain functions of bytes: they panic where a promise of the
//! protocol is broken. Shared by the tests and by `fuzz/`.
#![allow(dead_code, unreachable_pub, missing_docs)]
use hectare_daemon::config::Config;
use hectare_daemon::registry::{BroughtJob, Gone, Registry};
use hectare_wire::{
    FrameError, JobSettings, Refusal, Reply, Request, VERSION, check_job_name, decode, encode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

/// Raw bytes as a message: decoding ends, and what has a meaning is understood the same way when it is written
/// again.
pub fn raw(bytes: &[u8]) {
    understood::<Request>(bytes);
    understood::<Reply>(bytes);
    // The same bytes as the body of a message of this version.
    let mut framed = b"Hc".to_vec();
    framed.extend(VERSION.to_le_bytes());
    framed.extend(bytes);
    understood::<Request>(&framed);
    understood::<Reply>(&framed);
}

fn understood<T>(bytes: &[u8])
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    match decode::<T>(bytes) {
        Ok(message) => {
            let again = encode(&message).expect("what was short enough once is so again");
            assert!(again.len() <= bytes.len(), "{message:?} has a shorter form than the shortest");
            assert_eq!(decode::<T>(&again).as_ref(), Ok(&message));
        }
        Err(FrameError::Version { theirs }) => assert_ne!(theirs, VERSION),
        Err(_) => {}
    }
}

/// Bytes as choices; zeros when there are no more.
struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn below(&mut self, end: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first % end
    }
}

/// A model of the daemon's knowledge of a job, kept in the simplest way.
#[derive(Debug)]
struct Expected {
    serial: u64,
    /// Tells its memory from others'.
    memory: u64,
    keep: bool,
    max_workers: u32,
    members: BTreeSet<u64>,
    ranks: BTreeMap<u32, u64>,
    deaths: u64,
}

/// The model of a registry.
#[derive(Debug, Default)]
struct Model {
    jobs: BTreeMap<String, Expected>,
    /// Job and serial number of a member.
    members: BTreeMap<u64, (String, u64)>,
    serial: u64,
    /// Every memory that was made, with the ranks that it has room for: members may bring it back.
    memories: BTreeMap<u64, (OwnedFd, u32)>,
}

const CONFIG: &str = "max_jobs = 3\n[limits]\nbytes = 1000000\nareas = 8\nworkers = 3\n[defaults]\nbytes = 65536\nareas = 4\nworkers = 2\n";
const NAMES: [&str; 6] = ["a", "b", "c", "d", "", "../a"];
const MAX_JOBS: usize = 3;

/// The kind of a refusal; the model does not look at its text.
fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoSuchJob { .. } => "no such job",
        Refusal::JobExists { .. } => "exists",
        Refusal::JobInUse { .. } => "in use",
        Refusal::InvalidName { .. } => "name",
        Refusal::Quota { .. } => "quota",
        Refusal::RankTaken { .. } => "taken",
        Refusal::UnexpectedRequest { .. } => "turn",
        Refusal::NotCreated { .. } => "not created",
        Refusal::NotAdopted { .. } => "not adopted",
        Refusal::OtherJob { .. } => "other job",
        other => panic!("a registry does not say {other:?}"),
    }
}

impl Model {
    fn create(&mut self, job: &str, settings: &JobSettings, keep: bool) -> Result<(), &'static str> {
        check_job_name(job).map_err(|_| "name")?;
        if self.jobs.contains_key(job) {
            return Err("exists");
        }
        let (workers, areas) = (settings.workers.unwrap_or(2), settings.areas.unwrap_or(4));
        let bytes = settings.bytes.unwrap_or(65536);
        if self.jobs.len() == MAX_JOBS || workers > 3 || areas > 8 || bytes > 1_000_000 {
            return Err("quota");
        }
        if workers == 0 || areas == 0 || bytes == 0 {
            return Err("not created");
        }
        self.insert(job, self.serial + 1, keep, workers);
        Ok(())
    }

    fn insert(&mut self, job: &str, memory: u64, keep: bool, max_workers: u32) {
        self.serial += 1;
        let (serial, members, ranks) = (self.serial, BTreeSet::new(), BTreeMap::new());
        let made = Expected { serial, memory, keep, max_workers, members, ranks, deaths: 0 };
        self.jobs.insert(job.into(), made);
    }

    fn free_rank(&self, job: &str, wanted: Option<u32>) -> Result<u32, &'static str> {
        let job = &self.jobs[job];
        let lowest = (0..).find(|rank| !job.ranks.contains_key(rank));
        match wanted.or(lowest) {
            Some(rank) if rank >= job.max_workers => Err("quota"),
            Some(rank) if job.ranks.contains_key(&rank) => Err("taken"),
            rank => Ok(rank.expect("there are more numbers than ranks")),
        }
    }

    fn attach(&mut self, client: u64, job: &str, wanted: Option<u32>) -> Result<(u32, bool), &'static str> {
        if self.members.contains_key(&client) {
            return Err("turn");
        }
        let created = !self.jobs.contains_key(job);
        if created {
            self.create(job, &JobSettings::default(), false)?;
        }
        let rank = self.free_rank(job, wanted).inspect_err(|_| {
            if created {
                self.jobs.remove(job);
            }
        })?;
        self.admit(client, job);
        self.jobs.get_mut(job).expect("just made").ranks.insert(rank, client);
        Ok((rank, created))
    }

    fn admit(&mut self, client: u64, job: &str) {
        let expected = self.jobs.get_mut(job).expect("members come to jobs that are");
        expected.members.insert(client);
        self.members.insert(client, (job.into(), expected.serial));
    }

    fn hold(&mut self, client: u64, job: &str) -> Result<(), &'static str> {
        if self.members.contains_key(&client) {
            return Err("turn");
        }
        if !self.jobs.contains_key(job) {
            self.create(job, &JobSettings::default(), false)?;
        }
        self.admit(client, job);
        Ok(())
    }

    fn job_of(&self, client: u64) -> Result<String, &'static str> {
        let (job, serial) = self.members.get(&client).cloned().ok_or("turn")?;
        let there = self.jobs.get(&job).is_some_and(|expected| expected.serial == serial);
        if there { Ok(job) } else { Err("no such job") }
    }

    fn give_back(&mut self, client: u64, rank: u32) -> Result<(), &'static str> {
        let job = self.job_of(client)?;
        self.jobs.get_mut(&job).expect("it is there").ranks.retain(|of, who| (*of, *who) != (rank, client));
        Ok(())
    }

    /// Whether the job is a new one, and the ranks that others hold.
    fn adopt(
        &mut self,
        client: u64,
        job: &str,
        memory: u64,
        keep: bool,
        ranks: &[u32],
    ) -> Result<(bool, Vec<u32>), &'static str> {
        if self.members.contains_key(&client) {
            return Err("turn");
        }
        check_job_name(job).map_err(|_| "name")?;
        let max_workers = self.memories[&memory].1;
        if ranks.iter().any(|rank| *rank >= max_workers) {
            return Err("not adopted");
        }
        let new = match self.jobs.get(job) {
            Some(expected) if expected.memory != memory => return Err("other job"),
            Some(_) => false,
            None if self.jobs.len() == MAX_JOBS => return Err("quota"),
            None => true,
        };
        if new {
            self.insert(job, memory, keep, max_workers);
        }
        self.admit(client, job);
        let held = &mut self.jobs.get_mut(job).expect("it is there").ranks;
        let missing = ranks.iter().copied().filter(|rank| *held.entry(*rank).or_insert(client) != client);
        Ok((new, missing.collect()))
    }

    fn rank(&mut self, client: u64, wanted: Option<u32>) -> Result<u32, &'static str> {
        let job = self.job_of(client)?;
        if let Some(rank) = wanted.filter(|rank| self.jobs[&job].ranks.get(rank) == Some(&client)) {
            return Ok(rank);
        }
        let rank = self.free_rank(&job, wanted)?;
        self.jobs.get_mut(&job).expect("it is there").ranks.insert(rank, client);
        Ok(rank)
    }

    fn leave(&mut self, client: u64, died: bool) -> Option<Gone> {
        let (job, serial) = self.members.remove(&client)?;
        let mut gone = Gone { job, ranks: Vec::new(), removed: false };
        if let Some(expected) = self.jobs.get_mut(&gone.job).filter(|expected| expected.serial == serial) {
            expected.members.remove(&client);
            expected.deaths += u64::from(died);
            gone.ranks =
                expected.ranks.iter().filter(|(_, of)| **of == client).map(|(rank, _)| *rank).collect();
            expected.ranks.retain(|_, of| *of != client);
            gone.removed = expected.members.is_empty() && !expected.keep;
        }
        if gone.removed {
            self.jobs.remove(&gone.job);
        }
        Some(gone)
    }

    fn remove(&mut self, job: &str, force: bool) -> Result<BTreeSet<u64>, &'static str> {
        match self.jobs.get(job) {
            None => Err("no such job"),
            Some(expected) if !expected.members.is_empty() && !force => Err("in use"),
            Some(_) => self.jobs.remove(job).map(|gone| gone.members).ok_or("no such job"),
        }
    }

    /// Whether the registry says of everything what the model says.
    fn is(&self, registry: &Registry) {
        let (jobs, more) = registry.jobs_after("");
        assert!(!more && jobs.len() == self.jobs.len(), "{jobs:?} instead of {:?}", self.jobs);
        for (line, (name, expected)) in jobs.iter().zip(&self.jobs) {
            let said = (&line.job, line.members, line.ranks, line.max_workers, line.keep, line.deaths);
            let (members, ranks) = (expected.members.len() as u32, expected.ranks.len() as u32);
            assert_eq!(said, (name, members, ranks, expected.max_workers, expected.keep, expected.deaths));
            assert!(registry.has(name) && registry.memory(name).is_ok());
            assert!(ranks <= expected.max_workers);
        }
        let (clients, more) = registry.clients_after(0);
        assert!(!more && clients.len() == self.members.len());
        for (line, (client, (job, serial))) in clients.iter().zip(&self.members) {
            let current = self.jobs.get(job).filter(|expected| expected.serial == *serial);
            let ranks: Vec<u32> = current
                .into_iter()
                .flat_map(|expected| &expected.ranks)
                .filter(|(_, of)| *of == client)
                .map(|(rank, _)| *rank)
                .collect();
            assert_eq!((line.id, &line.job, &line.ranks), (*client, job, &ranks));
        }
    }
}

/// Bytes as a sequence of requests of several clients to the daemon's registry, which has to do what a model
/// does.
pub fn sequence(bytes: &[u8]) {
    let mut config = Config::parse(CONFIG).expect("a configuration");
    // Where it puts its marks; the daemon makes it before.
    let dir = std::env::temp_dir().join(format!("hectare-protocol-{}", std::process::id()));
    hectare_wire::RunDir::at(&dir).make().expect("a run directory");
    config.run_dir = Some(dir.clone());
    let mut registry = Registry::new(&config);
    let (mut model, mut choices) = (Model::default(), Choices(bytes));
    while !choices.0.is_empty() {
        let (what, client) = (choices.below(10), u64::from(choices.below(7)) + 1);
        let job = NAMES[usize::from(choices.below(NAMES.len() as u8))];
        let wanted = [None, Some(0), Some(1), Some(2), Some(u32::MAX)][usize::from(choices.below(5))];
        match what {
            0 => {
                let keep = choices.below(2) == 1;
                let workers = [None, Some(0), Some(1), Some(3), Some(4)][usize::from(choices.below(5))];
                let areas = [None, None, Some(0), Some(8), Some(9)][usize::from(choices.below(5))];
                let bytes = [None, None, Some(0), Some(1), Some(1 << 20)][usize::from(choices.below(5))];
                let settings = JobSettings { workers, areas, bytes, ..JobSettings::default() };
                let said = registry.create(job, settings.clone(), keep);
                assert_eq!(said.map_err(|refusal| kind(&refusal)), model.create(job, &settings, keep));
            }
            1 | 2 => {
                let said = registry.attach(client, 1000, job, wanted).map_err(|refusal| kind(&refusal));
                assert_eq!(said, model.attach(client, job, wanted));
            }
            3 => {
                let said = registry.hold(client, 1000, job).map_err(|refusal| kind(&refusal));
                assert_eq!(said, model.hold(client, job));
            }
            4 => {
                let said = registry.rank(client, wanted).map_err(|refusal| kind(&refusal));
                assert_eq!(said, model.rank(client, wanted));
            }
            5 | 6 => assert_eq!(registry.leave(client, what == 6), model.leave(client, what == 6)),
            7 => {
                let said = registry.give_back(client, wanted.unwrap_or(0)).map_err(|refusal| kind(&refusal));
                assert_eq!(said, model.give_back(client, wanted.unwrap_or(0)));
            }
            8 if !model.memories.is_empty() => {
                let (keep, which) = (choices.below(2) == 1, choices.below(model.memories.len() as u8));
                let (&memory, (descriptor, _)) =
                    model.memories.iter().nth(which.into()).expect("one of them");
                let ranks: Vec<u32> =
                    wanted.into_iter().chain([1, 0]).skip(choices.below(3).into()).collect();
                let brought = BroughtJob {
                    job: job.into(),
                    memory: descriptor.try_clone().expect("a descriptor"),
                    keep,
                    ranks: ranks.clone(),
                };
                let said = registry.adopt(client, 1000, brought, |_| false);
                let said =
                    said.map(|adopted| (adopted.new, adopted.missing)).map_err(|refusal| kind(&refusal));
                let mut ranks = ranks;
                ranks.sort_unstable();
                ranks.dedup();
                assert_eq!(said, model.adopt(client, job, memory, keep, &ranks));
            }
            _ => {
                let force = choices.below(2) == 1;
                let said = registry.remove(job, force).map_err(|refusal| kind(&refusal));
                assert_eq!(said, model.remove(job, force));
            }
        }
        model.is(&registry);
        for (name, expected) in &model.jobs {
            let descriptor = registry.memory(name).expect("the job is there");
            model.memories.entry(expected.memory).or_insert_with(|| {
                (descriptor.try_clone_to_owned().expect("a descriptor"), expected.max_workers)
            });
        }
    }
    for client in 1..=7 {
        assert_eq!(registry.leave(client, true), model.leave(client, true));
    }
    model.is(&registry);
    let marks = std::fs::read_dir(dir.join("jobs")).map_or(0, Iterator::count);
    assert_eq!(marks, model.jobs.len(), "a mark per job");
    drop(registry);
    let _ = std::fs::remove_dir_all(&dir);
}
