// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offloads to the network interface, switched by the ioctl of `ethtool`.

use anyhow::{Context, Result, ensure};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Transmit checksums, scatter-gather, TCP segmentation, and generic segmentation:
/// `ETHTOOL_STXCSUM`, `ETHTOOL_SSG`, `ETHTOOL_STSO` and `ETHTOOL_SGSO` of `linux/ethtool.h`.
const OFFLOADS: [u32; 4] = [0x17, 0x19, 0x1f, 0x24];

/// `struct ethtool_value`
#[repr(C)]
struct Setting {
    command: u32,
    value: u32,
}

/// Enables or disables the offloads of an interface of the thread's namespace.
///
/// # Errors
/// No such interface, or no right to change it.
pub fn switch(interface: &str, is_left: bool) -> Result<()> {
    ensure!(
        interface.len() < libc::IFNAMSIZ,
        "{interface} is too long for the name of an interface"
    );
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    for command in OFFLOADS {
        let mut setting = Setting { command, value: is_left.into() };
        // SAFETY: all zero bytes are a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut setting).cast();
        // SAFETY: the request points to a setting that outlives the call.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) };
        if done < 0 {
            let error = io::Error::last_os_error();
            return Err(error)
                .with_context(|| format!("the offloads of {interface} cannot be changed"));
        }
    }
    Ok(())
}
