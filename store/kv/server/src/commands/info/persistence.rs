// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The section of `INFO` on persistence. Snapshots and the log have the names that Redis has for
//! its two kinds of files.

use std::time::Duration;

use super::Lines;
use crate::persistence::{Persistence, Reason};
use crate::statistics::sum;
use crate::worker::Core;

pub(super) fn persistence(core: &Core, lines: &mut Lines) {
    // Workers begin when everything is loaded; see `crate::loading`.
    lines.add("loading", 0);
    lines.add("async_loading", 0);
    core.publish_size();
    let changes = sum(core.shared.workers(), |worker| &worker.changes);
    match &core.shared.persistence {
        Some(persistence) => files(persistence, (changes, core.shared.started_s), lines),
        None => {
            // Nothing was ever saved, so these are all changes since the start.
            lines.add("rdb_changes_since_last_save", changes);
            lines.add("rdb_bgsave_in_progress", 0);
            lines.add("aof_enabled", 0);
            lines.add("aof_rewrite_in_progress", 0);
            lines.add("aof_rewrite_scheduled", 0);
        }
    }
}

fn files(persistence: &Persistence, (changes, started_s): (u64, u64), lines: &mut Lines) {
    let (status, report) = (persistence.journal.status(), persistence.snapshots.report());
    let is_active = |reason| report.active.is_some_and(|(active, _)| active == reason);
    let seconds = |duration: Option<Duration>| match duration {
        Some(duration) => duration.as_secs() as i64,
        None => -1,
    };
    let current = |reason| {
        let begun = report.active.filter(|(active, _)| *active == reason);
        seconds(begun.and_then(|(_, begun)| begun).map(|begun| begun.elapsed()))
    };
    let result = |reason| match report.failures[reason as usize] {
        None => "ok",
        Some(_) => "err",
    };
    let last = |reason| seconds(report.durations[reason as usize]);
    lines.add("rdb_changes_since_last_save", changes.saturating_sub(report.changes));
    lines.add("rdb_bgsave_in_progress", u8::from(is_active(Reason::Save)));
    lines.add("rdb_last_save_time", report.completed_s.unwrap_or(started_s));
    lines.add("rdb_last_bgsave_status", result(Reason::Save));
    lines.add("rdb_last_bgsave_time_sec", last(Reason::Save));
    lines.add("rdb_current_bgsave_time_sec", current(Reason::Save));
    lines.add("rdb_saves", report.completed);
    lines.add("rdb_last_load_keys_loaded", persistence.recovery.keys);
    lines.add("aof_enabled", 1);
    lines.add("aof_rewrite_in_progress", u8::from(is_active(Reason::Rewrite)));
    lines.add("aof_rewrite_scheduled", u8::from(report.next == Some(Reason::Rewrite)));
    lines.add("aof_last_rewrite_time_sec", last(Reason::Rewrite));
    lines.add("aof_current_rewrite_time_sec", current(Reason::Rewrite));
    lines.add("aof_last_bgrewrite_status", result(Reason::Rewrite));
    lines.add("aof_last_write_status", if status.failure.is_none() { "ok" } else { "err" });
    lines.add("aof_current_size", status.bytes);
    lines.add("aof_base_size", status.snapshot_bytes);
    lines.add("aof_buffer_length", status.unwritten_bytes);
    lines.add("aof_pending_bio_fsync", u8::from(status.durable < status.written));
    lines.add("aof_delayed_fsync", status.delayed_syncs);
    lines.add("aof_segments", status.segments);
    lines.add("aof_units", status.appended_units);
    lines.add("aof_syncs", status.syncs);
    lines.add("aof_faults", status.faults);
    if let Some(failure) = &status.failure {
        lines.add("aof_failure", failure);
    }
}
