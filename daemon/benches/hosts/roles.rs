//! The programs that run on both hosts.
use crate::ping;
use crate::support::{LONG, mean_us, now_ns, say, worker};
use hectare_dsm::{AreaSpec, Rank, Result, Version};
use std::time::{Duration, Instant};

/// Turns that are not counted.
const WARM: usize = 200;
const TURNS: usize = 20_000;

/// Plays a role.
pub(crate) fn play(role: &str, rest: &[String]) {
    match (role, rest) {
        ("barriers", _) => barriers().expect("barriers"),
        ("visible", _) => visible().expect("writes"),
        ("handed", _) => handed().expect("hand-overs"),
        ("given", []) => crate::given::play().expect("hand-overs"),
        ("burst", [side, own, peer, mtu]) => crate::given::burst(side, own, peer, mtu),
        ("whole", [bytes]) => whole(bytes.parse().expect("bytes")).expect("an area"),
        ("sparse", [bytes]) => sparse(bytes.parse().expect("bytes")).expect("an area"),
        ("alone", []) => alone().expect("rounds"),
        ("loop", []) => crate::loops::play().expect("a loop"),
        ("stencil", [kind]) => crate::stencil::play(kind).expect("a loop"),
        ("rows", [kind]) => crate::rows::play(kind).expect("rows"),
        ("exchange", []) => crate::far::exchange().expect("areas"),
        ("watch", []) => crate::far::watch().expect("an area"),
        ("far", [consistency]) => crate::far::play(consistency).expect("a loop"),
        ("idle", [areas]) => idle(areas.parse().expect("areas")).expect("areas"),
        ("relay", [part, own, other]) => crate::relay::play(part, own, other).expect("words"),
        ("ping", [part, address]) => ping::play(part, address, false),
        ("ping-spinning", [part, address]) => ping::play(part, address, true),
        other => panic!("no role: {other:?}"),
    }
}

fn barriers() -> Result<()> {
    let (mut worker, _) = worker()?;
    let mut times = Vec::new();
    for turn in 0..WARM + TURNS {
        let since = Instant::now();
        worker.barrier()?;
        if turn >= WARM {
            times.push(since.elapsed());
        }
    }
    if worker.rank() == 0 {
        say(mean_us(&times), times);
    }
    Ok(())
}

/// One writes 64 bytes and asks for a round, the other waits until it sees them, and answers in the same way.
fn visible() -> Result<()> {
    let (mut worker, _) = worker()?;
    let (own, other) = (worker.rank(), 1 - worker.rank());
    let name = |rank: Rank| format!("line/{rank}");
    let mut mine = worker.create::<u64>(AreaSpec::new(name(own)), 8)?;
    let theirs = worker.attach_within::<u64>(&name(other), LONG)?;
    let mut times = Vec::new();
    for turn in 0..(WARM + TURNS) as u64 {
        let since = Instant::now();
        if own == 0 {
            mine.write(&worker)?.fill(turn + 1);
            worker.sync()?;
        }
        while theirs.read(&worker)?[0] <= turn {
            let seen = theirs.version(&worker)?;
            worker.wait_for(&theirs, Version { counter: seen.counter + 1, ..seen }, LONG)?;
        }
        if own == 1 {
            mine.write(&worker)?.fill(turn + 1);
            worker.sync()?;
        }
        if turn >= WARM as u64 {
            times.push(since.elapsed());
        }
    }
    worker.barrier()?;
    if own == 0 {
        say(mean_us(&times), times);
    }
    Ok(())
}

/// An area goes from one to the other and back, each of whom writes it.
fn handed() -> Result<()> {
    const HANDS: u64 = 500;
    let (mut worker, _) = worker()?;
    let (own, other) = (worker.rank(), 1 - worker.rank());
    if own == 0 {
        worker.create::<u64>("handed", 8)?.give(&worker, 1)?;
    }
    let area = worker.attach_within::<u64>("handed", LONG)?;
    let mut times = Vec::new();
    for turn in 0..HANDS {
        let since = Instant::now();
        let mut owned = area.take_within(&mut worker, LONG)?;
        // The second rank has it first.
        let hand = 2 * turn + u64::from(other);
        assert_eq!(owned.read(&worker)?, [hand; 8]);
        owned.write(&worker)?.fill(hand + 1);
        owned.give(&worker, other)?;
        if turn >= HANDS / 10 {
            times.push(since.elapsed());
        }
    }
    worker.barrier()?;
    if own == 0 {
        say(mean_us(&times), times);
    }
    Ok(())
}

