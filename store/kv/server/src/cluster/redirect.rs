// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where clients are sent whose keys are elsewhere.

use freeport_kv_cluster::{Address, Shard};
use freeport_kv_commands::Error;

use super::view::View;
use crate::clients::Origin;

/// Keys of one command are in different slots.
pub const CROSS_SLOT: Error = Error::fixed("CROSSSLOT Keys in request don't hash to the same slot");
/// No shard has the slot.
pub const UNBOUND: Error = Error::fixed("CLUSTERDOWN Hash slot not served");
/// The node must not answer: another may be the primary already.
pub const FENCED: Error = Error::fixed("CLUSTERDOWN The lease of this node has run out");

/// The port of a node that clients of a kind use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Redis.
    Plain,
    /// Redis, encrypted.
    Encrypted,
    /// The batched protocol.
    Batch,
}

impl Port {
    /// The port that a client uses.
    pub fn of(origin: &Origin) -> Self {
        match (origin.is_batched, origin.is_encrypted) {
            (true, _) => Self::Batch,
            (false, true) => Self::Encrypted,
            (false, false) => Self::Plain,
        }
    }

    /// Its number on a node. One without encryption is reached without it; one without the batched
    /// protocol is not reached.
    pub fn at(self, address: &Address) -> Option<u16> {
        match self {
            Self::Plain => Some(address.port),
            Self::Encrypted => Some(address.tls_port.unwrap_or(address.port)),
            Self::Batch => address.batch_port,
        }
    }
}

impl View {
    /// Text that sends a client to the primary of a shard: `SLOT HOST:PORT`. An address of version
    /// 6 has no brackets, as clients of Redis expect it. Without the port, the place is empty.
    pub fn place(&self, slot: u16, shard: &Shard, port: Port) -> String {
        let address = self.address(shard.primary());
        match port.at(address) {
            Some(port) => format!("{slot} {}:{port}", address.host),
            None => format!("{slot} "),
        }
    }

    /// The error for a command on a slot that this node does not serve.
    #[cold]
    pub fn redirection(&self, slot: u16, port: Port) -> Error {
        match self.owner(slot) {
            Some(shard) => Error::new(format!("MOVED {}", self.place(slot, shard, port))),
            None => UNBOUND,
        }
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_cluster::{NodeId, Presence, State, Versioned};

    use super::*;
    use crate::cluster::testing::{shard, topology};

    #[test]
    fn clients_are_sent_to_the_port_of_their_kind() {
        let (me, other) = (NodeId::random(), NodeId::random());
        let topology = Some(Versioned {
            revision: Default::default(),
            topology: topology(vec![shard("0", &[other, me])]),
        });
        let mut state = State { topology, ..State::default() };
        let text = |state: &State, slot, port| {
            View::new(me, state.clone()).redirection(slot, port).text().to_owned()
        };
        assert_eq!(text(&state, 0, Port::Plain), "MOVED 0 10.0.0.1:7000");
        assert_eq!(text(&state, 0, Port::Encrypted), "MOVED 0 10.0.0.1:7000");
        assert_eq!(text(&state, 0, Port::Batch), "MOVED 0 ");
        assert_eq!(text(&state, 1, Port::Plain), "CLUSTERDOWN Hash slot not served");
        // The lease knows better.
        let address =
            Address { host: "::1".into(), port: 1, tls_port: Some(2), batch_port: Some(3) };
        let presence = Presence {
            session: 0,
            address,
            position: 0,
            term: 1,
            sealed: None,
            wants_to_lead: false,
            is_copying: false,
        };
        state.nodes.insert(other, presence);
        let all = [Port::Plain, Port::Encrypted, Port::Batch].map(|port| text(&state, 0, port));
        assert_eq!(all, ["MOVED 0 ::1:1", "MOVED 0 ::1:2", "MOVED 0 ::1:3"]);
    }
}
