// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The section of `INFO` on replication, with the names that Redis has for it.

use std::sync::atomic::Ordering;

use super::Lines;
use crate::replication::{LinkPhase, Replication, Role};
use crate::worker::Core;

pub(super) fn replication(core: &Core, lines: &mut Lines) {
    match &core.shared.replication {
        Some(replication) => of_folder(replication, lines),
        None => {
            lines.add("role", "master");
            lines.add("connected_slaves", 0);
            lines.add("master_failover_state", "no-failover");
            lines.add("master_replid", &core.shared.run_id);
            lines.add("master_replid2", "0".repeat(40));
            lines.add("master_repl_offset", 0);
            lines.add("second_repl_offset", -1);
            lines.add("repl_backlog_active", 0);
        }
    }
}

fn of_folder(replication: &Replication, lines: &mut Lines) {
    match replication.role() {
        Role::Primary { .. } => lines.add("role", "master"),
        Role::Replica { leader, .. } => {
            lines.add("role", "slave");
            if let Some(leader) = leader {
                lines.add("master_host", &leader.address.host);
                lines.add("master_port", leader.address.port);
            }
            link(replication, lines);
        }
    }
    let replicas = replication.replicas();
    lines.add("connected_slaves", replicas.len());
    for (number, replica) in replicas.iter().enumerate() {
        let state = if replica.is_online { "online" } else { "send_bulk" };
        let (ip, port, offset) = (&replica.host, replica.port, replica.acked.0);
        let lag = replica.lag.as_secs();
        let line = format!("ip={ip},port={port},state={state},offset={offset},lag={lag}");
        lines.add(&format!("slave{number}"), line);
    }
    lines.add("master_failover_state", "no-failover");
    let (history, end) = (replication.history(), replication.position().0);
    lines.add("master_replid", format!("{history:040x}"));
    lines.add("master_replid2", "0".repeat(40));
    lines.add("master_repl_offset", end);
    lines.add("second_repl_offset", -1);
    // The log's files are the backlog.
    lines.add("repl_backlog_active", 1);
    lines.add("replica_full_syncs", replication.counts.taken.load(Ordering::Relaxed));
}

fn link(replication: &Replication, lines: &mut Lines) {
    let link = replication.link();
    let state = if link.phase == LinkPhase::Online { "up" } else { "down" };
    lines.add("master_link_status", state);
    let silence = link.silence.map_or(-1, |silence| silence.as_secs() as i64);
    lines.add("master_last_io_seconds_ago", silence);
    lines.add("master_sync_in_progress", u8::from(link.phase == LinkPhase::Syncing));
    if let Some(failure) = &link.failure {
        lines.add("master_link_failure", failure);
    }
    let end = replication.position().0;
    lines.add("slave_read_repl_offset", link.primary_end.0.max(end));
    lines.add("slave_repl_offset", end);
    lines.add("slave_priority", 100);
    lines.add("slave_read_only", 1);
    lines.add("replica_announced", 1);
}
