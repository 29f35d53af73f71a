//! The Noise handshake (revision 34): `Noise_XXpsk0_25519_ChaChaPoly_BLAKE2s`, by `snow`.
//!
//! XX: both send their static key, sealed. psk0: the job's key goes in before anything else, so that already the first
//! message is sealed for those who have it.
use crate::key::JobId;
use crate::random::Randomness;
use crate::version::VERSION;
use crate::wire::array;
use crate::wire::greeting::MAX_NOISE;
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::fmt;

/// Who speaks: sealed in the first two messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// The sender's number in the job.
    pub(crate) from: u16,
    /// The number of the host that it means to speak with.
    pub(crate) to: u16,
    /// The sender's boot epoch.
    pub(crate) boot: u64,
}

impl Introduction {
    fn bytes(self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..2].copy_from_slice(&self.from.to_le_bytes());
        out[2..4].copy_from_slice(&self.to.to_le_bytes());
        out[4..].copy_from_slice(&self.boot.to_le_bytes());
        out
    }

    fn read(bytes: &[u8]) -> Option<Introduction> {
        let whole: [u8; 12] = array(bytes, 0).filter(|_| bytes.len() == 12)?;
        Some(Introduction {
            from: u16::from_le_bytes(array(&whole, 0)?),
            to: u16::from_le_bytes(array(&whole, 2)?),
            boot: u64::from_le_bytes(array(&whole, 4)?),
        })
    }
}

/// Terms beside the keys on which the two sides must agree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) cluster: [u8; 8],
    pub(crate) job: JobId,
    pub(crate) suite: u8,
}

impl Terms {
    fn prologue(&self) -> Vec<u8> {
        let mut out = b"hectare session".to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(self.suite);
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.job);
        out
    }
}

/// The two keys of a session: of the initiator's packets and of the responder's.
pub(crate) struct Secrets {
    pub(crate) initiator: [u8; 32],
    pub(crate) responder: [u8; 32],
}

/// One side of a handshake.
pub(crate) struct Handshake(snow::HandshakeState);

/// A message that is not what should come, or not from who has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadMessage;

impl Handshake {
    pub(crate) fn new(
        initiates: bool,
        terms: &Terms,
        job_key: &[u8; 32],
        identity: &[u8; 32],
        random: &mut Randomness,
    ) -> Handshake {
        let pattern = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2s";
        let params: NoiseParams = pattern.parse().expect("a pattern that snow knows");
        let prologue = terms.prologue();
        let builder = snow::Builder::with_resolver(params, Box::new(Given { seed: random.bytes() }))
            .psk(0, job_key)
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(|builder| builder.local_private_key(identity))
            .expect("each is set once");
        let state = if initiates { builder.build_initiator() } else { builder.build_responder() };
        Handshake(state.expect("the pattern has all it needs"))
    }

    /// The next message of this side.
    pub(crate) fn write(&mut self, introduction: Option<Introduction>) -> Vec<u8> {
        let mut message = vec![0; MAX_NOISE];
        let payload = introduction.map_or(Vec::new(), |introduction| introduction.bytes().to_vec());
        let length =
            self.0.write_message(&payload, &mut message).expect("it is this side's turn, and there is room");
        message.truncate(length);
        message
    }

    /// The introduction in a message of the other side.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Introduction, BadMessage> {
        let mut payload = [0; MAX_NOISE];
        let length = self.0.read_message(message, &mut payload).map_err(|_| BadMessage)?;
        Introduction::read(&payload[..length]).ok_or(BadMessage)
    }

    /// Reads the last message, which says nothing but who its sender is.
    pub(crate) fn read_last(&mut self, message: &[u8]) -> Result<(), BadMessage> {
        let mut payload = [0; MAX_NOISE];
        match self.0.read_message(message, &mut payload) {
            Ok(0) => Ok(()),
            _ => Err(BadMessage),
        }
    }

    /// The other side's static public key, once its message was read.
    pub(crate) fn peer_identity(&self) -> Option<[u8; 32]> {
        self.0.get_remote_static()?.try_into().ok()
    }

    /// The keys, once the last message was written or read.
    pub(crate) fn secrets(mut self) -> Secrets {
        let (initiator, responder) = self.0.dangerously_get_raw_split();
        Secrets { initiator, responder }
    }
}

/// The public key of a static secret.
pub(crate) fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the feature is on");
    dh.set(secret);
    dh.pubkey().try_into().expect("32 bytes")
}

/// Never shows a key.
impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

/// The library's own cryptography, with random bytes from a seed that was given.
struct Given {
    seed: [u8; 32],
}

struct Drawn(Randomness);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(out);
        Ok(())
    }
}

impl CryptoResolver for Given {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Randomness::from_seed(&self.seed))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(job: u8) -> Terms {
        Terms { cluster: [1; 8], job: [job; 16], suite: 0 }
    }

    fn side(initiates: bool, job: u8, key: u8, seed: u8) -> Handshake {
        let mut random = Randomness::from_seed(&[seed; 32]);
        Handshake::new(initiates, &terms(job), &[key; 32], &[seed; 32], &mut random)
    }

    const HI: Introduction = Introduction { from: 1, to: 2, boot: 3 };

    #[test]
    fn two_that_share_the_key_get_the_same_secrets_and_know_each_other() {
        let (mut a, mut b) = (side(true, 1, 1, 1), side(false, 1, 1, 2));
        assert_eq!(b.read(&a.write(Some(HI))), Ok(HI));
        assert_eq!(a.read(&b.write(Some(HI))), Ok(HI));
        assert_eq!(b.read_last(&a.write(None)), Ok(()));
        assert_eq!(a.peer_identity(), Some(public_key(&[2; 32])));
        assert_eq!(b.peer_identity(), Some(public_key(&[1; 32])));
        let (a, b) = (a.secrets(), b.secrets());
        assert_eq!((a.initiator, a.responder), (b.initiator, b.responder));
        assert_ne!(a.initiator, a.responder);
    }

    #[test]
    fn another_key_or_job_fails_at_the_first_message() {
        for (job, key) in [(1, 2), (2, 1)] {
            let (mut a, mut b) = (side(true, 1, 1, 1), side(false, job, key, 2));
            assert_eq!(b.read(&a.write(Some(HI))), Err(BadMessage));
        }
    }

    #[test]
    fn equal_seeds_give_equal_messages() {
        assert_eq!(side(true, 1, 1, 1).write(Some(HI)), side(true, 1, 1, 1).write(Some(HI)));
        assert_ne!(side(true, 1, 1, 1).write(Some(HI)), side(true, 1, 1, 3).write(Some(HI)));
    }
}
