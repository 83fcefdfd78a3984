// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One execution of a command.

use freeport_kv_protocol::resp::Writer;

use crate::database::Database;
use crate::effects::{Block, Effects};
use crate::session::Session;
use crate::store::Store;

/// Everything that the function of a command gets.
#[derive(Debug)]
pub struct Call<'a> {
    /// Arguments; the first is the name.
    pub arguments: &'a [&'a [u8]],
    /// The client.
    pub session: Session,
    /// Keys and values of the selected database.
    pub database: Database<'a>,
    /// Place for the reply.
    pub reply: Writer<'a>,
}

impl<'a> Call<'a> {
    /// An execution of a command at a time, in milliseconds since 1970.
    #[inline]
    pub fn new(
        arguments: &'a [&'a [u8]],
        session: Session,
        (store, effects): (&'a mut Store, &'a mut Effects),
        now_ms: u64,
        output: &'a mut Vec<u8>,
    ) -> Self {
        let database = Database::new(store, effects, session.database, now_ms);
        Self { arguments, session, database, reply: Writer::new(output, session.version) }
    }

    /// The time in milliseconds since 1970, the same for a whole transaction or script.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.database.now_ms()
    }

    /// Waits for keys: the client gets its reply when the command finds something, or when its time
    /// is over. Nothing may have been written to the reply. A client that may not wait
    /// ([`Session::may_block`]) is given the reply that it gets when its time is over.
    pub fn block(&mut self, block: Block) {
        match (self.session.may_block, block.is_null_string) {
            (true, _) => self.database.effects.block = Some(block),
            (false, true) => self.reply.null(),
            (false, false) => self.reply.null_array(),
        }
    }
}
