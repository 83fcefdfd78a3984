// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica executes what its primary has logged. The first worker does so in errands, while it
//! holds all shards, and appends the same batches to its own log.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use freeport_kv_journal::{Batch, Items, Units};

use super::Core;
use crate::persistence::{Applier, Persistence};
use crate::replication::Feed;
use crate::scripting::Engine;

/// Time after which clients get their turn while batches wait.
const BURST: Duration = Duration::from_millis(1);

/// Means of a worker to execute batches of a primary.
pub struct Copying {
    applier: Applier,
    /// The batch that is being executed, as it is appended.
    units: Units,
}

impl fmt::Debug for Copying {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Copying")
    }
}

impl Core {
    /// Executes batches of a link for a while. All shards are here.
    pub fn apply_some(&mut self, feed: Arc<Feed>, attempt: u64) {
        let shared = self.shared.clone();
        let (Some(replication), Some(persistence)) = (&shared.replication, &shared.persistence)
        else {
            return;
        };
        let databases = shared.options.databases;
        let new = || Copying { applier: Applier::new(databases), units: Units::new() };
        let mut copying = self.copying.take().unwrap_or_else(|| Box::new(new()));
        let begun = Instant::now();
        while let Some(batch) = feed.take() {
            // A client may have begun to follow keys here before the primary executed the batch.
            self.follow();
            if !replication.is_present(attempt) {
                feed.end(None);
                break;
            }
            if replication.is_copying() {
                // A link that began before this was known may bring the same batch again.
                feed.end(Some("the replica differs from its primary, and begins anew".into()));
                break;
            }
            let units = Items::parse(&batch.items, batch.count).map_err(str::to_owned);
            let batch = units.map(|units| Batch { position: batch.position, units });
            let done = batch.and_then(|batch| self.apply(persistence, &mut copying, &batch));
            if let Err(reason) = done {
                feed.end(Some(reason));
                break;
            }
            if begun.elapsed() > BURST {
                shared.send_errand(move |core| core.apply_some(feed, attempt));
                break;
            }
        }
        self.copying = Some(copying);
        replication.progress.notify();
    }

    /// Executes a batch, and appends it. The log has room for it before anything changes.
    fn apply(
        &mut self,
        persistence: &Persistence,
        copying: &mut Copying,
        batch: &Batch<'_>,
    ) -> Result<(), String> {
        let Copying { applier, units } = copying;
        persistence.journal.prepare_copy(units, batch).map_err(|error| error.to_string())?;
        // Reads of a replica's own clients change nothing; these commands do.
        let paused_until_ms = std::mem::take(&mut self.effects.paused_until_ms);
        let executed = batch
            .units
            .clone()
            .try_for_each(|unit| applier.apply((&mut self.store, &mut self.effects), unit));
        self.effects.paused_until_ms = paused_until_ms;
        if let Err(reason) = executed {
            units.clear();
            self.diverge(batch, &reason);
            return Err(reason);
        }
        persistence.journal.append_copy(units);
        self.note_time(applier.latest_ms);
        if let Some((version, dump)) = applier.functions.take()
            && self.shared.library.functions_since(0).is_none_or(|(present, _)| present < version)
        {
            self.replace_functions((version, dump));
        }
        Ok(())
    }

    /// The keys are not those of the primary: all are taken again.
    fn diverge(&self, batch: &Batch<'_>, reason: &str) {
        let position = batch.position.0;
        tracing::error!(position, reason, "the replica differs from its primary, and begins anew");
        if let Some(replication) = &self.shared.replication {
            replication.want_sync();
        }
    }

    /// The server's time does not go back behind that of a change, or keys that have expired would
    /// be there again.
    pub fn note_time(&self, now_ms: u64) {
        if let Some(persistence) = &self.shared.persistence {
            persistence.note_time(now_ms);
        }
    }

    /// Replaces all functions.
    pub fn replace_functions(&mut self, (version, dump): (u64, Vec<u8>)) {
        let shared = self.shared.clone();
        shared.library.recover_functions(version, dump);
        self.engine.get_or_insert_with(|| Box::new(Engine::new())).count_functions(&shared);
    }
}
