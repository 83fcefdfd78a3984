// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica takes the whole state of its primary.
//!
//! 1. All keys are removed, and commands that need keys are refused from now on.
//! 2. Entries of the primary's snapshot fill new shards, and a new generation of the folder.
//! 3. The folder's new generation replaces the old one, with the primary's histories.
//! 4. The new shards replace the empty ones, and commands are executed again.
//!
//! A replica that ends before step 3 has the old generation when it starts again. One that loses
//! its link takes the whole state again.

use std::sync::atomic::Ordering;

use freeport_kv_commands::{Database, Shard, ShardOptions};
use freeport_kv_journal::{Installer, Items, Lineage, Position, Replay};

use super::Replication;
use super::receiver::Session;
use super::role::{RoleError, with_all_shards};
use crate::persistence::Loader;
use crate::scripting::Engine;
use crate::worker::Core;

/// A state that is being taken.
pub(super) struct Sync<'a> {
    loader: Loader,
    installer: Installer<'a>,
    position: Position,
    lineage: Lineage,
    /// Number of entries so far.
    entries: u64,
}

impl<'a> Sync<'a> {
    /// Removes all keys, and prepares for those of the primary.
    ///
    /// # Errors
    /// The disk fails, or the role has changed.
    pub fn begin(
        session: &Session<'a>,
        position: Position,
        lineage: Lineage,
    ) -> Result<Self, String> {
        let attempt = session.attempt;
        let begun = with_all_shards(session.shared, move |core| core.begin_loading(attempt));
        let (count, options) = begun.map_err(|error| error.to_string())?;
        let installer = session.replication.journal.install().map_err(|it| it.to_string())?;
        let loader = Loader::new(count, &options);
        Ok(Self { loader, installer, position, lineage, entries: 0 })
    }

    /// Takes entries.
    ///
    /// # Errors
    /// They are none, do not fit in the memory, or the disk fails.
    pub fn entries(&mut self, mut entries: Items<'_>) -> Result<(), String> {
        self.installer.entries(&entries).map_err(|error| error.to_string())?;
        self.entries += u64::from(entries.len());
        entries.try_for_each(|entry| self.loader.entry(entry))
    }

    /// Makes the entries, which are that many, the state of the folder, and then of the server.
    ///
    /// # Errors
    /// There are more or fewer, the disk fails, or the role has changed.
    pub fn finish(self, session: &Session<'_>, count: u64) -> Result<(), String> {
        let Self { loader, installer, position, lineage, entries } = self;
        if entries != count {
            return Err(format!("the primary has sent {entries} entries of {count}"));
        }
        installer.finish(position, &lineage).map_err(|error| error.to_string())?;
        let attempt = session.attempt;
        let end = move |core: &mut Core| core.end_loading(loader, attempt);
        with_all_shards(session.shared, end).map_err(|error| error.to_string())
    }
}

impl Replication {
    fn is_of(&self, attempt: u64) -> Result<(), RoleError> {
        if self.is_present(attempt) { Ok(()) } else { Err(RoleError::Changed) }
    }
}

impl Core {
    /// Removes all keys. Returns the number of shards, and their options.
    fn begin_loading(&mut self, attempt: u64) -> Result<(usize, ShardOptions), RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        replication.is_of(attempt)?;
        replication.needs_sync.store(true, Ordering::Release);
        replication.is_loading.store(true, Ordering::Release);
        self.end_images();
        let options = self.store.shard(0).options().clone();
        let (now_ms, databases) = (self.now_ms, options.databases);
        Database::new(&mut self.store, &mut self.effects, 0, now_ms).flush(0..databases);
        for shard in self.store.shards_mut() {
            // The memory is given back as well.
            shard.take_databases(Shard::new(options.clone()), now_ms);
        }
        shared.has_changed();
        self.follow();
        Ok((self.store.count(), options))
    }

    /// Takes the keys that were loaded.
    fn end_loading(&mut self, mut loader: Loader, attempt: u64) -> Result<(), RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        replication.is_of(attempt)?;
        self.end_images();
        let now_ms = self.now_ms;
        let functions = loader.applier.functions.take();
        self.replace_functions(functions.unwrap_or_else(|| (0, Engine::new().functions.dump())));
        self.note_time(loader.applier.latest_ms);
        for (number, loaded) in loader.into_shards().into_iter().enumerate() {
            let shard = self.store.shard_mut(number);
            shard.take_databases(*loaded, now_ms);
            shard.set_stretched(true);
            // Clients that wait for keys look at them.
            for database in 0..shard.options().databases {
                self.effects.has_ready_keys |= shard.change_all(database, None, now_ms);
            }
        }
        replication.counts.taken.fetch_add(1, Ordering::Relaxed);
        replication.needs_sync.store(false, Ordering::Release);
        replication.is_loading.store(false, Ordering::Release);
        shared.has_changed();
        self.follow();
        Ok(())
    }

    /// The images of a snapshot go with the keys.
    fn end_images(&self) {
        if let Some(persistence) = &self.shared.persistence {
            persistence.snapshots.restart(persistence.snapshots.running());
        }
    }
}
