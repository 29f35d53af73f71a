//! Nothing is left behind: descriptors and mappings, in a process of its own.
use crate::common::*;
use hectare::{AreaSpec, Job, Tracking};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd:hectare")).count()
}

#[test]
fn jobs_leave_nothing_behind() {
    const NAME: &str = "jobs_leave_nothing_behind";
    let Some((role, job)) = role() else { return spawn(NAME, "alone", &patient_job()).finish() };
    if role == "child" {
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>("child", 100).unwrap();
        fill(&mut owned, &worker, 1);
        worker.sync().unwrap();
        return;
    }
    drop(job);
    let mut before = 0;
    for turn in 0..6 {
        {
            let job = patient_job();
            run(&job, 3, |worker| {
                let spec = AreaSpec::new(format!("{}", worker.rank())).tracking(Tracking::Automatic);
                let owned = worker.create::<u64>(spec, 5000).unwrap();
                let _notification = owned.area().notify().unwrap();
                let _observer = worker.job().observer().unwrap();
                worker.barrier().unwrap();
                worker.barrier().unwrap();
            })
            .unwrap();
            assert!(job.run(2, |worker| assert_eq!(worker.rank(), 5)).is_err());
            spawn(NAME, "child", &job).finish();
            // SAFETY: only the library writes through it.
            let again = unsafe { job.descriptor() }.try_clone_to_owned().unwrap();
            let again = Job::from_descriptor(again).unwrap();
            assert_eq!(again.areas().unwrap().len(), 4);
        }
        // The notifier's thread looks around every 200 ms.
        until("the mapping to go", || mappings() == 0);
        if turn == 0 {
            before = descriptors();
        }
        until("the descriptors to go", || descriptors() <= before);
    }
}
