//! The structures of libibverbs (`infiniband/verbs.h`) whose layout its calls share with programs. They are part of the stable
//! interface of version IBVERBS_1.1; the assertions below hold them to it.
use libc::{c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};

pub(crate) const LINK_ETHERNET: u8 = 2;
pub(crate) const PORT_ACTIVE: c_int = 4;

pub(crate) const ACCESS_LOCAL_WRITE: c_int = 1;
pub(crate) const ACCESS_REMOTE_WRITE: c_int = 2;

pub(crate) const QPT_RC: c_int = 2;
pub(crate) const QPS_INIT: c_int = 1;
pub(crate) const QPS_RTR: c_int = 2;
pub(crate) const QPS_RTS: c_int = 3;

pub(crate) const QP_STATE: c_int = 1;
pub(crate) const QP_ACCESS_FLAGS: c_int = 1 << 3;
pub(crate) const QP_PKEY_INDEX: c_int = 1 << 4;
pub(crate) const QP_PORT: c_int = 1 << 5;
pub(crate) const QP_AV: c_int = 1 << 7;
pub(crate) const QP_PATH_MTU: c_int = 1 << 8;
pub(crate) const QP_TIMEOUT: c_int = 1 << 9;
pub(crate) const QP_RETRY_CNT: c_int = 1 << 10;
pub(crate) const QP_RNR_RETRY: c_int = 1 << 11;
pub(crate) const QP_RQ_PSN: c_int = 1 << 12;
pub(crate) const QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub(crate) const QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub(crate) const QP_SQ_PSN: c_int = 1 << 16;
pub(crate) const QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub(crate) const QP_DEST_QPN: c_int = 1 << 20;

pub(crate) const WR_RDMA_WRITE: c_int = 0;
pub(crate) const WR_RDMA_WRITE_WITH_IMM: c_int = 1;
pub(crate) const SEND_SIGNALED: c_uint = 1 << 1;

pub(crate) const WC_SUCCESS: c_int = 0;
pub(crate) const WC_RECV_RDMA_WITH_IMM: c_int = 129;

#[repr(C)]
pub(crate) struct RawDevice {
    _private: [u8; 0],
}

/// The inline operations of a device. Those that are not used here have no type.
#[repr(C)]
pub(crate) struct Operations {
    _before: [*const c_void; 11],
    pub(crate) poll_cq: unsafe extern "C" fn(*mut Queue, c_int, *mut Completion) -> c_int,
    pub(crate) req_notify_cq: unsafe extern "C" fn(*mut Queue, c_int) -> c_int,
    _between: [*const c_void; 12],
    pub(crate) post_send:
        unsafe extern "C" fn(*mut RawPair, *mut SendRequest, *mut *mut SendRequest) -> c_int,
    pub(crate) post_recv:
        unsafe extern "C" fn(*mut RawPair, *mut RecvRequest, *mut *mut RecvRequest) -> c_int,
    _after: [*const c_void; 5],
}

/// Its first fields; there are more.
#[repr(C)]
pub(crate) struct RawContext {
    _device: *mut RawDevice,
    pub(crate) operations: Operations,
    _command_fd: c_int,
    _async_fd: c_int,
}

