// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The terminal while `top` runs: an alternate screen, unbuffered keys, and signals read from a
//! descriptor. Dropping it restores the terminal.

use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// Switch to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Move to the upper left corner; clear the rest of the line; clear everything below.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST: &str = "\x1b[J";
const BRIGHT: &str = "\x1b[7m";
const PLAIN: &str = "\x1b[0m";

/// Signals that end `top`, which restores the terminal first.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// An event on the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    /// The time has passed.
    Nothing,
    /// A key.
    Key(u8),
    /// The size of the terminal has changed.
    Resized,
    /// A signal asks the process to end.
    Ends,
}

/// The terminal of this process.
pub struct Terminal {
    /// Modes to restore.
    before: libc::termios,
    signals: OwnedFd,
}

impl Terminal {
    /// Takes over the terminal. `None`: standard input or output is not a terminal.
    ///
    /// # Errors
    /// The system refuses.
    pub fn take() -> io::Result<Option<Self>> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let signals = signals()?;
        let mut modes = MaybeUninit::uninit();
        // SAFETY: the pointer is to writable memory of the size of the modes.
        if unsafe { libc::tcgetattr(libc::STDIN_FILENO, modes.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has succeeded, so it has initialised the modes.
        let before = unsafe { modes.assume_init() };
        let terminal = Self { before, signals };
        let mut modes = before;
        modes.c_lflag &= !(libc::ICANON | libc::ECHO);
        (modes.c_cc[libc::VMIN], modes.c_cc[libc::VTIME]) = (0, 0);
        set_modes(&modes)?;
        print!("{ENTER}");
        Ok(Some(terminal))
    }

    /// Shows lines, the last heading highlighted, cut to the size of the terminal.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn show(&self, lines: &[String], heads: usize) -> io::Result<()> {
        let (width, height) = size();
        let mut screen = HOME.to_owned();
        let has_room = lines.len() <= height;
        let shown = if has_room { lines.len() } else { height.saturating_sub(1) };
        for (at, line) in lines.iter().take(shown).enumerate() {
            let line: String = line.chars().take(width).collect();
            let (begin, end) = if at + 1 == heads { (BRIGHT, PLAIN) } else { ("", "") };
            let next = if at == 0 { "" } else { "\r\n" };
            screen += &format!("{next}{begin}{line}{REST_OF_LINE}{end}");
        }
        if !has_room {
            let left = format!("... {} more lines", lines.len() - shown);
            let left: String = left.chars().take(width).collect();
            screen += &format!("\r\n{left}{REST_OF_LINE}");
        }
        print!("{screen}{REST}");
        io::stdout().flush()
    }

    /// Waits for an event, until the given time at most.
    ///
    /// # Errors
    /// `poll` or reading a signal fails.
    pub fn wait(&self, until: Instant) -> io::Result<Happened> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut both = [wanted(self.signals.as_raw_fd()), wanted(libc::STDIN_FILENO)];
        // SAFETY: two descriptors, and the structures live as long as the call.
        match unsafe { libc::poll(both.as_mut_ptr(), 2, timeout) } {
            0 => return Ok(Happened::Nothing),
            1.. => {}
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {
                return Ok(Happened::Resized);
            }
            _ => return Err(io::Error::last_os_error()),
        }
        if both[0].revents != 0 {
            return Ok(match self.signal()? {
                signal if ENDING.contains(&signal) => Happened::Ends,
                _ => Happened::Resized,
            });
        }
        // The end of input means that the terminal is gone.
        Ok(read_key().map_or(Happened::Ends, Happened::Key))
    }

    fn signal(&self) -> io::Result<i32> {
        let mut reported = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let (start, bytes) = (reported.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>());
        // SAFETY: the buffer has the size that is passed.
        let count = unsafe { libc::read(self.signals.as_raw_fd(), start, bytes) };
        if count != bytes as isize {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has filled the whole structure, as the count shows.
        Ok(unsafe { reported.assume_init() }.ssi_signo.cast_signed())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failure cannot be reported: the terminal is gone.
        let mut output = io::stdout();
        let _ = output.write_all(LEAVE.as_bytes()).and_then(|()| output.flush());
        let _ = set_modes(&self.before);
    }
}

fn set_modes(modes: &libc::termios) -> io::Result<()> {
    // SAFETY: the modes live as long as the call, which reads them.
    match unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, modes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads a key. `None`: the input has ended.
fn read_key() -> Option<u8> {
    let mut key = 0;
    // SAFETY: the buffer has room for one byte.
    let count = unsafe { libc::read(libc::STDIN_FILENO, (&raw mut key).cast(), 1) };
    (count == 1).then_some(key)
}

/// Columns and lines.
fn size() -> (usize, usize) {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes a `winsize`, which the pointer is to.
    unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    let or = |number: u16, other| if number == 0 { other } else { usize::from(number) };
    (or(size.ws_col, 80), or(size.ws_row, 24))
}

/// Blocks the signals of `top` and returns a descriptor from which they are read.
fn signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is to writable memory of the size of a set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has initialised it, which cannot fail.
    let mut set = unsafe { set.assume_init() };
    for signal in ENDING.into_iter().chain([libc::SIGWINCH]) {
        // SAFETY: the set is initialised.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    // SAFETY: the set is initialised; null: the previous mask is not requested.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    // SAFETY: the set is initialised, and lives as long as the call.
    let descriptor = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `signalfd` has returned the descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