/// The first rank writes an area all over, with the time; the second takes the time when it sees that.
fn whole(bytes: usize) -> Result<()> {
    let (mut worker, _) = worker()?;
    let len = bytes / 8;
    let mut times = Vec::new();
    let mut mine = None;
    if worker.rank() == 0 {
        mine = Some(worker.create::<u64>("whole", len)?);
    }
    let area = worker.attach_within::<u64>("whole", LONG)?;
    for turn in 0..WHOLE_TURNS {
        worker.barrier()?;
        if let Some(mine) = &mut mine {
            let elements = &mut mine.write_whole(&worker)?;
            elements.fill(turn as u64 + 1);
            elements[0] = now_ns();
        }
        worker.barrier()?;
        let seen = area.read(&worker)?;
        times.push(Duration::from_nanos(now_ns() - seen[0]));
        assert_eq!((seen[1], seen[len - 1]), (turn as u64 + 1, turn as u64 + 1));
    }
    if worker.rank() == 1 {
        // The first time, memory is new on both sides.
        times.remove(0);
        times.sort();
        let middle = times[times.len() / 2];
        say(bytes as f64 * 8.0 / 1e9 / middle.as_secs_f64(), times);
    }
    worker.barrier()
}

const WHOLE_TURNS: usize = 6;

/// The first rank writes every hundredth line, and says what it wrote.
fn sparse(bytes: usize) -> Result<()> {
    let (mut worker, _) = worker()?;
    let mut mine = None;
    if worker.rank() == 0 {
        mine = Some(worker.create::<u64>("sparse", bytes / 8)?);
    }
    let area = worker.attach_within::<u64>("sparse", LONG)?;
    let (mut wrote, mut before) = (0, 0);
    for turn in 0..=SPARSE_TURNS {
        worker.barrier()?;
        // The whole area came first.
        if turn == 1 {
            (wrote, before) = (0, bytes_sent());
        }
        if let Some(mine) = &mut mine {
            let mut written = mine.write(&worker)?;
            for line in (0..bytes / 64).skip(turn * 7 % 100).step_by(100) {
                written.range_mut(line * 8..line * 8 + 8).fill(turn as u64 + 1);
                wrote += 64;
            }
        }
        worker.barrier()?;
        assert_eq!(area.read(&worker)?[turn * 7 % 100 * 8], turn as u64 + 1);
    }
    worker.barrier()?;
    if worker.rank() == 0 {
        println!("figure {}", (bytes_sent() - before) as f64 / wrote as f64);
    }
    Ok(())
}

/// Bytes that this host has sent.
fn bytes_sent() -> u64 {
    let count = std::fs::read_to_string("/sys/class/net/eth0/statistics/tx_bytes").expect("a host's device");
    count.trim().parse().expect("a count")
}

const SPARSE_TURNS: usize = 20;

/// Rounds of workers of one host that each write some lines.
fn alone() -> Result<()> {
    let (mut worker, size) = worker()?;
    let name = |rank: Rank| format!("part/{rank}");
    let mut mine = worker.create::<f32>(name(worker.rank()).as_str(), 1 << 18)?;
    let all =
        (0..size).map(|rank| worker.attach_within::<f32>(&name(rank), LONG)).collect::<Result<Vec<_>>>()?;
    worker.barrier()?;
    let mut sum = 0.0;
    let since = Instant::now();
    for turn in 0..ALONE_TURNS {
        let first = turn * 977 % (1 << 17);
        let mut written = mine.write(&worker)?;
        written.range_mut(first..first + 4096).iter_mut().for_each(|element| *element += 1.0);
        worker.barrier()?;
        for area in &all {
            sum += area.read(&worker)?[first..first + 4096].iter().sum::<f32>();
        }
    }
    let took = since.elapsed();
    if worker.rank() == 0 {
        assert!(sum > 0.0);
        say(ALONE_TURNS as f64 / took.as_secs_f64(), vec![took / ALONE_TURNS as u32]);
    }
    worker.barrier()
}

const ALONE_TURNS: usize = 20_000;

/// So many areas of each host that the other has, and nothing is written for some seconds.
fn idle(areas: usize) -> Result<()> {
    let (mut worker, size) = worker()?;
    let name = |rank: Rank, area: usize| format!("idle/{rank}/{area}");
    let own = worker.rank();
    let _mine = (0..areas)
        .map(|area| worker.create::<u64>(name(own, area).as_str(), 1000))
        .collect::<Result<Vec<_>>>()?;
    for rank in 0..size {
        for area in 0..areas {
            worker.attach_within::<u64>(&name(rank, area), LONG)?;
        }
    }
    worker.barrier()?;
    println!("idle from here");
    let until = Instant::now() + IDLE;
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
        worker.service()?;
    }
    println!("idle until here");
    worker.barrier()
}

pub(crate) const IDLE: Duration = Duration::from_secs(10);
