// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `maxmemory` below the memory that the server was given: commands that add something are refused
//! while more is used. The memory itself is limited by every shard's allocator, without this.

use freeport_kv_commands::{Error, Flags, Spec};

use super::Core;
use crate::client::Client;
use crate::statistics::sum;

impl Core {
    /// More memory is used than the parameter allows.
    pub fn is_memory_short(&self) -> bool {
        let Some(most) = self.settings.memory_max else { return false };
        self.publish_size();
        sum(self.shared.workers(), |worker| &worker.memory_bytes) > most
    }

    /// Refuses a command that needs more memory, or that would wait in a transaction.
    pub(super) fn check_memory(
        &mut self,
        client: &mut Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        const DISCARDED: Error = Error::fixed(
            "EXECABORT Transaction discarded because of: \
             OOM command not allowed when used memory > 'maxmemory'.",
        );
        let grows = |spec: &Spec, arguments: &[&[u8]]| spec.of(arguments).flags.has(Flags::GROWS);
        let adds = match (&client.transaction, spec.name) {
            (Some(transaction), "exec") => transaction.queued.iter().any(|queued| {
                let arguments = crate::client::slices(queued);
                self.table.get(&queued[0]).is_some_and(|queued| grows(&queued.spec, &arguments))
            }),
            _ => grows(spec, arguments) || client.queues(spec),
        };
        if !adds || !self.is_memory_short() {
            return Ok(());
        }
        if spec.name == "exec" {
            client.transaction = None;
            self.unwatch(client);
            return Err(DISCARDED);
        }
        Err(Error::OUT_OF_MEMORY)
    }
}
