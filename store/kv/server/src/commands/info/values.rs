// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sections of `INFO` on keys and values. All shards are here.

use super::{Lines, process};
use crate::worker::Core;

pub(super) fn memory(core: &Core, lines: &mut Lines) {
    let used: usize = core.store.shards().map(|shard| shard.memory_bytes()).sum();
    let (used, resident) = (used as u64, process::resident_bytes());
    lines.add_bytes("used_memory", used);
    lines.add_bytes("used_memory_rss", resident);
    lines.add("used_memory_dataset", used);
    lines.add_bytes("total_system_memory", process::machine_bytes());
    let most = core.settings.memory_max.unwrap_or(core.shared.options.memory_bytes as u64);
    lines.add_bytes("maxmemory", most);
    lines.add("maxmemory_policy", core.shared.configuration.value("maxmemory-policy"));
    let (libraries, functions) = core.shared.library.counts();
    lines.add("number_of_cached_scripts", core.shared.library.cached_scripts());
    lines.add("number_of_functions", functions);
    lines.add("number_of_libraries", libraries);
    let ratio = resident as f64 / used.max(1) as f64;
    lines.add("mem_fragmentation_ratio", format!("{ratio:.2}"));
    lines.add("mem_allocator", "freeport");
    lines.add("active_defrag_running", 0);
    lines.add("lazyfree_pending_objects", 0);
}

pub(super) fn keys(core: &Core, lines: &mut Lines) {
    for number in 0..core.shared.options.databases {
        let databases = || core.store.shards().filter_map(|shard| shard.database(number));
        let keys: usize = databases().map(|database| database.len()).sum();
        let expiring: usize = databases().map(|database| database.expiring()).sum();
        if keys > 0 {
            let value = format!("keys={keys},expires={expiring},avg_ttl=0");
            lines.add(&format!("db{number}"), value);
        }
    }
}
