// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening a TAP interface: the requests to the kernel, and advice for when they fail.

use super::TapOptions;
use crate::namespace::{Namespace, interface};
use crate::port::PortError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// `struct ifreq` of `linux/if.h`, as far as the requests here use it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    spare: [u8; 22],
}

/// Opens the interface in its namespace; reads and writes never block.
pub fn open(options: &TapOptions) -> Result<OwnedFd, PortError> {
    let Some(name) = &options.namespace else { return open_here(&options.interface) };
    let unusable = |source: io::Error| {
        let advice = match source.kind() {
            io::ErrorKind::NotFound if name.starts_with('/') => format!("{name} does not exist"),
            io::ErrorKind::NotFound => format!("create it with `ip netns add {name}`"),
            _ => "run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN".into(),
        };
        let interface = options.interface.clone();
        PortError::Interface {
            interface,
            action: "its namespace cannot be entered",
            source,
            advice,
        }
    };
    let namespace = Namespace::named(name).map_err(unusable)?;
    namespace.with(|| open_here(&options.interface)).map_err(unusable)?
}

/// Opens the interface in the namespace of the calling thread.
fn open_here(name: &str) -> Result<OwnedFd, PortError> {
    let failed = |action, source: io::Error| {
        let advice = advice(name, &source);
        PortError::Interface { interface: name.into(), action, source, advice }
    };
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(CLONE_DEVICE)
        .map_err(|source| failed("/dev/net/tun cannot be opened", source))?;
    let before = interface(name).ok();
    attach(&device, name).map_err(|source| failed("no TAP interface", source))?;
    // By its index: an interface that existed may have been removed with its process in between.
    if before.is_none() || interface(name).ok() != before {
        set_up(name).map_err(|source| failed("it cannot be brought up", source))?;
    }
    Ok(device.into())
}

/// Advises the user about an error.
fn advice(name: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run as root, or with CAP_NET_ADMIN".into(),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "load the kernel's driver: `modprobe tun`".into()
        }
        Some(libc::EBUSY) => {
            "another process has it open: stop that, or choose another name".into()
        }
        Some(libc::EINVAL) => format!(
            "the name is taken by an interface of another kind: see `ip -details link show {name}`"
        ),
        _ => "see the kernel's log".into(),
    }
}

/// Creates the interface, or attaches to the existing one; frames are whole Ethernet frames without
/// a prefix.
fn attach(device: &File, name: &str) -> io::Result<()> {
    let mut request = Request::new(name)?;
    request.flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request has the size and the layout of the kernel's `ifreq`.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
    let nothing: libc::c_ulong = 0;
    // A process that had it before may have allowed incomplete checksums and long segments.
    // SAFETY: this request takes a number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, nothing) })
}

/// Brings an interface of the calling thread's namespace up.
fn set_up(name: &str) -> io::Result<()> {
    let mut request = Request::new(name)?;
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes three numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    check(socket)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the request has the size and the layout of the kernel's `ifreq`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) })?;
    request.flags |= libc::IFF_UP as libc::c_short;
    // SAFETY: as above.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request) })
}

impl Request {
    fn new(interface: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        // The last byte stays 0.
        let Some(part) = name[..libc::IFNAMSIZ - 1].get_mut(..interface.len()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        part.copy_from_slice(interface.as_bytes());
        Ok(Self { name, flags: 0, spare: [0; 22] })
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
