//! Reliable connected queue pairs.
use crate::card::Card;
use crate::device::{Allocated, Domain, PORT};
use crate::error::{Broken, Error};
use crate::ffi::{
    ACCESS_LOCAL_WRITE, ACCESS_REMOTE_WRITE, Capacity, Completion, Gid, PairAttributes, PairSettings, Part,
    Path, QP_ACCESS_FLAGS, QP_AV, QP_DEST_QPN, QP_MAX_DEST_RD_ATOMIC, QP_MAX_QP_RD_ATOMIC, QP_MIN_RNR_TIMER,
    QP_PATH_MTU, QP_PKEY_INDEX, QP_PORT, QP_RETRY_CNT, QP_RNR_RETRY, QP_RQ_PSN, QP_SQ_PSN, QP_STATE,
    QP_TIMEOUT, QPS_INIT, QPS_RTR, QPS_RTS, QPT_RC, Queue, RawPair, RecvRequest, Route, SEND_SIGNALED,
    SendRequest, WC_RECV_RDMA_WITH_IMM, WC_SUCCESS, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM,
};
use crate::library::{check, code};
use crate::region::{Place, Region};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

/// Writes that are under way at most.
pub const DEPTH: usize = 256;
/// Writes of one doorbell at most.
pub const BATCH: usize = 32;
/// Words of the peer that may come before somebody looks.
const WORDS: usize = 64;
/// 4.096 us times two to this: so long an answer is waited for before a packet is sent again.
const TIMEOUT: u8 = 14;
/// How often it is. Software RoCE takes the most, 7, for any number.
const RETRIES: u8 = 6;
/// The shortest pause that a peer without room for a word asks for: 0.64 ms.
const NOT_READY: u8 = 12;

/// Bytes that go into the peer's memory.
#[derive(Debug, Clone)]
pub struct Write {
    /// From where; it stays registered until they have gone.
    pub from: Rc<Region>,
    /// The range of its bytes.
    pub bytes: Range<usize>,
    /// Into which region of the peer.
    pub to: Place,
    /// At which of its bytes.
    pub at: u64,
    /// A word that the peer is told when these bytes, and all that were posted before, are there.
    pub word: Option<u32>,
}

/// An operation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The number of writes that have reached the peer's memory since the last look.
    Written(usize),
    /// The peer has sent a word: all that it had posted before is in this host's memory.
    Word(u32),
}

/// A queue pair: to one of a peer, and never to another. When it is dropped, nothing of the peer comes by it any more.
pub struct Pair {
    raw: NonNull<RawPair>,
    queue: NonNull<Queue>,
    domain: Rc<Allocated>,
    psn: u32,
    connected: bool,
    /// Of each write under way, in order, what it is sent from.
    under_way: VecDeque<Rc<Region>>,
    /// Writes that were posted, and that are done.
    posted: u64,
    done: u64,
    broken: Option<Broken>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("card", &self.card())
            .field("under_way", &self.under_way.len())
            .field("broken", &self.broken)
            .finish()
    }
}

