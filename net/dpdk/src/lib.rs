//! A small safe surface of DPDK 22.11 and later: the environment, ports, and bursts of frames.
//!
//! Empty without the feature `dpdk`. All unsafe code that Hectare needs for DPDK is here: a file of C compiled against the system's
//! headers, since most functions for packets are inline in them, and the calls of it. No struct of DPDK reaches Rust, so that its
//! versions may differ in their layouts.
//!
//! `Eal` is started once per process. A `Port` is a device with one queue in each direction and buffers of its own; one thread
//! uses it at a time.
//!
#![cfg_attr(feature = "dpdk", doc = "```no_run")]
#![cfg_attr(not(feature = "dpdk"), doc = "```ignore")]
//! use hectare_dpdk::{Eal, Port, Settings, default_arguments};
//!
//! let device = "net_af_packet0,iface=eth1";
//! let eal = Eal::start(&default_arguments(device))?;
//! let mut port = Port::open(eal, device, &Settings::default())?;
//! let sent = port.send(1, 60, std::time::Duration::ZERO, |_, frame| {
//!     frame.fill(0xff);
//!     60
//! });
//! for at in 0..port.receive() {
//!     println!("{sent} sent, and one of {} bytes has come", port.frame(at).len());
//! }
//! # Ok::<(), hectare_dpdk::Error>(())
//! ```
#![cfg(feature = "dpdk")]
mod eal;
mod error;
mod ffi;
mod port;

pub use eal::{Eal, default_arguments};
pub use error::{Error, Step};
pub use port::{BURST, Port, Settings, Stats};
