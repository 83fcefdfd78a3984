// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `DEBUG LOADAOF` of a server with a folder: all keys are recovered from the disk, as they would
//! be after a restart. All shards are here.

use freeport_kv_commands::Error;
use freeport_kv_journal::inspect::inspect;
use freeport_kv_protocol::resp::reply::shared;

use super::{Context, Flow};
use crate::persistence::{Loader, Persistence};

/// Replaces all keys by those that the folder has.
///
/// # Errors
/// The folder cannot be read now, or the client is inside a transaction, whose changes are not in
/// the log yet. The keys are as before.
pub(super) fn reload_from_disk(
    context: &mut Context<'_>,
    persistence: &Persistence,
) -> Result<Flow, Error> {
    const TRANSACTION: Error = Error::fixed("ERR DEBUG cannot reload inside a transaction");
    if !context.client.session.may_block {
        return Err(TRANSACTION);
    }
    let core = &mut *context.core;
    core.flush_log();
    let failed = |reason: String| Error::new(format!("ERR Error trying to load the AOF: {reason}"));
    persistence.journal.sync().map_err(|failure| failed(failure.to_string()))?;
    let count = core.store.count();
    let mut loader = Loader::new(count, core.store.shard(0).options());
    let contents = inspect(persistence.folder(), &mut loader, &mut |_| {})
        .map_err(|error| failed(error.to_string()))?;
    if let Some(place) = contents.bad_place {
        return Err(failed(format!("{}, offset {}", place.file.display(), place.offset)));
    }
    // The images of a snapshot go with the keys.
    persistence.snapshots.restart(persistence.snapshots.running());
    for (number, loaded) in loader.into_shards().into_iter().enumerate() {
        core.store.shard_mut(number).take_databases(*loaded, core.now_ms);
    }
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}
