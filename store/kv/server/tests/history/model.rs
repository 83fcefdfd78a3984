// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server as one client at a time sees it: the meaning of a few commands on a few keys, with
//! transactions, scripts and `WATCH`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freeport_kv_protocol::resp::Value;
use freeport_testbed::history::Model;

use crate::functions::{mix, polynomial};

/// Names of the keys, each of another worker if there are four.
pub const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Number of a key.
pub type Key = usize;

/// A command on values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Get(Key),
    Set(Key, String),
    Incr(Key),
    Append(Key, String),
    Del(Key),
    GetSet(Key, String),
    LPush(Key, String),
    LPop(Key),
    LRange(Key),
    MSet(Vec<(Key, String)>),
    MGet(Vec<Key>),
    Rename(Key, Key),
    /// A function of a user on all letters of a text.
    Mix(Key, u8),
    /// A function of a user that folds all letters.
    Fold(Key),
}

/// A request of a client, which takes effect at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A command.
    Command(Command),
    /// Commands between `MULTI` and `EXEC`.
    Exec(Vec<Command>),
    /// Commands of a script.
    Eval(Vec<Command>),
    /// `WATCH`.
    Watch(Vec<Key>),
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content {
    Text(String),
    List(VecDeque<String>),
}

/// Keys that a client watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Watch {
    keys: BTreeSet<Key>,
    is_broken: bool,
}

/// All that later replies depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    values: BTreeMap<Key, Content>,
    watches: BTreeMap<usize, Watch>,
}

impl Command {
    /// Words of the request.
    pub fn words(&self) -> Vec<String> {
        let words = |name: &str, keys: &[Key], rest: &[&str]| {
            let keys = keys.iter().map(|key| KEYS[*key]);
            std::iter::once(name)
                .chain(keys)
                .chain(rest.iter().copied())
                .map(str::to_owned)
                .collect()
        };
        match self {
            Self::Get(key) => words("GET", &[*key], &[]),
            Self::Set(key, value) => words("SET", &[*key], &[value]),
            Self::Incr(key) => words("INCR", &[*key], &[]),
            Self::Append(key, value) => words("APPEND", &[*key], &[value]),
            Self::Del(key) => words("DEL", &[*key], &[]),
            Self::GetSet(key, value) => words("GETSET", &[*key], &[value]),
            Self::LPush(key, value) => words("LPUSH", &[*key], &[value]),
            Self::LPop(key) => words("LPOP", &[*key], &[]),
            Self::LRange(key) => words("LRANGE", &[*key], &["0", "-1"]),
            Self::MSet(pairs) => {
                let pairs = pairs.iter().flat_map(|(key, value)| [KEYS[*key], value]);
                std::iter::once("MSET").chain(pairs).map(str::to_owned).collect()
            }
            Self::MGet(keys) => words("MGET", keys, &[]),
            Self::Rename(from, to) => words("RENAME", &[*from, *to], &[]),
            Self::Mix(key, by) => {
                let rest = ["mix", "u8", "DELTA", &by.to_string(), "RETURN"];
                words("KV.UPDATEV", &[*key], &rest)
            }
            Self::Fold(key) => words("KV.REDUCE", &[*key], &["polynomial", "u8", "0"]),
        }
    }

    /// Keys that it names.
    pub fn keys(&self) -> Vec<Key> {
        match self {
            Self::Get(key)
            | Self::Set(key, _)
            | Self::Incr(key)
            | Self::Append(key, _)
            | Self::Del(key)
            | Self::GetSet(key, _)
            | Self::LPush(key, _)
            | Self::LPop(key)
            | Self::LRange(key)
            | Self::Mix(key, _)
            | Self::Fold(key) => vec![*key],
            Self::MSet(pairs) => pairs.iter().map(|(key, _)| *key).collect(),
            Self::MGet(keys) => keys.clone(),
            Self::Rename(from, to) => vec![*from, *to],
        }
    }

    /// It changes nothing, whatever the keys have.
    fn only_reads(&self) -> bool {
        matches!(self, Self::Get(_) | Self::LRange(_) | Self::MGet(_) | Self::Fold(_))
    }
}

/// An operation of a history.
pub type Operation = freeport_testbed::history::Operation<State>;

impl Model for State {
    type Call = Call;
    type Reply = Value;

    fn only_reads(call: &Call) -> bool {
        match call {
            Call::Command(command) => command.only_reads(),
            Call::Eval(commands) => commands.iter().all(Command::only_reads),
            // The end of a transaction is the end of `WATCH`.
            Call::Exec(_) | Call::Watch(_) => false,
        }
    }

