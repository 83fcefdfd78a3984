// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of clients, which show others what a worker knows.

use std::sync::atomic::Ordering;

use freeport_kv_protocol::resp::Version;

use crate::channels::Kind;
use crate::clients::flag;
use crate::connection::Connection;
use crate::tracking::Mode;

/// Updates the unsent bytes in the record of a client.
pub(super) fn record_output(connection: &Connection) {
    let Some(client) = connection.client() else { return };
    client.record.output_bytes.store(connection.backlog_bytes() as u64, Ordering::Relaxed);
}

/// Updates the record of a client, apart from its unsent bytes.
pub(super) fn record(connection: &Connection) {
    let Some(client) = connection.client() else { return };
    let record = &client.record;
    let tracking = client.tracking.as_deref();
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut flags = record.flags.load(Ordering::Relaxed) & flag::UNIX;
    for (is_set, flag) in [
        (client.is_monitor, flag::MONITOR),
        (!client.subscriptions.is_empty(), flag::LISTENS),
        (client.transaction.is_some(), flag::MULTI),
        (client.blocked.is_some() || client.is_paused, flag::BLOCKED),
        (client.watch.has_changed(), flag::DIRTY),
        (client.is_closing, flag::CLOSING),
        (client.is_no_evict, flag::NO_EVICT),
        (!client.session.touches, flag::NO_TOUCH),
        (client.is_readonly, flag::READ_ONLY),
        (tracking.is_some(), flag::TRACKS),
        (tracking.is_some_and(|it| it.is_broken), flag::BROKEN),
        (tracking.is_some_and(|it| it.mode == Mode::Broadcast), flag::BROADCAST),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    let queued = client.transaction.as_ref().map_or(0, |it| it.queued.len() + 1);
    record.flags.store(flags, Ordering::Relaxed);
    record.database.store(u32::from(client.session.database), Ordering::Relaxed);
    record.queued.store(small(queued), Ordering::Relaxed);
    let redirect = tracking.map_or(0, |it| it.redirect + 1);
    record.redirect.store(redirect, Ordering::Relaxed);
    record.input_bytes.store(connection.input.len() as u64, Ordering::Relaxed);
    record.command.store(client.last_command, Ordering::Relaxed);
    let is_three = client.session.version == Version::Three;
    record.version.store(if is_three { 3 } else { 2 }, Ordering::Relaxed);
    for kind in [Kind::Channel, Kind::Pattern, Kind::Sharded] {
        let count = client.subscriptions.iter().filter(|(one, _)| *one == kind).count();
        record.subscriptions[kind as usize].store(small(count), Ordering::Relaxed);
    }
}
