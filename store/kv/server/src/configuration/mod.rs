// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters that `CONFIG` shows and changes.
//!
//! Values are texts in one form, under a lock. Each change gives them a new version. A worker
//! compares it once a turn, and derives its [`Settings`], so that no command takes the lock.

pub mod events;
mod kind;
mod parameters;
mod settings;
mod tls;

use std::sync::{Arc, PoisonError, RwLock};

use freeport_kv_types::pattern::matches_ignoring_case;

use crate::options::{Bind, Options};
pub use parameters::{Effect, PARAMETERS, Parameter};
pub use settings::Settings;

use crate::tls::Tls;

/// Values of all parameters.
#[derive(Debug)]
pub struct Configuration {
    values: RwLock<Vec<String>>,
    /// Values at the start, which some parameters keep.
    initial: Vec<String>,
    /// Encrypted connections, if clients can make some.
    pub tls: Option<Arc<Tls>>,
}

/// Why `CONFIG SET` has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such parameter.
    Unknown(String),
    /// The value of a parameter was refused.
    Value {
        /// The parameter, as it was named.
        name: String,
        /// Why.
        reason: String,
    },
}

impl Configuration {
    /// Values at the start of a server.
    pub fn new(options: &Options) -> Self {
        let initial: Vec<String> =
            PARAMETERS.iter().map(|parameter| initial(parameter, options)).collect();
        Self { values: RwLock::new(initial.clone()), initial, tls: None }
    }

    /// Names and values of the parameters whose names match one of several patterns. A name that
    /// is no pattern is found as it is written.
    pub fn matching(&self, patterns: &[&[u8]]) -> Vec<(String, String)> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = vec![];
        let (patterns, names): (Vec<&[u8]>, Vec<&[u8]>) =
            patterns.iter().partition(|pattern| pattern.iter().any(|byte| b"*?[".contains(byte)));
        for name in names {
            if let Some(at) = parameters::find(name) {
                found.push((String::from_utf8_lossy(name).into_owned(), values[at].clone()));
            }
        }
        for (parameter, value) in PARAMETERS.iter().zip(values.iter()) {
            for name in [Some(parameter.name), parameter.alias].into_iter().flatten() {
                let matches = |pattern: &&[u8]| matches_ignoring_case(pattern, name.as_bytes());
                let is_known = || found.iter().any(|(one, _)| one.eq_ignore_ascii_case(name));
                if patterns.iter().any(matches) && !is_known() {
                    found.push((name.to_owned(), value.clone()));
                }
            }
        }
        found
    }

    /// The value of a parameter; empty if there is none.
    pub fn value(&self, name: &str) -> String {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        parameters::find(name.as_bytes()).map(|at| values[at].clone()).unwrap_or_default()
    }

    /// The number of a parameter, if it is less than at the start.
    pub fn lowered(&self, name: &str) -> Option<u64> {
        let at = parameters::find(name.as_bytes())?;
        let value = number(&self.value(name));
        (value < number(&self.initial[at])).then_some(value.unsigned_abs())
    }

    /// Sets several parameters, all or none.
    ///
    /// # Errors
    /// The first reason to set none.
    pub fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<(), Refusal> {
        let mut changes: Vec<(usize, String)> = vec![];
        for (name, text) in pairs {
            let shown = || String::from_utf8_lossy(name).into_owned();
            let refuse = |reason: String| Refusal::Value { name: shown(), reason };
            let at = parameters::find(name).ok_or_else(|| Refusal::Unknown(shown()))?;
            let parameter = &PARAMETERS[at];
            if parameter.effect == Effect::AtStart {
                return Err(refuse("can't set immutable config".into()));
            }
            if changes.iter().any(|(other, _)| *other == at) {
                return Err(refuse("duplicate parameter".into()));
            }
            let value = parameter.kind.parse(text).map_err(refuse)?;
            if let Effect::Fixed(reason) = parameter.effect
                && value != self.initial[at]
            {
                let only = match self.initial[at].as_str() {
                    "" => "an empty value",
                    value => value,
                };
                return Err(refuse(format!("{reason}, so only {only} is accepted")));
            }
            if let Effect::Lowered(reason) = parameter.effect
                && number(&value) > number(&self.initial[at])
            {
                let most = &self.initial[at];
                return Err(refuse(format!("{reason}, so at most {most} is accepted")));
            }
            changes.push((at, value));
        }
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        self.renew_tls(&changes, &values)?;
        for (at, value) in changes {
            // Two names of one limit, neither of which is older.
            let twin = match PARAMETERS[at].name {
                "lua-time-limit" => parameters::find(b"busy-reply-threshold"),
                "busy-reply-threshold" => parameters::find(b"lua-time-limit"),
                _ => None,
            };
            twin.into_iter().for_each(|twin| values[twin] = value.clone());
            values[at] = value;
        }
        Ok(())
    }
}

