//! Frames over a fabric that is none of the runtime core's: threads that hand each other copies.
use super::*;
use crate::fabric::{Parcel, Parcels, Write};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, OnceLock};

/// Parcels one after the other, and their lengths.
type Offered = (Vec<u8>, Vec<usize>);

#[derive(Debug)]
struct Shared {
    barrier: Barrier,
    posted: Vec<Mutex<Vec<u8>>>,
    left: Vec<OnceLock<Vec<u8>>>,
    /// Those that are to be taken for dead.
    dead: Vec<AtomicBool>,
    /// By name and sender.
    parcels: Mutex<HashMap<(String, usize), Offered>>,
}

/// One thread's view of the others.
#[derive(Debug)]
struct Copies {
    rank: usize,
    shared: Arc<Shared>,
    seen: Vec<Vec<u8>>,
}

impl Fabric for Copies {
    fn rank(&self) -> Rank {
        self.rank as Rank
    }

    fn size(&self) -> usize {
        self.shared.posted.len()
    }

    fn post(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        write(&mut self.shared.posted[self.rank].lock().unwrap()[..len]);
        self.shared.barrier.wait();
        self.seen = self.shared.posted.iter().map(|frame| frame.lock().unwrap().clone()).collect();
        self.shared.barrier.wait();
        Ok(())
    }

    fn frame(&self, rank: usize) -> Result<&[u8]> {
        Ok(&self.seen[rank])
    }

    fn leave(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        let mut frame = vec![0; len];
        write(&mut frame);
        self.shared.left[self.rank].set(frame).unwrap();
        Ok(())
    }

    fn await_notice(&mut self, _rank: usize) -> Result<()> {
        Ok(())
    }

    fn left_by(&self, rank: usize) -> Option<&[u8]> {
        self.shared.left[rank].get().map(Vec::as_slice)
    }

    fn is_alive(&self, rank: usize) -> bool {
        !self.shared.dead[rank].load(Relaxed)
    }

    fn other_host(&self, _rank: usize) -> Option<String> {
        None
    }

    fn offer(&mut self, name: &str, parcels: Parcels<'_>, write: Write<'_>) -> Result<()> {
        let lengths = match &parcels {
            Parcels::OneForEach(lengths) => *lengths,
            Parcels::OneForAll(len) => std::slice::from_ref(len),
        };
        let mut bytes = vec![0; lengths.iter().sum()];
        write(&mut bytes);
        self.shared.parcels.lock().unwrap().insert((name.into(), self.rank), (bytes, lengths.to_vec()));
        Ok(())
    }

    fn fetch(
        &mut self,
        name: &str,
        rank: usize,
        which: Parcel,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (bytes, lengths) = self.shared.parcels.lock().unwrap()[&(name.to_owned(), rank)].clone();
        let number = if which == Parcel::Mine { self.rank } else { 0 };
        let start: usize = lengths[..number].iter().sum();
        visit(&bytes[start..start + lengths[number]])
    }

    fn withdraw(&mut self, name: &str) -> Result<()> {
        self.shared.parcels.lock().unwrap().remove(&(name.to_owned(), self.rank));
        Ok(())
    }
}

/// The result of `act` on each of `size` threads.
fn on_threads<R: Send>(size: usize, act: impl Fn(&mut Copies, &mut Mailbox) -> R + Sync) -> Vec<R> {
    let shared = Arc::new(Shared {
        barrier: Barrier::new(size),
        posted: (0..size).map(|_| Mutex::new(vec![0; FRAME_BYTES])).collect(),
        left: (0..size).map(|_| OnceLock::new()).collect(),
        dead: (0..size).map(|_| AtomicBool::new(false)).collect(),
        parcels: Mutex::default(),
    });
    let thread = |rank: usize| {
        let mut copies = Copies { rank, shared: shared.clone(), seen: Vec::new() };
        act(&mut copies, &mut Mailbox::default())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || thread(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn all_hear_what_all_say_however_long() {
    for len in [0, 1, PAYLOAD, PAYLOAD + 1, 3 * PAYLOAD] {
        let said = |rank: usize| vec![rank as u8 + 1; if rank == 1 { len } else { 5 }];
        let heard = on_threads(3, |copies, mailbox| {
            let mut heard = vec![Vec::new(); 3];
            let bytes = said(copies.rank);
            let exchanged =
                mailbox.exchange(copies, Site::here(), Outcome::Value(&bytes), &mut |rank, bytes| {
                    heard[rank as usize] = bytes.to_vec();
                    Ok(())
                });
            exchanged.map(|()| heard)
        });
        let expected: Vec<_> = (0..3).map(said).collect();
        for heard in heard {
            assert!(heard.unwrap() == expected, "{len} bytes");
        }
    }
}

/// Also where some messages need several frames, and others one.
#[test]
fn replies_come_by_rank_however_long_they_are() {
    for lengths in [[PAYLOAD + 1, 0, 5], [5, 2 * PAYLOAD, PAYLOAD], [0, PAYLOAD + 1, 0]] {
        let heard = on_threads(3, |copies, mailbox| {
            let (bytes, mut heard) = (vec![7; lengths[copies.rank]], Vec::new());
            let exchanged =
                mailbox.exchange(copies, Site::here(), Outcome::Value(&bytes), &mut |rank, bytes| {
                    heard.push((rank, bytes.len()));
                    Ok(())
                });
            exchanged.map(|()| heard)
        });
        let expected: Vec<_> = (0..).zip(lengths).collect();
        for heard in heard {
            assert_eq!(heard.unwrap(), expected);
        }
    }
}

#[test]
fn an_error_of_one_is_an_error_of_all_others() {
    let ended = on_threads(3, |copies, mailbox| {
        let say = if copies.rank == 2 { Outcome::Failure("no more") } else { Outcome::Value(&[]) };
        mailbox.exchange(copies, Site::here(), say, &mut |_, _| Ok(()))
    });
    assert!(ended[2].is_ok());
    for ended in &ended[..2] {
        let named = matches!(ended, Err(Error::PeerFailed { rank: 2, message, .. }) if message == "no more");
        assert!(named, "{ended:?}");
    }
}

#[test]
fn frames_from_elsewhere_tell_programs_apart() {
    let ended = on_threads(2, |copies, mailbox| {
        let site = Site { file: "program.rs", line: 7 + copies.rank as u32, column: 1 };
        mailbox.exchange(copies, site, Outcome::Value(&[]), &mut |_, _| Ok(()))
    });
    let Err(Error::Diverged { here, there_rank: 1, there, .. }) = &ended[0] else { panic!("{:?}", ended[0]) };
    assert_eq!((here.as_str(), there.as_str()), ("program.rs:7:1", "program.rs:8:1"));
}

/// Who has posted its frame and died may let another one go on before all have read theirs.
#[test]
fn a_frame_of_a_later_call_is_no_divergence_where_one_has_died() {
    let ended = on_threads(3, |copies, mailbox| {
        copies.shared.dead[2].store(true, Relaxed);
        mailbox.sequence += u64::from(copies.rank == 0);
        mailbox.exchange(
            copies,
            Site { file: "program.rs", line: 7, column: 1 },
            Outcome::Value(&[]),
            &mut |_, _| Ok(()),
        )
    });
    assert!(matches!(ended[1], Err(Error::WorkerLost { rank: 2, .. })), "{:?}", ended[1]);
}
