// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and answers of etcd as JSON. Keys and values are base64, and numbers of 64 bits are
//! texts. Fields with their default value are missing.

use freeport_kv_protocol::base64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Begin of every answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(deserialize_with = "number")]
    pub(super) revision: u64,
}

/// A key with its value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: u64,
}

/// Keys of a range.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RangeAnswer {
    pub(super) kvs: Vec<KeyValue>,
}

/// Result of a transaction.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TxnAnswer {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    responses: Vec<OperationAnswer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OperationAnswer {
    response_range: RangeAnswer,
}

impl TxnAnswer {
    /// All keys that the transaction has read.
    pub(super) fn keys(&self) -> impl Iterator<Item = &KeyValue> {
        self.responses.iter().flat_map(|response| &response.response_range.kvs)
    }
}

/// A new lease.
#[derive(Debug, Deserialize)]
pub(super) struct GrantAnswer {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub(super) id: u64,
}

/// A session of a user.
#[derive(Debug, Deserialize)]
pub(super) struct AuthenticateAnswer {
    pub(super) token: String,
}

/// A message of a watch: a result or an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchMessage {
    pub(super) result: Option<WatchResult>,
    pub(super) error: Option<Value>,
}

/// Changes that a watch has seen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchResult {
    pub(super) canceled: bool,
    pub(super) cancel_reason: String,
    pub(super) events: Vec<Event>,
}

/// A change of a key.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) r#type: EventKind,
    pub(super) kv: KeyValue,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum EventKind {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}

/// An answer with another status than success.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    /// Number of gRPC.
    pub(super) code: u32,
    message: String,
    /// The name of the message in older versions.
    error: String,
}

impl Refusal {
    /// The words of etcd.
    pub(super) fn words(&self) -> &str {
        if self.message.is_empty() { &self.error } else { &self.message }
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Text(String),
        Number(u64),
    }
    match Number::deserialize(deserializer)? {
        Number::Text(text) => text.parse().map_err(D::Error::custom),
        Number::Number(number) => Ok(number),
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(vec![]);
    }
    let length = base64::decoded_bytes(text.as_bytes());
    let mut decoded = vec![0; length.ok_or_else(|| D::Error::custom("a text is no base64"))?];
    base64::decode(text.as_bytes(), &mut decoded);
    Ok(decoded)
}

fn text(bytes: &[u8]) -> Value {
    let mut text = vec![];
    base64::push(&mut text, bytes);
    Value::String(text.into_iter().map(char::from).collect())
}

/// The condition that a key was changed last at a revision; 0: that it is missing.
pub(super) fn is_at(key: &str, revision: u64) -> Value {
    json!({
        "target": "MOD", "result": "EQUAL",
        "key": text(key.as_bytes()), "mod_revision": revision.to_string(),
    })
}

/// The operation that reads a key.
pub(super) fn get(key: &str) -> Value {
    json!({"request_range": {"key": text(key.as_bytes())}})
}

/// The operation that reads all keys with a prefix.
pub(super) fn get_all(prefix: &str) -> Value {
    json!({"request_range": {"key": text(prefix.as_bytes()), "range_end": text(&end_of(prefix))}})
}

/// The operation that stores a value, which vanishes with its lease if it has one.
pub(super) fn put(key: &str, value: &[u8], lease: Option<u64>) -> Value {
    let lease = lease.unwrap_or_default().to_string();
    json!({"request_put": {"key": text(key.as_bytes()), "value": text(value), "lease": lease}})
}

/// The operation that removes a key.
pub(super) fn delete(key: &str) -> Value {
    json!({"request_delete_range": {"key": text(key.as_bytes())}})
}

/// A transaction: if all conditions hold, the first operations, otherwise the others.
pub(super) fn txn(conditions: Vec<Value>, then: Vec<Value>, otherwise: Vec<Value>) -> Value {
    json!({"compare": conditions, "success": then, "failure": otherwise})
}

/// The request for changes of all keys with a prefix since a revision.
pub(super) fn watch(prefix: &str, first: u64) -> Value {
    json!({"create_request": {
        "key": text(prefix.as_bytes()), "range_end": text(&end_of(prefix)),
        "start_revision": first.to_string(),
    }})
}

/// The first key behind all those with a prefix, which ends with a slash.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
