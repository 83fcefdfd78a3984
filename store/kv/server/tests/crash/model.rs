// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of the keys of one client: as its requests have left them, or as a server has them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freeport_kv_protocol::resp::Value;

use super::step::{COUNTERS, Request, STREAM_ENTRIES, Step};
use crate::functions::mix;

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    List(VecDeque<String>),
    Hash(BTreeMap<String, String>),
    /// A number of the members is gone, but not known which.
    Set {
        members: BTreeSet<String>,
        taken: usize,
    },
    Sorted(BTreeMap<String, i64>),
    /// Entries with their identifiers, if those are known.
    Stream(VecDeque<(Option<String>, String)>),
}

/// Earliest and latest time at which something may have happened, in milliseconds of the Unix
/// epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub earliest_ms: u64,
    pub latest_ms: u64,
}

/// A value with the time of its expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub content: Content,
    pub expires: Option<Times>,
}

/// The acknowledged state of a client's keys.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub entries: BTreeMap<String, Entry>,
    /// Acknowledged additions to each counter of all clients.
    pub counted: [i64; COUNTERS],
    /// The highest value of each that was seen.
    pub seen: [i64; COUNTERS],
}

impl Model {
    /// Executes a request. A reply has to be the expected one, and says what the server has chosen.
    ///
    /// # Errors
    /// The reply is another one.
    pub fn execute(
        &mut self,
        request: &Request,
        reply: Option<&Value>,
        times: Times,
    ) -> Result<(), String> {
        let steps = request.steps();
        let replies: Vec<Option<&Value>> = match (request, reply) {
            (_, None) => vec![None; steps.len()],
            (Request::One(_), Some(reply)) => vec![Some(reply)],
            (_, Some(Value::Array(replies))) if replies.len() == steps.len() => {
                replies.iter().map(Some).collect()
            }
            (_, Some(other)) => return Err(unexpected(&format!("{steps:?}"), other)),
        };
        steps.iter().zip(replies).try_for_each(|(step, reply)| self.step(step, reply, times))
    }

    fn step(&mut self, step: &Step, reply: Option<&Value>, times: Times) -> Result<(), String> {
        let expected = match step {
            Step::TakeAny { key } => return self.take_any(key, reply),
            Step::Entry { key, text } => return self.entry(key, text, reply),
            Step::Count { counter } => return self.count(*counter, reply),
            Step::Look { counter } => return self.look(*counter, reply),
            step => self.known(step, times),
        };
        match reply {
            Some(reply) if *reply != expected && !is_error_of_script(reply, &expected) => {
                Err(format!("{}; expected: {expected}", unexpected(&format!("{step:?}"), reply)))
            }
            _ => Ok(()),
        }
    }

