// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TAP interface as a port: frames that the kernel's network stack sends to the interface are
//! received here, and frames transmitted here arrive from it.
//!
//! Each frame costs a system call, so this is the port that works everywhere, not the fast one. The
//! kernel delivers complete frames: checksums are filled in, and segmentation is done.
//!
//! An interface that does not exist is created, set up, and removed when the process ends. One that
//! was created before (`ip tuntap add mode tap name NAME`) stays, with its addresses and its state.
//! While it is down it behaves like an unplugged cable: frames sent to it are lost, and counted.

mod open;
#[cfg(test)]
mod tests;

use crate::pages::Pages;
use crate::port::{BATCH, Batch, Frame, Frames, HEADROOM, MAX_FRAME, PortError};
use crate::port::{Receive, Transmit};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of an Ethernet header: the kernel takes no shorter frame.
const SHORTEST: usize = 14;
/// Room that one more frame may need; the last byte reveals that it is too long.
const ROOM: usize = HEADROOM + MAX_FRAME + 1;
/// Alignment of frames: each starts on its own cache line.
const LINE: usize = 64;

/// Name of an interface: `NAME`, or `NAME@NAMESPACE` for one in a namespace that `ip netns add`
/// created, or `NAME@/PATH` for one in the namespace at a path, such as `/proc/4711/ns/net` for
/// that of a container's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapOptions {
    /// Name of the interface, at most 15 bytes.
    pub interface: String,
    /// Network namespace, by name or path; that of the calling thread if none is given.
    pub namespace: Option<String>,
}

/// Opens TAP interfaces.
pub struct TapPort;

/// Receives the frames that the kernel sends to the interface.
#[derive(Debug)]
pub struct TapReceiver {
    link: Arc<Link>,
    memory: Pages,
    frames: Vec<Frame>,
    /// Failure after the frames lent last.
    fault: Option<PortError>,
    lost: u64,
}

/// Sends frames that the kernel receives from the interface.
#[derive(Debug)]
pub struct TapTransmitter {
    link: Arc<Link>,
    lost: u64,
}

/// The open interface, which both halves share.
#[derive(Debug)]
struct Link {
    interface: String,
    file: OwnedFd,
}

impl TapPort {
    /// Opens both halves of the interface, which is created if it does not exist.
    ///
    /// # Errors
    /// No such namespace, no permission to create the interface, a name that is taken by another
    /// kind of interface, or one that another process has open.
    pub fn open(options: &TapOptions) -> Result<(TapReceiver, TapTransmitter), PortError> {
        let file = open::open(options)?;
        let link = Arc::new(Link { interface: options.interface.clone(), file });
        let receiver = TapReceiver {
            link: Arc::clone(&link),
            memory: Pages::new(BATCH * ROOM.next_multiple_of(LINE)),
            frames: Vec::with_capacity(BATCH),
            fault: None,
            lost: 0,
        };
        Ok((receiver, TapTransmitter { link, lost: 0 }))
    }
}

impl FromStr for TapOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, namespace) = match text.split_once('@') {
            Some((interface, namespace)) => (interface, Some(namespace)),
            None => (text, None),
        };
        let is_odd = |letter: char| letter.is_whitespace() || "/:%".contains(letter);
        if !(1..libc::IFNAMSIZ).contains(&interface.len()) || interface.contains(is_odd) {
            let most = libc::IFNAMSIZ - 1;
            return Err(format!(
                "`{interface}` is not a name of an interface: a name has 1 to {most} bytes, and no \
                 spaces, slashes, colons or percent signs"
            ));
        }
        let is_name =
            |name: &str| !name.is_empty() && (name.starts_with('/') || !name.contains('/'));
        if namespace.is_some_and(|name| !is_name(name)) {
            return Err(format!("`{text}` names no namespace: write NAME@NAMESPACE or NAME@/PATH"));
        }
        Ok(Self { interface: interface.into(), namespace: namespace.map(str::to_owned) })
    }
}

impl Link {
    fn read(&self, memory: &mut [u8]) -> io::Result<usize> {
        loop {
            let (start, room) = (memory.as_mut_ptr().cast(), memory.len());
            // SAFETY: the kernel writes at most as many bytes as the slice has.
            let read = unsafe { libc::read(self.file.as_raw_fd(), start, room) };
            match usize::try_from(read) {
                Ok(length) => return Ok(length),
                Err(_) => retry_if_interrupted()?,
            }
        }
    }

    fn write(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            let (start, length) = (frame.as_ptr().cast(), frame.len());
            // SAFETY: the kernel reads the bytes of the slice.
            let written = unsafe { libc::write(self.file.as_raw_fd(), start, length) };
            match written {
                0.. => return Ok(()),
                _ => retry_if_interrupted()?,
            }
        }
    }

    fn error(&self, action: &'static str, source: io::Error) -> PortError {
        let interface = self.interface.clone();
        let advice = match source.raw_os_error() {
            Some(libc::EBADFD) => "it was deleted: restart the program to create it again",
            _ => "see the output of `ip -details link show`",
        };
        PortError::Interface { interface, action, source, advice: advice.into() }
    }
}

/// Returns the error of the last call, unless a signal interrupted it and it has to be repeated.
fn retry_if_interrupted() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

impl TapReceiver {
    /// Reads one frame after the first `used` bytes and returns where it ends; none if there is
    /// none now.
    fn read_frame(&mut self, used: usize, now_ns: u64) -> Result<Option<usize>, PortError> {
        let start = used + HEADROOM;
        match self.link.read(&mut self.memory[start..start + MAX_FRAME + 1]) {
            Ok(length) if (1..=MAX_FRAME).contains(&length) => {
                let timestamp_ns = now_ns;
                self.frames.push(Frame { start, length, original_length: length, timestamp_ns });
                Ok(Some((start + length).next_multiple_of(LINE)))
            }
            Ok(_) => {
                self.lost += 1;
                Ok(Some(used))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.link.error("cannot be read", error)),
        }
    }
}

impl Receive for TapReceiver {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.frames.clear();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(since.as_nanos()).unwrap_or_default();
        let mut used = 0;
        // Frames that are too long count as well, so that a flood of them ends too.
        for _ in 0..most.min(BATCH) {
            match self.read_frame(used, now_ns) {
                Ok(Some(end)) => used = end,
                Ok(None) => break,
                Err(fault) if self.frames.is_empty() => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        Ok(Batch::new(&mut self.memory, &self.frames))
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.link.file.as_fd())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Transmit for TapTransmitter {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        for (at, (_, bytes)) in frames.iter().enumerate() {
            if bytes.len() < SHORTEST {
                self.lost += 1;
                continue;
            }
            match self.link.write(bytes) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => return Ok(at),
                    Some(libc::EIO) => self.lost += 1,
                    _ => return Err(self.link.error("cannot be written", error)),
                },
            }
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        Ok(true)
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.link.file.as_fd())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}
