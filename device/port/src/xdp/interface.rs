// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of an interface that are needed to open a port on it.

use crate::namespace;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `ETHTOOL_GCHANNELS`
const GET_CHANNELS: u32 = 0x3c;

/// An interface of the thread's namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    pub number: u32,
    /// Maximum number of bytes of a frame after its Ethernet header.
    pub mtu: usize,
    /// Number of receive queues; 1 if the driver does not report it.
    pub queues: u32,
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// There is no interface with that name.
    pub fn find(name: &str) -> io::Result<Self> {
        let number = namespace::interface(name)?;
        // SAFETY: no memory is passed.
        let socket = match unsafe {
            libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
        } {
            socket if socket < 0 => return Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
            socket => unsafe { OwnedFd::from_raw_fd(socket) },
        };
        let mut request = request(name);
        // SAFETY: the request has the type that the call takes, and outlives it.
        if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just written this member.
        let mtu = usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0);
        Ok(Self { number, mtu, queues: queues(&socket, name).unwrap_or(1).max(1) })
    }
}

/// Returns the current number of receive queues; none if the driver does not report it.
fn queues(socket: &OwnedFd, name: &str) -> Option<u32> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: the request has the type that the call takes; it and its target outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    (result == 0).then(|| channels.receive_now.saturating_add(channels.combined_now))
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: a request is numbers and bytes, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0. A longer name was not found before.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive_now: u32,
    transmit_now: u32,
    other_now: u32,
    combined_now: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_and_others_are_not() {
        let found = Interface::find("lo").expect("every namespace has it");
        assert!(found.number > 0 && found.mtu >= 1_500 && found.queues == 1);
        assert!(Interface::find("no such one").is_err());
    }
}
