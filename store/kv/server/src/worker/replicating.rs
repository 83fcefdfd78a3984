// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's part in replication: it knows the role of the server, and gives the connections of
//! replicas away.

use std::io::Write;
use std::net::TcpStream;

use freeport_kv_commands::{Error, Flags, Spec};

use super::{Core, Worker};
use crate::connection::{Connection, Peer};
use crate::listener::Stream;
use crate::replication::serve;
use crate::shared::FollowerCount;

/// Errors of writes.
const READ_ONLY: Error = Error::fixed("READONLY You can't write against a read only replica.");
const FEW_REPLICAS: Error = Error::fixed("NOREPLICAS Not enough good replicas to write.");
/// Error of commands that need keys, while there are none.
pub(in crate::worker) const LOADING: Error =
    Error::fixed("LOADING Redis is loading the dataset in memory");

impl Core {
    /// Follows the role of the server, and the number of its replicas.
    pub(super) fn follow_role(&mut self) {
        let (Some(replication), Some(log)) = (&self.shared.replication, &mut self.log) else {
            return;
        };
        let is_replica = replication.is_replica();
        self.is_loading = replication.is_loading();
        // The primary has logged the removals of a replica.
        self.effects.records = !is_replica;
        let (least, lag) = self.settings.replicas;
        let has_enough = || replication.counted(|replica| replica.lag <= lag) >= least;
        log.is_replica = is_replica;
        log.refusal = match is_replica {
            true => Some(READ_ONLY),
            // Without a lag, the rule is off, as in Redis.
            false => {
                let is_short = least > 0 && !lag.is_zero() && !has_enough();
                is_short.then_some(FEW_REPLICAS)
            }
        };
    }
}

impl Core {
    /// Refuses a write before `EXEC` would.
    ///
    /// # Errors
    /// The server is a replica, or has too few.
    pub(super) fn check_role(&self, spec: &Spec) -> Result<(), Error> {
        let refusal = self.log.as_ref().and_then(|log| log.refusal.clone());
        match refusal {
            Some(refusal) if spec.flags.has(Flags::WRITE) => Err(refusal),
            _ => Ok(()),
        }
    }
}

impl Worker {
    /// Follows a change of the role: clients no longer wait for keys that only the new primary
    /// gets. In a cluster they are sent there.
    #[inline]
    pub(super) fn follow_new_role(&mut self) {
        let is_replica = self.core.log.as_ref().is_some_and(|log| log.is_replica);
        if std::mem::replace(&mut self.was_replica, is_replica) != is_replica {
            self.end_waits_of_primary(is_replica);
        }
    }

    #[cold]
    fn end_waits_of_primary(&mut self, is_replica: bool) {
        const CHANGED: &str = "UNBLOCKED force unblock from blocking operation, instance state \
                               changed (master -> replica?)";
        if !is_replica || self.core.shared.cluster.is_some() {
            return;
        }
        let connections = self.core.network.connections.iter();
        let waiting: Vec<u64> = connections
            .filter_map(|(id, connection)| connection.is_blocked().then_some(*id))
            .collect();
        for id in waiting {
            self.end_wait(id, |reply, _| reply.error(CHANGED));
        }
    }

    /// Gives the connection of a replica, which has sent its request, to a thread of its own.
    pub(super) fn give_to_sender(&mut self, connection: Connection) {
        let host = connection.client().map(|client| client.record.origin.address.clone());
        let host = host.unwrap_or_default();
        let host = host.rsplit_once(':').map_or(&host[..], |(host, _)| host).to_owned();
        let shared = self.core.shared.clone();
        let Connection { mut stream, peer, .. } = connection;
        let Peer::Resp { mut client, .. } = peer else { return };
        shared.registry.remove(client.id());
        let counted = FollowerCount::new(shared.clone());
        let Some(request) = client.following.take() else { return };
        if stream.deregister(self.core.network.poll.registry()).is_err() {
            return;
        }
        let Stream::Tcp(stream) = stream else {
            let text =
                b"-ERR replication needs a plain TCP connection; use the port without TLS\r\n";
            // The connection ends either way.
            let _ = stream.write(text);
            return;
        };
        let stream = TcpStream::from(stream);
        let served = stream
            .set_nonblocking(false)
            .and_then(|()| serve(&shared, stream, (*request, host), counted));
        if let Err(error) = served {
            tracing::warn!(error = error.to_string(), "a replica cannot be served");
        }
    }
}
