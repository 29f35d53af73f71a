//! Packets before a session: Hello, Retry, Welcome, Finish and Refusal.
use super::{BASE_DATAGRAM, array};
use crate::refusal::Refusal;
use crate::version::VERSION;
use ring::hmac;

const NAME: [u8; 3] = *b"hct";
const HELLO: u8 = 1;
const RETRY: u8 = 2;
const WELCOME: u8 = 3;
const FINISH: u8 = 4;
const REFUSAL: u8 = 5;

/// Where the Noise message of a Hello begins.
const HELLO_NOISE: usize = 58;
/// Where the authentication code of a Hello begins: what stands before it is covered.
const HELLO_MAC: usize = BASE_DATAGRAM - 16;
/// Bytes of a Refusal, and so the least bytes of what may be refused.
const REFUSAL_BYTES: usize = 20;
/// The most bytes of a Noise message.
pub(crate) const MAX_NOISE: usize = 256;

/// The kind of packet that the first byte names, if it has the form that all versions have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Hello,
    Retry,
    Welcome,
    Finish,
    Refusal,
}

/// The beginning of every greeting, in every version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) sort: Sort,
    pub(crate) version: u16,
    /// A number that the initiator drew; every answer repeats it, so that only who saw the question can answer.
    pub(crate) token: [u8; 8],
}

impl Opening {
    pub(crate) fn read(bytes: &[u8]) -> Option<Opening> {
        let sort = match *bytes.first()? {
            HELLO => Sort::Hello,
            RETRY => Sort::Retry,
            WELCOME => Sort::Welcome,
            FINISH => Sort::Finish,
            REFUSAL => Sort::Refusal,
            _ => return None,
        };
        if array(bytes, 1)? != NAME || bytes.len() < REFUSAL_BYTES {
            return None;
        }
        Some(Opening { sort, version: u16::from_le_bytes(array(bytes, 4)?), token: array(bytes, 8)? })
    }

    fn start(sort: u8, detail: u8, token: [u8; 8]) -> Vec<u8> {
        let mut out = vec![sort];
        out.extend_from_slice(&NAME);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[detail, 0]);
        out.extend_from_slice(&token);
        out
    }
}

/// The first packet: who wants to speak, and that it has the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) suite: u8,
    pub(crate) token: [u8; 8],
    pub(crate) cluster: [u8; 8],
    pub(crate) job: [u8; 8],
    /// The number by which the initiator will know the session.
    pub(crate) session: u32,
    pub(crate) cookie: [u8; 16],
    pub(crate) noise: Vec<u8>,
}

/// Why bytes are no Hello of this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHello {
    Malformed,
    OtherCluster,
    WrongKey,
}

impl Hello {
    /// The packet, with its authentication code.
    pub(crate) fn write(&self, key: &hmac::Key) -> Vec<u8> {
        let mut out = Opening::start(HELLO, self.suite, self.token);
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.job);
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.cookie);
        out.extend_from_slice(&0_u32.to_le_bytes());
        out.extend_from_slice(&(self.noise.len() as u16).to_le_bytes());
        debug_assert_eq!(out.len(), HELLO_NOISE);
        out.extend_from_slice(&self.noise);
        out.resize(HELLO_MAC, 0);
        let mac = hmac::sign(key, &out);
        out.extend_from_slice(&mac.as_ref()[..16]);
        out
    }

    pub(crate) fn read(bytes: &[u8], cluster: [u8; 8], key: &hmac::Key) -> Result<Hello, NoHello> {
        let hello = Self::parts(bytes).ok_or(NoHello::Malformed)?;
        if hello.cluster != cluster {
            return Err(NoHello::OtherCluster);
        }
        let (covered, mac) = bytes.split_at(HELLO_MAC);
        let right = hmac::sign(key, covered);
        // In constant time: a comparison that ends at the first difference would let the code be guessed byte by byte.
        let difference = mac.iter().zip(right.as_ref()).fold(0, |sum, (a, b)| sum | (a ^ b));
        if std::hint::black_box(difference) == 0 { Ok(hello) } else { Err(NoHello::WrongKey) }
    }

    fn parts(bytes: &[u8]) -> Option<Hello> {
        if bytes.len() != BASE_DATAGRAM || array(bytes, 52)? != [0; 4] {
            return None;
        }
        let noise = usize::from(u16::from_le_bytes(array(bytes, 56)?));
        if noise > MAX_NOISE {
            return None;
        }
        Some(Hello {
            suite: bytes[6],
            token: array(bytes, 8)?,
            cluster: array(bytes, 16)?,
            job: array(bytes, 24)?,
            session: u32::from_le_bytes(array(bytes, 32)?),
            cookie: array(bytes, 36)?,
            noise: bytes.get(HELLO_NOISE..HELLO_NOISE + noise)?.to_vec(),
        })
    }
}

