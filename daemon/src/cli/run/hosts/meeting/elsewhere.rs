//! Another process at the meeting place, though this one has rank 0: the launcher gave that rank twice.
use super::line::{line, nonce_of};
use super::{AGAIN, LINE_WITHIN};
use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The random bytes by which this process has greeted those who came to its own port.
#[derive(Clone, Debug, Default)]
pub(super) struct Greeted(Arc<Mutex<Vec<[u8; 32]>>>);

impl Greeted {
    pub(super) fn insert(&self, nonce: [u8; 32]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(nonce);
    }

    fn contains(&self, nonce: &[u8; 32]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(nonce)
    }
}

/// Waits until somebody greets at the meeting place, an address that this host does not have: true if that is another process.
/// The way there may lead back to this one.
pub(super) fn is_held(place: SocketAddr, own: &Greeted, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        if let Ok(stream) = TcpStream::connect_timeout(&place, left) {
            return greeting(stream).is_some_and(|nonce| !own.contains(&nonce));
        }
        std::thread::sleep(AGAIN);
    }
}

fn greeting(stream: TcpStream) -> Option<[u8; 32]> {
    stream.set_read_timeout(Some(LINE_WITHIN)).ok()?;
    let greeting = line(&mut BufReader::new(stream)).ok()?;
    nonce_of(&greeting)
}
