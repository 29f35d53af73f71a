//! Writes lines to a descriptor, each whole or not at all where possible.
use std::io::{Error, ErrorKind, Write};
use std::time::Duration;

/// Writes lines; one that could only be written in part is ended before the next one.
#[derive(Debug)]
pub(crate) struct Lines<W> {
    out: W,
    torn: bool,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W) -> Lines<W> {
        Lines { out, torn: false }
    }

    /// Writes a line, however long that takes.
    pub(crate) fn put(&mut self, line: &[u8]) -> Result<(), Error> {
        if self.torn {
            self.write_whole(b"\n")?;
            self.torn = false;
        }
        self.write_whole(line)
    }

    fn write_whole(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let error = match self.out.write(bytes) {
                Ok(written @ 1..) => {
                    (bytes, self.torn) = (&bytes[written..], true);
                    continue;
                }
                Ok(_) => ErrorKind::WriteZero.into(),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Interrupted => {}
                // Another process that shares the descriptor made it non-blocking.
                ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(10)),
                _ => return Err(error),
            }
        }
        self.torn = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A descriptor with room for a number of bytes, then none, then room again.
    struct Narrow(Vec<u8>, usize);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
            let fits = bytes.len().min(self.1);
            if fits == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.1 -= fits;
            self.0.extend(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn a_torn_line_is_ended() {
        let mut lines = Lines::new(Narrow(Vec::new(), 8));
        assert!(lines.put(b"first\n").is_ok());
        assert!(lines.put(b"second\n").is_err());
        assert!(lines.put(b"third\n").is_err());
        lines.out.1 = 100;
        assert!(lines.put(b"fourth\n").is_ok());
        assert_eq!(lines.out.0, b"first\nse\nfourth\n");
    }
}