/// Asks for the Hello once more, with a cookie that shows that its sender is reached at its address.
pub(crate) fn retry(token: [u8; 8], cookie: [u8; 16]) -> Vec<u8> {
    let mut out = Opening::start(RETRY, 0, token);
    out.extend_from_slice(&cookie);
    out
}

/// The cookie of a Retry.
pub(crate) fn read_retry(bytes: &[u8]) -> Option<[u8; 16]> {
    if bytes.len() == 32 { array(bytes, 16) } else { None }
}

/// A Welcome or a Finish: a number of the session and a Noise message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) token: [u8; 8],
    /// In a Welcome the responder's number of the session; in a Finish the receiver's, which is the same.
    pub(crate) session: u32,
    pub(crate) noise: Vec<u8>,
}

impl Answer {
    fn write(&self, sort: u8) -> Vec<u8> {
        let mut out = Opening::start(sort, 0, self.token);
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&(self.noise.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.noise);
        out
    }

    /// The packet as a Welcome, as long as a Hello: so the path is known to carry such packets in both directions.
    pub(crate) fn welcome(&self) -> Vec<u8> {
        let mut out = self.write(WELCOME);
        out.resize(BASE_DATAGRAM, 0);
        out
    }

    /// The packet as a Finish.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.write(FINISH)
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Answer> {
        let noise = usize::from(u16::from_le_bytes(array(bytes, 20)?));
        if noise > MAX_NOISE {
            return None;
        }
        Some(Answer {
            token: array(bytes, 8)?,
            session: u32::from_le_bytes(array(bytes, 16)?),
            noise: bytes.get(22..22 + noise)?.to_vec(),
        })
    }
}

/// The packet that says why there will be no session.
pub(crate) fn refusal(token: [u8; 8], refusal: Refusal) -> Vec<u8> {
    let (code, detail) = refusal.code();
    let mut out = Opening::start(REFUSAL, code, token);
    out.extend_from_slice(&detail.to_le_bytes());
    out
}

/// Reads a Refusal. Its form is the same in all versions.
pub(crate) fn read_refusal(bytes: &[u8]) -> Option<Refusal> {
    let opening = Opening::read(bytes)?;
    if bytes.len() != REFUSAL_BYTES {
        return None;
    }
    Refusal::from_code(bytes[6], u32::from_le_bytes(array(bytes, 16)?), opening.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            suite: 0,
            token: [1; 8],
            cluster: [2; 8],
            job: [3; 8],
            session: 0x0403_0201,
            cookie: [5; 16],
            noise: vec![6; 80],
        }
    }

    #[test]
    fn a_hello_is_read_by_who_has_the_key_only() {
        let key = |byte| hmac::Key::new(hmac::HMAC_SHA256, &[byte; 32]);
        let bytes = hello().write(&key(9));
        assert_eq!(bytes.len(), BASE_DATAGRAM);
        assert_eq!(Hello::read(&bytes, [2; 8], &key(9)), Ok(hello()));
        assert_eq!(Hello::read(&bytes, [2; 8], &key(8)), Err(NoHello::WrongKey));
        assert_eq!(Hello::read(&bytes, [1; 8], &key(9)), Err(NoHello::OtherCluster));
        assert_eq!(Hello::read(&bytes[..1199], [2; 8], &key(9)), Err(NoHello::Malformed));
        for at in [5, 6, 8, 24, 32, 36, 60, 500, 1183, 1184, 1199] {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(Hello::read(&bad, [2; 8], &key(9)), Err(NoHello::WrongKey), "byte {at}");
        }
    }

    #[test]
    fn answers_are_read_and_none_is_longer_than_a_hello() {
        let answer = Answer { token: [1; 8], session: 7, noise: vec![4; 120] };
        for bytes in [answer.welcome(), answer.finish()] {
            assert!(bytes.len() <= BASE_DATAGRAM);
            assert_eq!(Answer::read(&bytes), Some(answer.clone()));
        }
        assert_eq!(read_retry(&retry([1; 8], [2; 16])), Some([2; 16]));
        let why = Refusal::Host { asked: 3, is: 5 };
        assert_eq!(read_refusal(&refusal([1; 8], why)), Some(why));
        assert_eq!(refusal([1; 8], why).len(), REFUSAL_BYTES);
        let opening = Opening::read(&refusal([1; 8], why)).unwrap();
        assert_eq!(opening, Opening { sort: Sort::Refusal, version: VERSION, token: [1; 8] });
    }
}