    /// Executes a command whose effects depend on nothing else; returns its reply.
    fn known(&mut self, step: &Step, times: Times) -> Value {
        match step {
            Step::Set { key, text } => self.set(key, text, None),
            Step::SetPair { keys, text } => {
                self.set(&keys[0], text, None);
                self.set(&keys[1], text, None)
            }
            Step::SetExpiring { key, text, ms } => {
                let Times { earliest_ms, latest_ms } = times;
                let expires = Times { earliest_ms: earliest_ms + ms, latest_ms: latest_ms + ms };
                self.set(key, text, Some(expires))
            }
            Step::Append { key, text } => {
                let whole = text_of(self.content(key, Content::Text(String::new())));
                whole.push_str(text);
                integer(whole.len())
            }
            Step::Mix { key, by } => {
                let Some(entry) = self.entries.get_mut(key) else { return Value::Null };
                let text = text_of(&mut entry.content);
                *text = text.bytes().map(|letter| char::from(mix(letter, *by))).collect();
                Value::Status(b"OK".to_vec())
            }
            Step::Increase { key } => {
                let digits = text_of(self.content(key, Content::Text("0".into())));
                let number = digits.parse::<i64>().expect("only numbers are there") + 1;
                *digits = number.to_string();
                Value::Integer(number)
            }
            Step::Push { key, text } => {
                let list = list_of(self.content(key, Content::List(VecDeque::new())));
                list.push_front(text.clone());
                integer(list.len())
            }
            Step::Pop { key } => {
                let list = list_of(self.content(key, Content::List(VecDeque::new())));
                let text = list.pop_back();
                self.remove_empty(key);
                text.map_or(Value::Null, |text| Value::Bulk(text.into()))
            }
            Step::SetField { key, field, text } => {
                let hash = hash_of(self.content(key, Content::Hash(BTreeMap::new())));
                integer(usize::from(hash.insert(field.clone(), text.clone()).is_none()))
            }
            Step::RemoveField { key, field } => {
                let hash = hash_of(self.content(key, Content::Hash(BTreeMap::new())));
                let removed = hash.remove(field).is_some();
                self.remove_empty(key);
                integer(usize::from(removed))
            }
            Step::Add { key, member } => {
                let empty = Content::Set { members: BTreeSet::new(), taken: 0 };
                let (members, _) = set_of(self.content(key, empty));
                integer(usize::from(members.insert(member.clone())))
            }
            Step::Score { key, member, by } => {
                let scores = match self.content(key, Content::Sorted(BTreeMap::new())) {
                    Content::Sorted(scores) => scores,
                    other => panic!("{other:?} is no sorted set"),
                };
                let score = scores.entry(member.clone()).or_default();
                *score += by;
                Value::Bulk(score.to_string().into())
            }
            Step::Delete { key } => integer(usize::from(self.entries.remove(key).is_some())),
            Step::Rename { from, to } => match self.entries.remove(from) {
                Some(entry) => {
                    self.entries.insert(to.clone(), entry);
                    Value::Status(b"OK".to_vec())
                }
                None => Value::Error(b"ERR no such key".to_vec()),
            },
            Step::Move { from, to } => {
                let source = list_of(self.content(from, Content::List(VecDeque::new())));
                let moved = source.pop_back();
                self.remove_empty(from);
                let Some(text) = moved else { return Value::Null };
                let target = list_of(self.content(to, Content::List(VecDeque::new())));
                target.push_front(text.clone());
                Value::Bulk(text.into())
            }
            Step::TakeAny { .. } | Step::Entry { .. } | Step::Count { .. } | Step::Look { .. } => {
                unreachable!("the server chooses what these do")
            }
        }
    }

    fn set(&mut self, key: &str, text: &str, expires: Option<Times>) -> Value {
        let entry = Entry { content: Content::Text(text.into()), expires };
        self.entries.insert(key.into(), entry);
        Value::Status(b"OK".to_vec())
    }

    fn take_any(&mut self, key: &str, reply: Option<&Value>) -> Result<(), String> {
        let empty = Content::Set { members: BTreeSet::new(), taken: 0 };
        let (members, taken) = set_of(self.content(key, empty));
        let is_right = match reply {
            None if members.len() > *taken => {
                *taken += 1;
                true
            }
            None => true,
            Some(Value::Bulk(member)) => members.remove(&text(member)),
            Some(other) => *other == Value::Null && members.is_empty(),
        };
        self.remove_empty(key);
        if is_right { Ok(()) } else { Err(unexpected(&format!("SPOP {key}"), reply)) }
    }

    fn entry(&mut self, key: &str, text: &str, reply: Option<&Value>) -> Result<(), String> {
        let identifier = match reply {
            None => None,
            Some(Value::Bulk(identifier)) => Some(self::text(identifier)),
            Some(other) => return Err(unexpected(&format!("XADD {key}"), other)),
        };
        let entries = match self.content(key, Content::Stream(VecDeque::new())) {
            Content::Stream(entries) => entries,
            other => panic!("{other:?} is no stream"),
        };
        entries.push_back((identifier, text.into()));
        if entries.len() > STREAM_ENTRIES {
            entries.pop_front();
        }
        Ok(())
    }

