// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers of etcd as a function of any bytes, for tests of untrusted input.

use std::io::Read;

use super::contents::Keys;
use super::http::Incoming;
use super::messages::{EventKind, TxnAnswer};
use super::watch::parse;
use crate::registry::{RegistryError, State};

/// Reads bytes as the answer to a transaction that reads all keys with the prefix `test`, with its
/// head of HTTP, and then each line of the body as a message of a watch. Returns the contents in
/// the end.
///
/// # Errors
/// The bytes are no such answer, or have contents that cannot be read.
pub fn read_etcd_answer(bytes: impl Read) -> Result<State, RegistryError> {
    let malformed = |error: std::io::Error| RegistryError::Unavailable(error.to_string());
    let mut incoming = Incoming::new(bytes);
    let head = incoming.head().map_err(malformed)?;
    let body = incoming.body(&head).map_err(malformed)?;
    let (keys, mut state) = (Keys::new("test"), State::default());
    if let Ok(answer) = serde_json::from_slice::<TxnAnswer>(&body) {
        answer.keys().try_for_each(|pair| keys.insert(&mut state, pair))?;
    }
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        for event in parse(line).map_err(malformed)? {
            match event.r#type {
                EventKind::Put => keys.insert(&mut state, &event.kv)?,
                EventKind::Delete => keys.remove(&mut state, &event.kv.key),
            }
        }
    }
    Ok(state)
}
