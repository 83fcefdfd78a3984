// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of a map as JSON, for scripts.

use super::Dump;
use crate::Contents;
use freeport_ebpf::object::Datum;
use serde_json::{Value, json};

/// Formats bytes as bpftool's JSON does.
pub fn bytes_json(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:#04x}")).collect()
}

impl Dump<'_> {
    /// Formats the contents as bpftool's JSON does; returns null if the map cannot be listed.
    pub fn as_json(&self) -> Value {
        match self.contents {
            Contents::Entries(entries) => {
                entries.iter().map(|(key, value)| self.entry_json(key, value)).collect()
            }
            Contents::Items(items) => items.iter().map(|item| self.item_json(item)).collect(),
            Contents::Opaque => Value::Null,
        }
    }

    /// Formats an entry: its bytes, and their decoded values if the object has types.
    pub fn entry_json(&self, key: &[u8], value: &[u8]) -> Value {
        let mut entry = json!({ "key": bytes_json(key), "value": bytes_json(value) });
        if let (Some(key), Some(value)) = (self.key(key), self.value(value)) {
            entry["formatted"] = json!({ "key": datum_json(&key), "value": datum_json(&value) });
        }
        entry
    }

    fn item_json(&self, item: &[u8]) -> Value {
        let mut value = json!({ "value": bytes_json(item) });
        if let Some(datum) = self.value(item) {
            value["formatted"] = json!({ "value": datum_json(&datum) });
        }
        value
    }
}

fn datum_json(datum: &Datum) -> Value {
    match datum {
        // A number that does not fit a JSON number becomes a string.
        Datum::Unsigned(number) => {
            u64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        Datum::Signed(number) => {
            i64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        Datum::Name(name) => name.as_str().into(),
        Datum::Struct(members) => {
            members.iter().map(|(name, datum)| (name.clone(), datum_json(datum))).collect()
        }
        Datum::Array(elements) => elements.iter().map(datum_json).collect(),
        Datum::Bytes(bytes) => bytes_json(bytes),
    }
}
