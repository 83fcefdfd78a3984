// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a socket is not accelerated, found out without asking its process: from what the monitor
//! knows, and else from what the kernel tells of processes and sockets.
//!
//! It runs with the rights of who asks, so that it tells nobody what is not theirs to know.

mod moved;
mod program;
mod table;

use crate::control::{Control, Descriptor};
use crate::text::printable_bytes;
use freeport_sockets_proto::Reason;
use program::Preloaded;
use serde_json::{Value, json};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use table::{Found, Kind};

/// Why a connection is not accelerated, or that it is: `state` is `accelerated`, `refused` or
/// `kernel`. In the last two, `text` is the reason in words, and `reason`, or that of the
/// `refusal`, the name of one of those of [`Reason`].
pub fn why(control: &Control, pid: i32, number: i32) -> Value {
    let inode = match socket(pid, number) {
        Ok(inode) => inode,
        Err((reason, text)) => return kernel(reason, text),
    };
    let known = control.why(Descriptor { pid, number, inode: Some(inode) });
    match known {
        Ok(mut known) if known["state"] == "accelerated" || known["state"] == "refused" => {
            let is_peer = known["refusal"]["reason"] == "PeerPlain";
            known["text"] = known["refusal"]["text"].clone();
            if is_peer && let Some(text) = peer_plain(pid, inode) {
                known["text"] = text.into();
            }
            known
        }
        Ok(known) if known["state"] == "kernel" => known,
        Ok(known) => {
            let found = from_outside(pid, inode);
            let is_open = found["reason"] == "Young" || found["reason"] == "PeerPlain";
            match Reason::named(known["process"].as_str().unwrap_or_default()) {
                Some(reason) if is_open => of(reason),
                None if found["reason"] == "Young" => {
                    let is_unix = table::by_inode(pid, inode).is_some_and(|it| it.is_unix);
                    let is_much = if is_unix { None } else { moved::is_much(pid, number) };
                    unclaimed(pid, is_much, known["member"] == true)
                }
                _ => found,
            }
        }
        Err(error) => match from_outside(pid, inode) {
            found if found["reason"] == "Young" => kernel(Reason::NoMonitor, error.to_string()),
            found => found,
        },
    }
}

fn kernel(reason: Reason, text: impl Into<String>) -> Value {
    json!({"state": "kernel", "reason": reason.name(), "text": text.into()})
}

fn of(reason: Reason) -> Value {
    kernel(reason, reason.text())
}

/// The inode of the socket that a descriptor is.
fn socket(pid: i32, number: i32) -> Result<u64, (Reason, String)> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if !folder.exists() {
        return Err((Reason::NoProcess, format!("there is no process {pid}")));
    }
    match std::fs::read_link(folder.join(format!("fd/{number}"))) {
        Ok(target) => {
            // A file's name is chosen by others.
            let target = printable_bytes(target.as_os_str().as_bytes());
            let inode = target.strip_prefix("socket:[").and_then(|it| it.strip_suffix(']'));
            let inode = inode.and_then(|it| it.parse().ok());
            inode.ok_or_else(|| {
                (Reason::NotSocket, format!("descriptor {number} is no socket: it is {target}"))
            })
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("process {pid} is another user's: ask as that user, or as root");
            Err((Reason::NotPermitted, text))
        }
        Err(_) => Err((Reason::NoDescriptor, format!("process {pid} has no descriptor {number}"))),
    }
}

/// Why a socket is in the kernel of which the monitor knows nothing.
fn from_outside(pid: i32, inode: u64) -> Value {
    let Some(Found { kind, is_unix, established, .. }) = table::by_inode(pid, inode) else {
        return kernel(
            Reason::Family,
            "it is neither a TCP nor a UDP nor a Unix socket, or not connected and not bound, \
             or in another namespace of the network than its process",
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
        return kernel(Reason::NotPreloaded, format!("process {pid} {}", why.text()));
    }
    if program::has_uring(pid) {
        return of(Reason::IoUring);
    }
    let owners = program::owners(inode);
    if owners.len() > 1 {
        let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
        let text = format!("several processes have it: {}", owners.join(", "));
        return kernel(Reason::Shared, text);
    }
    if let Some(text) = peer_plain(pid, inode) {
        let elsewhere = !is_unix && table::peer(pid, inode).is_none();
        let reason = if elsewhere { Reason::PeerElsewhere } else { Reason::PeerPlain };
        return kernel(reason, text);
    }
    if let Some(other) = program::other_monitor(pid) {
        let other = printable_bytes(other.as_os_str().as_bytes());
        let text = format!("process {pid} uses the monitor at {other}");
        return kernel(Reason::NoMonitor, text);
    }
    of(Reason::Young)
}

/// Why a process has not claimed a socket, if nothing is against it that can be seen. `is_much`:
/// whether it has been used so much that it should have been; `None`: that cannot be told.
fn unclaimed(pid: i32, is_much: Option<bool>, is_member: bool) -> Value {
    let few = "it has done fewer than 8 operations and moved less than 32 KiB";
    match (is_much, is_member) {
        (Some(false), _) | (None, true) => kernel(Reason::Young, few),
        (Some(true), true) => of(Reason::Untold),
        (None, false) => {
            let text = format!("{few}, or its process cannot reach the monitor");
            kernel(Reason::Young, text)
        }
        (Some(true), false) => {
            let text = format!("process {pid} has claimed nothing: it cannot reach the monitor");
            kernel(Reason::NoMonitor, text)
        }
    }
}

/// What is wrong with the other end's process, if that can be seen.
fn peer_plain(pid: i32, inode: u64) -> Option<String> {
    let Some(peer) = table::peer(pid, inode) else {
        let is_unix = table::by_inode(pid, inode).is_some_and(|it| it.is_unix);
        return (!is_unix).then(|| {
            "the peer is on another machine, or in another namespace of the network".to_owned()
        });
    };
    let owner = program::owners(peer).first().copied()?;
    match program::preloaded(owner) {
        Ok(Preloaded) if program::has_uring(owner) => {
            Some(format!("the peer, process {owner}, uses io_uring"))
        }
        Ok(Preloaded) => None,
        Err(why) => Some(format!("the peer, process {owner}, {}", why.text())),
    }
}
