//! Workers of a test, of which one that fails ends the others.
use hectare::{Job, Result, Worker};
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, Once, OnceLock};
use std::time::Duration;

/// How long the others have to end by themselves, as they do where the one that failed is missed.
const GRACE: Duration = Duration::from_secs(10);

thread_local! {
    /// The message of this thread's panic, and its place.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Threads that belong together, none of which may panic.
///
/// When one does, the others may wait for it where nobody tells them: on a flag, at a barrier of threads, in a loop that
/// serves. So they have some seconds to end; then its message is shown and the process ended. The watchdog would do that
/// after six minutes, and not know why.
pub(crate) struct Crew(Arc<State>);

#[derive(Default)]
struct State {
    /// Whether all have come to their end.
    ended: Mutex<bool>,
    changed: Condvar,
    failed: OnceLock<()>,
}

impl Crew {
    pub(crate) fn new() -> Crew {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                SAID.set(info.to_string());
                before(info);
            }));
        });
        Crew(Arc::default())
    }

    /// Does one thread's part.
    pub(crate) fn part<R>(&self, act: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
            let (state, said) = (self.0.clone(), SAID.take());
            self.0.failed.get_or_init(|| drop(std::thread::spawn(move || state.end_others(&said))));
            resume_unwind(payload)
        })
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap() = true;
        self.0.changed.notify_all();
    }
}

impl State {
    fn end_others(&self, said: &str) {
        let ended = self.ended.lock().unwrap();
        let (ended, _) = self.changed.wait_timeout_while(ended, GRACE, |ended| !*ended).unwrap();
        if !*ended {
            // The test runner's captured output is lost with the process.
            let text = format!("a worker {said}\nthe others wait for it, and are ended\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
            std::process::abort();
        }
    }
}

/// [`Job::run`] for bodies that do not panic: one that does ends the others.
pub(crate) fn run<R: Send>(
    job: &Job,
    count: usize,
    body: impl Fn(&mut Worker) -> R + Sync,
) -> Result<Vec<R>> {
    let crew = Crew::new();
    job.run(count, |worker| crew.part(|| body(worker)))
}
