// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets top` on a terminal, and without one.

use crate::monitor::Monitor;
use freeport_testbed::wait_until;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

/// The sequences that switch to the alternate screen and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A pseudoterminal: the controlling side, and the side of programs.
struct Terminal {
    master: File,
    slave: OwnedFd,
    shown: String,
}

impl Terminal {
    fn new() -> Self {
        let (mut master, mut slave) = (-1, -1);
        let none = std::ptr::null_mut();
        let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: both pointers are to descriptors; null pointers omit name and modes.
        let made =
            unsafe { libc::openpty(&mut master, &mut slave, none, none.cast(), &raw const size) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: `openpty` has returned the descriptors, which have no other owner.
        let [master, slave] = [master, slave].map(|it| unsafe { OwnedFd::from_raw_fd(it) });
        // SAFETY: no memory is passed.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Self { master: master.into(), slave, shown: String::new() }
    }

    fn stdio(&self) -> Stdio {
        self.slave.try_clone().expect("a descriptor").into()
    }

    /// Its local modes, such as echo.
    fn modes(&self) -> libc::tcflag_t {
        let mut modes = MaybeUninit::uninit();
        // SAFETY: the pointer is to writable memory of the size of the modes.
        assert_eq!(unsafe { libc::tcgetattr(self.slave.as_raw_fd(), modes.as_mut_ptr()) }, 0);
        // SAFETY: the call has succeeded, so it has initialised the modes.
        unsafe { modes.assume_init() }.c_lflag
    }

    /// Waits until the output contains a text.
    fn wait_for(&mut self, text: &str) {
        wait_until(text, || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = self.master.read(&mut bytes) {
                self.shown += &String::from_utf8_lossy(&bytes[..count]);
            }
            self.shown.contains(text)
        });
    }
}

fn begin(monitor: &Monitor, terminal: &Terminal) -> Child {
    let mut command = monitor.freeport(&["sockets", "top", "-d", "0.1"]);
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(Stdio::piped());
    command.spawn().expect("it can be begun")
}

#[test]
fn the_terminal_is_as_it_was_however_it_ends() {
    let monitor = Monitor::new(None).expect("it runs");
    for ending in [None, Some(libc::SIGINT), Some(libc::SIGTERM)] {
        let mut terminal = Terminal::new();
        let before = terminal.modes();
        assert_ne!(before & libc::ECHO, 0);
        let mut top = begin(&monitor, &terminal);
        terminal.wait_for("no program has connections");
        assert!(terminal.shown.contains(ENTER), "{:?}", terminal.shown);
        assert_eq!(terminal.modes() & (libc::ECHO | libc::ICANON), 0);
        terminal.shown.clear();
        terminal.master.write_all(b"m").expect("it is there");
        terminal.wait_for("by messages");
        match ending {
            None => terminal.master.write_all(b"q").expect("it is there"),
            // SAFETY: no memory is passed; the child has not been waited for.
            Some(signal) => _ = unsafe { libc::kill(top.id() as i32, signal) },
        }
        terminal.wait_for(LEAVE);
        let status = top.wait().expect("it is ours");
        assert!(status.success(), "{ending:?}: {status}");
        assert_eq!(terminal.modes(), before, "{ending:?}");
    }
}

#[test]
fn a_monitor_that_ends_is_told_on_a_terminal_that_is_as_before() {
    let mut monitor = Monitor::new(None).expect("it runs");
    let mut terminal = Terminal::new();
    let before = terminal.modes();
    let top = begin(&monitor, &terminal);
    terminal.wait_for("no program has connections");
    monitor.process.kill().expect("it lives");
    monitor.process.wait().expect("it is ours");
    terminal.wait_for(LEAVE);
    let output = top.wait_with_output().expect("it is ours");
    assert_eq!(output.status.code(), Some(1));
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(reported.contains("no monitor answers"), "{reported}");
    assert_eq!(terminal.modes(), before);
}

#[test]
fn without_a_terminal_it_is_plain_and_ends_with_its_reader() {
    let monitor = Monitor::new(None).expect("it runs");
    let shown = monitor.reported(&["sockets", "top", "-n", "2", "-d", "0.05"]);
    assert_eq!(shown.matches("no program has connections").count(), 2, "{shown}");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    let json = monitor.reported(&["sockets", "top", "-n", "3", "-d", "0.05", "--json"]);
    for line in json.lines() {
        let reported: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(reported["programs"], serde_json::json!([]));
    }
    assert_eq!(json.lines().count(), 3);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = monitor.freeport(&["sockets", "top", "-d", "0.05"]);
    let mut top = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("it can be begun");
    drop(command);
    drop(reader);
    let status = top.wait().expect("it is ours");
    assert_eq!(status.signal(), Some(libc::SIGPIPE), "{status}");
    for wrong in [&["-d", "0"][..], &["-n", "0"], &["--once", "-n", "2"], &["-d", "never"]] {
        let words = [&["sockets", "top"], wrong].concat();
        let output = monitor.freeport(&words).output().expect("it can be begun");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
