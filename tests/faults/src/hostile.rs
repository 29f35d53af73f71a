//! Faults 53 to 57: clients that mean harm.
use crate::constants::JOB;
use crate::content;
use crate::host::{Host, descriptors, until};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use crate::system::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use hectare_dsm::{Error, Job};
use hectare_testing::Random;
use hectare_wire::{Connection, JobSettings, Reply, Request, RunDir, Socket};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The job that is spoiled.
const SPOILED: &str = "spoiled";

fn small() -> JobSettings {
    JobSettings { bytes: Some(8 << 20), round_timeout_ms: Some(100), ..crate::stage::settings() }
}

/// A job's memory, asked for as a client does.
fn memory_of(connection: &Connection, job: &str) -> Result<(OwnedFd, usize)> {
    let (_, memory) = connection.ask(&Request::Attach { job: job.into(), rank: None })?;
    let memory = memory.context("the job's memory")?;
    let len = std::fs::File::from(memory.try_clone()?).metadata()?.len() as usize;
    Ok((memory, len))
}

/// 53: a segment of another layout version, and others that are none.
pub(crate) fn layout(stage: &mut Stage) -> Result<Verdict> {
    let (memory, len) = memory_of(&stage.host.connect()?, JOB)?;
    let mut head = vec![0; 64 << 10];
    std::os::unix::fs::FileExt::read_exact_at(&std::fs::File::from(memory), &mut head, 0)?;
    let own = u32::from_le_bytes(head[8..12].try_into()?);
    for version in [0, own - 1, own + 1, u32::MAX] {
        let mut other = head.clone();
        other[8..12].copy_from_slice(&version.to_le_bytes());
        match Job::from_descriptor(system::sealed_memfd(&other, len as u64)?) {
            Err(Error::LayoutVersion { found, expected }) => ensure!(found == version && expected == own),
            other => bail!("a segment of layout version {version}: {other:?}"),
        }
    }
    let times = stage.times(200, 20_000);
    let mut opened = 0;
    for _ in 0..times {
        // The words of the configuration and the map, any of them, to anything.
        let mut other = head.clone();
        let at = 16 + stage.random.below(45) * 4;
        let value = [0, 1, u32::MAX, stage.random.next() as u32][stage.random.below(4)];
        other[at..at + 4].copy_from_slice(&value.to_le_bytes());
        opened += u32::from(Job::from_descriptor(system::sealed_memfd(&other, len as u64)?).is_ok());
    }
    Ok(Verdict::Held(format!("other versions refused; of {times} changed headers {opened} made sense")))
}

/// The role that writes random bytes over everything it maps, or, benign, over memory of its own. Changes
/// sides when it is told to, and says how much it wrote.
pub(crate) fn scribble(seed: u64) -> Result<()> {
    let connection = Connection::open(&RunDir::of_user())?;
    let (memory, len) = memory_of(&connection, SPOILED)?;
    let job = Scratch::map(memory.as_fd(), len)?;
    let own = system::sealed_memfd(&[], len as u64)?;
    let own = Scratch::map(own.as_fd(), len)?;
    static SIDE: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(|| {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            SIDE.store(u64::from(line == "hostile"), Ordering::Relaxed);
        }
        std::process::exit(0);
    });
    println!("ready");
    let mut random = Random(seed);
    loop {
        let target = if SIDE.load(Ordering::Relaxed) == 1 { &job } else { &own };
        for _ in 0..4096 {
            // A quarter goes to the tables, which are small and matter most.
            let word = random.next();
            let end = if word.is_multiple_of(4) { len.min(1 << 20) } else { len };
            target.store(random.below(end), word);
        }
    }
}