    /// Additions without a reply are counted elsewhere.
    fn count(&mut self, counter: usize, reply: Option<&Value>) -> Result<(), String> {
        match reply {
            None => {}
            Some(Value::Integer(number)) => {
                self.counted[counter] += 1;
                self.seen[counter] = self.seen[counter].max(*number);
            }
            Some(other) => return Err(unexpected("INCR of a counter", other)),
        }
        Ok(())
    }

    fn look(&mut self, counter: usize, reply: Option<&Value>) -> Result<(), String> {
        let number = match reply {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Bulk(digits)) => text(digits).parse().expect("a counter is a number"),
            Some(other) => return Err(unexpected("GET of a counter", other)),
        };
        self.seen[counter] = self.seen[counter].max(number);
        Ok(())
    }

    fn content(&mut self, key: &str, empty: Content) -> &mut Content {
        let new = || Entry { content: empty, expires: None };
        &mut self.entries.entry(key.into()).or_insert_with(new).content
    }

    fn remove_empty(&mut self, key: &str) {
        let is_empty = self.entries.get(key).is_some_and(|entry| match &entry.content {
            Content::List(list) => list.is_empty(),
            Content::Hash(hash) => hash.is_empty(),
            Content::Set { members, taken } => members.len() == *taken,
            Content::Text(_) | Content::Sorted(_) | Content::Stream(_) => false,
        });
        if is_empty {
            self.entries.remove(key);
        }
    }
}

impl Entry {
    /// Whether a server may have the other entry for this one.
    pub fn agrees(&self, seen: &Self) -> bool {
        let contents_agree = match (&self.content, &seen.content) {
            (Content::Set { members, taken }, Content::Set { members: seen, .. }) => {
                seen.len() + taken == members.len() && seen.is_subset(members)
            }
            (Content::Stream(entries), Content::Stream(seen)) => {
                let pairs = entries.iter().zip(seen);
                let mut agree = pairs.map(|((id, text), (seen_id, seen_text))| {
                    text == seen_text && (id.is_none() || id == seen_id)
                });
                entries.len() == seen.len() && agree.all(|agrees| agrees)
            }
            (one, other) => one == other,
        };
        let expiries_agree = match (self.expires, seen.expires) {
            (None, None) => true,
            (Some(expected), Some(seen)) => {
                expected.earliest_ms <= seen.earliest_ms && seen.latest_ms <= expected.latest_ms
            }
            _ => false,
        };
        contents_agree && expiries_agree
    }
}

fn text_of(content: &mut Content) -> &mut String {
    match content {
        Content::Text(text) => text,
        other => panic!("{other:?} is no string"),
    }
}

fn list_of(content: &mut Content) -> &mut VecDeque<String> {
    match content {
        Content::List(list) => list,
        other => panic!("{other:?} is no list"),
    }
}

fn hash_of(content: &mut Content) -> &mut BTreeMap<String, String> {
    match content {
        Content::Hash(hash) => hash,
        other => panic!("{other:?} is no hash"),
    }
}

fn set_of(content: &mut Content) -> (&mut BTreeSet<String>, &mut usize) {
    match content {
        Content::Set { members, taken } => (members, taken),
        other => panic!("{other:?} is no set"),
    }
}

/// Bytes of a reply, which clients here have written as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn integer(number: usize) -> Value {
    Value::Integer(i64::try_from(number).expect("lengths are small"))
}

fn is_error_of_script(reply: &Value, expected: &Value) -> bool {
    matches!((reply, expected), (Value::Bulk(text), Value::Error(error)) if text == error)
}

fn unexpected(what: &str, reply: impl std::fmt::Debug) -> String {
    let (what, reply) = (format!("{what:.300}"), format!("{reply:?}"));
    format!("{what}: unexpected reply {reply:.300}")
}
