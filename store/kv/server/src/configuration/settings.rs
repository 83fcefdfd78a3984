// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings that a worker derives from the parameters.

use std::time::Duration;

use freeport_kv_commands::{EvictionOptions, Policy as EvictionPolicy};
use freeport_kv_journal::Policy;
use freeport_kv_protocol::resp::RequestLimits;
use freeport_kv_types::Limits;

use super::{Configuration, events};

/// Sizes of list nodes for `list-max-listpack-size` -1 to -5.
const LIST_NODE_BYTES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Size of a list node whose number of elements is given: the largest one in Redis as well.
const COUNTED_NODE_BYTES: usize = 8 << 10;

/// Values of parameters as workers use them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Version of the values that they were derived from.
    pub version: u64,
    /// Flags of `notify-keyspace-events`.
    pub events: u16,
    /// Number of entries in the log of refusals.
    pub access_log_entries: usize,
    /// New users may use all channels.
    pub all_channels: bool,
    /// Maximum number of clients.
    pub clients_max: usize,
    /// Bytes of all keys and values above which none may be added; none: only the memory that the
    /// server was given limits them.
    pub memory_max: Option<u64>,
    /// Which keys are evicted, and how they are chosen.
    pub eviction: EvictionOptions,
    /// How long a command evicts keys; none: until there is enough memory.
    pub eviction_time: Option<Duration>,
    /// Keys of which clients may keep copies, at most; 0: any number.
    pub read_keys_max: usize,
    /// Seconds after which a client without requests is disconnected; 0: never.
    pub idle_s: u64,
    /// Seconds after which the system asks an idle client of TCP whether it is there; 0: never.
    pub keepalive_s: u32,
    /// Nanoseconds above which a command is noted in the slow log.
    pub slow_log_ns: u64,
    /// Number of entries in the slow log.
    pub slow_log_entries: usize,
    /// Milliseconds from which a command is a sample of the latency monitor; 0: never.
    pub latency_ms: u64,
    /// Nanoseconds from which a command is one of both.
    pub slow_ns: u64,
    /// Milliseconds after which a running script lets other clients know.
    pub busy_ms: u64,
    /// When changes are durable.
    pub policy: Policy,
    /// Bytes of the log, and its growth over the snapshot in percent, from which a snapshot is
    /// written; 0 percent: never.
    pub rewrite: (u64, u64),
    /// Number of replicas without which writes are refused, and how long they may be silent.
    pub replicas: (usize, Duration),
    /// Limits of requests.
    pub requests: RequestLimits,
    /// Sizes of packed values. Its seed is not that of any shard.
    limits: Limits,
}

impl Settings {
    /// Settings for the present values.
    pub fn new(version: u64, configuration: &Configuration) -> Self {
        // Every value was checked when it was set, so that it is a number if it has to be one.
        let number = |name: &str| configuration.value(name).parse::<i64>().unwrap_or_default();
        let count = |name: &str| usize::try_from(number(name)).unwrap_or_default();
        let slow_log_ns = match number("slowlog-log-slower-than") {
            ..0 => u64::MAX,
            microseconds => microseconds.unsigned_abs().saturating_mul(1_000),
        };
        let latency_ms = number("latency-monitor-threshold").unsigned_abs();
        let latency_ns = match latency_ms {
            0 => u64::MAX,
            milliseconds => milliseconds.saturating_mul(1_000_000),
        };
        Self {
            version,
            events: events::parse(configuration.value("notify-keyspace-events").as_bytes())
                .unwrap_or_default(),
            access_log_entries: count("acllog-max-len"),
            all_channels: configuration.value("acl-pubsub-default") == "allchannels",
            clients_max: count("maxclients"),
            memory_max: configuration.lowered("maxmemory").filter(|bytes| *bytes > 0),
            eviction: EvictionOptions {
                policy: EvictionPolicy::of(&configuration.value("maxmemory-policy")),
                samples: count("maxmemory-samples"),
                log_factor: u32::try_from(number("lfu-log-factor")).unwrap_or(u32::MAX),
                decay_minutes: u32::try_from(number("lfu-decay-time")).unwrap_or(u32::MAX),
            },
            eviction_time: eviction_time(count("maxmemory-eviction-tenacity")),
            read_keys_max: count("tracking-table-max-keys"),
            idle_s: number("timeout").unsigned_abs(),
            keepalive_s: u32::try_from(number("tcp-keepalive")).unwrap_or_default(),
            slow_log_ns,
            slow_log_entries: count("slowlog-max-len"),
            latency_ms,
            slow_ns: slow_log_ns.min(latency_ns),
            busy_ms: number("busy-reply-threshold").unsigned_abs(),
            policy: policy(&configuration.value("appendfsync")),
            rewrite: (
                number("auto-aof-rewrite-min-size").unsigned_abs(),
                number("auto-aof-rewrite-percentage").unsigned_abs(),
            ),
            replicas: (
                count("min-replicas-to-write"),
                Duration::from_secs(number("min-replicas-max-lag").unsigned_abs()),
            ),
            requests: RequestLimits {
                argument_bytes: count("proto-max-bulk-len"),
                request_bytes: count("client-query-buffer-limit"),
                ..RequestLimits::default()
            },
            limits: Limits {
                text_bytes: count("proto-max-bulk-len"),
                sparse_bytes: count("hll-sparse-max-bytes"),
                hash_entries: count("hash-max-listpack-entries"),
                hash_value_bytes: count("hash-max-listpack-value"),
                set_integers: count("set-max-intset-entries"),
                set_entries: count("set-max-listpack-entries"),
                set_value_bytes: count("set-max-listpack-value"),
                zset_entries: count("zset-max-listpack-entries"),
                zset_value_bytes: count("zset-max-listpack-value"),
                list_node_bytes: list_node_bytes(number("list-max-listpack-size")),
                stream_node_bytes: count("stream-node-max-bytes"),
                stream_node_entries: count("stream-node-max-entries"),
                hash_seed: 0,
            },
        }
    }

