// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `stats`. Names are those of the original. Its counts of lists, of classes of memory and of
//! threads have no counterpart here, and are left out rather than invented.

use std::ops::AddAssign;

use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::stored_number;

use crate::counters::Counters;
use crate::execute::Control;
use crate::item::CLASS;
use crate::items::Items;
use crate::now::Now;
use crate::server::Server;

/// State of the items of one worker, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Counts so far.
    pub counters: Counters,
    /// Number of items, among them some that have expired.
    pub items: u64,
    /// Bytes of memory that items and their index use.
    pub used_bytes: u64,
    /// Bytes of memory that they may use.
    pub limit_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.counters += other.counters;
        self.items += other.items;
        self.used_bytes += other.used_bytes;
        self.limit_bytes += other.limit_bytes;
        self.index_bytes += other.index_bytes;
    }
}

impl Statistics {
    /// Appends the lines of `stats`, and the end.
    pub fn write(&self, server: &Server, version: &str, now: Now, output: &mut Vec<u8>) {
        reply::stat_number(output, "pid", std::process::id().into());
        let uptime = server.started.map_or(0, |started| now.0.saturating_sub(started.0));
        reply::stat_number(output, "uptime", uptime.into());
        reply::stat_number(output, "time", now.0.into());
        reply::stat(output, "version", version);
        reply::stat_number(output, "pointer_size", usize::BITS.into());
        for (name, value) in &server.statistics {
            reply::stat(output, name, value);
        }
        for (name, value) in self.requests().into_iter().chain(self.memory(server)) {
            reply::stat_number(output, name, value);
        }
        reply::line(output, Line::End);
    }

    fn requests(&self) -> [(&'static str, u64); 22] {
        let it = &self.counters;
        [
            ("cmd_get", it.cmd_get),
            ("cmd_set", it.cmd_set),
            ("cmd_flush", it.cmd_flush),
            ("cmd_touch", it.cmd_touch),
            ("cmd_meta", it.cmd_meta),
            ("get_hits", it.get_hits),
            ("get_misses", it.get_misses),
            ("get_expired", it.get_expired),
            // Items are removed when they are flushed, so that none is found later.
            ("get_flushed", 0),
            ("delete_misses", it.delete_misses),
            ("delete_hits", it.delete_hits),
            ("incr_misses", it.incr_misses),
            ("incr_hits", it.incr_hits),
            ("decr_misses", it.decr_misses),
            ("decr_hits", it.decr_hits),
            ("cas_misses", it.cas_misses),
            ("cas_hits", it.cas_hits),
            ("cas_badval", it.cas_badval),
            ("touch_hits", it.touch_hits),
            ("touch_misses", it.touch_misses),
            ("store_too_large", it.store_too_large),
            ("store_no_memory", it.store_no_memory),
        ]
    }

    fn memory(&self, server: &Server) -> [(&'static str, u64); 11] {
        let it = &self.counters;
        [
            ("limit_maxbytes", self.limit_bytes),
            ("threads", server.threads.max(1) as u64),
            ("hash_bytes", self.index_bytes),
            ("bytes", self.used_bytes),
            ("curr_items", self.items),
            ("total_items", it.total_items),
            ("expired_unfetched", it.expired_unfetched),
            ("evicted_unfetched", it.evicted_unfetched),
            ("evictions", it.evictions),
            ("reclaimed", it.reclaimed),
            ("crawler_reclaimed", it.crawler_reclaimed),
        ]
    }

    /// Appends the lines of `stats items`, and the end: all items are of one class.
    pub fn write_items(&self, output: &mut Vec<u8>) {
        let it = &self.counters;
        let lines = [
            ("number", self.items),
            ("mem_requested", self.used_bytes),
            ("evicted", it.evictions),
            ("outofmemory", it.store_no_memory),
            ("reclaimed", it.reclaimed),
            ("expired_unfetched", it.expired_unfetched),
            ("evicted_unfetched", it.evicted_unfetched),
            ("crawler_reclaimed", it.crawler_reclaimed),
        ];
        for (name, value) in lines.iter().filter(|_| self.items > 0) {
            reply::stat_number(output, &format!("items:{CLASS}:{name}"), *value);
        }
        reply::line(output, Line::End);
    }

    /// Appends the lines of `stats slabs`, and the end.
    pub fn write_slabs(&self, output: &mut Vec<u8>) {
        let it = &self.counters;
        let lines = [
            ("used_chunks", self.items),
            ("mem_requested", self.used_bytes),
            ("get_hits", it.get_hits),
            ("cmd_set", it.cmd_set),
            ("delete_hits", it.delete_hits),
            ("incr_hits", it.incr_hits),
            ("decr_hits", it.decr_hits),
            ("cas_hits", it.cas_hits),
            ("cas_badval", it.cas_badval),
            ("touch_hits", it.touch_hits),
        ];
        for (name, value) in lines.iter().filter(|_| self.items > 0) {
            reply::stat_number(output, &format!("{CLASS}:{name}"), *value);
        }
        reply::stat_number(output, "active_slabs", u64::from(self.items > 0));
        reply::stat_number(output, "total_malloced", self.used_bytes);
        reply::line(output, Line::End);
    }
}

impl Items {
    /// Facts of the server for `stats`, to be set.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// State of the items.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            counters: self.counters,
            items: self.len() as u64,
            used_bytes: self.used_bytes() as u64,
            limit_bytes: self.limit_bytes as u64,
            index_bytes: self.engine.statistics().index_bytes as u64,
        }
    }

