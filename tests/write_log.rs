//! The write log: every way to write reaches the readers, and nothing else is claimed to have changed.
use crate::common::*;
use hectare::{Area, AreaSpec, Error, Job, Owned, Tracking, Version, Worker};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn changed(area: &Area<u64>, worker: &Worker, since: Version) -> Vec<Range<usize>> {
    area.changed_since(worker, since).unwrap()
}

#[test]
fn every_way_to_write() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").row(10), 1005).unwrap();
    let area = owned.area();
    let mut model = vec![0u64; 1005];
    {
        let mut guard = owned.write(&worker).unwrap();
        guard.set(0, 1);
        guard.set(1004, 2);
        guard.range_mut(100..103).fill(3);
        guard.range_mut(500..500).fill(9);
        guard.row_mut(99)[9] = 4;
        assert_eq!((guard[0], guard[999], guard.len(), guard.row_len()), (1, 4, 1005, 10));
    }
    (model[0], model[1004], model[999]) = (1, 2, 4);
    model[100..103].fill(3);
    assert!(area.read(&worker).unwrap().iter().all(|value| *value == 0), "not published yet");
    assert_eq!(owned.read(&worker).unwrap(), model, "the owner sees it at once");
    worker.sync().unwrap();
    assert_eq!(area.read(&worker).unwrap(), model);

    let pointer = owned.as_mut_ptr(&worker).unwrap();
    // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
    unsafe {
        pointer.add(300).write(5);
        pointer.add(301).write(6);
    }
    owned.log(&worker, 300..302).unwrap();
    (model[300], model[301]) = (5, 6);
    worker.sync().unwrap();
    assert_eq!(area.read(&worker).unwrap(), model);

    owned.write(&worker).unwrap().as_mut_slice()[7] = 8;
    model[7] = 8;
    worker.sync().unwrap();
    assert_eq!(area.read(&worker).unwrap(), model);
}

#[test]
fn ranges_outside_are_refused() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").row(10), 105).unwrap();
    let area = owned.area();
    #[allow(clippy::reversed_empty_ranges)]
    for range in [100..106, 106..106, 105..usize::MAX, 3..2, usize::MAX..usize::MAX] {
        let error = owned.log(&worker, range.clone()).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { len: 105, .. }), "{range:?}: {error}");
    }
    owned.log(&worker, 105..105).unwrap();
    let out_of_bounds: [fn(&mut hectare::WriteGuard<'_, u64>); 7] = [
        |guard| guard.set(105, 1),
        |guard| guard.set(usize::MAX, 1),
        |guard| guard.range_mut(100..106).fill(1),
        |guard| guard.range_mut(usize::MAX..usize::MAX).fill(1),
        |guard| guard.row_mut(10)[0] = 1,
        |guard| guard.row_mut(usize::MAX)[0] = 1,
        |guard| guard.row_mut(usize::MAX / 10 + 1)[0] = 1,
    ];
    for write in out_of_bounds {
        let mut guard = owned.write(&worker).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| write(&mut guard))).is_err());
    }
    let before = area.version(&worker).unwrap();
    worker.sync().unwrap();
    assert_eq!(area.version(&worker).unwrap(), before, "nothing was logged, so nothing was published");
    assert!(owned.read(&worker).unwrap().iter().all(|value| *value == 0));
}

#[test]
fn a_guard_has_nothing_to_do_at_its_end() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 1000).unwrap();
    let area = owned.area();
    for turn in 1..4 {
        let mut guard = owned.write(&worker).unwrap();
        guard.set(1, turn);
        guard.range_mut(500..600).fill(turn);
        worker.sync().unwrap();
        assert_eq!(area.read(&worker).unwrap(), owned.read(&worker).unwrap());
        assert_eq!(area.read(&worker).unwrap()[599], turn);
        let version = area.version(&worker).unwrap();
        worker.sync().unwrap();
        assert_eq!(area.version(&worker).unwrap(), version, "it is published once, not for ever");
    }
}

#[test]
fn a_panic_with_a_live_guard() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 1000).unwrap();
    let area = owned.area();
    let end = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = owned.write(&worker).unwrap();
        guard.set(3, 1);
        guard.set(700, 2);
        panic!("in the middle");
    }));
    assert!(end.is_err());
    worker.sync().unwrap();
    let seen = area.read(&worker).unwrap();
    assert_eq!((seen[3], seen[700]), (1, 2), "what was written until then is published");
}

