// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds out why a socket is not accelerated without involving its process: from the monitor's
//! answer, or else from the kernel's tables of processes and sockets.
//!
//! It runs with the caller's privileges, so it reveals nothing that the caller may not see.

mod moved;
mod peer;
mod program;
mod table;

use crate::control::{Control, Descriptor};
use crate::text::printable_bytes;
use crate::{Location, executable};
use freeport_sockets_proto::Reason;
pub use program::DESCRIPTORS_MIN;
use serde_json::{Value, json};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use table::{Found, Kind};

/// Returns why a connection is not accelerated, or that it is: `state` is `accelerated`, `refused`
/// or `kernel`. For the last two, `text` explains the reason, and `reason`, or that of the
/// `refusal`, is the name of a [`Reason`].
///
/// If its process uses another monitor than that of `control`, that one is asked, provided it can
/// be reached.
pub fn why(control: &Control, pid: i32, number: i32) -> Value {
    let inode = match socket(pid, number) {
        Ok(inode) => inode,
        Err((reason, text)) => return kernel(reason, text),
    };
    let theirs = program::monitor_of(pid);
    let theirs = theirs.filter(|it| it != control.location() && it.connect().is_ok());
    let theirs = theirs.map(Control::at);
    let control = theirs.as_ref().unwrap_or(control);
    let end = Asked { control, pid, number, inode };
    let known = control.why(Descriptor { pid, number, inode: Some(inode) });
    match known {
        Ok(mut known) if known["state"] == "accelerated" || known["state"] == "refused" => {
            let peer = (known["refusal"]["reason"] == "PeerPlain").then(|| peer::wrong(&end));
            known["text"] = known["refusal"]["text"].clone();
            match peer.flatten() {
                Some((Reason::PeerPlain, text)) => known["text"] = text.into(),
                Some((reason, text)) => return kernel(reason, text),
                None => {}
            }
            known
        }
        // If the peer cannot claim its end, "waiting" would be no answer.
        Ok(known) if known["reason"] == "Waiting" => {
            peer::wrong(&end).map_or(known, |(reason, text)| kernel(reason, text))
        }
        Ok(known) if known["state"] == "kernel" => known,
        Ok(known) => unknown(&end, &known),
        Err(error) => match from_outside(&end) {
            found if found["reason"] == "Young" => kernel(Reason::NoMonitor, error.to_string()),
            found => found,
        },
    }
}

/// A socket, and the monitor that may know about it.
struct Asked<'a> {
    control: &'a Control,
    pid: i32,
    number: i32,
    inode: u64,
}

/// Returns why a socket is in the kernel when the monitor knows only `known` about it.
fn unknown(end: &Asked<'_>, known: &Value) -> Value {
    let found = from_outside(end);
    let is_open = found["reason"] == "Young" || found["reason"] == "PeerPlain";
    let is_member = known["member"] == true;
    match Reason::named(known["process"].as_str().unwrap_or_default()) {
        Some(reason) if is_open => of(reason),
        None if found["reason"] == "Young" => {
            let is_unix = table::by_inode(end.pid, end.inode).is_some_and(|it| it.is_unix);
            let is_much = if is_unix { None } else { moved::is_much(end.pid, end.number) };
            unclaimed(end, is_much, is_member)
        }
        _ => found,
    }
}

fn kernel(reason: Reason, text: impl Into<String>) -> Value {
    json!({"state": "kernel", "reason": reason.name(), "text": text.into()})
}

fn of(reason: Reason) -> Value {
    kernel(reason, reason.text())
}

/// Returns the inode of a descriptor's socket.
fn socket(pid: i32, number: i32) -> Result<u64, (Reason, String)> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if !folder.exists() {
        return Err((Reason::NoProcess, format!("there is no process {pid}")));
    }
    match std::fs::read_link(folder.join(format!("fd/{number}"))) {
        Ok(target) => {
            // Other users choose file names.
            let target = printable_bytes(target.as_os_str().as_bytes());
            let inode = target.strip_prefix("socket:[").and_then(|it| it.strip_suffix(']'));
            let inode = inode.and_then(|it| it.parse().ok());
            inode.ok_or_else(|| {
                (Reason::NotSocket, format!("descriptor {number} is not a socket: it is {target}"))
            })
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("process {pid} {}", program::why_hidden(pid));
            Err((Reason::NotPermitted, text))
        }
        Err(_) => Err((Reason::NoDescriptor, format!("process {pid} has no descriptor {number}"))),
    }
}

