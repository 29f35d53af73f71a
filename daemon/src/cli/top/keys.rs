//! Keys, from the bytes that a terminal in raw mode sends.
//!
//! They are read here because crossterm's reader loops forever and ignores signals when its terminal has vanished.

/// A key that `top` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// The escape key.
    Escape,
    /// Ctrl-C, which is no signal in raw mode.
    Interrupt,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// The beginning.
    Home,
}

/// The keys of what was read at once. Sequences that nobody here knows are left out as a whole.
pub(super) fn parse(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        bytes = rest;
        match (first, rest.first()) {
            (0x1b, Some(b'[' | b'O')) => {
                let (sequence, after) = split_sequence(&rest[1..]);
                bytes = after;
                keys.extend(match sequence {
                    b"A" => Some(Key::Up),
                    b"B" => Some(Key::Down),
                    b"H" | b"1~" | b"7~" => Some(Key::Home),
                    _ => None,
                });
            }
            // With Alt, or twice.
            (0x1b, Some(next)) if *next != 0x1b => bytes = &rest[1..],
            (0x1b, _) => keys.push(Key::Escape),
            (0x03, _) => keys.push(Key::Interrupt),
            (0x20..=0x7e, _) => keys.push(Key::Char(char::from(*first))),
            _ => (),
        }
    }
    keys
}

/// A control sequence behind its beginning, up to its last byte, and what comes after it.
fn split_sequence(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte));
    bytes.split_at(end.map_or(bytes.len(), |end| end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_send() {
        let cases: [(&[u8], &[Key]); 11] = [
            (b"q", &[Key::Char('q')]),
            (b"p r", &[Key::Char('p'), Key::Char(' '), Key::Char('r')]),
            (b"\x03", &[Key::Interrupt]),
            (b"\x1b", &[Key::Escape]),
            (b"\x1b\x1b", &[Key::Escape, Key::Escape]),
            (b"\x1b[A\x1bOB\x1b[Hx", &[Key::Up, Key::Down, Key::Home, Key::Char('x')]),
            (b"\x1b[1~\x1b[7~", &[Key::Home, Key::Home]),
            // Page down, Ctrl-right, F5, and a report of a cursor's place: not a q among them.
            (b"\x1b[6~\x1b[1;5C\x1b[15~\x1b[24;80Rb", &[Key::Char('b')]),
            // Alt-q does not quit; a sequence that breaks off is none.
            (b"\x1bqo", &[Key::Char('o')]),
            (b"\x1b[1;", &[]),
            ("é\n\tl".as_bytes(), &[Key::Char('l')]),
        ];
        for (bytes, keys) in cases {
            assert_eq!(parse(bytes), keys, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