#[repr(C)]
pub(crate) struct RawDomain {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct Channel {
    _context: *mut RawContext,
    pub(crate) fd: c_int,
    _count: c_int,
}

#[repr(C)]
pub(crate) struct Queue {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct RawRegion {
    _context: *mut RawContext,
    _domain: *mut RawDomain,
    _start: *mut c_void,
    _len: usize,
    _handle: u32,
    pub(crate) local_key: u32,
    pub(crate) remote_key: u32,
}

/// Its first fields; there are more.
#[repr(C)]
pub(crate) struct RawPair {
    _context: *mut RawContext,
    _of_program: *mut c_void,
    _domain: *mut RawDomain,
    _queues: [*mut Queue; 2],
    _shared: *mut c_void,
    _handle: u32,
    pub(crate) number: u32,
}

#[derive(Clone, Copy, Default)]
#[repr(C, align(8))]
pub(crate) struct Gid(pub(crate) [u8; 16]);

/// As the call knows it, and room for later versions.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct PortAttributes {
    pub(crate) state: c_int,
    _max_mtu: c_int,
    pub(crate) active_mtu: c_int,
    pub(crate) gids: c_int,
    _capabilities: u32,
    _max_message: u32,
    _counters: [u32; 2],
    _keys: u16,
    pub(crate) lid: u16,
    _subnet_lid: u16,
    _bytes: [u8; 8],
    pub(crate) link_layer: u8,
    _flags: u8,
    _more: [u32; 4],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Capacity {
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) send_parts: u32,
    pub(crate) receive_parts: u32,
    pub(crate) inline: u32,
}

#[repr(C)]
pub(crate) struct PairSettings {
    pub(crate) of_program: *mut c_void,
    pub(crate) send_queue: *mut Queue,
    pub(crate) receive_queue: *mut Queue,
    pub(crate) shared: *mut c_void,
    pub(crate) capacity: Capacity,
    pub(crate) kind: c_int,
    pub(crate) all_signaled: c_int,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Route {
    pub(crate) gid: Gid,
    pub(crate) flow: u32,
    pub(crate) own_gid: u8,
    pub(crate) hops: u8,
    pub(crate) class: u8,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Path {
    pub(crate) route: Route,
    pub(crate) lid: u16,
    pub(crate) level: u8,
    pub(crate) bits: u8,
    pub(crate) rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port: u8,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct PairAttributes {
    pub(crate) state: c_int,
    pub(crate) current: c_int,
    pub(crate) path_mtu: c_int,
    pub(crate) migration: c_int,
    pub(crate) qkey: u32,
    pub(crate) receive_psn: u32,
    pub(crate) send_psn: u32,
    pub(crate) peer: u32,
    pub(crate) access: c_uint,
    pub(crate) capacity: Capacity,
    pub(crate) path: Path,
    pub(crate) other_path: Path,
    pub(crate) key_index: u16,
    pub(crate) other_key_index: u16,
    pub(crate) drain: [u8; 2],
    pub(crate) reads: u8,
    pub(crate) reads_of_peer: u8,
    pub(crate) not_ready_timer: u8,
    pub(crate) port: u8,
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) not_ready_retries: u8,
    pub(crate) other_port: u8,
    pub(crate) other_timeout: u8,
    pub(crate) rate: u32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) local_key: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SendRequest {
    pub(crate) id: u64,
    pub(crate) next: *mut SendRequest,
    pub(crate) parts: *mut Part,
    pub(crate) part_count: c_int,
    pub(crate) operation: c_int,
    pub(crate) flags: c_uint,
    pub(crate) word: u32,
    pub(crate) address: u64,
    pub(crate) remote_key: u32,
    /// Of other operations.
    pub(crate) rest: [u64; 9],
}

#[repr(C)]
pub(crate) struct RecvRequest {
    pub(crate) id: u64,
    pub(crate) next: *mut RecvRequest,
    pub(crate) parts: *mut Part,
    pub(crate) part_count: c_int,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Completion {
    pub(crate) id: u64,
    pub(crate) status: c_int,
    pub(crate) operation: c_int,
    pub(crate) vendor: u32,
    pub(crate) bytes: u32,
    pub(crate) word: u32,
    pub(crate) pair: u32,
    pub(crate) source: u32,
    pub(crate) flags: c_uint,
    _key_index: u16,
    _lid: u16,
    _level: u8,
    _bits: u8,
}

const _: () = {
    assert!(size_of::<Operations>() == 32 * 8);
    assert!(offset_of!(Operations, poll_cq) == 88 && offset_of!(Operations, post_send) == 200);
    assert!(offset_of!(RawContext, operations) == 8);
    assert!(offset_of!(Channel, fd) == 8);
    assert!(offset_of!(RawRegion, local_key) == 36 && offset_of!(RawRegion, remote_key) == 40);
    assert!(offset_of!(RawPair, number) == 52);
    assert!(offset_of!(PortAttributes, lid) == 34 && offset_of!(PortAttributes, link_layer) == 46);
    assert!(size_of::<PortAttributes>() >= 52);
    assert!(size_of::<PairSettings>() == 64);
    assert!(size_of::<Path>() == 32 && offset_of!(Path, lid) == 24 && offset_of!(Path, port) == 30);
    assert!(size_of::<PairAttributes>() == 144);
    assert!(offset_of!(PairAttributes, capacity) == 36 && offset_of!(PairAttributes, path) == 56);
    assert!(offset_of!(PairAttributes, key_index) == 120 && offset_of!(PairAttributes, rate) == 136);
    assert!(size_of::<Part>() == 16);
    assert!(size_of::<SendRequest>() == 128);
    assert!(offset_of!(SendRequest, word) == 36 && offset_of!(SendRequest, address) == 40);
    assert!(offset_of!(SendRequest, remote_key) == 48);
    assert!(size_of::<RecvRequest>() == 32);
    assert!(size_of::<Completion>() == 48 && offset_of!(Completion, word) == 24);
};