/// The role of a job's only worker: writes and reads its area and says, ten times a second, how many rounds it
/// has done.
pub(crate) fn keep(job: &str) -> Result<()> {
    let job = Job::connect(job)?;
    let mut worker = job.worker()?;
    let mut owned = worker.create::<u64>("kept", 100_000)?;
    let area = owned.area();
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(|| {
        loop {
            println!("{}", ROUNDS.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    loop {
        content::write(&mut owned, &worker, 5, 1, &mut || ())?;
        worker.sync()?;
        if let Err(torn) = content::look(&area, &worker, 5)? {
            bail!("torn: {torn}");
        }
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
}

/// A child that is killed when it is dropped.
#[derive(Debug)]
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines of a child's standard output, the newest of which counts.
fn newest(child: &mut Child) -> Result<std::sync::Arc<AtomicU64>> {
    let value = std::sync::Arc::new(AtomicU64::new(0));
    let (copy, stdout) = (value.clone(), child.stdout.take().context("standard output")?);
    std::thread::spawn(move || {
        for line in std::io::BufRead::lines(std::io::BufReader::new(stdout)).map_while(Result::ok) {
            copy.store(line.parse().unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    });
    Ok(value)
}

/// 54: a client writes random bytes over everything it maps. Its job may die; another job of the daemon keeps
/// its data and the rate that it has beside a benign client of equal load.
pub(crate) fn scribbler(stage: &mut Stage) -> Result<Verdict> {
    let host = Host::new()?;
    let daemon = host.daemon("")?;
    let create = |job: &str| {
        host.connect()?.order(&Request::Create { job: job.into(), settings: small(), keep: true })?;
        anyhow::Ok(())
    };
    create(SPOILED)?;
    create("kept")?;
    let begin = |role: &[&str]| -> Result<Kept> {
        Ok(Kept(host.role(role)?.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?))
    };
    let mut kept = begin(&["keep", "kept"])?;
    let rounds = newest(&mut kept.0)?;
    let mut spoiled = begin(&["keep", SPOILED])?;
    let spoiled_rounds = newest(&mut spoiled.0)?;
    until("both jobs", || rounds.load(Ordering::Relaxed).min(spoiled_rounds.load(Ordering::Relaxed)) > 1)?;
    let mut scribbler = begin(&["scribble", &stage.random.next().to_string()])?;
    let mut stdin = scribbler.0.stdin.take().context("standard input")?;
    let mut side = |name: &str| writeln!(stdin, "{name}").context("the scribbler is gone");

    // First beside a worker of its own job, until that one has had its share.
    side("hostile")?;
    std::thread::sleep(stage.lasting / 4);
    let end = match spoiled.0.try_wait()? {
        Some(status) => format!("its job's worker ended ({status})"),
        None => "its job's worker stood still".into(),
    };
    drop(spoiled);
    // Then in turns, so that what the machine does besides hits both sides.
    let (mut hostile, mut benign) = (Vec::new(), Vec::new());
    let slice = Duration::from_millis(500);
    let began = Instant::now();
    while began.elapsed() < stage.lasting * 3 / 4 || benign.is_empty() {
        for (name, rates) in [("hostile", &mut hostile), ("benign", &mut benign)] {
            side(name)?;
            std::thread::sleep(slice / 5);
            let (before, since) = (rounds.load(Ordering::Relaxed), Instant::now());
            std::thread::sleep(slice);
            rates.push((rounds.load(Ordering::Relaxed) - before) as f64 / since.elapsed().as_secs_f64());
            ensure!(kept.0.try_wait()?.is_none(), Violation::new(Promise::A, "the other job's worker ended"));
            ensure!(host.answers()? == daemon.pid());
        }
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (hostile, benign) = (mean(&hostile), mean(&benign));
    ensure!(scribbler.0.try_wait()?.is_none(), "the scribbler ended");
    drop((stdin, scribbler, kept));
    until("deaths to be seen", || host.jobs().is_ok_and(|jobs| jobs.iter().all(|job| job.members == 0)))?;
    for job in [SPOILED, "kept"] {
        host.connect()?.order(&Request::Remove { job: job.into(), force: false })?;
    }
    ensure!(daemon.log.count("panicked") == 0, Violation::new(Promise::E, daemon.log.text()));
    ensure!(daemon.terminate()?.success());
    let ratio = hostile / benign;
    let figures =
        format!("{hostile:.0} rounds/s beside it, {benign:.0} beside a benign one: {ratio:.3}; {end}");
    ensure!(stage.short || ratio >= 0.9, Violation::new(Promise::D, figures));
    Ok(Verdict::Held(figures))
}

/// The role that opens a job's memory over and over while somebody changes its words.
pub(crate) fn open_often(times: usize) -> Result<()> {
    let connection = Connection::open(&RunDir::of_user())?;
    let (memory, _) = memory_of(&connection, SPOILED)?;
    let opened = (0..times)
        .filter(|_| memory.try_clone().is_ok_and(|memory| Job::from_descriptor(memory).is_ok()))
        .count();
    println!("{opened}");
    Ok(())
}

/// 55: words of the header change between check and use, while others open the segment.
pub(crate) fn changing_words(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(500, 50_000);
    let host = Host::new()?;
    let daemon = host.daemon("")?;
    host.connect()?.order(&Request::Create { job: SPOILED.into(), settings: small(), keep: true })?;
    let connection = host.connect()?;
    let (memory, len) = memory_of(&connection, SPOILED)?;
    let words = Scratch::map(memory.as_fd(), len)?;
    let right: Vec<u64> = (0..32).map(|word| words.load(word * 8)).collect();
    let mut child = host.role(&["open-often", &times.to_string()])?.spawn()?;
    let mut changes = 0u64;
    while child.try_wait()?.is_none() {
        for _ in 0..64 {
            let word = stage.random.below(right.len());
            words.store(word * 8, stage.random.next());
            words.store(word * 8, right[word]);
            changes += 1;
        }
    }
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        Violation::new(Promise::E, format!("opening ended with {}", output.status))
    );
    ensure!(host.jobs()?.len() == 1 && host.answers()? == daemon.pid());
    drop(connection);
    ensure!(daemon.terminate()?.success());
    let opened = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Verdict::Held(format!(
        "{changes} changes; of {times} opens {opened} got through, the others an error"
    )))
}

/// 56: a client truncates the memory that others map.
pub(crate) fn truncation(stage: &mut Stage) -> Result<Verdict> {
    let connection = stage.host.connect()?;
    let (_, memory) = connection.ask(&Request::Attach { job: JOB.into(), rank: None })?;
    let memory = std::fs::File::from(memory.context("the job's memory")?);
    let len = memory.metadata()?.len();
    for wrong in [0, 4096, len / 2, len - 1, len + 4096, 1 << 50] {
        let error = memory.set_len(wrong).err().context("the memory changed its size")?;
        ensure!(error.raw_os_error() == Some(libc::EPERM), "{error}");
    }
    ensure!(memory.metadata()?.len() == len);
    stage.survivors_go_on(Instant::now(), &[])?;
    Ok(Verdict::Held("refused by the seals".into()))
}

/// 57: garbage and half-open connections on the control socket.
pub(crate) fn garbage(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(300, 20_000);
    let path = stage.host.dir.socket();
    let (mut idle, mut refused) = (Vec::new(), 0);
    for turn in 0..times {
        let socket = Socket::connect(&path)?.context("nobody listens")?;
        match turn % 5 {
            // Connects and says nothing, for a while.
            0 => {
                idle.push(socket);
                if idle.len() > 200 {
                    idle.clear();
                }
            }
            1 => drop(socket),
            // A message that is cut off, with a descriptor that nobody asked for.
            2 => {
                let bytes = hectare_wire::encode(&Request::Attach { job: JOB.into(), rank: None })?;
                let null = std::fs::File::open("/dev/null")?;
                let end = 1 + stage.random.below(bytes.len() - 1);
                socket.send(&bytes[..end], Some(null.as_fd()))?;
                refused += u32::from(matches!(socket.receive()?, hectare_wire::Received::Message(..)));
            }
            3 => {
                let len = 1 + stage.random.below(if turn % 50 == 3 { 70_000 } else { 60 });
                let bytes: Vec<u8> = (0..len).map(|_| stage.random.next() as u8).collect();
                socket.send(&bytes, None)?;
                refused += u32::from(matches!(socket.receive()?, hectare_wire::Received::Message(..)));
            }
            // Asks and does not listen.
            _ => {
                let bytes = hectare_wire::encode(&Request::Jobs { after: String::new() })?;
                for _ in 0..3 {
                    socket.send(&bytes, None)?;
                }
            }
        }
        if turn % 100 == 0 {
            ensure!(stage.host.answers()? == stage.daemon()?.pid());
        }
    }
    drop(idle);
    let log = stage.daemon()?.log.clone();
    until("a refused client in the log", || log.count("gave a client up") > 0)
        .map_err(|_| Violation::new(Promise::G, "no refused client is in the log"))?;
    // A spoiled message is not to be taken for one of the load's job.
    let (Reply::Pong { .. }, _) = stage.host.connect()?.ask(&Request::Ping)? else { bail!("no pong") };
    stage.survivors_go_on(Instant::now(), &[])?;
    let held = descriptors(stage.daemon()?.pid());
    Ok(Verdict::Held(format!("{times} connections, {refused} answered by a refusal; {held} descriptors")))
}
