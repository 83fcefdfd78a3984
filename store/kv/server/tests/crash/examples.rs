// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and readings for tests of the checks themselves.

use super::model::{Content, Entry, Times};
use super::reading::Reading;
use super::step::Step;

pub const NO_TIME: Times = Times { earliest_ms: 0, latest_ms: 0 };

/// A request that stores a text.
pub fn set(key: &str, text: &str) -> Step {
    Step::Set { key: key.into(), text: text.into() }
}

/// A server that has these texts.
pub fn reading(pairs: &[(&str, &str)]) -> Reading {
    let entry = |text: &str| Entry { content: Content::Text(text.into()), expires: None };
    let entries = pairs.iter().map(|(key, text)| ((*key).to_owned(), entry(text))).collect();
    Reading { entries, times: NO_TIME }
}
