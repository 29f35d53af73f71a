//! Areas: creation, names, limits, attaching, deletion and the return of their memory.
use crate::common::*;
use hectare::{AreaSpec, Error, Job, Tracking};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Pair {
    a: u32,
    b: f32,
}
// SAFETY: two fields of four bytes each, no padding, any bytes are a value.
unsafe impl hectare::bytemuck::Zeroable for Pair {}
// SAFETY: as above.
unsafe impl hectare::bytemuck::Pod for Pair {}

#[test]
fn create_attach_list_detach_delete() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<f32>(AreaSpec::new("model/users").row(4).copies(2), 40).unwrap();
    assert_eq!((owned.name(), owned.len(), owned.row_len(), owned.epoch()), ("model/users", 40, 4, 1));
    assert!(owned.read(&worker).unwrap().iter().all(|value| *value == 0.0));
    owned.write(&worker).unwrap().row_mut(2).fill(1.5);
    worker.sync().unwrap();
    let area = worker.attach::<f32>("model/users").unwrap();
    assert_eq!(area.row(&worker, 2).unwrap(), [1.5; 4]);
    assert!(matches!(area.row(&worker, 10), Err(Error::OutOfRange { start: 40, end: 44, len: 40, .. })));
    assert!(matches!(area.row(&worker, usize::MAX), Err(Error::OutOfRange { .. })));
    let list = job.areas().unwrap();
    assert_eq!(list.len(), 1);
    let info = &list[0];
    assert_eq!((info.name.as_str(), info.len, info.bytes, info.copies), ("model/users", 40, 160, 2));
    assert_eq!((info.owner, info.epoch, info.version), (Some(0), 1, area.newest_version()));
    area.detach();
    owned.delete(&mut worker).unwrap();
    assert!(job.areas().unwrap().is_empty());
    assert!(matches!(worker.attach::<f32>("model/users"), Err(Error::NoSuchArea { .. })));
    assert!(matches!(job.delete("model/users"), Err(Error::NoSuchArea { .. })));
}

