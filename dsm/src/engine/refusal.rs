//! Why workers that wait for an area of another host cannot have it: as the agent says it, as words of shared memory, and as an error.
use super::shared::Shared;
use crate::error::{Error, Unshared};
use crate::segment::layout::ANSWER_WORDS;

/// Why a name that workers wait for cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No host has an area of this name, as the directory says.
    Unknown,
    /// A host has one that others cannot have.
    Unshared {
        /// That host.
        host: usize,
        /// Why.
        why: Unshared,
    },
    /// This host has no memory for its copies.
    OutOfMemory {
        /// Bytes that it needs.
        asked: u64,
        /// Bytes that were free.
        free: u64,
        /// The limit that binds.
        limit: u64,
        /// Whose limit.
        payer: String,
    },
    /// This host cannot receive it, for another reason.
    NotReceived {
        /// The owner's host.
        host: usize,
        /// The reason, in words.
        why: String,
    },
}

/// Before the text: the kind with a host and the length of the text, and three numbers. Before that, the hash of the name.
const HEAD: usize = 5;
/// The most bytes of a text.
const TEXT: usize = (ANSWER_WORDS - HEAD) * 8;

impl Refusal {
    /// As an answer for the name of this hash.
    pub(crate) fn to_words(&self, hash: u64) -> [u64; ANSWER_WORDS] {
        let (kind, host, numbers, text) = match self {
            Refusal::Unknown => (0, 0, [0; 3], ""),
            Refusal::Unshared { host, why } => (1, *host, [why.number(), 0, 0], ""),
            Refusal::OutOfMemory { asked, free, limit, payer } => (2, 0, [*asked, *free, *limit], &payer[..]),
            Refusal::NotReceived { host, why } => (3, *host, [0; 3], &why[..]),
        };
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT)];
        let mut words = [0; ANSWER_WORDS];
        words[0] = hash;
        words[1] = kind | (host as u64) << 8 | (text.len() as u64) << 48;
        words[2..HEAD].copy_from_slice(&numbers);
        for (word, bytes) in words[HEAD..].iter_mut().zip(text.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(all);
        }
        words
    }

    /// Reads an answer.
    pub(crate) fn of_words(words: &[u64; ANSWER_WORDS]) -> Refusal {
        let host = (words[1] >> 8 & 0xffff_ffff) as usize;
        let len = ((words[1] >> 48) as usize).min(TEXT);
        let bytes: Vec<u8> = words[HEAD..].iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match words[1] & 0xff {
            1 => Refusal::Unshared { host, why: Unshared::of_number(words[2]) },
            2 => Refusal::OutOfMemory { asked: words[2], free: words[3], limit: words[4], payer: text },
            3 => Refusal::NotReceived { host, why: text },
            _ => Refusal::Unknown,
        }
    }

    /// The error for whoever waits.
    pub(crate) fn error(self, shared: &Shared, name: &str) -> Error {
        let (name, host) = (name.to_owned(), |host| shared.segment.host_text(Some(host)));
        match self {
            Refusal::Unknown => Error::NoSuchArea { name },
            Refusal::Unshared { host: of, why } => Error::NotShared { name, host: host(of), why },
            Refusal::OutOfMemory { asked, free, limit, payer } => {
                Error::OutOfMemory { name, asked, free, limit, payer }
            }
            Refusal::NotReceived { host: of, why } => Error::NotReceived { name, host: host(of), why },
        }
    }
}

impl Unshared {
    fn number(self) -> u64 {
        match self {
            Unshared::Local => 0,
            Unshared::Members => 1,
            Unshared::Length => 2,
            Unshared::Memory => 3,
        }
    }

    fn of_number(number: u64) -> Unshared {
        match number {
            0 => Unshared::Local,
            1 => Unshared::Members,
            2 => Unshared::Length,
            _ => Unshared::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_said() {
        let unshared = |why| Refusal::Unshared { host: 65_535, why };
        let all = [
            Refusal::Unknown,
            unshared(Unshared::Local),
            unshared(Unshared::Members),
            unshared(Unshared::Length),
            unshared(Unshared::Memory),
            Refusal::OutOfMemory { asked: u64::MAX, free: 3, limit: 2, payer: "cgroup /a/ä".into() },
            Refusal::NotReceived { host: 7, why: String::new() },
            Refusal::NotReceived { host: 7, why: "x".repeat(TEXT) },
        ];
        for refusal in all {
            let words = refusal.to_words(17);
            assert_eq!((words[0], Refusal::of_words(&words)), (17, refusal));
        }
        // A longer text is cut, between two characters.
        let words = Refusal::NotReceived { host: 0, why: "ä".repeat(TEXT) + "b" }.to_words(1);
        assert_eq!(Refusal::of_words(&words), Refusal::NotReceived { host: 0, why: "ä".repeat(TEXT / 2) });
    }
}
