// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds visible obstacles at the peer of a connection.

use super::program::{self, Preloaded};
use super::table::{self, Peer};
use super::{Asked, shown, unheard};
use crate::Location;
use crate::control::Descriptor;
use crate::private::user;
use freeport_sockets_proto::Reason;

/// Returns the obstacle, `PeerPlain`, `PeerElsewhere` or `PeerMonitor`, with an explanation.
pub fn wrong(end: &Asked<'_>) -> Option<(Reason, String)> {
    let &Asked { control, pid, inode, .. } = end;
    let peer = match table::peer(pid, inode) {
        Peer::Socket(peer) => peer,
        Peer::Nobodys => {
            let text = "no process holds the peer's end: it is not accepted yet, or is closed";
            return Some((Reason::PeerPlain, text.to_owned()));
        }
        Peer::Unseen => {
            let is_unix = table::by_inode(pid, inode).is_some_and(|it| it.is_unix);
            let text = "the peer is on another machine or in another network namespace";
            return (!is_unix).then(|| (Reason::PeerElsewhere, text.to_owned()));
        }
    };
    let Some(owner) = program::owners(peer).first().copied() else { return hidden(end) };
    let plain =
        |text: String| Some((Reason::PeerPlain, format!("the peer, process {owner}, {text}")));
    match program::preloaded(owner) {
        Err(why) => return plain(why.text(owner)),
        Ok(Preloaded) if program::has_uring(owner) => return plain("uses io_uring".to_owned()),
        Ok(Preloaded) => {}
    }
    if let (Some(one), Some(other)) = (program::monitor_of(pid), program::monitor_of(owner))
        && one != other
    {
        return Some((Reason::PeerMonitor, two_monitors((pid, &one), (owner, &other))));
    }
    let descriptor = Descriptor { pid: owner, number: -1, inode: Some(peer) };
    let known = control.why(descriptor).ok()?;
    if known["state"] == "kernel" && known["reason"] != "Waiting" {
        let text = known["text"].as_str().unwrap_or_default();
        return plain(format!("keeps its end in the kernel: {text}"));
    }
    let unheard = unheard(control, owner).filter(|_| known["member"] == false);
    unheard.and_then(|(_, text)| plain(text))
}

/// Explains the case that no visible process holds the peer.
fn hidden(end: &Asked<'_>) -> Option<(Reason, String)> {
    // Root sees all processes: the holder is about to accept the peer, or has just exited.
    if user() == 0 {
        return None;
    }
    let mut text =
        "the peer is a process that you may not inspect, such as one of another user: if it was \
         started with `freeport exec`, root can learn more"
            .to_owned();
    let asked = end.control.location();
    if !asked.is_of_host() && Location::of_host().connect().is_ok() {
        text += &format!(
            ". Your process uses the monitor at {}; if the peer uses the one of this machine, at \
             {}, restart yours without {}",
            shown(asked),
            shown(&Location::of_host()),
            freeport_sockets_proto::MONITOR_VARIABLE,
        );
    }
    Some((Reason::PeerPlain, text))
}

/// Explains that the ends use two monitors, and what to do about it.
fn two_monitors((pid, one): (i32, &Location), (owner, other): (i32, &Location)) -> String {
    let reported = format!(
        "the ends have two monitors: process {pid} uses the one at {}, and the peer, process \
         {owner}, the one at {}",
        shown(one),
        shown(other)
    );
    let variable = freeport_sockets_proto::MONITOR_VARIABLE;
    let begin_anew = |pid: i32, to: &Location| {
        let path = shown(to);
        format!("{reported}; restart process {pid} with {variable}={path}, if its rules allow it")
    };
    // The host's monitor serves all users, any other one only its own user and root.
    match (one.owner(), other.owner()) {
        (_, Some(0)) => begin_anew(pid, other),
        (Some(0), _) => begin_anew(owner, one),
        (Some(here), Some(there)) if here == there => begin_anew(pid, other),
        _ => format!(
            "{reported}; have root run one for all users (`freeport node`, or its systemd unit), \
             and restart both without {variable}"
        ),
    }
}