/// The number that a checked value of its kind is.
fn number(value: &str) -> i64 {
    value.parse().unwrap_or_default()
}

/// Value of a parameter at the start.
fn initial(parameter: &Parameter, options: &Options) -> String {
    let addresses = || {
        options.resp.iter().filter_map(|bind| match bind {
            Bind::Tcp(address) => Some(*address),
            Bind::Unix(_) | Bind::Fabric(_) => None,
        })
    };
    match parameter.name {
        "port" => addresses().next().map_or(0, |address| address.port()).to_string(),
        "bind" => addresses().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" "),
        "unixsocket" => {
            let path = options.resp.iter().find_map(|bind| match bind {
                Bind::Unix(path) => Some(path.display().to_string()),
                Bind::Tcp(_) | Bind::Fabric(_) => None,
            });
            path.unwrap_or_default()
        }
        name if name.starts_with("tls-") => tls::initial(parameter, options),
        "maxclients" => options.clients_max.to_string(),
        "masteruser" => options.replication.user.clone(),
        "masterauth" => options.replication.password.clone(),
        "min-replicas-to-write" => options.replication.min_replicas.to_string(),
        "min-replicas-max-lag" => options.replication.max_lag.as_secs().to_string(),
        "repl-timeout" => options.replication.timeout.as_secs().max(1).to_string(),
        "replicaof" => {
            let follows = options.replication.follows.as_ref();
            follows.map_or(String::new(), |it| format!("{} {}", it.host, it.port))
        }
        "databases" => options.databases.to_string(),
        "io-threads" => options.workers.to_string(),
        "aclfile" => {
            options.access_file.as_ref().map_or(String::new(), |it| it.display().to_string())
        }
        "maxmemory-policy" => options.eviction.map_or("noeviction", |it| it.name()).to_owned(),
        "maxmemory" => options.memory_bytes.to_string(),
        "cluster-enabled" if options.cluster.is_some() => "yes".to_owned(),
        "cluster-node-timeout" => match &options.cluster {
            Some(cluster) => cluster.timeout.as_millis().to_string(),
            None => parameter.default.to_owned(),
        },
        "appendonly" if options.persistence.is_some() => "yes".to_owned(),
        "appendfsync" => {
            let policy = options.persistence.as_ref().map(|persistence| persistence.policy);
            policy.map_or(parameter.default, settings::policy_name).to_owned()
        }
        "dir" => match &options.persistence {
            Some(persistence) => persistence.folder.display().to_string(),
            None => parameter.default.to_owned(),
        },
        _ => parameter.default.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(configuration: &Configuration, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let pairs: Vec<_> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        match configuration.set(&pairs).expect_err("it is refused") {
            Refusal::Unknown(name) => format!("unknown {name}"),
            Refusal::Value { name, reason } => format!("{name}: {reason}"),
        }
    }

    #[test]
    fn several_parameters_are_set_all_or_none() {
        let configuration = Configuration::new(&Options::default());
        let slow = "slowlog-max-len";
        assert_eq!(refused(&configuration, "slowlog-max-len 7 nosuch 1"), "unknown nosuch");
        assert_eq!(configuration.value(slow), "128");
        assert_eq!(refused(&configuration, "hz 1 HZ 2"), "HZ: duplicate parameter");
        configuration.set(&[(b"SlowLog-Max-Len", b"7"), (b"hz", b"3")]).expect("both are right");
        assert_eq!(
            (configuration.value(slow), configuration.value("hz")),
            ("7".into(), "3".into())
        );
        configuration.set(&[(b"lua-time-limit", b"9")]).expect("it is right");
        assert_eq!(configuration.value("busy-reply-threshold"), "9");
    }

    #[test]
    fn a_parameter_without_a_meaning_keeps_its_value() {
        let configuration = Configuration::new(&Options::default());
        let text = "tls-port: ports are chosen when the server starts, so only 0 is accepted";
        assert_eq!(refused(&configuration, "tls-port 60"), text);
        configuration.set(&[(b"tls-port", b"0")]).expect("it is the present value");
        let text = "databases: can't set immutable config";
        assert_eq!(refused(&configuration, "databases 16"), text);
        assert_eq!(configuration.value("maxmemory"), (1 << 30).to_string());
    }

    #[test]
    fn older_names_are_found_by_patterns() {
        let configuration = Configuration::new(&Options::default());
        let names = |patterns: &[&[u8]]| -> Vec<String> {
            configuration.matching(patterns).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(&[b"HASH-max-*-value"]),
            ["hash-max-listpack-value", "hash-max-ziplist-value"]
        );
        assert_eq!(names(&[b"HZ", b"h?"]), ["HZ"]);
        assert!(names(&[b"none"]).is_empty());
        assert_eq!(names(&[b"*"]).len(), names(&[b"*", b"hz"]).len());
    }
}
