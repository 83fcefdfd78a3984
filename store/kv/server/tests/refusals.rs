// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies by which a node of a cluster says that it has not executed a command.

use std::net::SocketAddr;

use freeport_kv_protocol::resp::Value;

/// Beginnings of the errors.
const REFUSALS: [&str; 11] = [
    "MOVED ",
    "ASK ",
    "CLUSTERDOWN ",
    "EXECABORT ",
    "READONLY ",
    "LOADING ",
    "MASTERDOWN ",
    "TRYAGAIN ",
    "NOREPLICAS ",
    "UNBLOCKED ",
    "ERR WAIT cannot be used with replica",
];

/// A command was not executed. Another attempt may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node that executes it, if the error names one.
    pub place: Option<SocketAddr>,
}

/// A reply as a refusal, if it is one.
pub fn refusal(reply: &Value) -> Option<Refusal> {
    let Value::Error(text) = reply else { return None };
    let text = String::from_utf8_lossy(text);
    if !REFUSALS.iter().any(|word| text.starts_with(word)) {
        return None;
    }
    let words: Vec<&str> = text.split(' ').collect();
    let place = match words[..] {
        ["MOVED" | "ASK", _, address] => Some(address.parse().expect("an address")),
        _ => None,
    };
    Some(Refusal { place })
}
