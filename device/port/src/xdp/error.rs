// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of interfaces, with advice.

use crate::bpf::BpfError;
use crate::port::PortError;
use std::io;

/// Creates an error of opening a port on interface `name`, with advice.
pub(super) fn opening(name: &str, action: &'static str, source: io::Error) -> PortError {
    let advice = advice(&source).into();
    advising(name, action, source, advice)
}

/// Creates an error with advice from the caller.
pub(super) fn advising(
    name: &str,
    action: &'static str,
    source: io::Error,
    advice: String,
) -> PortError {
    PortError::Interface { interface: format!("xdp:{name}"), action, source, advice }
}

/// Creates an error of a program or its map, with advice.
pub(super) fn of_program(name: &str, error: BpfError) -> PortError {
    let (action, log) = match &error {
        BpfError::Attach(_) => ("its program cannot be attached", ""),
        BpfError::Load { log, .. } => ("its program cannot be loaded", log.as_str()),
        _ => ("the map of its program cannot be created", ""),
    };
    let log = if log.is_empty() { String::new() } else { format!(" (the kernel says: {log})") };
    let is_attach = matches!(error, BpfError::Attach(_));
    let source = match error {
        BpfError::Map { source, .. } | BpfError::Load { source, .. } => source,
        BpfError::TestRun(source) | BpfError::Attach(source) => source,
        BpfError::EntryLength { .. } => io::ErrorKind::InvalidInput.into(),
    };
    let advice = match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) if is_attach => {
            "it has another program: see `ip link`, then take that off with `ip link set IFACE xdp \
             off`, or end the process that has put it there"
        }
        _ => advice(&source),
    };
    advising(name, action, source, format!("{advice}{log}"))
}

/// Creates the error for an interface that was removed.
pub(super) fn lost_interface(name: &str, source: io::Error) -> PortError {
    let advice = "the interface was removed: open the port again when it exists";
    advising(name, "it no longer exists", source, advice.into())
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => "see `ip link` for the interfaces there are",
        Some(libc::EPERM | libc::EACCES) => {
            "the process needs the capabilities NET_RAW, NET_ADMIN and BPF: run it as root, or see \
             `freeport doctor`"
        }
        Some(libc::EBUSY) => "another process has a socket on the queue; end it, or name another",
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "the memory of the port cannot be locked: raise the limit with `ulimit -l`, or run \
             with the capability IPC_LOCK"
        }
        Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)",
        Some(libc::ENETDOWN) => "set the interface up with `ip link set IFACE up`",
        Some(libc::EINVAL) => {
            "the driver may not take a program with frames as large as the interface's MTU: set \
             a smaller one with `ip link set IFACE mtu 1500`"
        }
        Some(libc::ENOENT) => "see `ip netns list` for the namespaces there are",
        _ => "see `freeport doctor` for what this machine can do",
    }
}