impl Pair {
    /// A queue pair that is not connected yet. Its first packet has the number `psn`, of which the lower 24 bits count.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn open(domain: &Domain, psn: u32) -> Result<Pair, Error> {
        let device = domain.0.device.clone();
        let library = device.library;
        let entries = (DEPTH + WORDS) as i32;
        // SAFETY: device and channel are there as long as the queue, by `domain`.
        let queue = unsafe {
            (library.create_cq)(device.context.as_ptr(), entries, null_mut(), device.channel.as_ptr(), 0)
        };
        let queue = NonNull::new(queue).ok_or_else(|| Error::Call { call: "ibv_create_cq", code: code() })?;
        let mut settings = PairSettings {
            of_program: null_mut(),
            send_queue: queue.as_ptr(),
            receive_queue: queue.as_ptr(),
            shared: null_mut(),
            capacity: Capacity {
                sends: DEPTH as u32,
                receives: WORDS as u32,
                send_parts: 1,
                receive_parts: 1,
                inline: 0,
            },
            kind: QPT_RC,
            all_signaled: 0,
        };
        // SAFETY: domain and queue are there as long as the pair.
        let raw = unsafe { (library.create_qp)(domain.0.raw.as_ptr(), &mut settings) };
        let Some(raw) = NonNull::new(raw) else {
            let error = Error::Call { call: "ibv_create_qp", code: code() };
            // SAFETY: nothing uses it.
            unsafe { (library.destroy_cq)(queue.as_ptr()) };
            return Err(error);
        };
        let mut pair = Pair {
            raw,
            queue,
            domain: domain.0.clone(),
            psn: psn & 0xff_ffff,
            connected: false,
            under_way: VecDeque::new(),
            posted: 0,
            done: 0,
            broken: None,
        };
        let attributes = PairAttributes {
            state: QPS_INIT,
            port: PORT,
            access: (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE) as u32,
            ..PairAttributes::default()
        };
        pair.modify(attributes, QP_STATE | QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS)?;
        for _ in 0..WORDS {
            pair.await_word().map_err(|code| Error::Call { call: "ibv_post_recv", code })?;
        }
        pair.arm()?;
        Ok(pair)
    }

    fn modify(&mut self, mut attributes: PairAttributes, which: i32) -> Result<(), Error> {
        // SAFETY: the pair is there, and the attributes are whole.
        let done =
            unsafe { (self.domain.device.library.modify_qp)(self.raw.as_ptr(), &mut attributes, which) };
        check("ibv_modify_qp", done)
    }

    /// Its address, for the peer.
    #[must_use]
    pub fn card(&self) -> Card {
        let device = &self.domain.device;
        // SAFETY: the pair is there.
        let number = unsafe { self.raw.as_ref() }.number;
        Card { number, psn: self.psn, gid: device.gid, lid: device.lid, mtu: device.mtu }
    }

    /// Connects it with the peer's, which is to be connected with this one.
    ///
    /// # Errors
    /// [`Error::OtherLink`], [`Error::Call`].
    ///
    /// # Panics
    /// If it is connected.
    pub fn connect(&mut self, peer: &Card) -> Result<(), Error> {
        assert!(!self.connected, "a queue pair has one peer");
        let device = self.domain.device.clone();
        if device.is_ethernet != (peer.lid == 0) {
            return Err(Error::OtherLink);
        }
        let route = Route { gid: Gid(peer.gid), own_gid: device.gid_index, hops: 64, ..Route::default() };
        let ready = PairAttributes {
            state: QPS_RTR,
            path_mtu: device.mtu.min(peer.mtu).into(),
            receive_psn: peer.psn,
            peer: peer.number,
            path: Path {
                route,
                lid: peer.lid,
                is_global: u8::from(device.is_ethernet),
                port: PORT,
                ..Path::default()
            },
            reads_of_peer: 1,
            not_ready_timer: NOT_READY,
            ..PairAttributes::default()
        };
        self.modify(
            ready,
            QP_STATE
                | QP_AV
                | QP_PATH_MTU
                | QP_DEST_QPN
                | QP_RQ_PSN
                | QP_MAX_DEST_RD_ATOMIC
                | QP_MIN_RNR_TIMER,
        )?;
        let sends = PairAttributes {
            state: QPS_RTS,
            send_psn: self.psn,
            timeout: TIMEOUT,
            retries: RETRIES,
            // Again and again: a peer that does not look for its words is alive.
            not_ready_retries: 7,
            reads: 1,
            ..PairAttributes::default()
        };
        self.modify(
            sends,
            QP_STATE | QP_TIMEOUT | QP_RETRY_CNT | QP_RNR_RETRY | QP_SQ_PSN | QP_MAX_QP_RD_ATOMIC,
        )?;
        self.connected = true;
        Ok(())
    }

    /// How many more writes may be posted now.
    #[must_use]
    pub fn room(&self) -> usize {
        DEPTH - self.under_way.len()
    }

    /// How many writes are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Posts writes, which are carried out in order, with one doorbell.
    ///
    /// # Errors
    /// [`Broken`]; then whichever of them were posted are given up with the pair.
    ///
    /// # Panics
    /// If it is not connected, there is no room for them or more than [`BATCH`], one has bytes that its region does not have, or
    /// more than 2 GiB, or a region is of another domain.
    pub fn post(&mut self, writes: &[Write]) -> Result<(), Broken> {
        assert!(self.connected && writes.len() <= self.room().min(BATCH), "{} writes", writes.len());
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let Some(last) = writes.len().checked_sub(1) else { return Ok(()) };
        let mut parts = [Part::default(); BATCH];
        let nothing = SendRequest {
            id: 0,
            next: null_mut(),
            parts: null_mut(),
            part_count: 0,
            operation: WR_RDMA_WRITE,
            flags: 0,
            word: 0,
            address: 0,
            remote_key: 0,
            rest: [0; 9],
        };
        let mut requests = [nothing; BATCH];
        for (at, write) in writes.iter().enumerate() {
            let Write { from, bytes, to, at: there, word } = write;
            assert!(
                bytes.start <= bytes.end && bytes.end <= from.len() && bytes.len() <= 1 << 31,
                "{bytes:?}"
            );
            assert!(from.is_of(&self.domain), "a region of another domain");
            parts[at] = Part {
                start: from.start + bytes.start as u64,
                len: bytes.len() as u32,
                local_key: from.local_key(),
            };
            requests[at] = SendRequest {
                id: self.posted + at as u64 + 1,
                parts: &mut parts[at],
                part_count: i32::from(!bytes.is_empty()),
                operation: if word.is_some() { WR_RDMA_WRITE_WITH_IMM } else { WR_RDMA_WRITE },
                flags: if at == last { SEND_SIGNALED } else { 0 },
                word: word.unwrap_or(0).to_be(),
                address: to.address + there,
                remote_key: to.key,
                ..nothing
            };
        }
        for at in 0..last {
            requests[at].next = &raw mut requests[at + 1];
        }
        let mut bad = null_mut();
        // SAFETY: the requests form a list that ends, with parts of registered memory, which `under_way` keeps until they are done
        // or the pair is gone; the device copies the list before it returns.
        let code = unsafe {
            let post = self.domain.device.context.as_ref().operations.post_send;
            post(self.raw.as_ptr(), requests.as_mut_ptr(), &mut bad)
        };
        // Some of the list may have been posted.
        self.posted += writes.len() as u64;
        self.under_way.extend(writes.iter().map(|write| write.from.clone()));
        if code != 0 {
            return Err(*self.broken.insert(Broken::Post(code.abs())));
        }
        Ok(())
    }

    /// Gives what has happened to `done`; how much it was. It does not wait.
    ///
    /// # Errors
    /// [`Broken`], after all that happened before.
    pub fn poll(&mut self, done: &mut Vec<Done>) -> Result<usize, Broken> {
        let before = done.len();
        loop {
            let mut came = [Completion::default(); 16];
            // SAFETY: the queue is there, and `came` has room for that number.
            let count = unsafe {
                let poll = self.domain.device.context.as_ref().operations.poll_cq;
                poll(self.queue.as_ptr(), came.len() as i32, came.as_mut_ptr())
            };
            let Ok(count) = usize::try_from(count) else {
                return Err(*self.broken.get_or_insert(Broken::Other(count)));
            };
            for completion in &came[..count] {
                self.note(completion, done);
            }
            if count < came.len() {
                return self.broken.map_or(Ok(done.len() - before), Err);
            }
        }
    }

    fn note(&mut self, completion: &Completion, done: &mut Vec<Done>) {
        if completion.status != WC_SUCCESS {
            let broken = Broken::of_status(completion.status);
            // The first one says why; those after it are given up with the pair.
            self.broken.get_or_insert(broken);
        } else if completion.operation == WC_RECV_RDMA_WITH_IMM {
            done.push(Done::Word(u32::from_be(completion.word)));
            if let Err(code) = self.await_word() {
                self.broken.get_or_insert(Broken::Post(code));
            }
        } else {
            let count = completion.id.saturating_sub(self.done) as usize;
            self.done += count as u64;
            self.under_way.drain(..count.min(self.under_way.len()));
            done.push(Done::Written(count));
        }
    }

    /// Makes room for a word of the peer.
    fn await_word(&mut self) -> Result<(), i32> {
        let mut request = RecvRequest { id: 0, next: null_mut(), parts: null_mut(), part_count: 0 };
        let mut bad = null_mut();
        // SAFETY: the pair is there; the request has no memory.
        let code = unsafe {
            let post = self.domain.device.context.as_ref().operations.post_recv;
            post(self.raw.as_ptr(), &mut request, &mut bad)
        };
        if code == 0 { Ok(()) } else { Err(code.abs()) }
    }

    /// Arms the device's descriptor for the next completion. Completions from before are to be looked for once
    /// more.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn arm(&self) -> Result<(), Error> {
        // SAFETY: the queue is there.
        let done = unsafe {
            let arm = self.domain.device.context.as_ref().operations.req_notify_cq;
            arm(self.queue.as_ptr(), 0)
        };
        check("ibv_req_notify_cq", done)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let device = crate::Device(self.domain.device.clone());
        // SAFETY: both are there, and nothing else uses them. When the call returns, the device reads and writes no memory for the
        // pair any more; then `under_way` goes.
        unsafe {
            let failed = (device.0.library.destroy_qp)(self.raw.as_ptr());
            assert_eq!(
                failed, 0,
                "a device keeps a queue pair, by which a peer may write: the agent has to end"
            );
        }
        // The call for the queue waits until all its events are acknowledged.
        device.take_events();
        // SAFETY: as above.
        unsafe {
            (device.0.library.destroy_cq)(self.queue.as_ptr());
        }
    }
}
