//! `shim.h` in Rust.
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port of the shim, of which only pointers exist here.
#[repr(C)]
pub(crate) struct Port {
    _opaque: [u8; 0],
}

/// A frame that this side holds.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) mbuf: *mut c_void,
    pub(crate) data: *mut u8,
    pub(crate) length: u32,
}

impl Frame {
    pub(crate) const NONE: Frame =
        Frame { mbuf: std::ptr::null_mut(), data: std::ptr::null_mut(), length: 0 };
}

#[repr(C)]
pub(crate) struct Settings {
    pub(crate) mtu: u32,
    pub(crate) room: u32,
    pub(crate) buffers: u32,
    pub(crate) ring: u32,
}

unsafe extern "C" {
    pub(crate) fn hd_start(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn hd_open(
        device: *const c_char,
        settings: *const Settings,
        port: *mut *mut Port,
        step: *mut c_int,
    ) -> c_int;
    pub(crate) fn hd_stats(port: *const Port, stats: *mut crate::Stats) -> c_int;
    pub(crate) fn hd_close(port: *mut Port);
    pub(crate) fn hd_mac(port: *const Port, mac: *mut [u8; 6]);
    pub(crate) fn hd_driver(port: *const Port) -> *const c_char;
    pub(crate) fn hd_link_is_up(port: *const Port) -> c_int;
    pub(crate) fn hd_allocate(port: *mut Port, frames: *mut Frame, count: u32, length: u32) -> u32;
    pub(crate) fn hd_transmit(port: *mut Port, frames: *const Frame, count: u32) -> u32;
    pub(crate) fn hd_receive(port: *mut Port, frames: *mut Frame, count: u32) -> u32;
    pub(crate) fn hd_free(frames: *const Frame, count: u32);
    fn hd_log_begin();
    fn hd_log_end(text: *mut c_char, room: u32);
}

/// Held by whoever starts the environment, opens or closes: they share state of DPDK that has no lock of its own.
pub(crate) fn lock() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls the function, and returns what DPDK logged meanwhile.
pub(crate) fn logged<T>(_lock: &MutexGuard<'static, ()>, call: impl FnOnce() -> T) -> (T, String) {
    let mut text = [0_u8; 4097];
    // SAFETY: the lock is held, so nobody else begins or ends; and the text has as much room as is said.
    let result = unsafe {
        hd_log_begin();
        let result = call();
        hd_log_end(text.as_mut_ptr().cast(), text.len() as u32);
        result
    };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    (result, String::from_utf8_lossy(&text[..end]).into_owned())
}
