// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recalls connections into the kernel that changed rules no longer allow.

use super::{Connection, Monitor};
use crate::member::MemberId;
use crate::policy::{Party, Policy};
use crate::process::Process;
use crate::slab::Words;
use freeport_sockets_proto::slab::flag;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Number of connections that the rules no longer allow, by state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Recalled {
    /// In shared memory: they return with the next operation of one of their sides.
    pub pending: usize,
    /// Back in the kernel.
    pub returned: usize,
}

impl Monitor {
    /// Sets the recall notice for both sides of each connection that the rules no longer allow.
    pub fn recall(&mut self) -> Recalled {
        let mut recalled = Recalled::default();
        // Each process is inspected once, however many connections it has.
        let members = self.members.iter();
        let seen: BTreeMap<_, _> = members
            .filter_map(|(id, member)| Some((*id, self.policy.seen(&member.process)?)))
            .collect();
        for slab in self.slabs.values() {
            let ids = slab.members();
            for (slot, connection) in slab.used() {
                if !is_denied(&self.policy, &seen, ids, connection) {
                    continue;
                }
                if slab.words(slot).iter().any(Words::has_returned) {
                    recalled.returned += 1;
                } else {
                    slab.say(slot, flag::RECALLED);
                    recalled.pending += 1;
                }
            }
        }
        recalled
    }
}

/// Returns whether the rules would refuse the connection now. A process that has exited does not
/// count.
fn is_denied(
    policy: &Policy,
    processes: &BTreeMap<MemberId, Cow<'_, Process>>,
    ids: [MemberId; 2],
    connection: &Connection,
) -> bool {
    let party = |at: usize| {
        let process = processes.get(&ids[at])?;
        Some(Party { process, place: connection.ends[at].local.as_ref()? })
    };
    party(0).zip(party(1)).is_some_and(|(one, other)| policy.decide([one, other]).is_err())
}
