//! As much of HTTP as a scrape needs: one request a connection, one connection at a time.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The longest head of a request.
const LONGEST_HEAD: usize = 8 << 10;
/// How long a client has for its request, and for taking the answer: the next one waits for it.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Answers requests until the process ends.
pub(super) fn serve(listener: &TcpListener, mut scrape: impl FnMut() -> String) {
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                if let Err(error) = answer(stream, &mut scrape) {
                    tracing::debug!(%from, %error, "a scrape was not answered");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no scrape can be taken");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn answer(mut stream: TcpStream, scrape: &mut impl FnMut() -> String) -> std::io::Result<()> {
    stream.set_write_timeout(Some(LONGEST_WAIT))?;
    let head = read_head(&mut stream)?;
    let mut words = head.split(|byte| byte.is_ascii_whitespace());
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let whole = head.windows(4).any(|bytes| bytes == b"\r\n\r\n");
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
    stream.write_all(head.as_bytes())?;
    if method != b"HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The request up to the empty line that ends its head, or as much as there may be.
fn read_head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (since, mut head, mut piece) = (Instant::now(), Vec::new(), [0; 1024]);
    while head.len() < LONGEST_HEAD && !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let left = LONGEST_WAIT.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            got => head.extend(&piece[..got]),
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let _ = answer(stream, &mut || "a 1\n".into());
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(request);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        server.join().unwrap();
        String::from_utf8(said).unwrap()
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
