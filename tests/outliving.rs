//! Views that are made to outlive the thread that protects them, in safe code: the process ends before anybody can
//! change what they show.
//!
//! Each test runs itself in a child process. There, a thread leaks a worker or an observer, sends a `&'static` view
//! away, and ends; another worker then tries to change what the view shows.
#![forbid(unsafe_code)]
use crate::common::{ROLE, this_program};
use hectare::{AreaSpec, Context, Error, Job, Worker};
use std::cell::RefCell;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::{Duration, Instant};

const SIGABRT: i32 = 6;
const LEN: usize = 1000;

/// The message of a child that has changed the content of a shared slice.
const CHANGED: &str = "a shared slice has changed";

/// Runs the test `name` in a child process; `None` in the child.
#[track_caller]
fn child(name: &str) -> Option<Output> {
    if std::env::var_os(ROLE).is_some() {
        return None;
    }
    let mut command = this_program(name);
    command.args(["--nocapture", "--test-threads=1"]).env(ROLE, "child");
    Some(command.output().unwrap())
}

/// The test `name`, whose child ends when its thread does, being `what`.
#[track_caller]
fn ends(name: &str, what: &str, exploit: impl FnOnce()) {
    let Some(output) = child(name) else { return exploit() };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(CHANGED), "{text}");
    assert_eq!(output.status.signal(), Some(SIGABRT), "{}\n{text}", output.status);
    assert!(text.contains(&format!("ended while it was {what}")), "{text}");
    assert!(text.contains("drop its workers and observers"), "{text}");
}

/// The test `name`, whose child ends well.
#[track_caller]
fn goes_on(name: &str, program: impl FnOnce()) {
    let Some(output) = child(name) else { return program() };
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

fn job() -> Job {
    Job::builder().reserve(64 << 20).round_timeout(Duration::from_millis(20)).embedded().unwrap()
}

/// Runs `body` in a thread that ends before this returns, and returns what it left behind.
fn left_by<R: Send + 'static>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(body).join().unwrap())
}

fn leak(worker: Worker) -> &'static mut Worker {
    Box::leak(Box::new(worker))
}

