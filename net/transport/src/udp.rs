//! UDP, with generic segmentation offload, generic receive offload, ECN and no fragmentation.
//!
//! By `quinn-udp` rather than by `rustix` or `socket2`: neither has the control messages (UDP_SEGMENT, UDP_GRO, IP_TOS), which
//! would need unsafe code here. It sends one buffer per call; a burst to one host is one call, so nothing is lost by that.
use crate::contract::{Facts, Sending, Transport};
use crate::wake::Waker;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// The most bytes in a call: the largest UDP payload of IPv4.
const BUFFER: usize = 65_507;
/// Buffers that are filled by one call: few enough to stay in the second-level cache.
const SLOTS: usize = 8;
/// The size of one of them: segments that the system joined.
const SLOT: usize = 65_536;
/// The wanted buffer of the socket in each direction. The system gives what `net.core.rmem_max` permits.
const SOCKET_BUFFER: usize = 4 << 20;
/// For how long a full queue is waited for before a burst is dropped.
const TIME_LIMIT: Duration = Duration::from_millis(2);

/// A UDP socket.
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    facts: Facts,
    waker: Waker,
    out: Vec<u8>,
    slots: Vec<u8>,
    watched: Vec<OwnedFd>,
}

impl Udp {
    /// A socket at `address`; its interface has MTU `mtu` ([`interface_mtu`] asks the system).
    ///
    /// # Errors
    /// If the address is not available, or the system refuses the options.
    pub fn bind(address: SocketAddr, mtu: usize) -> io::Result<Udp> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        state.set_send_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER)?;
        state.set_recv_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER)?;
        let address = socket.local_addr()?;
        let headers = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let max_datagram = mtu.saturating_sub(headers).min(BUFFER);
        let facts = Facts { address, max_datagram, max_packets: state.max_gso_segments() };
        let waker = Waker::new()?;
        Ok(Udp {
            socket,
            state,
            facts,
            waker,
            out: vec![0; BUFFER],
            slots: vec![0; SLOTS * SLOT],
            watched: Vec::new(),
        })
    }

    /// Sleeps as [`wait`](Transport::wait) does; whether there is something to wake for.
    pub(crate) fn rest(&self, longest: Duration) -> io::Result<bool> {
        let watched = self.watched.iter().map(AsFd::as_fd);
        let all: Vec<_> = [self.socket.as_fd()].into_iter().chain(watched).collect();
        self.waker.wait(&all, longest)
    }

    fn is_writable_within(&self, longest: Duration) -> bool {
        let mut set = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::OUT)];
        let timeout = Timespec::try_from(longest).ok();
        poll(&mut set, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

impl Transport for Udp {
    fn facts(&self) -> Facts {
        Facts { max_packets: self.state.max_gso_segments(), ..self.facts }
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.out
    }

    fn send(&mut self, sending: Sending) -> io::Result<bool> {
        let transmit = Transmit {
            destination: sending.to,
            ecn: Some(EcnCodepoint::Ect0),
            contents: &self.out[..sending.bytes],
            segment_size: Some(sending.segment),
            src_ip: None,
        };
        loop {
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.is_writable_within(TIME_LIMIT) {
                        return Ok(false);
                    }
                }
                // A socket that the system took away; everything else passes, as a network's faults do.
                Err(error) if error.raw_os_error() == Some(BADF) => {
                    return Err(error);
                }
                Err(_) => return Ok(false),
            }
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, bool, &mut [u8])) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); SLOTS];
        let mut slots: Vec<IoSliceMut<'_>> = self.slots.chunks_mut(SLOT).map(IoSliceMut::new).collect();
        let filled = match self.state.recv(UdpSockRef::from(&self.socket), &mut slots, &mut metas) {
            Ok(filled) => filled,
            // Nothing there, or word from the network of a datagram that could not be delivered.
            Err(error) if error.raw_os_error() == Some(BADF) => return Err(error),
            Err(_) => return Ok(0),
        };
        let mut came = 0;
        for (slot, meta) in slots.iter_mut().zip(&metas[..filled]) {
            let congested = meta.ecn == Some(EcnCodepoint::Ce);
            for datagram in slot[..meta.len].chunks_mut(meta.stride.max(1)) {
                came += 1;
                take(meta.addr, congested, datagram);
            }
        }
        Ok(came)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        self.rest(longest).map(drop)
    }

    fn watch(&mut self, descriptor: OwnedFd) {
        self.watched.push(descriptor);
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// The one error by which a socket does not come back.
const BADF: i32 = rustix::io::Errno::BADF.raw_os_error();

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udp").field("facts", &self.facts()).finish_non_exhaustive()
    }
}

/// The MTU of a network interface, as the system says.
///
/// # Errors
/// If there is no such interface, or the system's files are not there.
pub fn interface_mtu(interface: &str) -> io::Result<usize> {
    let text = std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join("mtu"))?;
    text.trim().parse().map_err(io::Error::other)
}
