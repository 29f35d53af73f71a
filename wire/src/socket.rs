//! Seqpacket sockets that carry messages, and at most one descriptor with each.
use crate::{Error, MAX_MESSAGE, Result};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::sockopt::Timeout;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// The most descriptors that the kernel lets go with one message (`SCM_MAX_FD`).
const MOST_DESCRIPTORS: usize = 253;

/// One end of a connection, or a listener.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// A message received from a socket.
#[derive(Debug)]
pub enum Received {
    /// A message, and the descriptor that came with it.
    Message(Vec<u8>, Option<OwnedFd>),
    /// A message of more than [`MAX_MESSAGE`] bytes, which is lost.
    TooLong,
    /// The other side has closed the connection.
    Closed,
    /// There is nothing yet (sockets that do not block, or not for long).
    Nothing,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn new_socket(flags: SocketFlags) -> Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags | SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::os("socket", error))
}

fn address(path: &Path) -> Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|error| Error::os("the path of the socket", error))
}

impl Socket {
    /// Listens at a path where nothing is yet, without blocking.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn listen(path: &Path) -> Result<Socket> {
        let fd = new_socket(SocketFlags::NONBLOCK)?;
        rustix::net::bind(&fd, &address(path)?).map_err(|error| Error::os("bind", error))?;
        rustix::net::listen(&fd, 128).map_err(|error| Error::os("listen", error))?;
        Ok(Socket { fd })
    }

    /// Connects to a listener, with a socket that blocks. `None` if nobody listens there.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn connect(path: &Path) -> Result<Option<Socket>> {
        Socket::connect_within(path, None)
    }

    /// The same with a limit for connecting, each sending and each receiving, which then end with
    /// `WouldBlock` or [`Received::Nothing`].
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn connect_within(path: &Path, limit: Option<Duration>) -> Result<Option<Socket>> {
        let fd = new_socket(SocketFlags::empty())?;
        for way in [Timeout::Send, Timeout::Recv] {
            rustix::net::sockopt::set_socket_timeout(&fd, way, limit)
                .map_err(|error| Error::os("setsockopt", error))?;
        }
        loop {
            match rustix::net::connect(&fd, &address(path)?) {
                Ok(()) => return Ok(Some(Socket { fd })),
                Err(Errno::INTR) => {}
                Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
                Err(error) => return Err(Error::os("connect", error)),
            }
        }
    }

    /// Ends the connection in both directions, also for whoever else has the descriptor.
    pub fn shut(&self) {
        // A connection that has ended already is what is wanted.
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
    }

    /// Takes a connection from a listener, as a socket that does not block; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn accept(&self) -> Result<Option<Socket>> {
        match rustix::net::accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(fd) => Ok(Some(Socket { fd })),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(Error::os("accept", error)),
        }
    }

    /// The user at the other end when the connection was made, as the kernel says.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn peer_user(&self) -> Result<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.fd);
        peer.map(|peer| peer.uid.as_raw()).map_err(|error| Error::os("SO_PEERCRED", error))
    }

    /// The process at the other end when the connection was made, as the kernel says.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn peer_process(&self) -> Result<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.fd);
        peer.map(|peer| peer.pid.as_raw_nonzero().get() as u32)
            .map_err(|error| Error::os("SO_PEERCRED", error))
    }

    /// Sends a message whole. [`Error::Closed`] if nobody will read it, [`Error::Os`] with `WouldBlock` if
    /// the socket does not block and the other side does not read.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Os`].
    pub fn send(&self, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        loop {
            let data = [IoSlice::new(message)];
            match rustix::net::sendmsg(&self.fd, &data, &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(Error::Closed),
                Err(error) => return Err(Error::os("sendmsg", error)),
            }
        }
    }

    /// Takes the next message. Of several descriptors that come with it, the first is kept and the others
    /// are closed.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn receive(&self) -> Result<Received> {
        let mut descriptors = Vec::new();
        match self.receive_with(&mut descriptors)? {
            Received::Message(bytes, _) => Ok(Received::Message(bytes, descriptors.into_iter().next())),
            other => Ok(other),
        }
    }

    /// Takes the next message without its descriptors; all of those go into a list, whatever else comes of it. None is
    /// closed here, by this process or by the kernel for want of room: that may block.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn receive_with(&self, descriptors: &mut Vec<OwnedFd>) -> Result<Received> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut reset = false;
        let got = loop {
            let mut data = [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.fd, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                // The other side has closed without reading all; what it said before is behind this.
                Err(Errno::CONNRESET) if !reset => reset = true,
                other => break other,
            }
        };
        let got = match got {
            Ok(got) => got,
            Err(Errno::AGAIN) if reset => return Ok(Received::Closed),
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            Err(Errno::CONNRESET) => return Ok(Received::Closed),
            Err(error) => return Err(Error::os("recvmsg", error)),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                descriptors.extend(fds);
            }
        }
        // The kernel drops a descriptor that this process has no room for, and delivers the message.
        if got.flags.contains(ReturnFlags::CTRUNC) && descriptors.is_empty() {
            return Err(Error::os("recvmsg of a descriptor", Errno::MFILE));
        }
        if got.flags.contains(ReturnFlags::TRUNC) {
            return Ok(Received::TooLong);
        }
        // No message of the protocol is empty, so that nothing means the end.
        if got.bytes == 0 {
            return Ok(Received::Closed);
        }
        bytes.truncate(got.bytes);
        Ok(Received::Message(bytes, None))
    }
}
