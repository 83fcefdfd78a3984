// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies whose numbers are equal, whatever their digits: Redis 7.0 prints doubles with 17 digits,
//! 7.2 with the fewest.

use freeport_kv_protocol::resp::Value;

/// Values are equal but for the digits of doubles.
pub fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Bulk(one), Value::Bulk(other)) => {
            one == other || number(one).is_some() && number(one) == number(other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| are_equal(one, other))
        }
        _ => one == other,
    }
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
