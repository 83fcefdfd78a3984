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
    pub(super) fn is_of(&self, attempt: u64) -> Result<(), RoleError> {
        if self.is_present(attempt) { Ok(()) } else { Err(RoleError::Changed) }
    }
}

impl Core {
    /// Takes the histories of a primary that continues where the log ends. All shards are here, so
    /// the role does not change meanwhile.
    pub(super) fn continue_log(
        &mut self,
        attempt: u64,
        position: Position,
        lineage: &Lineage,
    ) -> Result<(), RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        replication.is_of(attempt)?;
        if replication.is_copying() {
            return Err(RoleError::Differs);
        }
        if position != replication.position() {
            return Err(RoleError::Elsewhere);
        }
        let adopted = replication.journal.adopt_lineage(lineage);
        adopted.map_err(|failure| RoleError::Lineage(failure.to_string()))
    }

    /// Removes all keys. Returns the number of shards, and their options.
    fn begin_loading(&mut self, attempt: u64) -> Result<(usize, ShardOptions), RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        replication.is_of(attempt)?;
        replication.needs_sync.store(true, Ordering::Release);
        replication.is_loading.store(true, Ordering::Release);
        self.end_images();
        // A batch that has failed may have left something there.
        self.copying = None;
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use freeport_kv_cluster::Address;
    use tempfile::TempDir;

    use super::*;
    use crate::replication::Feed;
    use crate::replication::feed::Batch;
    use crate::{Options, PersistenceOptions, Server};

    fn server(mut options: Options) -> (Server, TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        options.persistence = Some(PersistenceOptions::new(folder.path().into()));
        (Server::start(options).expect("it starts"), folder)
    }

    fn replication(server: &Server) -> &Replication {
        server.shared().replication.as_ref().expect("it has a folder")
    }

    /// The histories of a primary arrive when the server has become a primary itself.
    #[test]
    fn histories_that_come_late_are_dropped() {
        let (server, _folder) = server(Options::default());
        let replication = replication(&server);
        let attempt = replication.attempt.load(Ordering::Acquire);
        let end = replication.lead(server.shared(), 7).expect("it leads");
        let history = replication.history();
        let adopt = |attempt, position| {
            let mut late = Lineage::default();
            late.begin(1, position);
            with_all_shards(server.shared(), move |core| {
                core.continue_log(attempt, position, &late)
            })
        };
        assert_eq!(adopt(attempt, end), Err(RoleError::Changed));
        assert_eq!(adopt(attempt + 1, Position(end.0 + 1)), Err(RoleError::Elsewhere));
        assert_eq!((replication.history(), replication.term()), (history, 7));
        assert_eq!(adopt(attempt + 1, end), Ok(()), "nothing has changed since");
        assert_ne!(replication.history(), history);
    }

    /// A replica differs from its primary, and a link that does not know it brings batches.
    #[test]
    fn a_replica_that_differs_executes_nothing() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = silent.local_addr().expect("it has one").port();
        let mut options = Options::default();
        let primary = Address { host: "127.0.0.1".into(), port, ..Address::default() };
        options.replication.follows = Some(primary);
        let (server, _folder) = server(options);
        let (replication, feed) = (replication(&server), Arc::new(Feed::default()));
        let attempt = replication.attempt.load(Ordering::Acquire);
        let execute = || {
            let batch = Batch { position: replication.position(), count: 0, items: vec![] };
            assert_eq!(feed.push(batch, || false), Ok(true));
            let feed = feed.clone();
            with_all_shards(server.shared(), move |core| {
                core.apply_some(feed, attempt);
                Ok(())
            })
        };
        let begin = replication.position();
        assert_eq!(execute(), Ok(()));
        let end = replication.position();
        assert!(end > begin, "it is executed");
        replication.want_sync();
        let (place, lineage) = (replication.position(), replication.journal.lineage());
        let resume = move |core: &mut Core| core.continue_log(attempt, place, &lineage);
        assert_eq!(with_all_shards(server.shared(), resume), Err(RoleError::Differs));
        assert_eq!(execute(), Ok(()));
        assert_eq!(replication.position(), end);
        assert!(feed.is_over());
        let reason = feed.take_failure().expect("it says why");
        assert!(reason.contains("begins anew"), "{reason}");
    }
}