#[test]
fn without_a_reader_copy() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(0), 100).unwrap();
    let area = owned.area();
    fill(&mut owned, &worker, 1);
    worker.sync().unwrap();
    assert!(matches!(area.read(&worker), Err(Error::NoReaderCopy { .. })));
    assert!(matches!(area.row(&worker, 0), Err(Error::NoReaderCopy { .. })));
    assert!(matches!(area.version(&worker), Err(Error::NoReaderCopy { .. })));
    assert!(matches!(area.changed_since(&worker, Version::default()), Err(Error::NoReaderCopy { .. })));
    assert!(matches!(area.notify(), Err(Error::NoReaderCopy { .. })));
    let observer = job.observer().unwrap();
    assert!(matches!(observer.read(&area), Err(Error::NoReaderCopy { .. })));
    assert_eq!((area.newest_version(), uniform(owned.read(&worker).unwrap())), (None, 1));
}

#[test]
fn changes_since_a_version() {
    let job = Job::builder().reserve(1 << 28).generations(3, 1000).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 8000).unwrap();
    let area = owned.area();
    let mut versions = vec![area.version(&worker).unwrap()];
    for turn in 0..20usize {
        owned.write(&worker).unwrap().set(turn * 400, 1);
        area.seal();
        worker.sync().unwrap();
        versions.push(area.version(&worker).unwrap());
        for (since, version) in versions.iter().enumerate() {
            let ranges = changed(&area, &worker, *version);
            for written in since..=turn {
                assert!(ranges.iter().any(|range| range.contains(&(written * 400))), "{since} {written}");
            }
        }
        assert_eq!(changed(&area, &worker, versions[turn + 1]), []);
        let last = changed(&area, &worker, versions[turn]);
        let line = turn * 400..turn * 400 + 8;
        assert_eq!((last.len(), &last[0]), (1, &line), "one line, and the generations before are sealed");
    }
    let whole = worker.create::<u64>(AreaSpec::new("x").tracking(Tracking::Whole), 100);
    let mut whole = whole.unwrap();
    fill(&mut whole, &worker, 1);
    worker.sync().unwrap();
    assert_eq!(
        changed(&whole.area(), &worker, Version::default()),
        std::iter::once(0..100).collect::<Vec<_>>()
    );
}

#[test]
fn check_mode_finds_exactly_the_unlogged_writes() {
    let job = Job::builder().reserve(1 << 28).check(true).embedded().unwrap();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let name = format!("w/{}", worker.rank());
        let mut owned = worker.create::<u32>(AreaSpec::new(name.as_str()).copies(2), 100_003).unwrap();
        let mut random = Random(7 + u64::from(worker.rank()));
        for turn in 1..20u32 {
            let mut lines: Vec<usize> = (0..5).map(|_| random.below(100_003 / 16)).collect();
            lines.sort_unstable();
            lines.dedup();
            let logged = random.below(100_003 - 50);
            owned.write(worker).unwrap().range_mut(logged..logged + 50).fill(turn);
            let pointer = owned.as_mut_ptr(worker).unwrap();
            let logged = logged / 16..(logged + 50).div_ceil(16);
            for line in &lines {
                // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
                unsafe { pointer.add(line * 16 + 3).write(turn * 1000) };
            }
            lines.retain(|line| !logged.contains(line));
            worker.barrier().unwrap();
            let found = worker.unlogged_writes();
            let mut found_lines = Vec::new();
            for write in &found {
                assert_eq!((write.area.as_str(), write.rank), (name.as_str(), worker.rank()));
                found_lines.extend((write.bytes.start..write.bytes.end).step_by(64).map(|byte| byte / 64));
            }
            assert_eq!(found_lines, lines, "turn {turn}");
            assert_eq!(
                owned.area().read(worker).unwrap(),
                owned.read(worker).unwrap(),
                "published all the same"
            );
        }
        worker.barrier().unwrap();
        assert!(worker.unlogged_writes().is_empty());
    })
    .unwrap();
    assert!(job.stats().unwrap().unlogged_lines > 0);
}

