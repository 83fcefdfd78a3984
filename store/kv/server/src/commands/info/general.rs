// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sections of `INFO` on the server as a whole.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::connection::REDIS_VERSION;
use super::{Lines, process};
use crate::access::{Denial, Reason};
use crate::channels::Kind;
use crate::clients::flag;
use crate::datagrams::{DatagramCount, DatagramCounters};
use crate::replication::SyncCounts;
use crate::statistics::sum;
use crate::worker::Core;

pub(super) fn server(core: &Core, lines: &mut Lines) {
    const DAY_S: u64 = 86_400;
    let shared = &core.shared;
    let uptime_s = shared.started.elapsed().as_secs();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let executable = std::env::current_exe().unwrap_or_default();
    lines.add("redis_version", REDIS_VERSION);
    lines.add("redis_mode", core.shared.mode());
    lines.add("server_name", "freeport");
    lines.add("freeport_version", env!("CARGO_PKG_VERSION"));
    lines.add("os", process::system());
    lines.add("arch_bits", usize::BITS);
    lines.add("multiplexing_api", "epoll");
    lines.add("process_id", std::process::id());
    lines.add("process_supervised", "no");
    lines.add("run_id", &shared.run_id);
    lines.add("tcp_port", shared.configuration.value("port"));
    lines.add("server_time_usec", now.as_micros());
    lines.add("uptime_in_seconds", uptime_s);
    lines.add("uptime_in_days", uptime_s / DAY_S);
    lines.add("hz", shared.configuration.value("hz"));
    lines.add("configured_hz", shared.configuration.value("hz"));
    lines.add("executable", executable.display());
    lines.add("config_file", "");
    lines.add("io_threads_active", u8::from(shared.mailboxes.len() > 1));
    lines.add("workers", shared.mailboxes.len());
    lines.add("user_functions", shared.options.functions.user_functions());
}

pub(super) fn clients(core: &Core, lines: &mut Lines) {
    let records = core.shared.registry.all();
    let count = |flag: u32| records.iter().filter(|record| record.has(flag)).count();
    lines.add("connected_clients", core.shared.connected_clients());
    lines.add("cluster_connections", 0);
    lines.add("follower_connections", core.shared.followers());
    lines.add("maxclients", core.settings.clients_max);
    lines.add("blocked_clients", count(flag::BLOCKED));
    let awaited: usize = core.store.shards().map(|shard| shard.awaited_keys()).sum();
    lines.add("total_blocking_keys", awaited);
    let removals: usize = core.store.shards().map(|shard| shard.awaited_removals()).sum();
    lines.add("total_blocking_keys_on_nokey", removals);
    lines.add("pubsub_clients", count(flag::LISTENS));
    lines.add("tracking_clients", core.shared.trackers.clients());
    let batched = records.iter().filter(|record| record.origin.is_batched).count();
    lines.add("batched_clients", batched);
}

pub(super) fn statistics(core: &Core, lines: &mut Lines) {
    let shared = &core.shared;
    let workers = || shared.workers();
    let rate = shared.rates.lock().unwrap_or_else(PoisonError::into_inner).rate();
    let kibibytes = |bytes: f64| format!("{:.2}", bytes / 1024.0);
    lines.add("total_connections_received", sum(workers(), |worker| &worker.connections));
    lines.add("total_commands_processed", sum(workers(), |worker| &worker.calls));
    lines.add("batched_operations", sum(workers(), |worker| &worker.batched_operations));
    lines.add("instantaneous_ops_per_sec", rate.calls.round());
    lines.add("total_net_input_bytes", sum(workers(), |worker| &worker.received_bytes));
    lines.add("total_net_output_bytes", sum(workers(), |worker| &worker.sent_bytes));
    lines.add("instantaneous_input_kbps", kibibytes(rate.received_bytes));
    lines.add("instantaneous_output_kbps", kibibytes(rate.sent_bytes));
    lines.add("rejected_connections", shared.refused_clients.load(Ordering::Relaxed));
    if let Some(tls) = &shared.configuration.tls {
        lines.add("tls_handshakes", tls.handshakes.completed.load(Ordering::Relaxed));
        lines.add("tls_handshakes_failed", tls.handshakes.failed.load(Ordering::Relaxed));
    }
    if !shared.options.batch_udp.is_empty() {
        lines.add("udp_sessions", sum(workers(), |worker| &worker.datagrams.sessions));
        for DatagramCount { name, of, .. } in &DatagramCounters::TOTALS {
            lines.add(name, sum(workers(), |worker| of(&worker.datagrams)));
        }
    }
    let syncs = |count: fn(&SyncCounts) -> &AtomicU64| {
        let replication = shared.replication.as_ref();
        replication.map_or(0, |it| count(&it.counts).load(Ordering::Relaxed))
    };
    lines.add("sync_full", syncs(|counts| &counts.full));
    lines.add("sync_partial_ok", syncs(|counts| &counts.partial));
    lines.add("sync_partial_err", syncs(|counts| &counts.refused));
    // Counts of commands that the client has sent at once are not published yet.
    lines.add("expired_keys", sum(workers(), |worker| &worker.expired) + core.effects.expired);
    lines.add("evicted_keys", sum(workers(), |worker| &worker.evicted) + core.effects.evicted);
    lines.add("evicted_clients", 0);
    lines.add("keyspace_hits", sum(workers(), |worker| &worker.hits) + core.effects.hits);
    lines.add("keyspace_misses", sum(workers(), |worker| &worker.misses) + core.effects.misses);
    lines.add("pubsub_channels", shared.channels.count(Kind::Channel));
    lines.add("pubsub_patterns", shared.channels.count(Kind::Pattern));
    lines.add("pubsubshard_channels", shared.channels.count(Kind::Sharded));
    lines.add("total_forks", 0);
    lines.add("tracking_total_keys", shared.trackers.keys());
    lines.add("tracking_total_items", shared.trackers.items());
    lines.add("tracking_total_prefixes", shared.trackers.prefix_count());
    for (name, reason) in [
        ("acl_access_denied_auth", Reason::Login),
        ("acl_access_denied_cmd", Reason::Call(Denial::Command)),
        ("acl_access_denied_key", Reason::Call(Denial::Key)),
        ("acl_access_denied_channel", Reason::Call(Denial::Channel)),
    ] {
        lines.add(name, shared.users.denied(reason));
    }
    lines.add("total_error_replies", sum(workers(), |worker| &worker.error_replies));
}

pub(super) fn processor(_core: &Core, lines: &mut Lines) {
    let (program_s, system_s) = process::seconds();
    lines.add("used_cpu_sys", format!("{system_s:.6}"));
    lines.add("used_cpu_user", format!("{program_s:.6}"));
}
