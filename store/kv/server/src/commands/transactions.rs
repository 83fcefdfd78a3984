// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transactions: `MULTI` queues commands, `EXEC` executes them while the worker holds all shards of
//! their keys, so that no other client sees a part of it. `WATCH` gives the shards of its keys a
//! flag, which they set when a key changes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::Writer;
use freeport_kv_protocol::resp::reply::shared;

use super::{Context, Flow, ServerRun};
use crate::client::{Client, Watch};
use crate::worker::{Core, Forgotten};

const FLAGS: Flags = Flags::NO_SCRIPT
    .with(Flags::LOADING)
    .with(Flags::STALE)
    .with(Flags::FAST)
    .with(Flags::ALLOW_BUSY);
const EXEC: Flags = Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE);

/// Commands of transactions.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("multi", 1), Group::Transactions, FLAGS, Keys::None, multi),
    Command::new(("exec", 1), Group::Transactions, EXEC, Keys::None, exec),
    Command::new(("discard", 1), Group::Transactions, FLAGS, Keys::None, discard),
    Command::new(("watch", -2), Group::Transactions, FLAGS, Keys::REST, watch),
    Command::new(("unwatch", 1), Group::Transactions, FLAGS, Keys::None, unwatch),
];

fn multi(context: &mut Context<'_>) -> Result<Flow, Error> {
    if context.client.transaction.is_some() {
        return Err(Error::fixed("ERR MULTI calls can not be nested"));
    }
    context.client.transaction = Some(Default::default());
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn discard(context: &mut Context<'_>) -> Result<Flow, Error> {
    if context.client.transaction.take().is_none() {
        return Err(Error::fixed("ERR DISCARD without MULTI"));
    }
    context.core.unwatch(context.client);
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn exec(context: &mut Context<'_>) -> Result<Flow, Error> {
    let Some(transaction) = context.client.transaction.take() else {
        return Err(Error::fixed("ERR EXEC without MULTI"));
    };
    let has_changed = context.core.has_watched_changed(&context.client.watch);
    context.core.unwatch(context.client);
    if transaction.is_refused {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(Error::fixed(text));
    }
    if has_changed {
        context.reply().null_array();
        return Ok(Flow::Continue);
    }
    let queued = (context.client.session.database, &transaction.queued[..]);
    if let Err(error) = context.core.begin_transaction(queued) {
        let text = format!("EXECABORT Transaction discarded because of: {}", error.text());
        return Err(Error::new(text));
    }
    let Context { core, client, output, .. } = context;
    core.begin_unit_slot(&transaction);
    let may_block = std::mem::replace(&mut client.session.may_block, false);
    Writer::new(output, client.session.version).array(transaction.queued.len());
    for arguments in &transaction.queued {
        match core.check_rights_of_queued(client, arguments) {
            Ok(()) => _ = core.run_inner(client, arguments, output),
            Err(error) => Writer::new(output, client.session.version).error(error.text()),
        }
    }
    core.end_unit_slot();
    core.end_unit();
    client.session.may_block = may_block;
    Ok(Flow::Continue)
}

fn watch(context: &mut Context<'_>) -> Result<Flow, Error> {
    if context.client.transaction.is_some() {
        return Err(Error::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    for &key in &context.arguments[1..] {
        context.core.watch(context.client, key);
    }
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn unwatch(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.core.unwatch(context.client);
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

impl Core {
    /// Watches a key, whose shard is here.
    fn watch(&mut self, client: &mut Client, key: &[u8]) {
        let database = client.session.database;
        // Its removal would look like a change.
        self.store.expire_key((database, key), self.now_ms, &mut self.effects);
        let shard = self.store.shard_of(key);
        let shard = self.store.shard_mut(shard);
        let keyspace = shard.database(database);
        let is_there = keyspace.is_some_and(|it| it.kind(key, self.now_ms).is_some());
        shard.watch(database, key, &client.watch.flag);
        let watched = &mut client.watch.keys;
        if !watched.iter().any(|(number, one, _)| *number == database && one == key) {
            watched.push((database, key.to_vec(), is_there));
        }
    }

    /// A watched key has changed, or its time has passed.
    fn has_watched_changed(&self, watch: &Watch) -> bool {
        watch.has_changed()
            || watch.keys.iter().any(|(database, key, was_there)| {
                let keyspace = self.store.shard(self.store.shard_of(key)).database(*database);
                let is_there = keyspace.is_some_and(|it| it.kind(key, self.now_ms).is_some());
                *was_there && !is_there
            })
    }

    /// Watches no key any more.
    pub fn unwatch(&mut self, client: &mut Client) {
        if client.watch.keys.is_empty() {
            return;
        }
        let watch = std::mem::take(&mut client.watch);
        for (database, key, _) in &watch.keys {
            let flag: Arc<AtomicBool> = watch.flag.clone();
            self.forget_everywhere((*database, key), Forgotten::Watch(flag));
        }
    }
}
