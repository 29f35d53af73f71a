//! The contract.
use crate::wake::Waker;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The abilities of a transport. They do not change while the transport lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The address at which the transport is reached.
    pub address: SocketAddr,
    /// The largest datagram that the own interface carries, in bytes of payload. The path may carry less.
    pub max_datagram: usize,
    /// The most datagrams in one call of [`Transport::send`].
    pub max_packets: usize,
}

/// Datagrams in the transport's buffer that one call of [`Transport::send`] sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The destination.
    pub to: SocketAddr,
    /// How many bytes of the buffer.
    pub bytes: usize,
    /// The size of each datagram but perhaps the last.
    pub segment: usize,
}

/// An unreliable link, owned by one thread.
pub trait Transport {
    /// Its abilities.
    fn facts(&self) -> Facts;

    /// The buffer from which the next call of [`send`](Self::send) sends: packets are written where they are sent from. It
    /// holds at least one largest datagram.
    fn buffer(&mut self) -> &mut [u8];

    /// Sends datagrams from the beginning of the buffer. True if the system took them; false if it dropped them, because its
    /// queue stays full, they are larger than the interface carries, or the peer's host says that nobody listens. To whoever
    /// sends that is a loss as any other.
    ///
    /// # Errors
    /// If the transport is broken, and will not send again.
    fn send(&mut self, sending: Sending) -> io::Result<bool>;

    /// Gives the datagrams that have come to `take`: the sender, whether it bears the mark of congestion, and its bytes, which
    /// `take` may change in place. How many there were; 0 if none has come. It does not wait.
    ///
    /// # Errors
    /// If the transport is broken, and will not receive again.
    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, bool, &mut [u8])) -> io::Result<usize>;

    /// Sleeps until a datagram has come, a [`Waker`] was used since the last wait, or `longest` has passed. It may return
    /// earlier.
    ///
    /// # Errors
    /// If the transport is broken.
    fn wait(&mut self, longest: Duration) -> io::Result<()>;

    /// Has [`wait`](Self::wait) end when this can be read, too. A transport that looks again after a moment need not.
    fn watch(&mut self, _: OwnedFd) {}

    /// Its counters beside those of UDP, for those who watch: a family, a cause or nothing, and the value.
    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        Vec::new()
    }

    /// A handle by which other threads wake this one.
    fn waker(&self) -> Waker;
}

/// A transport that has nothing to sleep on: whoever waits looks.
pub trait Polled: Transport {
    /// Looks for datagrams, and does not wait: whether the next [`receive`](Transport::receive) gives some.
    fn has_come(&mut self) -> bool;

    /// [`send`](Transport::send) with datagrams that stand elsewhere than in the buffer.
    ///
    /// # Errors
    /// Those of [`send`](Transport::send).
    fn send_from(&mut self, from: &[u8], sending: Sending) -> io::Result<bool>;
}
