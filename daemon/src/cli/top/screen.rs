//! The terminal while `top` has it: raw, on its alternate screen, and as it was before in the end, whatever
//! the end is.
use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::Read;
use std::os::unix::net::UnixStream;

/// The terminal, taken. Dropping it gives it back; a panic does so before its message is printed.
#[derive(Debug)]
pub struct Screen {
    /// Where pictures are drawn.
    pub terminal: DefaultTerminal,
    signals: Vec<(i32, UnixStream)>,
}

impl Screen {
    /// Takes the terminal. From now on, signals that end a program are noticed by [`Screen::signal`].
    ///
    /// # Errors
    /// When standard output is no terminal, or the system refuses.
    pub fn enter() -> Result<Screen> {
        let mut signals = Vec::new();
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let (ours, handler) = UnixStream::pair().context("socketpair")?;
            ours.set_nonblocking(true).context("fcntl")?;
            pipe::register(number, handler).context("installing a signal handler")?;
            signals.push((number, ours));
        }
        // Also puts a hook before panics that gives the terminal back.
        let terminal = ratatui::try_init().context("taking the terminal")?;
        Ok(Screen { terminal, signals })
    }

    /// A signal that came.
    pub fn signal(&self) -> Option<i32> {
        let came = |end: &UnixStream| matches!((&mut &*end).read(&mut [0; 16]), Ok(1..));
        self.signals.iter().find(|(_, end)| came(end)).map(|(number, _)| *number)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = ratatui::try_restore();
    }
}
