// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peer in tests of ports on interfaces: a quiet namespace, and a raw socket on the kernel's
//! side that sends and receives the frames.

use crate::namespace::{Namespace, interface};
use crate::port::{Batch, Frame, PortError, Receive};
use crate::trace::TraceFrame;
use freeport_testbed::skip;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

/// Maximum time that a test waits for something that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Creates a namespace without traffic other than the test's; returns none, with a message, if the
/// process may not create one.
#[track_caller]
pub fn quiet_namespace() -> Option<Namespace> {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            skip("this process may not make network namespaces");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let quiet = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    drop(namespace.with(quiet).expect("the thread starts"));
    Some(namespace)
}

/// Runs `ip` in the thread's namespace.
pub fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip is installed");
    assert!(status.success(), "ip {arguments}");
}

/// Returns what `poll` reports for a descriptor within this time.
pub fn ready(file: Option<BorrowedFd<'_>>, events: i16, most_ms: i32) -> i16 {
    let fd = file.expect("it can be waited for").as_raw_fd();
    let mut asked = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: the pointer is to one entry.
    let found = unsafe { libc::poll(&mut asked, 1, most_ms) };
    assert!(found >= 0, "{}", io::Error::last_os_error());
    asked.revents
}

/// A socket that receives every frame of the interface, and sends any.
pub struct RawSocket {
    file: OwnedFd,
}

impl RawSocket {
    /// Opens a socket on an interface of the thread's namespace.
    pub fn on(name: &str) -> Self {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes three numbers.
        let file = unsafe { libc::socket(libc::AF_PACKET, kind, all.into()) };
        assert!(file >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: the structure is plain data, for which all zeros is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = all;
        address.sll_ifindex = interface(name).expect("it is there") as i32;
        let size = size_of_val(&address) as u32;
        // SAFETY: the address has that size.
        let bound = unsafe { libc::bind(file.as_raw_fd(), (&raw const address).cast(), size) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        let (room, size) = (8_i32 << 20, size_of::<i32>() as u32);
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
        let room = (&raw const room).cast();
        // SAFETY: the option takes a number of that size.
        let set = unsafe { libc::setsockopt(file.as_raw_fd(), level, option, room, size) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
        Self { file }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        let (start, length) = (frame.as_ptr().cast(), frame.len());
        // SAFETY: the kernel reads the bytes of the slice.
        let sent = unsafe { libc::send(self.file.as_raw_fd(), start, length, 0) };
        assert_eq!(sent, length as isize, "{}", io::Error::last_os_error());
    }

    /// Returns the frames that have arrived from the interface, without those that were sent to it.
    pub fn incoming(&self) -> Vec<Vec<u8>> {
        let mut frames = vec![];
        let mut memory = vec![0; 1 << 16];
        loop {
            // SAFETY: the structure is plain data, for which all zeros is a value.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut size = size_of_val(&from) as u32;
            let (start, room) = (memory.as_mut_ptr().cast(), memory.len());
            // SAFETY: the kernel writes at most `room` and `size` bytes.
            let got = unsafe {
                let from = (&raw mut from).cast();
                let flags = libc::MSG_DONTWAIT;
                libc::recvfrom(self.file.as_raw_fd(), start, room, flags, from, &mut size)
            };
            let Ok(length) = usize::try_from(got) else {
                match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::WouldBlock => return frames,
                    // Reported once to every socket when an interface goes down.
                    error if error.raw_os_error() == Some(libc::ENETDOWN) => continue,
                    error => panic!("{error}"),
                }
            };
            if from.sll_pkttype != libc::PACKET_OUTGOING {
                frames.push(memory[..length].to_vec());
            }
        }
    }
}

/// A receiver that ends after the number of frames sent, with the times of the trace.
pub struct Counted<P> {
    port: P,
    _other: RawSocket,
    seen: usize,
    trace: Vec<TraceFrame>,
    frames: Vec<Frame>,
    since: Instant,
}

impl<P> Counted<P> {
    /// Receives by `port` the trace that `other` sends.
    pub fn new(port: P, other: RawSocket, trace: &[TraceFrame]) -> Self {
        let (trace, frames) = (trace.to_vec(), vec![]);
        Self { port, _other: other, seen: 0, trace, frames, since: Instant::now() }
    }
}

impl<P: Receive> Receive for Counted<P> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        let batch = self.port.receive(most)?;
        let got = batch.frames();
        assert!(got.iter().all(|frame| frame.timestamp_ns > 1_700_000_000_000_000_000));
        let times = self.trace[self.seen..].iter().map(|item| item.timestamp_ns);
        let timed = got.iter().zip(times);
        self.frames.clear();
        self.frames.extend(timed.map(|(frame, timestamp_ns)| Frame { timestamp_ns, ..*frame }));
        assert_eq!(self.frames.len(), got.len(), "no more frames than were sent");
        self.seen += got.len();
        let is_in_time = self.since.elapsed() < PATIENCE;
        assert!(is_in_time, "{} of {} frames came", self.seen, self.trace.len());
        Ok(Batch { frames: &self.frames, ..batch })
    }

    fn is_ended(&self) -> bool {
        self.seen == self.trace.len()
    }
}