/// A round that an owner was already standing in when somebody asked for its area: what it wrote behind
/// the log's back was not looked for, and must not be taken for published.
#[test]
fn automatic_tracking_in_a_round_that_others_asked_for() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 3, |worker| {
        let me = worker.rank();
        let spec = AreaSpec::new("auto").tracking(Tracking::Automatic);
        let mut auto = (me == 0).then(|| worker.create::<u64>(spec, 5000).unwrap());
        let mut plain = (me == 1).then(|| worker.create::<u64>("plain", 10).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("auto").unwrap();
        for turn in 1..20 {
            if let Some(auto) = &mut auto {
                let pointer = auto.as_mut_ptr(worker).unwrap();
                // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
                unsafe { pointer.add(4000).write(turn) };
            }
            let before = worker.job().workers().unwrap()[me as usize].last_round;
            if let Some(plain) = &mut plain {
                fill(plain, worker, turn);
                // Opens a round in which the owner of `auto` stands, without `auto` being asked for.
                worker.sync().unwrap();
            } else if me == 0 {
                let arrived = |worker: &Worker| worker.job().workers().unwrap()[0].last_round > before;
                serve_until(worker, "a round", arrived);
            } else {
                let here = |rank: usize| worker.job().workers().unwrap()[rank].last_round > before;
                until("the others in the round", || here(0) && here(1));
                let mut postponed = worker.sync_area(&area).unwrap().postponed;
                while postponed > 0 {
                    postponed = worker.sync_area(&area).unwrap().postponed;
                }
                assert_eq!(area.read(worker).unwrap()[4000], turn);
            }
            worker.barrier().unwrap();
            assert_eq!(area.read(worker).unwrap()[4000], turn);
            worker.barrier().unwrap();
        }
    })
    .unwrap();
}

/// `HECTARE_CHECK=1` reaches jobs that another process made without it, and says what was forgotten once.
#[test]
fn a_process_may_check_its_logging_in_any_job() {
    const NAME: &str = "a_process_may_check_its_logging_in_any_job";
    let forget = |owned: &mut Owned<u32>, worker: &Worker, at: usize, value: u32| {
        // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
        unsafe { owned.as_mut_ptr(worker).unwrap().add(at).write(value) };
    };
    let Some((_, job)) = role() else {
        let job = patient_job();
        let mut command = this_program(NAME);
        command.env("HECTARE_CHECK", "1").env(ROLE, "checked");
        job.pass_to(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let mut worker = job.worker().unwrap();
    for tracking in [Tracking::Logged, Tracking::Whole] {
        let name = format!("{tracking:?}");
        let mut owned = worker.create::<u32>(AreaSpec::new(name.as_str()).tracking(tracking), 1000).unwrap();
        let area = owned.area();
        owned.write(&worker).unwrap().fill(1);
        owned.as_mut_ptr(&worker).unwrap();
        worker.sync().unwrap();
        let pointer = owned.as_mut_ptr(&worker).unwrap();
        worker.sync().unwrap();
        for round in 0..3u32 {
            // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
            unsafe { pointer.add(100).write(round + 2) };
            let error = match round {
                0 => worker.sync().unwrap_err(),
                1 => worker.barrier().unwrap_err(),
                _ => worker.sync_area(&area).unwrap_err(),
            };
            match &error {
                Error::Unlogged { area, rank: 0, elements, bytes, lines: 1 } => {
                    assert_eq!((area, elements, bytes), (&name, &(96..112), &(384..448)));
                }
                other => panic!("{other}"),
            }
            assert!(error.to_string().contains("ha_log_all"), "{error}");
            assert_eq!(area.read(&worker).unwrap()[100], round + 2, "published all the same");
            worker.sync().unwrap();
            assert_eq!(worker.unlogged_writes().len(), 1);
        }
        // Unlogged writes found at a hand-over are told at the next synchronization point.
        if tracking == Tracking::Logged {
            forget(&mut owned, &worker, 0, 9);
            owned.give(&worker, 0).unwrap();
            assert!(matches!(
                worker.sync(),
                Err(Error::Unlogged { elements: Range { start: 0, end: 16 }, .. })
            ));
            owned = area.take(&mut worker).unwrap();
            assert_eq!(worker.unlogged_writes().len(), 1);
        }
        forget(&mut owned, &worker, 999, 9);
        owned.log(&worker, 999..1000).unwrap();
        worker.barrier().unwrap();
    }
}
