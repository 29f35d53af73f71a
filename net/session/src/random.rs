//! Random bytes, all drawn from a seed that the caller gives.
use ring::hmac;

/// A stream of random bytes from a seed. Who sees a later state cannot compute what was drawn before: the key is replaced
/// after every draw (as in HMAC_DRBG, NIST SP 800-90A section 10.1.2).
pub(crate) struct Randomness {
    key: hmac::Key,
}

impl Randomness {
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Randomness {
        Randomness { key: hmac::Key::new(hmac::HMAC_SHA256, seed) }
    }

    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        for (index, chunk) in out.chunks_mut(32).enumerate() {
            let mut context = hmac::Context::with_key(&self.key);
            context.update(b"draw");
            context.update(&(index as u64).to_le_bytes());
            chunk.copy_from_slice(&context.sign().as_ref()[..chunk.len()]);
        }
        self.key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.key, b"next").as_ref());
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Randomness;

    #[test]
    fn a_seed_gives_one_stream_and_nothing_comes_twice() {
        let draw = |seed: u8| {
            let mut random = Randomness::from_seed(&[seed; 32]);
            (random.bytes::<80>(), random.bytes::<80>())
        };
        let (first, second) = draw(1);
        assert_eq!(draw(1), (first, second));
        assert_ne!(first, second);
        assert_ne!(first[..32], first[32..64]);
        assert_ne!(draw(2).0, first);
    }
}
