//! The terminal while `top` uses it: in raw mode, on its alternate screen, and restored at the end, however that comes.
//!
//! A terminal can vanish at any moment (a window is closed, a connection lost), with or without a signal. Then nothing can
//! be drawn, read or restored, and no attempt may panic: ratatui prints the errors of its own attempts, also while a panic
//! unwinds, and to print to a terminal that is gone would abort the process. So this file restores the terminal itself.
use super::keys::{Key, parse};
use anyhow::{Context, Result};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{DefaultTerminal, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;
use std::fs::File;
use std::io::{IsTerminal, Read, Stdin, Stdout, stdin, stdout};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A terminal that is not there any more, and neither reads nor writes.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// The terminal, taken. Dropping it gives it back; a panic does so before its message is printed.
#[derive(Debug)]
pub struct Screen {
    /// Where pictures are drawn. Never dropped, since its drop may print.
    pub terminal: ManuallyDrop<DefaultTerminal>,
    signals: Vec<(i32, UnixStream)>,
    picture: Stdout,
    keyboard: Option<Keyboard>,
}

/// Where keys come from.
#[derive(Debug)]
enum Keyboard {
    Input(Stdin),
    Terminal(File),
}

/// Why [`Screen::wait`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing came in time.
    Nothing,
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// The terminal has another size.
    Resized,
    /// A signal came that ends a program.
    Signal(i32),
    /// The terminal is gone.
    Gone,
}

impl Screen {
    /// Takes the terminal. From now on, signals that end a program are noticed by [`Screen::wait`].
    ///
    /// # Errors
    /// When standard output is not a terminal, or the system refuses.
    pub fn enter() -> Result<Screen> {
        let mut signals = Vec::new();
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH] {
            let (ours, handler) = UnixStream::pair().context("socketpair")?;
            ours.set_nonblocking(true).context("fcntl")?;
            pipe::register(number, handler).context("installing a signal handler")?;
            signals.push((number, ours));
        }
        let keyboard = match stdin().is_terminal() {
            true => Some(Keyboard::Input(stdin())),
            // Without any, signals end it.
            false => File::open("/dev/tty").ok().map(Keyboard::Terminal),
        };
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
        }));
        let entered = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())))
            .inspect_err(|_| leave());
        let terminal = ManuallyDrop::new(entered.context("taking the terminal")?);
        Ok(Screen { terminal, signals, picture: stdout(), keyboard })
    }

    /// Waits until something comes, or for so long. A terminal that is gone is an event each time.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self, within: Duration) -> Result<Event> {
        let (picture, keyboard) = (self.picture.as_fd(), self.keyboard.as_ref().map(Keyboard::as_fd));
        let mut ends = vec![PollFd::from_borrowed_fd(picture, PollFlags::empty())];
        ends.extend(self.signals.iter().map(|(_, end)| PollFd::new(end, PollFlags::IN)));
        ends.extend(keyboard.map(|keyboard| PollFd::from_borrowed_fd(keyboard, PollFlags::IN)));
        match poll(&mut ends, Some(&Timespec::try_from(within)?)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Event::Nothing),
            Ok(_) => (),
            Err(errno) => return Err(errno).context("waiting for the terminal"),
        }
        let came = |end: &UnixStream| matches!((&mut &*end).read(&mut [0; 16]), Ok(1..));
        let mut came = self.signals.iter().filter(|(_, end)| came(end)).map(|(number, _)| *number);
        let signal = came.next();
        // It says more than that the terminal is gone, which comes with it.
        if let Some(number) = signal.filter(|number| *number != SIGWINCH) {
            return Ok(Event::Signal(number));
        }
        let on_keyboard = keyboard.zip(ends.last()).map(|(keyboard, end)| (keyboard, end.revents()));
        if ends[0].revents().intersects(GONE) || on_keyboard.is_some_and(|(_, came)| came.intersects(GONE)) {
            return Ok(Event::Gone);
        }
        if signal.is_some() {
            return Ok(Event::Resized);
        }
        let Some((keyboard, _)) = on_keyboard.filter(|(_, came)| came.contains(PollFlags::IN)) else {
            return Ok(Event::Nothing);
        };
        let mut bytes = [0; 256];
        match read(keyboard, &mut bytes) {
            Ok(0) | Err(Errno::IO) => Ok(Event::Gone),
            Ok(count) => Ok(Event::Keys(parse(&bytes[..count]))),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Event::Nothing),
            Err(errno) => Err(errno).context("reading keys"),
        }
    }

    /// Whether the terminal is gone.
    pub fn is_gone(&self) -> bool {
        let mut ends = [PollFd::from_borrowed_fd(self.picture.as_fd(), PollFlags::empty())];
        poll(&mut ends, Some(&Timespec::default())).is_ok() && ends[0].revents().intersects(GONE)
    }
}

impl Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Keyboard::Input(input) => input.as_fd(),
            Keyboard::Terminal(file) => file.as_fd(),
        }
    }
}

/// Gives the terminal back. One that is gone needs nothing back, and says so by errors.
fn leave() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}
