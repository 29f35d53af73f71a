//! Memory limits of a control group: an error, not the end of the process.
use crate::common::*;
use hectare::{AreaSpec, Error, Tracking};
use hectare_testing::skip;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: u64 = 64 << 20;

/// A group below this process's own, with the file that limits its memory: version 1 or 2.
fn group() -> Option<(PathBuf, &'static str)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = |prefix: &str| {
        own.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path.trim_start_matches('/')))
    };
    let candidates = [
        ("/sys/fs/cgroup/memory", path(":memory:"), "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", path("0::"), "memory.max"),
    ];
    candidates.into_iter().find_map(|(mount, path, file)| {
        let own = Path::new(mount).join(path?);
        own.join("cgroup.procs")
            .exists()
            .then(|| (own.join(format!("hectare-test-{}", std::process::id())), file))
    })
}

/// Removed with the test, however it ends.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has ended may be accounted for a moment longer.
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn an_area_beyond_the_groups_limit() {
    if let Some((group, job)) = role() {
        std::fs::write(Path::new(&group).join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let mut worker = job.worker().unwrap();
        let spec = |name: &str| AreaSpec::new(name).copies(0).tracking(Tracking::Whole);
        let error = worker.create::<u8>(spec("ocean"), 256 << 20).unwrap_err();
        let Error::OutOfMemory { asked, free, limit, payer, .. } = &error else { panic!("{error}") };
        assert!(*asked >= 256 << 20 && *free < LIMIT && *limit == LIMIT, "{error}");
        assert!(payer.contains("hectare-test"), "{error}");
        // It lives, and smaller areas can be had and written.
        let mut pond = worker.create::<u8>(spec("pond"), 8 << 20).unwrap();
        fill(&mut pond, &worker, 1);
        pond.delete(&mut worker).unwrap();
        return;
    }
    let Some((path, file)) = group() else { return skip("cgroup", "no memory control group") };
    let ready = std::fs::create_dir(&path).and_then(|()| std::fs::write(path.join(file), LIMIT.to_string()));
    let group = Group(path);
    if let Err(error) = ready {
        return skip("cgroup", format!("cannot limit a control group's memory: {error}"));
    }
    let job = patient_job();
    let _watch = watch(&job);
    let mut child = spawn("an_area_beyond_the_groups_limit", group.0.to_str().unwrap(), &job);
    child.finish();
    drop(child);
    assert!(job.areas().unwrap().is_empty());
}