/// Claims the area and writes it all, as soon as that is possible.
fn overwrite(worker: &mut Worker, name: &str, value: u64) {
    let since = Instant::now();
    loop {
        match worker.claim::<u64>(name) {
            Ok(mut claimed) => {
                claimed.owned.write(worker).unwrap().fill(value);
                return std::mem::forget(claimed.owned);
            }
            Err(Error::OwnerAlive { .. }) if since.elapsed() < Duration::from_secs(60) => {
                worker.service().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn finish(slice: &[u64], was: u64) {
    if slice.iter().any(|value| *value != was) {
        eprintln!("{CHANGED}");
    }
}

#[test]
fn a_slice_of_read() {
    ends("a_slice_of_read", "worker 1 of a job without a name", || {
        let job = job();
        let mut other = job.worker().unwrap();
        let slice = left_by(|| {
            let worker = leak(job.worker().unwrap());
            let owned = Box::leak(Box::new(worker.create::<u64>("w", LEN).unwrap()));
            owned.write(worker).unwrap().fill(1);
            owned.read(worker).unwrap()
        });
        overwrite(&mut other, "w", 2);
        finish(slice, 1);
    });
}

#[test]
fn a_slice_of_write_whole() {
    ends("a_slice_of_write_whole", "worker 1 of", || {
        let job = job();
        let mut other = job.worker().unwrap();
        let slice = left_by(|| {
            let worker = leak(job.worker().unwrap());
            let owned = Box::leak(Box::new(worker.create::<u64>("w", LEN).unwrap()));
            owned.write_whole(worker).unwrap()
        });
        slice.fill(1);
        overwrite(&mut other, "w", 2);
        finish(slice, 1);
    });
}

#[test]
fn a_slice_of_a_guard() {
    ends("a_slice_of_a_guard", "worker 1 of", || {
        let job = job();
        let mut other = job.worker().unwrap();
        let slice = left_by(|| {
            let worker = leak(job.worker().unwrap());
            let owned = Box::leak(Box::new(worker.create::<u64>("w", LEN).unwrap()));
            let guard = Box::leak(Box::new(owned.write(worker).unwrap()));
            guard.range_mut(0..LEN)
        });
        slice.fill(1);
        overwrite(&mut other, "w", 2);
        finish(slice, 1);
    });
}

/// A reader copy is written again by the next publication, if its reader is dead.
#[test]
fn a_slice_of_a_reader_copy() {
    ends("a_slice_of_a_reader_copy", "worker 1 of", || {
        let job = job();
        let mut owner = job.worker().unwrap();
        let mut owned = owner.create::<u64>("w", LEN).unwrap();
        let area = owned.area();
        let slice = left_by(|| area.read(leak(job.worker().unwrap())).unwrap());
        let since = Instant::now();
        while area.newest_version().unwrap().counter == 0 && since.elapsed() < Duration::from_secs(60) {
            owned.write(&owner).unwrap().fill(2);
            owner.sync().unwrap();
        }
        finish(slice, 0);
    });
}

#[test]
fn a_slice_of_an_observer() {
    ends("a_slice_of_an_observer", "observer 0 of", || {
        let job = job();
        let mut owner = job.worker().unwrap();
        let mut owned = owner.create::<u64>("w", LEN).unwrap();
        let area = owned.area();
        let slice = left_by(|| {
            let observer = Box::leak(Box::new(job.observer().unwrap()));
            let area = Box::leak(Box::new(area.clone()));
            &**Box::leak(Box::new(observer.read(area).unwrap()))
        });
        let since = Instant::now();
        while area.newest_version().unwrap().counter == 0 && since.elapsed() < Duration::from_secs(60) {
            owned.write(&owner).unwrap().fill(2);
            owner.sync().unwrap();
        }
        finish(slice, 0);
    });
}

/// The slice once came to show another area's bytes.
#[test]
fn a_slice_of_a_lent_area() {
    ends("a_slice_of_a_lent_area", "worker 1 of", || {
        let job = job();
        let mut owner = job.worker().unwrap();
        let mut owned = owner.create::<u64>(AreaSpec::new("w").copies(0), LEN).unwrap();
        owned.write(&owner).unwrap().fill(1);
        let area = owned.area();
        let lent = owned.lend(&owner).unwrap();
        let slice = left_by(|| area.read_lent(leak(job.worker().unwrap())).unwrap());
        let mut again = lent.recall(&mut owner).unwrap().finish(&mut owner).unwrap();
        again.write(&owner).unwrap().fill(2);
        finish(slice, 1);
    });
}

/// The borrow is that of the loop layer's context, and the context's that of a worker.
#[test]
fn a_row_of_an_array() {
    ends("a_row_of_an_array", "worker 0 of", || {
        let job = job();
        let row = left_by(|| {
            let worker = leak(job.worker().unwrap());
            let context = Box::leak(Box::new(Context::join(worker, 1).unwrap()));
            let array = context.from_fn([4, LEN], |_| 1u64).unwrap();
            Box::leak(Box::new(array)).read(context).unwrap().row(2)
        });
        let mut other = job.worker().unwrap();
        let names: Vec<String> = job.areas().unwrap().into_iter().map(|area| area.name).collect();
        for name in names {
            if other.attach::<u64>(&name).is_ok_and(|area| area.len() == 4 * LEN) {
                overwrite(&mut other, &name, 2);
            }
        }
        finish(row, 1);
    });
}

/// Where the worker of a run comes to be is no matter: here it is exchanged for another.
#[test]
fn a_worker_that_was_swapped_out_of_a_run() {
    ends("a_worker_that_was_swapped_out_of_a_run", "worker 1 of", || {
        let (job, guest) = (job(), job());
        let mut other = job.worker().unwrap();
        let slices = job.run(1, |worker| {
            let mut own = guest.worker().unwrap();
            std::mem::swap(worker, &mut own);
            let own = leak(own);
            let owned = Box::leak(Box::new(own.create::<u64>("w", LEN).unwrap()));
            owned.write(own).unwrap().fill(1);
            owned.read(own).unwrap()
        });
        overwrite(&mut other, "w", 2);
        finish(slices.unwrap()[0], 1);
    });
}

/// All that a thread is, is said.
#[test]
fn several_workers_and_an_observer() {
    ends("several_workers_and_an_observer", "worker 0 of a job without a name and observer 0 of", || {
        let job = job();
        left_by(|| {
            leak(job.worker().unwrap());
            drop(job.worker().unwrap());
            Box::leak(Box::new(job.observer().unwrap()));
        });
    });
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Joins when it is dropped.
struct Late(Job);

impl Drop for Late {
    fn drop(&mut self) {
        let mut worker = self.0.worker().unwrap();
        let owned = worker.create::<u64>("late", LEN).unwrap();
        owned.delete(&mut worker).unwrap();
        if std::env::var_os(ROLE).is_some_and(|role| role == "child") && LEAKS.get() {
            std::mem::forget(worker);
        }
    }
}

thread_local! {
    static LEAKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[test]
fn a_worker_may_be_dropped_with_the_variables_of_its_thread() {
    goes_on("a_worker_may_be_dropped_with_the_variables_of_its_thread", || {
        let job = job();
        for _ in 0..3 {
            left_by(|| {
                WORKER.set(Some(job.worker().unwrap()));
                LATE.set(Some(Late(job.clone())));
            });
            assert!(job.workers().unwrap().is_empty());
            assert_eq!(job.stats().unwrap().deaths, 0);
        }
    });
}

#[test]
fn a_worker_that_the_variables_of_a_thread_leak() {
    ends("a_worker_that_the_variables_of_a_thread_leak", "worker 0 of", || {
        let job = job();
        left_by(|| {
            LEAKS.set(true);
            LATE.set(Some(Late(job.clone())));
        });
    });
}

/// When the process ends, nobody is left to read anything.
#[test]
fn a_process_may_end_with_workers() {
    goes_on("a_process_may_end_with_workers", || {
        let job = job();
        leak(job.worker().unwrap());
        let (joined, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            leak(job.worker().unwrap());
            joined.send(()).unwrap();
            std::thread::park();
        });
        wait.recv().unwrap();
        std::process::exit(0);
    });
}
