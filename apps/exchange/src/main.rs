//! Areas over threads, processes and hosts.
use hectare::wire::Launch;
use hectare::{AreaSpec, Job, Worker};
use std::time::Duration;

fn exchange(worker: &mut Worker, size: usize) -> hectare::Result<()> {
    let timeout = Duration::from_secs(60);
    worker.wait_for_workers(size, timeout)?;
    let me = worker.rank();
    let mut mine = worker.create::<f32>(AreaSpec::new(format!("part/{me}")), 1000)?;
    mine.write(worker)?.fill(me as f32 + 1.0);
    worker.barrier()?;
    // The areas of all, wherever they are: a barrier means the same on threads, processes and hosts.
    let mut sum = 0.0;
    for rank in 0..size {
        let part = worker.attach_within::<f32>(&format!("part/{rank}"), timeout)?;
        sum += part.read(worker)?.iter().sum::<f32>();
    }
    println!("worker {me} of {size}: {sum}");
    // A worker that ends takes its area with it: wait for all.
    worker.barrier()
}

fn main() -> hectare::Result<()> {
    match Launch::from_environment()? {
        // One of several processes, here or on several hosts.
        Some(launch) => {
            let job = Job::connect(&launch.job)?;
            exchange(&mut job.worker()?, launch.size as usize)?;
        }
        None => drop(Job::embedded()?.try_run(2, |worker| exchange(worker, 2))?),
    }
    Ok(())
}
