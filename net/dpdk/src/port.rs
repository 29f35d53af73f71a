//! A device with one queue in each direction.
use crate::eal::Eal;
use crate::error::{Error, Step};
use crate::ffi::{self, Frame};
use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// The most frames of one call.
pub const BURST: usize = 64;

/// Properties of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The MTU that the driver is told; `None` leaves it as it is.
    pub mtu: Option<u16>,
    /// Bytes of a buffer: a whole frame has to fit.
    pub room: u32,
    /// How many buffers the port has, for both directions.
    pub buffers: u32,
    /// Descriptors of each direction, if the driver allows that number.
    pub ring: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { mtu: None, room: 2048, buffers: 2048, ring: 512 }
    }
}

/// The counters of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Frames that came.
    pub received: u64,
    /// Frames that went.
    pub sent: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that the device dropped because nobody fetched those before.
    pub missed: u64,
    /// Frames that came with an error.
    pub receive_errors: u64,
    /// Frames that could not be sent.
    pub send_errors: u64,
    /// How often there was no free buffer for a frame that came.
    pub no_buffers: u64,
}

/// A port. Whoever has it uses it alone.
pub struct Port {
    raw: NonNull<ffi::Port>,
    /// The first `held` came, and are this port's until the next call of `receive`.
    frames: [Frame; BURST],
    held: usize,
}

// SAFETY: DPDK lets any thread use a queue, one at a time, and every use of the port borrows it.
unsafe impl Send for Port {}

impl Port {
    /// Opens a device, as DPDK names it: the PCI address of a card, or a virtual device with its arguments
    /// (`net_af_packet0,iface=eth1`).
    ///
    /// # Errors
    /// If no driver takes it, it is in use, or it refuses a setting.
    pub fn open(_eal: Eal, device: &str, settings: &Settings) -> Result<Port, Error> {
        let name = CString::new(device)
            .map_err(|_| Error::Arguments(format!("the device {device:?} has a zero byte in it")))?;
        let settings = ffi::Settings {
            mtu: settings.mtu.map_or(0, u32::from),
            room: settings.room,
            buffers: settings.buffers,
            ring: settings.ring.min(u32::from(u16::MAX)),
        };
        let (mut raw, mut step) = (std::ptr::null_mut(), 0);
        let lock = ffi::lock();
        let (code, log) = ffi::logged(&lock, || {
            // SAFETY: the environment runs, the string ends in zero, and all pointers are to live values; under the lock.
            unsafe { ffi::hd_open(name.as_ptr(), &settings, &mut raw, &mut step) }
        });
        match NonNull::new(raw) {
            Some(raw) if code == 0 => Ok(Port { raw, frames: [Frame::NONE; BURST], held: 0 }),
            _ => Err(Error::Open { device: device.into(), step: Step::from_number(step), code, log }),
        }
    }

    /// Its hardware address.
    pub fn mac(&self) -> [u8; 6] {
        let mut mac = [0; 6];
        // SAFETY: the port is open, and six bytes are written.
        unsafe { ffi::hd_mac(self.raw.as_ptr(), &mut mac) };
        mac
    }

    /// The name of its driver.
    pub fn driver(&self) -> String {
        // SAFETY: the port is open; the driver's name is a constant of a library that is never unloaded.
        let name = unsafe { CStr::from_ptr(ffi::hd_driver(self.raw.as_ptr())) };
        name.to_string_lossy().into_owned()
    }

    /// Whether the device says that it is connected. That of an interface that was taken away may go on saying so.
    pub fn is_up(&self) -> bool {
        // SAFETY: the port is open.
        unsafe { ffi::hd_link_is_up(self.raw.as_ptr()) != 0 }
    }

