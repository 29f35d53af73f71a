//! As much of HTTP as a scrape needs: one request a connection, several connections at a time in one thread.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The longest head of a request.
const LONGEST_HEAD: usize = 8 << 10;
/// How long a client has, from connecting to taking the last byte of the answer.
const LONGEST: Duration = Duration::from_secs(10);
/// Connections at a time; one more takes the place of the oldest.
const MOST: usize = 64;
/// How often listeners are looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Connections that are being answered.
#[derive(Debug, Default)]
pub(super) struct Http {
    /// The oldest first.
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: OwnedFd,
    since: Instant,
    head: Vec<u8>,
    /// The answer to be sent; empty while the request is read.
    answer: Vec<u8>,
    sent: usize,
}

impl Http {
    /// Waits a second at most, and does what can be done then. Requests are answered by `scrape`, one by one.
    pub(super) fn turn<'l>(
        &mut self,
        listeners: impl Iterator<Item = BorrowedFd<'l>>,
        scrape: &mut impl FnMut() -> String,
    ) {
        let listeners: Vec<BorrowedFd<'_>> = listeners.collect();
        let mut fds: Vec<PollFd<'_>> =
            listeners.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        for connection in &self.connections {
            let flags = if connection.answer.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            fds.push(PollFd::new(&connection.stream, flags));
        }
        let left = self.connections.iter().map(|it| LONGEST.saturating_sub(it.since.elapsed()));
        let left = left.chain([LOOK_EVERY]).min().unwrap_or_default();
        let time = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        if poll(&mut fds, Some(&time)).is_err() {
            // Interrupted, or out of memory: not in a hurry.
            return std::thread::sleep(Duration::from_millis(10));
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let (come, busy) = ready.split_at(listeners.len());
        let mut busy = busy.iter();
        self.connections.retain_mut(|connection| {
            let goes_on = !busy.next().is_some_and(|busy| *busy) || connection.go_on(scrape);
            goes_on && connection.since.elapsed() < LONGEST
        });
        for (listener, _) in listeners.iter().zip(come).filter(|(_, come)| **come) {
            self.accept(*listener);
        }
    }

    fn accept(&mut self, listener: BorrowedFd<'_>) {
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(stream) => {
                if self.connections.len() >= MOST {
                    self.connections.remove(0);
                }
                let since = Instant::now();
                self.connections.push(Connection {
                    stream,
                    since,
                    head: Vec::new(),
                    answer: Vec::new(),
                    sent: 0,
                });
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => {
                tracing::warn!(%error, "no scrape can be taken");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

impl Connection {
    /// Reads or writes as much as can be; false at the end.
    fn go_on(&mut self, scrape: &mut impl FnMut() -> String) -> bool {
        if self.answer.is_empty() {
            let mut piece = [0; 1024];
            match rustix::io::read(&self.stream, &mut piece) {
                Ok(0) => return false,
                Ok(got) => self.head.extend(&piece[..got]),
                Err(Errno::AGAIN | Errno::INTR) => return true,
                Err(_) => return false,
            }
            let whole = self.head.windows(4).any(|bytes| bytes == b"\r\n\r\n");
            if !whole && self.head.len() < LONGEST_HEAD {
                return true;
            }
            self.answer = answer(&self.head, whole, scrape);
        }
        while self.sent < self.answer.len() {
            match send(&self.stream, &self.answer[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
        false
    }
}

fn answer(head: &[u8], whole: bool, scrape: &mut impl FnMut() -> String) -> Vec<u8> {
    let mut words = head.split(|byte| byte.is_ascii_whitespace());
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        _ if !whole => {
            ("431 Request Header Fields Too Large", "the head of the request is too long\n".into())
        }
        (b"GET" | b"HEAD", b"/metrics") => ("200 OK", scrape()),
        (b"GET" | b"HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "metrics are only read\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == b"HEAD" { String::new() } else { body };
    (head + &body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut http = Http::default();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    http.turn([listener.as_fd()].into_iter(), &mut || "a 1\n".into());
                }
            });
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(request);
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            String::from_utf8(said).unwrap()
        })
    }

    #[test]
    fn requests_are_answered_by_what_they_are() {
        let said = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\na 1\n"), "{said}");
        assert!(said.contains("Content-Length: 4\r\n"), "{said}");
        assert!(ask(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n").contains("200 OK"));
        assert!(ask(b"HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").contains("404 Not Found"));
        assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").contains("405 Method"));
        assert!(ask(b"\0\xff\r\n\r\n").contains("405 Method"));
        assert!(ask(&[b'x'; LONGEST_HEAD]).contains("431 Request"));
    }
}
