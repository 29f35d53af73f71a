//! Verbs on real devices: two of this host whose ports reach each other. `net/rdma/guest/run` runs this where there are such.
use hectare_dsm::agent::{Agent, Arrival, RemoteWorker, Source};
use hectare_dsm::{AreaSpec, ElementType, Job, Version};
use hectare_rdma::{Broken, Card, Device, Domain, Done, Error, Pair, Place, Region, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// So long something may take on a busy machine that emulates another.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Two devices, if there are any. In the guest there have to be.
fn devices() -> Option<[Device; 2]> {
    let names = Device::names().unwrap_or_default();
    match names.as_slice() {
        [a, b, ..] => Some([a, b].map(|name| Device::open(Some(name), None).unwrap())),
        _ if std::env::var_os("HECTARE_RDMA_GUEST").is_some() => {
            panic!("the guest has no devices: {names:?}")
        }
        _ => {
            hectare_testing::skip("RDMA devices", "verbs, as there are not two devices");
            None
        }
    }
}

/// Two domains with a pair each, which are connected.
fn pairs(devices: &[Device; 2]) -> ([Domain; 2], [Pair; 2]) {
    let domains = devices.each_ref().map(|device| Domain::new(device).unwrap());
    let mut pairs = [Pair::open(&domains[0], 0xfff_fff0).unwrap(), Pair::open(&domains[1], 77).unwrap()];
    let cards: [Card; 2] = [pairs[0].card(), pairs[1].card()];
    pairs[0].connect(&cards[1]).unwrap();
    pairs[1].connect(&cards[0]).unwrap();
    (domains, pairs)
}

/// Looks at a pair until `is_enough`; what has happened.
fn until(pair: &mut Pair, is_enough: impl Fn(&[Done]) -> bool) -> Result<Vec<Done>, Broken> {
    let (mut done, start) = (Vec::new(), Instant::now());
    loop {
        pair.poll(&mut done)?;
        if is_enough(&done) {
            return Ok(done);
        }
        assert!(start.elapsed() < TIME_LIMIT, "{done:?}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn written(done: &[Done]) -> usize {
    done.iter().map(|it| if let Done::Written(count) = it { *count } else { 0 }).sum()
}

fn write(from: &Rc<Region>, bytes: std::ops::Range<usize>, to: Place, word: Option<u32>) -> Write {
    Write { from: from.clone(), at: bytes.start as u64, bytes, to, word }
}

#[test]
fn what_was_posted_before_a_word_is_there_when_it_comes() {
    let Some(devices) = devices() else { return };
    let (domains, [mut a, mut b]) = pairs(&devices);
    const LEN: usize = 1 << 20;
    let (mut from, to) = (Region::own(&domains[0], LEN).unwrap(), Region::own(&domains[1], LEN).unwrap());
    for round in 1..=4_u32 {
        let bytes: Vec<u8> = (0..LEN).map(|at| (at as u32 * 7 + round * 31) as u8).collect();
        from.write(0, &bytes);
        let shared = Rc::new(from);
        // Many small ones, some of a few pages, and the word with the last.
        let mut writes = Vec::new();
        let mut at = 0;
        while at < LEN {
            let len = [64, 4096, 100_000, 192][writes.len() % 4].min(LEN - at);
            writes.push(write(&shared, at..at + len, to.place(), None));
            at += len;
        }
        writes.last_mut().unwrap().word = Some(round);
        let count = writes.len();
        for batch in writes.chunks(hectare_rdma::BATCH) {
            a.post(batch).unwrap();
        }
        drop(writes);
        let came = until(&mut b, |done| !done.is_empty()).unwrap();
        assert_eq!(came, [Done::Word(round)]);
        assert_eq!(to.read(0, LEN), bytes, "round {round}");
        until(&mut a, |done| written(done) == count).unwrap();
        from = Rc::into_inner(shared).expect("nothing is under way");
    }
}

#[test]
fn the_descriptor_tells_of_what_happens_when_it_was_armed() {
    let Some(devices) = devices() else { return };
    let (domains, [mut a, mut b]) = pairs(&devices);
    let (from, to) = (Rc::new(Region::own(&domains[0], 64).unwrap()), Region::own(&domains[1], 64).unwrap());
    let descriptor = devices[1].event_descriptor().unwrap();
    let is_readable = |longest: Duration| {
        use std::os::fd::AsRawFd;
        let mut set = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is writable.
        unsafe { libc::poll(&mut set, 1, longest.as_millis() as i32) == 1 }
    };
    for word in 0..5 {
        devices[1].take_events();
        b.arm().unwrap();
        assert!(b.poll(&mut Vec::new()).unwrap() == 0 && !is_readable(Duration::ZERO));
        a.post(&[write(&from, 0..64, to.place(), Some(word))]).unwrap();
        assert!(is_readable(TIME_LIMIT));
        assert_eq!(until(&mut b, |done| !done.is_empty()).unwrap(), [Done::Word(word)]);
        until(&mut a, |done| written(done) == 1).unwrap();
    }
}

/// A write is refused. The answer may be lost, and a pair that has refused something answers no more.
fn refused(pair: &mut Pair) -> Broken {
    let broken = until(pair, |_| false).expect_err("a write that is refused");
    let is_lossy = std::env::var("HECTARE_RDMA_LOSS").is_ok_and(|loss| loss != "0");
    assert!(broken == Broken::Forbidden || is_lossy && broken == Broken::Unanswered, "{broken}");
    broken
}

#[test]
fn a_write_without_a_registration_fails_and_changes_nothing() {
    let Some(devices) = devices() else { return };
    let (domains, [mut a, _b]) = pairs(&devices);
    let from = Rc::new(Region::own(&domains[0], 64).unwrap());
    let (to, other) =
        (Region::own(&domains[1], 64).unwrap(), Region::own(&Domain::new(&devices[1]).unwrap(), 64).unwrap());
    // Of another domain: that of another peer.
    a.post(&[write(&from, 0..64, other.place(), None)]).unwrap();
    let broken = refused(&mut a);
    assert_eq!(a.post(&[write(&from, 0..64, to.place(), None)]), Err(broken), "it is broken for good");
    // Outside of it, and after its end.
    let (domains, [mut a, _b]) = pairs(&devices);
    let from = Rc::new(Region::own(&domains[0], 128).unwrap());
    let to = Region::own(&domains[1], 64).unwrap();
    a.post(&[write(&from, 0..128, to.place(), None)]).unwrap();
    refused(&mut a);
    let (domains, [mut a, _b]) = pairs(&devices);
    let from = Rc::new(Region::own(&domains[0], 64).unwrap());
    let place = Region::own(&domains[1], 64).unwrap().place();
    a.post(&[write(&from, 0..64, place, None)]).unwrap();
    refused(&mut a);
}

#[test]
fn a_peer_that_is_gone_breaks_the_pair() {
    let Some(devices) = devices() else { return };
    let (domains, [mut a, b]) = pairs(&devices);
    let (from, to) = (Rc::new(Region::own(&domains[0], 64).unwrap()), Region::own(&domains[1], 64).unwrap());
    drop(b);
    a.post(&[write(&from, 0..64, to.place(), Some(1))]).unwrap();
    assert_eq!(until(&mut a, |_| false), Err(Broken::Unanswered));
}

#[test]
fn devices_that_are_not_there_are_named() {
    if devices().is_none() {
        return;
    }
    let error = Device::open(Some("rxe9"), None).unwrap_err();
    assert!(
        matches!(&error, Error::NoDevice { asked: Some(asked), found } if asked == "rxe9" && found.len() >= 2),
        "{error}"
    );
}

/// An area of 64 KiB whose owner is elsewhere, of which `byte` is published.
fn published(agent: &Agent, worker: &mut hectare_dsm::Worker, byte: u8) -> hectare_dsm::AreaId {
    let area = agent.create(&AreaSpec::new("a").copies(3), ElementType::of::<u8>(), 1 << 16).unwrap();
    arrive(agent, worker, area, byte, 1);
    area
}

fn arrive(
    agent: &Agent,
    worker: &mut hectare_dsm::Worker,
    area: hectare_dsm::AreaId,
    byte: u8,
    counter: u64,
) {
    let mut receiving =
        agent.receive(&[area], Source { term: 1, sender: 1 }).unwrap().expect("nothing is under way");
    receiving.write(area, 0, &[byte; 1 << 16]).unwrap();
    let version = Version { term: 1, counter };
    receiving.commit(&[Arrival { area, version, clock: 0, label: 0, age: Duration::ZERO }], true).unwrap();
    while agent.newest(area) != Some(version) {
        worker.sync().unwrap();
    }
}

#[test]
fn what_is_published_is_not_torn_by_a_write_of_the_peer_and_after_the_end_of_a_registration_it_fails() {
    let Some(devices) = devices() else { return };
    let (domains, [mut a, _b]) = pairs(&devices);
    let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
    let (agent, mut worker) = (job.agent().unwrap(), job.worker().unwrap());
    agent.set_worker(1, RemoteWorker::There).unwrap();
    let area = published(&agent, &mut worker, 1);
    let bytes = |agent: &Agent| agent.hold(&[area]).unwrap()[0].bytes().to_vec();
    let whole = |agent: &Agent, byte| bytes(agent).iter().all(|it| *it == byte);
    assert!(whole(&agent, 1));
    let region = Region::of_writer(&domains[1], agent.expose(area).unwrap()).unwrap();
    let place = region.place();
    let mut from = Region::own(&domains[0], 1 << 16).unwrap();
    from.write(0, &[9; 1 << 16]);
    let from = Rc::new(from);
    // The peer writes all of it without having announced anything.
    a.post(&[write(&from, 0..1 << 16, place, None)]).unwrap();
    until(&mut a, |done| written(done) == 1).unwrap();
    worker.sync().unwrap();
    assert!(whole(&agent, 1), "nothing was marked, so nothing is published");
    assert!(!agent.take_over(area, 0, 9).unwrap(), "it does not change hands while it is exposed");
    // As long as it is registered it is not freed, either: it can be deleted.
    drop(region);
    arrive(&agent, &mut worker, area, 2, 2);
    assert!(whole(&agent, 2));
    a.post(&[write(&from, 0..1 << 16, place, None)]).unwrap();
    refused(&mut a);
    worker.sync().unwrap();
    assert!(whole(&agent, 2));
    assert!(agent.take_over(area, 0, 9).unwrap(), "now it does");
}

/// Of a process without CAP_IPC_LOCK that may lock 64 KiB, in the guest.
#[test]
fn too_little_locked_memory_is_named() {
    if std::env::var_os("HECTARE_RDMA_LOCKS_LITTLE").is_none() {
        return;
    }
    let [device, _] = devices().expect("the guest has devices");
    let domain = Domain::new(&device).unwrap();
    let error = Region::own(&domain, 1 << 20).unwrap_err();
    assert!(matches!(error, Error::Memory { bytes: 0x10_0000, limit: Some(65_536), .. }), "{error:?}");
    assert!(error.to_string().contains("raise the limit"), "{error}");
    Region::own(&domain, 4096).unwrap();
}