/// Returns why a socket is in the kernel when the monitor knows nothing about it.
fn from_outside(end: &Asked<'_>) -> Value {
    let &Asked { pid, inode, .. } = end;
    let Some(Found { kind, established, .. }) = table::by_inode(pid, inode) else {
        return kernel(
            Reason::Family,
            "it is neither a TCP nor a UDP nor a Unix socket, or not connected and not bound, \
             or in another network namespace than its process",
        );
    };
    match kind {
        Kind::Datagram => return of(Reason::NotStream),
        Kind::Listening => {
            return of(Reason::Listens);
        }
        Kind::Stream if !established => return of(Reason::NotConnected),
        Kind::Stream => {}
    }
    if let Err(why) = program::preloaded(pid) {
        return kernel(Reason::NotPreloaded, format!("process {pid} {}", why.text(pid)));
    }
    if program::has_uring(pid) {
        return of(Reason::IoUring);
    }
    let owners = program::owners(inode);
    if owners.len() > 1 {
        let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
        let text = format!("several processes hold it: {}", owners.join(", "));
        return kernel(Reason::Shared, text);
    }
    if let Some((reason, text)) = peer::wrong(end) {
        return kernel(reason, text);
    }
    let asked = end.control.location();
    if let Some(other) = program::monitor_of(pid).filter(|it| it != asked) {
        let text = format!(
            "process {pid} uses the monitor at {}, which cannot be reached from here; the one at \
             {} does not know the socket",
            shown(&other),
            shown(asked)
        );
        return kernel(Reason::NoMonitor, text);
    }
    of(Reason::Young)
}

/// Returns why a process has not claimed a socket for which no obstacle is visible. `is_much`:
/// whether it has had enough traffic to be claimed; `None` if unknown.
fn unclaimed(end: &Asked<'_>, is_much: Option<bool>, is_member: bool) -> Value {
    let pid = end.pid;
    if let Some((reason, text)) = unheard(end.control, pid).filter(|_| !is_member) {
        return kernel(reason, format!("process {pid} {text}"));
    }
    let few = "it has had fewer than 8 operations and less than 32 KiB of data";
    match (is_much, is_member) {
        (Some(false), _) | (None, true) => kernel(Reason::Young, few),
        (Some(true), true) => of(Reason::Untold),
        (None, false) => {
            let text = format!("{few}, or its process makes system calls without the C library");
            kernel(Reason::Young, text)
        }
        (Some(true), false) => {
            let text = format!(
                "process {pid} has the library, and has claimed nothing: it makes system calls \
                 without the C library"
            );
            kernel(Reason::NoCalls, text)
        }
    }
}

/// Returns why a process with the library has not connected to the monitor, if that is visible. The
/// text follows `process N`.
fn unheard(control: &Control, pid: i32) -> Option<(Reason, String)> {
    if program::kind_of(pid) == Some(executable::Kind::Go) {
        let text = "is a Go program, which makes system calls without the C library";
        return Some((Reason::NoCalls, text.to_owned()));
    }
    let limit = program::descriptor_limit(pid).filter(|it| *it < DESCRIPTORS_MIN);
    if let Some(limit) = limit {
        let text = format!(
            "may have {limit} descriptors; below {DESCRIPTORS_MIN} (`ulimit -n`) its sockets stay \
             in the kernel"
        );
        return Some((Reason::Resources, text));
    }
    if program::is_confined(pid) {
        return Some((Reason::Confined, "restricts its system calls (seccomp)".to_owned()));
    }
    let owner = control.location().owner()?;
    let own = program::user_of(pid)?;
    (owner != 0 && owner != own).then(|| {
        let text = format!(
            "belongs to user {own}, and its monitor, at {}, to user {owner}: a program trusts only \
             a monitor of its own user or of root",
            shown(control.location())
        );
        (Reason::NoMonitor, text)
    })
}

/// Path of a monitor, made printable: other users choose paths.
fn shown(location: &Location) -> String {
    printable_bytes(location.path().as_os_str().as_bytes())
}
