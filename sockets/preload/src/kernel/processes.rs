// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that hold a socket, as `/proc` shows them.

use super::folder::each_number_in;
use super::raw;
use core::ffi::CStr;

/// `PF_KTHREAD` in `linux/sched.h`: a kernel thread.
const OF_KERNEL: u64 = 0x0020_0000;
/// The fields of a process's flags and start time in `/proc/PID/stat`, counted after its name.
const FLAGS: usize = 6;
const BEGAN: usize = 19;
/// The kernel's unit of start times: hundredths of a second.
const IN_SECOND: u64 = 100;

/// Hundredths of a second since the machine was booted.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the time lives as long as the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec.unsigned_abs() * IN_SECOND
        + time.tv_nsec.unsigned_abs() / (1_000_000_000 / IN_SECOND)
}

/// Whether no other process holds the file with that inode. A process that does not show its files,
/// such as another user's, may hold it if it was started since then.
pub fn is_held_by_no_other(inode: u64, since: u64) -> bool {
    let own = raw::process();
    // If others are not shown at all, nothing is known.
    raw::inode_at(c"/proc/1").is_ok()
        && each_number_in(c"/proc", |_, process| process == own || !may_have(process, inode, since))
            == Ok(true)
}

fn may_have(process: i32, inode: u64, since: u64) -> bool {
    let folder = Path::of(process, b"/fd");
    let is_other =
        |_, descriptor: i32| raw::inode_at(folder.with(descriptor).as_text()) != Ok(inode);
    match each_number_in(folder.as_text(), is_other) {
        Ok(all) => !all,
        Err(libc::ENOENT | libc::ESRCH) => false,
        Err(_) => may_have_begun(process, since),
    }
}

/// Whether a process may have been started since then and hold sockets. A process that has exited,
/// or a kernel thread, does not.
fn may_have_begun(process: i32, since: u64) -> bool {
    let Ok(descriptor) = raw::open(Path::of(process, b"/stat").as_text()) else { return false };
    let mut text = [0; 1024];
    let read = raw::read(descriptor, text.as_mut_ptr(), text.len());
    _ = raw::close(descriptor);
    let Ok(bytes) = read else { return false };
    let (flags, began) = read_stat(text.get(..bytes).unwrap_or_default());
    flags.is_none_or(|flags| flags & OF_KERNEL == 0) && began.is_none_or(|began| began + 1 >= since)
}

/// The flags and the start time in a text of `/proc/PID/stat`.
fn read_stat(text: &[u8]) -> (Option<u64>, Option<u64>) {
    let behind_name = text.rsplit(|byte| *byte == b')').next().unwrap_or_default();
    let words = || behind_name.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let number = |at| str::from_utf8(words().nth(at)?).ok()?.trim_ascii().parse().ok();
    (number(FLAGS), number(BEGAN))
}

/// A path in `/proc`, which ends with zero.
#[derive(Clone, Copy)]
struct Path {
    text: [u8; Self::BYTES],
    length: usize,
}

impl Path {
    /// Room for `/proc/`, two numbers, and the text between them.
    const BYTES: usize = 48;

    fn of(process: i32, what: &[u8]) -> Self {
        let mut own = Self { text: [0; Self::BYTES], length: 0 };
        own.add(b"/proc/");
        own.add_number(process);
        own.add(what);
        own
    }

    /// The entry of a number in that folder.
    fn with(mut self, number: i32) -> Self {
        self.add(b"/");
        self.add_number(number);
        self
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // The last byte stays zero.
            if let Some(place) =
                self.text.get_mut(self.length).filter(|_| self.length + 1 < Self::BYTES)
            {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn add_number(&mut self, number: i32) {
        let (mut digits, mut rest, mut at) = ([0; 10], number.unsigned_abs(), 10);
        loop {
            at -= 1;
            if let Some(place) = digits.get_mut(at) {
                *place = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.add(digits.get(at..).unwrap_or_default());
    }

    fn as_text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_they_are_written() {
        let path = Path::of(i32::MAX, b"/fd");
        assert_eq!(path.with(0).as_text(), c"/proc/2147483647/fd/0");
        assert_eq!(path.with(1048575).as_text(), c"/proc/2147483647/fd/1048575");
        assert_eq!(Path::of(10, b"/stat").as_text(), c"/proc/10/stat");
    }

    #[test]
    fn what_a_process_says_of_itself_is_read_behind_any_name() {
        let text = b"7 (a) b (c)) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0\n";
        assert_eq!(read_stat(text), (Some(4_194_560), Some(12_345)));
        assert_eq!(read_stat(b"7 (x) S 1"), (None, None));
        // It was started before now, and after the machine.
        assert!(!may_have_begun(raw::process(), now() + 500));
        assert!(may_have_begun(raw::process(), 1));
        assert!(!may_have_begun(i32::MAX, 1));
    }

    #[test]
    fn who_has_a_socket_is_found() {
        let (ours, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let inode = raw::inode(std::os::fd::AsRawFd::as_raw_fd(&ours)).unwrap();
        let since = now() + 1_000;
        // Children of other tests hold all files until they call `exec`.
        let alone = || {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !is_held_by_no_other(inode, since) {
                assert!(std::time::Instant::now() < deadline, "somebody else has it");
                std::thread::yield_now();
            }
        };
        alone();
        let input = std::os::fd::OwnedFd::from(ours);
        let mut child = std::process::Command::new("cat").stdin(input).spawn().expect("a child");
        assert!(!is_held_by_no_other(inode, since));
        drop(other);
        child.wait().unwrap();
        alone();
    }
}