    /// Its counters.
    ///
    /// # Errors
    /// If the driver does not count.
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats::default();
        // SAFETY: the port is open, and `Stats` has the fields of `struct hd_stats`.
        match unsafe { ffi::hd_stats(self.raw.as_ptr(), &mut stats) } {
            0 => Ok(stats),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Sends `count` frames, at most [`BURST`]. Each is written where it is sent from: `write` gets its number and a buffer of
    /// `longest` bytes, which holds anything, and returns the length of the frame. What the device does not take within
    /// `timeout` is dropped. How many it took: 0 if there were no buffers.
    ///
    /// # Panics
    /// If `count` is larger than a burst, or `write` returns more than it got.
    pub fn send(
        &mut self,
        count: usize,
        longest: usize,
        timeout: Duration,
        mut write: impl FnMut(usize, &mut [u8]) -> usize,
    ) -> usize {
        assert!(count <= BURST, "{count} frames in a burst");
        let mut held = Held { frames: [Frame::NONE; BURST], from: 0, to: 0 };
        let Ok(length) = u32::try_from(longest) else { return 0 };
        // SAFETY: the port is open, and there is room for a burst of frames.
        let allocated = unsafe {
            ffi::hd_allocate(self.raw.as_ptr(), held.frames.as_mut_ptr(), count as u32, length) as usize
        };
        held.to = allocated;
        for (at, frame) in held.frames[..allocated].iter_mut().enumerate() {
            // SAFETY: the shim lends `frame.length` bytes of a buffer of its own, which nobody else knows until it is sent or freed;
            // DPDK's memory is mapped, so that it holds some bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(frame.data, frame.length as usize) };
            let written = write(at, bytes);
            assert!(written <= longest, "a frame of {written} bytes in a buffer of {longest}");
            frame.length = written as u32;
        }
        let mut deadline = None;
        while held.from < held.to {
            // SAFETY: the port is open, these frames are held, and what it takes is not used again.
            let taken = unsafe {
                let left = (held.to - held.from) as u32;
                ffi::hd_transmit(self.raw.as_ptr(), held.frames.as_ptr().add(held.from), left) as usize
            };
            held.from += taken;
            if taken == 0 {
                if *deadline.get_or_insert_with(|| Instant::now() + timeout) <= Instant::now() {
                    break;
                }
                std::thread::yield_now();
            }
        }
        held.from
    }

    /// Fetches the frames that have come, at most [`BURST`], and gives those of the last call back. How many; it does not wait.
    pub fn receive(&mut self) -> usize {
        self.release();
        // SAFETY: the port is open, there is room for a burst of frames, and none is held in it.
        self.held =
            unsafe { ffi::hd_receive(self.raw.as_ptr(), self.frames.as_mut_ptr(), BURST as u32) as usize };
        self.held
    }

    /// A frame that the last call of [`receive`](Self::receive) fetched, in the buffer that the device wrote to.
    ///
    /// # Panics
    /// If fewer were received.
    pub fn frame(&mut self, at: usize) -> &mut [u8] {
        let frame = self.frames[..self.held][at];
        // SAFETY: the buffer is held until the next `receive`, which needs `self`; `frame.length` bytes of it are the frame, and no other
        // frame's.
        unsafe { std::slice::from_raw_parts_mut(frame.data, frame.length as usize) }
    }

    fn release(&mut self) {
        // SAFETY: these frames are held, and no longer after this.
        unsafe { ffi::hd_free(self.frames.as_ptr(), self.held as u32) };
        self.held = 0;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.release();
        let _lock = ffi::lock();
        // SAFETY: no frame is held, the port is not used again, and the lock is held.
        unsafe { ffi::hd_close(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("driver", &self.driver())
            .field("mac", &self.mac())
            .finish_non_exhaustive()
    }
}

/// Frames to be sent, of which those that were not taken go back.
struct Held {
    frames: [Frame; BURST],
    from: usize,
    to: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the shim lent the frames up to `to`, and took those before `from`.
        unsafe { ffi::hd_free(self.frames.as_ptr().add(self.from), (self.to - self.from) as u32) };
    }
}
