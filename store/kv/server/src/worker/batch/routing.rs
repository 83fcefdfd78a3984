// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on keys of other nodes of the cluster: each is answered by where it belongs.

use freeport_kv_protocol::batch::{Opcode, Operation, Status};
use freeport_kv_protocol::slots::slot_of;

use super::super::Core;
use super::Packet;
use super::hello::Answer;
use crate::cluster::{FENCED, Port, SlotState, UNBOUND};

impl Core {
    /// Whether all operations of a packet are executed here; none: the packet has to wait.
    #[inline]
    pub(super) fn route_packet(&self, packet: Packet<'_>) -> Option<bool> {
        match self.routes {
            None => Some(true),
            Some(_) => self.route_operations(packet),
        }
    }

    fn route_operations(&self, packet: Packet<'_>) -> Option<bool> {
        let routes = self.routes.as_ref()?;
        let mut is_here = !self.is_fenced;
        for operation in packet.operations.iter(packet.payload) {
            if !has_slot(&operation) {
                continue;
            }
            match routes.state(slot_of(operation.key)) {
                SlotState::Served => {}
                SlotState::Stopped if self.is_fenced => {}
                SlotState::Stopped => return None,
                SlotState::Copied if routes.awaits_primary && !self.is_fenced => return None,
                SlotState::Copied | SlotState::Elsewhere | SlotState::Nobody => is_here = false,
            }
        }
        Some(is_here)
    }

    /// The answer to an operation that is not executed here.
    pub(super) fn answer_elsewhere(&self, operation: &Operation<'_>) -> Option<Answer> {
        let routes = self.routes.as_ref().filter(|_| has_slot(operation))?;
        let slot = slot_of(operation.key);
        if matches!(routes.state(slot), SlotState::Served | SlotState::Stopped) {
            return self.is_fenced.then(|| (Status::Unavailable, FENCED.text().into()));
        }
        Some(match routes.view.owner(slot) {
            Some(shard) => {
                (Status::Moved, routes.view.place(slot, shard, Port::Batch).into_bytes())
            }
            None => (Status::Unavailable, UNBOUND.text().into()),
        })
    }
}

fn has_slot(operation: &Operation<'_>) -> bool {
    !matches!(operation.opcode, Opcode::Hello | Opcode::Functions)
}
