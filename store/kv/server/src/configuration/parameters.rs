// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All parameters. Those that have no meaning here are listed where clients and test suites ask for
//! them: they keep their default, or are accepted without an effect, each for a reason.

use super::kind::Kind;

/// A parameter of `CONFIG`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// An older name.
    pub alias: Option<&'static str>,
    /// Which values it may have.
    pub kind: Kind,
    /// Its value at the start, unless the options of the server say something else.
    pub default: &'static str,
    /// The effect of another value.
    pub effect: Effect,
}

/// The effect of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is used.
    Used,
    /// Every value is accepted, and none changes what clients see, because of the reason.
    Ignored(&'static str),
    /// Only the value at the start is accepted, because of the reason.
    Fixed(&'static str),
    /// It is used. At most the value at the start is accepted, because of the reason.
    Lowered(&'static str),
    /// It cannot be set while the server runs, as in Redis.
    AtStart,
}

use Effect::{AtStart, Fixed, Ignored, Lowered, Used};

const SAVING: Effect = Ignored("snapshots follow from the size of the log");
const FOLDER: Effect = Fixed("the option `--dir` of the server says it");
const FORMAT: Effect = Ignored("files have a format of their own");
const REPLICA: Effect = Fixed("replicas refuse writes, and serve what they have");
const FROM_FILES: Effect = Ignored("replicas are sent the files of the log");
const CLUSTER: Effect = Fixed("it is chosen when the server starts, for all nodes of a cluster");
const COVERAGE: Effect = Fixed("a node serves its slots, whatever happens to others");
const DEFRAGMENTATION: Effect = Ignored("the allocator joins free blocks by itself");
const FREEING: Effect = Ignored("memory is freed by the worker that owns it");
const SCHEDULE: Effect = Ignored("workers keep time by themselves");
const SUITES: Effect = Fixed("the server chooses among suites with forward secrecy");
const FILES: Effect = Ignored("the server writes no messages to files");

const fn new(name: &'static str, kind: Kind, default: &'static str, effect: Effect) -> Parameter {
    Parameter { name, alias: None, kind, default, effect }
}

const fn with_alias(parameter: Parameter, alias: &'static str) -> Parameter {
    Parameter { alias: Some(alias), ..parameter }
}

const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// Parameters, in the order in which they are shown.
pub const PARAMETERS: &[Parameter] = &[
    // Connections.
    new("port", Kind::SMALL, "0", AtStart),
    new("bind", Kind::Text, "", AtStart),
    new("unixsocket", Kind::Text, "", AtStart),
    new("tls-port", Kind::SMALL, "0", Fixed("ports are chosen when the server starts")),
    new("tls-cert-file", Kind::Text, "", Used),
    new("tls-key-file", Kind::Text, "", Used),
    new("tls-ca-cert-file", Kind::Text, "", Used),
    new("tls-auth-clients", Kind::Word(&["no", "yes", "optional"]), "yes", Used),
    new("tls-protocols", Kind::Text, "", Used),
    new("tls-session-caching", Kind::Switch, "yes", Used),
    new("tls-session-cache-size", Kind::SMALL, "20480", Used),
    new("tls-session-cache-timeout", Kind::SMALL, "300", Fixed("new sessions replace old ones")),
    new("tls-ciphers", Kind::Text, "", SUITES),
    new("tls-ciphersuites", Kind::Text, "", SUITES),
    new("tls-prefer-server-ciphers", Kind::Switch, "no", SUITES),
    new("maxclients", Kind::Integer { least: 1, most: 0xFFFF_FFFF }, "10000", Used),
    new("timeout", Kind::SMALL, "0", Used),
    new("tcp-keepalive", Kind::SMALL, "300", Used),
    new("tcp-backlog", Kind::SMALL, "511", AtStart),
    new("requirepass", Kind::Text, "", Used),
    new("protected-mode", Kind::Switch, "yes", Ignored("the server listens where it was told to")),
    new("proto-max-bulk-len", Kind::Bytes { least: 1 << 20, most: i64::MAX }, "536870912", Used),
    new(
        "client-query-buffer-limit",
        Kind::Bytes { least: 1 << 20, most: i64::MAX },
        "1073741824",
        Used,
    ),
    new(
        "client-output-buffer-limit",
        Kind::Text,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        Ignored("requests of a client wait until it has read its replies"),
    ),
    new("maxmemory-clients", Kind::SIZE, "0", Fixed("connections are not evicted")),
    // The server.
    new("databases", Kind::Integer { least: 1, most: 65_535 }, "16", AtStart),
    new("io-threads", Kind::Integer { least: 1, most: 128 }, "1", AtStart),
    new("daemonize", Kind::Switch, "no", AtStart),
    new("supervised", Kind::Word(&["no", "upstart", "systemd", "auto"]), "no", AtStart),
    new("cluster-enabled", Kind::Switch, "no", AtStart),
    new("cluster-node-timeout", Kind::COUNT, "15000", CLUSTER),
    new("cluster-require-full-coverage", Kind::Switch, "no", COVERAGE),
    new("enable-debug-command", Kind::Word(&["no", "yes", "local"]), "yes", AtStart),
    new("enable-module-command", Kind::Word(&["no", "yes", "local"]), "no", AtStart),
    new("enable-protected-configs", Kind::Word(&["no", "yes", "local"]), "no", AtStart),
    new("hz", Kind::SMALL, "10", SCHEDULE),
    new("dynamic-hz", Kind::Switch, "yes", SCHEDULE),
    new("activerehashing", Kind::Switch, "yes", SCHEDULE),
    new("active-expire-effort", Kind::Integer { least: 1, most: 10 }, "1", SCHEDULE),
    new(
        "loglevel",
        Kind::Word(&["debug", "verbose", "notice", "warning", "nothing"]),
        "notice",
        FILES,
    ),
    new("logfile", Kind::Text, "", AtStart),
    new("dir", Kind::Text, ".", FOLDER),
    new("lua-time-limit", Kind::COUNT, "5000", Used),
    new("busy-reply-threshold", Kind::COUNT, "5000", Used),
    new("notify-keyspace-events", Kind::Events, "", Used),
    new("slowlog-log-slower-than", Kind::Integer { least: -1, most: i64::MAX }, "10000", Used),
    new("slowlog-max-len", Kind::COUNT, "128", Used),
    new("latency-monitor-threshold", Kind::COUNT, "0", Used),
    new("latency-tracking", Kind::Switch, "yes", Fixed("durations are always counted")),
    new("latency-tracking-info-percentiles", Kind::Text, "50 99 99.9", Fixed("they are fixed")),
    new("tracking-table-max-keys", Kind::COUNT, "1000000", Used),
    new("acllog-max-len", Kind::COUNT, "128", Used),
    new("acl-pubsub-default", Kind::Word(&["allchannels", "resetchannels"]), "resetchannels", Used),
    new("aclfile", Kind::Text, "", AtStart),
    // Memory.
    new("maxmemory", Kind::SIZE, "0", Lowered("memory is given when the server starts")),
    new("maxmemory-policy", Kind::Word(POLICIES), "noeviction", Used),
    new("maxmemory-samples", Kind::Integer { least: 1, most: 64 }, "5", Used),
    new("maxmemory-eviction-tenacity", Kind::Integer { least: 0, most: 100 }, "10", Used),
    new("lfu-log-factor", Kind::SMALL, "10", Used),
    new("lfu-decay-time", Kind::SMALL, "1", Used),
    new("activedefrag", Kind::Switch, "no", DEFRAGMENTATION),
    new("active-defrag-threshold-lower", Kind::SMALL, "10", DEFRAGMENTATION),
    new("active-defrag-threshold-upper", Kind::SMALL, "100", DEFRAGMENTATION),
    new("active-defrag-cycle-min", Kind::SMALL, "1", DEFRAGMENTATION),
    new("active-defrag-cycle-max", Kind::SMALL, "25", DEFRAGMENTATION),
    new("active-defrag-ignore-bytes", Kind::SIZE, "104857600", DEFRAGMENTATION),
    new("active-defrag-max-scan-fields", Kind::COUNT, "1000", DEFRAGMENTATION),
    new("lazyfree-lazy-eviction", Kind::Switch, "no", FREEING),
    new("lazyfree-lazy-expire", Kind::Switch, "no", FREEING),
    new("lazyfree-lazy-server-del", Kind::Switch, "no", FREEING),
    new("lazyfree-lazy-user-del", Kind::Switch, "no", FREEING),
    new("lazyfree-lazy-user-flush", Kind::Switch, "no", FREEING),
    // Forms of values.
    with_alias(
        new("hash-max-listpack-entries", Kind::COUNT, "512", Used),
        "hash-max-ziplist-entries",
    ),
    with_alias(new("hash-max-listpack-value", Kind::SIZE, "64", Used), "hash-max-ziplist-value"),
    new("set-max-intset-entries", Kind::COUNT, "512", Used),
    new("set-max-listpack-entries", Kind::COUNT, "128", Used),
    new("set-max-listpack-value", Kind::SIZE, "64", Used),
    with_alias(
        new("zset-max-listpack-entries", Kind::COUNT, "128", Used),
        "zset-max-ziplist-entries",
    ),
    with_alias(new("zset-max-listpack-value", Kind::SIZE, "64", Used), "zset-max-ziplist-value"),
    // Positive sizes are numbers of elements. Only the 8 KiB of such a node divide lists here.
    with_alias(new("list-max-listpack-size", Kind::LIST_NODE, "-2", Used), "list-max-ziplist-size"),
    new("list-compress-depth", Kind::SMALL, "0", Ignored("lists are not compressed")),
    new("stream-node-max-bytes", Kind::SIZE, "4096", Used),
    new("stream-node-max-entries", Kind::COUNT, "100", Used),
    new("hll-sparse-max-bytes", Kind::SIZE, "3000", Used),
    // Persistence and replication.
    new("save", Kind::Text, "", SAVING),
    new("appendonly", Kind::Switch, "no", FOLDER),
    new("appendfsync", Kind::Word(&["everysec", "always", "no"]), "everysec", Used),
    new(
        "no-appendfsync-on-rewrite",
        Kind::Switch,
        "no",
        Ignored("snapshots have their own thread"),
    ),
    new("auto-aof-rewrite-percentage", Kind::SMALL, "100", Used),
    new("auto-aof-rewrite-min-size", Kind::SIZE, "67108864", Used),
    new("aof-use-rdb-preamble", Kind::Switch, "yes", FORMAT),
    new(
        "aof-load-truncated",
        Kind::Switch,
        "yes",
        Fixed("an interrupted write at the end of the log is cut off"),
    ),
    new("appendfilename", Kind::Text, "appendonly.aof", AtStart),
    new("appenddirname", Kind::Text, "appendonlydir", AtStart),
    new("dbfilename", Kind::Text, "dump.rdb", FORMAT),
    new("rdbcompression", Kind::Switch, "yes", FORMAT),
    new("rdbchecksum", Kind::Switch, "yes", AtStart),
    new("rdb-key-save-delay", Kind::Integer { least: i64::MIN, most: i64::MAX }, "0", FORMAT),
    new(
        "stop-writes-on-bgsave-error",
        Kind::Switch,
        "yes",
        Ignored("changes are in the log, whether a snapshot succeeds or not"),
    ),
    new(
        "sanitize-dump-payload",
        Kind::Word(&["no", "yes", "clients"]),
        "yes",
        Ignored("every payload of RESTORE is checked"),
    ),
    with_alias(new("replicaof", Kind::Text, "", AtStart), "slaveof"),
    with_alias(new("replica-read-only", Kind::Switch, "yes", REPLICA), "slave-read-only"),
    with_alias(
        new("replica-serve-stale-data", Kind::Switch, "yes", REPLICA),
        "slave-serve-stale-data",
    ),
    with_alias(
        new("replica-priority", Kind::SMALL, "100", Ignored("no server elects one by it")),
        "slave-priority",
    ),
    with_alias(new("min-replicas-to-write", Kind::SMALL, "0", Used), "min-slaves-to-write"),
    with_alias(new("min-replicas-max-lag", Kind::SMALL, "10", Used), "min-slaves-max-lag"),
    new("masteruser", Kind::Text, "", Used),
    new("masterauth", Kind::Text, "", Used),
    new("repl-timeout", Kind::Integer { least: 1, most: i64::MAX }, "60", Used),
    new("repl-backlog-size", Kind::SIZE, "1048576", FROM_FILES),
    new("repl-diskless-sync", Kind::Switch, "yes", FROM_FILES),
    new("repl-diskless-sync-delay", Kind::SMALL, "5", FROM_FILES),
    new("shutdown-timeout", Kind::SMALL, "10", Ignored("replicas continue from the files later")),
];

/// Position of a parameter by its name or its older name, in any case.
pub fn find(name: &[u8]) -> Option<usize> {
    let is = |one: &str| name.eq_ignore_ascii_case(one.as_bytes());
    PARAMETERS.iter().position(|parameter| is(parameter.name) || parameter.alias.is_some_and(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_in_their_form() {
        for parameter in PARAMETERS {
            let value = parameter.kind.parse(parameter.default.as_bytes());
            assert_eq!(value.as_deref(), Ok(parameter.default), "{}", parameter.name);
        }
    }

    /// The page of all parameters.
    fn page() -> String {
        let mut page = String::from(
            "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->\n# Parameters of the key-value \
             server\n\n`CONFIG GET` shows these parameters, with the names of Redis 7.2, and \
             `CONFIG SET` changes\nthem while the server runs. One that has no meaning here says \
             why: it is either accepted and\nignored, or keeps its value, and every other value \
             is refused.\n\nA test writes this page, with `BLESS=1`.\n\n\
             | parameter | at the start | `CONFIG SET` |\n|---|---|---|\n",
        );
        for Parameter { name, alias, default, effect, .. } in PARAMETERS {
            let names = alias.map_or(format!("`{name}`"), |alias| format!("`{name}`, `{alias}`"));
            let default = match *name {
                "aclfile" | "maxmemory" | "maxmemory-policy" | "port" | "bind" | "unixsocket"
                | "tls-port" | "tls-cert-file" | "tls-key-file" | "tls-ca-cert-file"
                | "tls-auth-clients" => "option of the server".to_owned(),
                _ if default.is_empty() => "empty".to_owned(),
                _ => format!("`{default}`"),
            };
            let effect = match effect {
                Used => "takes effect".to_owned(),
                Ignored(reason) => format!("ignored: {reason}"),
                Fixed(reason) => format!("keeps its value: {reason}"),
                Lowered(reason) => format!("takes effect below the value at the start: {reason}"),
                AtStart => "refused, as by Redis".to_owned(),
            };
            page += &format!("| {names} | {default} | {effect} |\n");
        }
        page
    }

    #[test]
    fn the_page_of_parameters_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/kv-parameters.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, page()).expect("the page is written");
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(text, page(), "BLESS=1 writes the page");
    }

    #[test]
    fn names_are_different() {
        for (at, parameter) in PARAMETERS.iter().enumerate() {
            assert_eq!(find(parameter.name.to_ascii_uppercase().as_bytes()), Some(at));
            let alias = parameter.alias.unwrap_or(parameter.name);
            assert_eq!(find(alias.as_bytes()), Some(at), "{alias}");
        }
        assert_eq!(find(b"nosuch"), None);
    }
}