    pub(crate) fn stats(&mut self, words: &[&[u8]], now: Now, output: &mut Vec<u8>) -> Control {
        let state = self.statistics();
        let fixed: &[u8] = match words {
            [] => {
                state.write(&self.server, &self.options.version, now, output);
                return Control::Continue;
            }
            [b"reset", ..] => {
                self.counters = Counters::default();
                Line::Reset.bytes()
            }
            [b"settings", ..] => return self.write_settings(output),
            [b"items", ..] => {
                state.write_items(output);
                return Control::Continue;
            }
            [b"slabs", ..] => {
                state.write_slabs(output);
                return Control::Continue;
            }
            [b"sizes", ..] => b"STAT sizes_status disabled\r\nEND\r\n",
            [b"sizes_enable" | b"sizes_disable", ..] => b"STAT sizes_status disabled\r\n",
            [b"conns", ..] => return Control::ListConnections,
            [b"extstore", ..] => Line::End.bytes(),
            // Keys are not counted by their prefixes.
            [b"detail", b"dump"] => Line::End.bytes(),
            [b"detail", b"off"] => Line::Ok.bytes(),
            [b"detail", b"on"] => Line::Error.bytes(),
            [b"detail", ..] => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
            [b"cachedump", rest @ ..] => return self.cache_dump(rest, output),
            _ => Line::Error.bytes(),
        };
        output.extend_from_slice(fixed);
        Control::Continue
    }

    fn write_settings(&self, output: &mut Vec<u8>) -> Control {
        let on_or_off = |is_on| if is_on { "on" } else { "off" };
        let yes_or_no = |is_so| if is_so { "yes" } else { "no" };
        let options = &self.options;
        reply::stat_number(output, "maxbytes", self.limit_bytes as u64);
        for (name, value) in &self.server.settings {
            reply::stat(output, name, value);
        }
        for (name, value) in [
            ("evictions", on_or_off(options.is_eviction_allowed)),
            ("shutdown_command", yes_or_no(options.is_shutdown_allowed)),
            ("detail_enabled", "no"),
            ("cas_enabled", "yes"),
            ("auth_enabled_sasl", "no"),
            ("auth_enabled_ascii", "no"),
            ("flush_enabled", yes_or_no(options.is_flush_allowed)),
            ("dump_enabled", yes_or_no(options.is_dump_allowed)),
            ("track_sizes", "no"),
        ] {
            reply::stat(output, name, value);
        }
        reply::stat_number(output, "num_threads", self.server.threads.max(1) as u64);
        reply::stat_number(output, "item_size_max", options.limits.item_bytes_max as u64);
        reply::line(output, Line::End);
        Control::Continue
    }

    /// `stats cachedump`: some keys with their sizes.
    fn cache_dump(&self, words: &[&[u8]], output: &mut Vec<u8>) -> Control {
        /// Classes of the original, which has 64 and counts from 1.
        const CLASSES: std::ops::Range<u64> = 0..64;
        let [class, count, ..] = words else {
            output.extend_from_slice(b"CLIENT_ERROR bad command line\r\n");
            return Control::Continue;
        };
        match (stored_number(class), stored_number(count)) {
            (Some(class), Some(count)) if CLASSES.contains(&class) => {
                if class == u64::from(CLASS) {
                    self.list_some(count, output);
                }
                reply::line(output, Line::End);
            }
            (Some(_), Some(_)) => {
                output.extend_from_slice(b"CLIENT_ERROR Illegal slab id\r\n");
            }
            _ => output.extend_from_slice(b"CLIENT_ERROR bad command line format\r\n"),
        }
        Control::Continue
    }
}
