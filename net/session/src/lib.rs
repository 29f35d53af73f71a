//! Sessions between the agents of a job's hosts.
//!
//! An [`Endpoint`] has one link to each host of the job. Over a link go packets: authenticated, sealed, at most once each, in any
//! order, and perhaps not at all. Of each packet that was given to it the endpoint says later that it arrived or is lost, and
//! it says how much may be sent. Nothing here keeps a packet to send it again: who gave it knows best what the receiver
//! still needs.
//!
//! There are no threads, clocks, sockets or sources of randomness inside: time, datagrams and a seed are given, and equal
//! inputs have equal outputs. `SESSION.md` has every packet byte by byte.
//!
//! ```
//! use hectare_session::{Batch, ClusterKey, Config, Endpoint, Event, HostId, Time};
//!
//! let key = ClusterKey::new("lab", [7; 32])?;
//! let addresses = ["10.0.0.1:7000".parse()?, "10.0.0.2:7000".parse()?];
//! let host = |host| Endpoint::new(Config::new(HostId(host), 1, [1; 16], key.clone(), [host as u8 + 1; 32]), [host as u8; 32]);
//! let mut hosts = [host(0), host(1)];
//! hosts[0].connect(Time::ZERO, HostId(1), addresses[1]);
//!
//! // A network that loses nothing and takes 10 us: datagrams go from one to the other until both are connected.
//! let mut buffer = vec![0; 65536];
//! let mut connected = 0;
//! for step in 0.. {
//!     let (from, to, now) = (step % 2, 1 - step % 2, Time::from_nanos(step as u64 * 10_000));
//!     hosts[from].handle_timeout(now);
//!     let mut batch = Batch::new(&mut buffer, 64);
//!     hosts[from].transmit(now, &mut batch);
//!     if !batch.is_empty() {
//!         for datagram in batch.bytes().to_vec().chunks_mut(batch.segment_size()) {
//!             hosts[to].receive(now, addresses[from], false, datagram);
//!         }
//!     }
//!     while let Some(event) = hosts[to].poll_event() {
//!         connected += u32::from(matches!(event, Event::Connected { boot: 1, .. }));
//!     }
//!     if connected == 2 {
//!         break;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
mod batch;
mod cipher;
mod config;
mod counters;
mod endpoint;
mod event;
mod handshake;
mod key;
mod link;
mod random;
mod recovery;
mod refusal;
mod time;
mod version;
mod wire;

pub use batch::Batch;
pub use cipher::{KEY_LIMIT, Suite};
pub use config::{Config, HostId, Identity};
pub use counters::{Counters, LinkStatus};
pub use endpoint::Endpoint;
pub use event::{Event, Reason, Received, SendError};
pub use key::{ClusterKey, JobId, KeyError};
pub use refusal::Refusal;
pub use time::Time;
pub use version::VERSION;
pub use wire::BASE_DATAGRAM;
