//! A network on which every frame is late: a thread holds it for a while before the other hosts get it.
//!
//! Small kernels have no `netem`. So the hosts' devices are taps here, and what a host sends comes out at the other end of its tap,
//! where the thread reads it.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::ioctl::{Setter, ioctl, opcode};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Result;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest frame, with its header.
const FRAME: usize = 65_600;
/// Frames that are read from one tap before the others have their turn.
const BURST: usize = 64;
/// The end of the thread is looked for so often.
const LOOK: Duration = Duration::from_millis(50);

/// `struct ifreq` as `TUNSETIFF` takes it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// A new tap of the thread's namespace, and its other end, which never waits.
pub(crate) fn tap(name: &str) -> Result<File> {
    const SET_INTERFACE: u32 = opcode::write::<i32>(b'T', 202);
    const TAP: u16 = 2;
    const NO_PACKET_INFORMATION: u16 = 0x1000;
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let end = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: TAP | NO_PACKET_INFORMATION, rest: [0; 22] };
    assert!(name.len() < request.name.len(), "a name of at most 15 bytes");
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: `TUNSETIFF` reads and writes a `struct ifreq`, of 40 bytes, which `Request` is; it keeps no pointer to it.
    unsafe { ioctl(&end, Setter::<SET_INTERFACE, Request>::new(request)) }?;
    Ok(end)
}

/// A thread that passes frames on. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct LateSwitch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LateSwitch {
    /// Between the other ends of taps: each frame goes to all others, after this time.
    pub(crate) fn start(ends: Vec<File>, delay: Duration) -> LateSwitch {
        let ended = Arc::<AtomicBool>::default();
        let asked = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut held: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
            let mut frame = vec![0; FRAME];
            // Relaxed: nothing comes with it; `drop` joins the thread.
            while !asked.load(Ordering::Relaxed) {
                wait(&ends, held.front().map(|(at, ..)| *at));
                let now = Instant::now();
                for (from, end) in ends.iter().enumerate() {
                    for _ in 0..BURST {
                        let Ok(len) = read(end, &mut frame) else { break };
                        held.push_back((now + delay, from, frame[..len].to_vec()));
                    }
                }
                while held.front().is_some_and(|(at, ..)| *at <= now) {
                    let (_, from, frame) = held.pop_front().expect("just seen");
                    for (_, end) in ends.iter().enumerate().filter(|(to, _)| *to != from) {
                        // A host that takes nothing loses it, as on any network.
                        let _ = write(end, &frame);
                    }
                }
            }
        });
        LateSwitch { ended, thread: Some(thread) }
    }
}

/// Waits for a frame, or until the next is due.
fn wait(ends: &[File], due: Option<Instant>) {
    let left = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
    let mut set: Vec<PollFd<'_>> = ends.iter().map(|end| PollFd::new(end, PollFlags::IN)).collect();
    let left = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut set, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => panic!("the ends of taps cannot be waited for: {error}"),
    }
}

impl Drop for LateSwitch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic's message was printed.
            let _ = thread.join();
        }
    }
}