    fn apply(&mut self, client: usize, call: &Call) -> Value {
        match call {
            Call::Command(command) => self.execute(command),
            Call::Watch(keys) => {
                self.watches.entry(client).or_default().keys.extend(keys);
                ok()
            }
            Call::Exec(commands) => match self.watches.remove(&client) {
                Some(watch) if watch.is_broken => Value::Null,
                _ => Value::Array(commands.iter().map(|command| self.execute(command)).collect()),
            },
            // The script returns errors as strings.
            Call::Eval(commands) => {
                let replies = commands.iter().map(|command| match self.execute(command) {
                    Value::Error(text) => Value::Bulk(text),
                    other => other,
                });
                Value::Array(replies.collect())
            }
        }
    }
}

impl State {
    fn execute(&mut self, command: &Command) -> Value {
        self.run(command).unwrap_or_else(|text| Value::Error(text.into()))
    }

    fn run(&mut self, command: &Command) -> Result<Value, &'static str> {
        Ok(match command {
            Command::Get(key) => bulk(self.text(*key)?),
            Command::Set(key, value) => {
                self.put(*key, Content::Text(value.clone()));
                ok()
            }
            Command::Incr(key) => {
                const NO_NUMBER: &str = "ERR value is not an integer or out of range";
                let number = self.text(*key)?.unwrap_or("0").parse::<i64>();
                let number = number.map_err(|_| NO_NUMBER)?.checked_add(1).ok_or(NO_NUMBER)?;
                self.put(*key, Content::Text(number.to_string()));
                Value::Integer(number)
            }
            Command::Append(key, value) => {
                let text = self.text(*key)?.unwrap_or_default().to_owned() + value;
                let length = text.len();
                self.put(*key, Content::Text(text));
                Value::Integer(length as i64)
            }
            Command::Del(key) => Value::Integer(i64::from(self.take(*key).is_some())),
            Command::GetSet(key, value) => {
                let before = bulk(self.text(*key)?);
                self.put(*key, Content::Text(value.clone()));
                before
            }
            Command::LPush(key, value) => {
                let mut list = self.list(*key)?.cloned().unwrap_or_default();
                list.push_front(value.clone());
                let length = list.len();
                self.put(*key, Content::List(list));
                Value::Integer(length as i64)
            }
            Command::LPop(key) => {
                let Some(mut list) = self.list(*key)?.cloned() else { return Ok(Value::Null) };
                let element = list.pop_front();
                self.put(*key, Content::List(list));
                bulk(element.as_deref())
            }
            Command::LRange(key) => {
                let elements = self.list(*key)?.into_iter().flatten();
                Value::Array(elements.map(|element| bulk(Some(element))).collect())
            }
            Command::MSet(pairs) => {
                for (key, value) in pairs {
                    self.put(*key, Content::Text(value.clone()));
                }
                ok()
            }
            Command::MGet(keys) => {
                let text = |key: &Key| bulk(self.text(*key).ok().flatten());
                Value::Array(keys.iter().map(text).collect())
            }
            Command::Rename(from, to) => {
                let content = self.take(*from).ok_or("ERR no such key")?;
                self.put(*to, content);
                ok()
            }
            Command::Mix(key, by) => {
                let Some(text) = self.text(*key)? else { return Ok(Value::Null) };
                let before = bulk(Some(text));
                let letters = text.bytes().map(|letter| char::from(mix(letter, *by))).collect();
                self.put(*key, Content::Text(letters));
                before
            }
            Command::Fold(key) => {
                let Some(text) = self.text(*key)? else { return Ok(Value::Null) };
                let sigma = text.bytes().fold(0, |sigma, letter| polynomial(letter, sigma));
                bulk(Some(&sigma.to_string()))
            }
        })
    }

    fn text(&self, key: Key) -> Result<Option<&str>, &'static str> {
        match self.values.get(&key) {
            Some(Content::List(_)) => Err(WRONG_TYPE),
            Some(Content::Text(text)) => Ok(Some(text)),
            None => Ok(None),
        }
    }

    fn list(&self, key: Key) -> Result<Option<&VecDeque<String>>, &'static str> {
        match self.values.get(&key) {
            Some(Content::Text(_)) => Err(WRONG_TYPE),
            Some(Content::List(list)) => Ok(Some(list)),
            None => Ok(None),
        }
    }

    fn put(&mut self, key: Key, content: Content) {
        self.touch(key);
        match content {
            Content::List(list) if list.is_empty() => self.values.remove(&key),
            content => self.values.insert(key, content),
        };
    }

    fn take(&mut self, key: Key) -> Option<Content> {
        let content = self.values.remove(&key)?;
        self.touch(key);
        Some(content)
    }

    /// Those that watch a key are told.
    fn touch(&mut self, key: Key) {
        for watch in self.watches.values_mut() {
            watch.is_broken |= watch.keys.contains(&key);
        }
    }
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn ok() -> Value {
    Value::Status(b"OK".to_vec())
}

fn bulk(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Bulk(text.into()))
}