    /// Sizes of packed values for a shard that has some already.
    pub fn limits(&self, present: &Limits) -> Limits {
        Limits { hash_seed: present.hash_seed, ..self.limits.clone() }
    }

    /// Commands that add something are refused while more than `maxmemory` is used.
    pub fn refuses(&self) -> bool {
        self.memory_max.is_some() && self.eviction.policy.is_none()
    }

    /// Limits of a client's requests.
    pub fn requests_of(&self, is_authenticated: bool) -> RequestLimits {
        RequestLimits { is_authenticated, ..self.requests }
    }
}

/// How long a command evicts keys, for `maxmemory-eviction-tenacity`, as in Redis: 50 microseconds
/// for each step up to 10, then 15 percent more for each, and without an end at 100.
fn eviction_time(tenacity: usize) -> Option<Duration> {
    match tenacity {
        0..=10 => Some(Duration::from_micros(50 * tenacity as u64)),
        11..=99 => {
            Some(Duration::from_micros((500.0 * 1.15_f64.powi(tenacity as i32 - 10)) as u64))
        }
        _ => None,
    }
}

/// Bytes of a list's node for `list-max-listpack-size`.
fn list_node_bytes(size: i64) -> usize {
    match size {
        0.. => COUNTED_NODE_BYTES,
        code => LIST_NODE_BYTES[(code.unsigned_abs() as usize).min(LIST_NODE_BYTES.len()) - 1],
    }
}

/// Names of policies, as `appendfsync` has them.
const POLICIES: [(&str, Policy); 3] =
    [("always", Policy::Always), ("everysec", Policy::EverySecond), ("no", Policy::Never)];

fn policy(name: &str) -> Policy {
    POLICIES.iter().find(|(one, _)| *one == name).map(|(_, policy)| *policy).unwrap_or_default()
}

/// Name of a policy.
pub fn policy_name(policy: Policy) -> &'static str {
    POLICIES.iter().find(|(_, one)| *one == policy).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn settings_at_the_start_are_the_defaults() {
        let settings = Settings::new(3, &Configuration::new(&Options::default()));
        let limits = Limits::default();
        assert_eq!(settings.limits(&limits), limits);
        assert_eq!(settings.requests, RequestLimits::default());
        assert_eq!((settings.events, settings.slow_ns, settings.version), (0, 10_000_000, 3));
        assert_eq!((settings.clients_max, settings.access_log_entries), (10_000, 128));
    }

    #[test]
    fn values_become_settings() {
        let configuration = Configuration::new(&Options::default());
        let set = |name: &str, value: &str| {
            configuration.set(&[(name.as_bytes(), value.as_bytes())]).expect("a right value");
        };
        set("slowlog-log-slower-than", "-1");
        assert_eq!(Settings::new(1, &configuration).slow_ns, u64::MAX);
        set("latency-monitor-threshold", "3");
        set("list-max-listpack-size", "-5");
        let settings = Settings::new(1, &configuration);
        assert_eq!(settings.slow_ns, 3_000_000);
        assert_eq!(settings.limits(&Limits::default()).list_node_bytes, 65_536);
        assert_eq!([-6, -2, -1, 0, 3].map(list_node_bytes), [65_536, 8_192, 4_096, 8_192, 8_192]);
    }
}