#[test]
fn attach_waits_and_times_out() {
    let job = patient_job();
    let _watch = watch(&job);
    let short = Duration::from_millis(5);
    assert!(matches!(job.attach_within::<u8>("late", short), Err(Error::TimedOut { .. })));
    run(&job, 2, |worker| {
        if worker.rank() == 0 {
            assert!(matches!(worker.attach_within::<u8>("never", short), Err(Error::TimedOut { .. })));
            let late = worker.attach_within::<u8>("late", LONG).unwrap();
            assert_eq!(late.len(), 7);
        } else {
            std::thread::sleep(Duration::from_millis(20));
            let _late = worker.create::<u8>("late", 7).unwrap();
            worker.barrier().unwrap();
            return;
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn lengths_from_none_to_more_than_memory() {
    let job = Job::builder().reserve(1 << 20).embedded().unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let before = (job.free_bytes().unwrap(), job.resident_bytes().unwrap());
    for copies in [0, 1, 3] {
        for len in [0, 1, 7, 8, 9, 511, 513] {
            let name = format!("a/{copies}/{len}");
            let mut owned = worker.create::<u64>(AreaSpec::new(name).copies(copies), len).unwrap();
            fill(&mut owned, &worker, len as u64);
            worker.sync().unwrap();
            if copies > 0 {
                assert_eq!(owned.area().read(&worker).unwrap(), vec![len as u64; len]);
            }
            owned.delete(&mut worker).unwrap();
        }
    }
    for len in [usize::MAX, usize::MAX / 8, usize::MAX / 16, 1 << 50, 1 << 42] {
        let error = worker.create::<u64>("huge", len).unwrap_err();
        assert!(matches!(error, Error::AreaTooLong { size: 8, .. }), "{len}: {error}");
        assert!(error.to_string().contains(&format!("of {len} elements of 8 bytes each")), "{error}");
    }
    for len in [1 << 32, 1 << 18] {
        let error = worker.create::<u64>("huge", len).unwrap_err();
        assert!(
            matches!(error, Error::OutOfMemory { asked, free, limit, .. } if asked > free && free <= limit),
            "{len}: {error}"
        );
    }
    for _ in 0..3 {
        worker.sync().unwrap();
    }
    assert_eq!(job.free_bytes().unwrap(), before.0, "the range is whole again");
    let extra = job.resident_bytes().unwrap() - before.1;
    assert!(extra < 256 << 10, "{extra} bytes stayed (tables excepted)");
}

#[test]
fn more_than_the_host_has_is_refused() {
    let job = Job::builder().reserve(1 << 44).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let resident = job.resident_bytes().unwrap();
    // With its copies eight terabytes.
    let ocean = AreaSpec::new("ocean").tracking(Tracking::Whole).copies(32);
    let error = worker.create::<u8>(ocean, (1 << 38) - (1 << 20)).unwrap_err();
    assert!(matches!(&error, Error::OutOfMemory { asked, free, .. } if asked > free), "{error}");
    assert!(job.resident_bytes().unwrap() < resident + (1 << 20));
    worker.create::<u8>("ocean", 10).unwrap();
}

#[test]
fn types_are_told_apart() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let _ints = worker.create::<u32>("ints", 8).unwrap();
    let _pairs = worker.create::<Pair>("pairs", 8).unwrap();
    assert!(matches!(worker.attach::<u64>("ints"), Err(Error::WrongType { .. })));
    assert!(matches!(worker.attach::<f32>("ints"), Err(Error::WrongType { .. })), "same size, other kind");
    assert!(matches!(worker.attach::<[u8; 4]>("ints"), Err(Error::WrongType { .. })), "other alignment");
    assert!(matches!(worker.attach::<u64>("pairs"), Err(Error::WrongType { .. })));
    assert!(matches!(worker.claim::<u64>("ints"), Err(Error::WrongType { .. })));
    assert!(worker.attach::<Pair>("pairs").is_ok());
    assert!(matches!(worker.create::<()>("unit", 8), Err(Error::InvalidArea { .. })));
    let other = patient_job();
    let stranger = other.worker().unwrap();
    let area = worker.attach::<u32>("ints").unwrap();
    assert!(matches!(area.read(&stranger), Err(Error::OtherJob { .. })));
}

#[test]
fn names_and_specs() {
    let job = Job::builder().reserve(1 << 24).max_name_bytes(20).max_areas(3).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    for bad in ["", "/", "a//b", "/a", "a/", "tab\there", "nul\0", &"x".repeat(21), &"é".repeat(11)] {
        let error = worker.create::<u8>(bad, 1).unwrap_err();
        assert!(matches!(error, Error::InvalidName { .. }), "{bad:?}: {error}");
        assert!(matches!(worker.attach::<u8>(bad), Err(Error::InvalidName { .. })), "{bad:?}");
        let grouped = AreaSpec::new("ok").group(bad);
        assert!(matches!(worker.create::<u8>(grouped, 1), Err(Error::InvalidName { .. })), "group {bad:?}");
    }
    let specs = [
        AreaSpec::new("s").copies(65),
        AreaSpec::new("s").interval(Duration::ZERO),
        AreaSpec::new("s").copies(0).interval(Duration::from_millis(1)),
        AreaSpec::new("s").copies(0).group("g"),
        AreaSpec::new("s").row(0),
        AreaSpec::new("s").row(usize::MAX),
    ];
    for spec in specs {
        assert!(matches!(worker.create::<u8>(spec.clone(), 1), Err(Error::InvalidArea { .. })), "{spec:?}");
    }
    let first = worker.create::<u8>("x".repeat(20), 1).unwrap();
    assert!(matches!(worker.create::<u8>(first.name(), 1), Err(Error::NameTaken { .. })));
    let _second = worker.create::<u8>("ünï/cödé", 1).unwrap();
    let third = worker.create::<u8>("c", 1).unwrap();
    assert!(matches!(worker.create::<u8>("d", 1), Err(Error::TooManyAreas { max: 3 })));
    third.delete(&mut worker).unwrap();
    // The name is free at once; the slot after its grace rounds, which creation waits for.
    let again = worker.create::<u8>("c", 1).unwrap();
    first.delete(&mut worker).unwrap();
    let _fourth = worker.create::<u8>("d", 1).unwrap();
    drop(again);
}

#[test]
fn deletion_while_others_look() {
    deletion(patient_job());
}

/// An owner looks its areas through before a round, and not any more when another has deleted them: their memory may be
/// another area's.
#[test]
fn deletion_while_the_owner_looks_through() {
    deletion(Job::builder().reserve(1 << 30).round_timeout(LONG).check(true).embedded().unwrap());
}

fn deletion(job: Job) {
    let _watch = watch(&job);
    let idle = (job.free_bytes().unwrap(), job.resident_bytes().unwrap());
    let looking = AtomicU32::new(0);
    run(&job, 3, |worker| {
        let me = worker.rank();
        let mut mine =
            (me == 0).then(|| worker.create::<u64>(AreaSpec::new("doomed").copies(2), 300_000).unwrap());
        if let Some(owned) = &mut mine {
            fill(owned, worker, 9);
        }
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("doomed").unwrap();
        // All have attached before anybody deletes.
        worker.barrier().unwrap();
        let view = area.read(worker).unwrap();
        looking.fetch_add(1, SeqCst);
        until("views in all workers", || looking.load(SeqCst) == 3);
        if me == 1 {
            // Another than the owner deletes it, and the name can be used again.
            worker.job().delete("doomed").unwrap();
        } else {
            until("deletion", || area.read(worker).is_err());
        }
        // The view is good until this worker's next synchronization point.
        assert_eq!(uniform(view), 9);
        assert!(matches!(area.read(worker), Err(Error::Deleted { .. })));
        assert!(matches!(worker.sync_area(&area), Err(Error::Deleted { .. })));
        assert!(matches!(area.take(worker), Err(Error::Deleted { .. })));
        assert!(matches!(area.notify(), Err(Error::Deleted { .. })));
        if let Some(owned) = &mut mine {
            assert!(matches!(owned.write(worker), Err(Error::Deleted { .. })));
            assert!(matches!(owned.read(worker), Err(Error::Deleted { .. })));
        }
        let fresh = (me == 2).then(|| worker.create::<u64>("doomed", 1).unwrap());
        worker.barrier().unwrap();
        assert!(matches!(area.read(worker), Err(Error::Deleted { .. })), "the new area is another one");
        for _ in 0..3 {
            worker.barrier().unwrap();
        }
        if let Some(fresh) = fresh {
            fresh.delete(worker).unwrap();
        }
        for _ in 0..3 {
            worker.barrier().unwrap();
        }
        assert_eq!(worker.job().free_bytes().unwrap(), idle.0);
        worker.barrier().unwrap();
    })
    .unwrap();
    let extra = job.resident_bytes().unwrap() - idle.1;
    assert!(extra < 256 << 10, "{extra} bytes stayed");
}

#[test]
fn a_pin_keeps_a_deleted_area() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("seen", 100_000).unwrap();
    fill(&mut owned, &worker, 5);
    worker.sync().unwrap();
    let before = job.free_bytes().unwrap();
    let observer = job.observer().unwrap();
    let area = owned.area();
    let pinned = observer.read(&area).unwrap();
    owned.delete(&mut worker).unwrap();
    for _ in 0..5 {
        worker.sync().unwrap();
    }
    assert_eq!(uniform(&pinned), 5);
    assert_eq!(job.free_bytes().unwrap(), before);
    assert!(matches!(observer.read(&area), Err(Error::Deleted { .. })));
    drop(pinned);
    worker.sync().unwrap();
    assert!(job.free_bytes().unwrap() > before);
}

#[test]
fn footprints_are_what_was_asked_for() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let size = 1 << 20;
    let cases = [("none", 0, Tracking::Logged), ("one", 1, Tracking::Whole), ("log", 1, Tracking::Logged)];
    for (name, copies, tracking) in cases {
        let before = job.resident_bytes().unwrap();
        let spec = AreaSpec::new(name).copies(copies).tracking(tracking);
        let _owned = worker.create::<u8>(spec, size).unwrap();
        let grown = job.resident_bytes().unwrap() - before;
        let info = job.areas().unwrap().into_iter().find(|info| info.name == name).unwrap();
        let data = (size * (copies as usize + 1)) as u64;
        assert!((data..data + data / 16 + 16384).contains(&info.footprint), "{name}: {}", info.footprint);
        assert!((data..data + data / 16 + 65536).contains(&grown), "{name}: {grown} bytes grown");
    }
}
