// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A request as an object, whose members are taken and checked one by one: an error names the
//! member that is missing, malformed or unknown.

use super::StatsFormat;
use crate::steering::CallError;
use serde_json::{Map, Value};

/// Reason why a line is not a valid request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// The line is not JSON.
    #[error("not JSON: {0}; a request is one object per line, such as {{\"do\": \"stats\"}}")]
    Json(String),
    /// The JSON value is not an object.
    #[error("a request is an object, such as {{\"do\": \"stats\"}}")]
    NoObject,
    /// The request is unknown.
    #[error("`do` is {got}; it may be {}", known.join(", "))]
    Unknown {
        /// The value found.
        got: String,
        /// The accepted values.
        known: &'static [&'static str],
    },
    /// A required member is missing.
    #[error("`{what}` needs `{member}`: {expected}")]
    Missing {
        /// Name of the request.
        what: &'static str,
        /// Name of the missing member.
        member: &'static str,
        /// Description of the expected value.
        expected: &'static str,
    },
    /// A member has a value of the wrong kind.
    #[error("`{member}` of `{what}` is {got}: expected {expected}")]
    Kind {
        /// Name of the request.
        what: &'static str,
        /// Name of the member.
        member: &'static str,
        /// The value found.
        got: String,
        /// Description of the expected value.
        expected: &'static str,
    },
    /// A member is unknown.
    #[error("`{what}` has no `{member}`")]
    Extra {
        /// Name of the request.
        what: &'static str,
        /// Name of the member.
        member: String,
    },
    /// The text of a call is invalid.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Maximum number of bytes of a value that an error repeats.
const MOST_BYTES_SHOWN: usize = 60;

/// The members of a request that have not been taken yet.
#[derive(Debug)]
pub struct Members {
    what: &'static str,
    members: Map<String, Value>,
}

impl Members {
    /// Reads an object whose `do` is one of `known`.
    ///
    /// # Errors
    /// A value that is not an object, or an unknown `do`.
    pub fn of_value(value: Value, known: &'static [&'static str]) -> Result<Self, RequestError> {
        let Value::Object(mut members) = value else { return Err(RequestError::NoObject) };
        let name = members.remove("do").unwrap_or_default();
        let what = known.iter().find(|known| name.as_str() == Some(known));
        let unknown = || RequestError::Unknown { got: shown(&name), known };
        let what = *what.ok_or_else(unknown)?;
        Ok(Self { what, members })
    }

    /// Returns the name of the request.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Returns whether a member is present and has not been taken.
    pub fn has(&self, member: &str) -> bool {
        self.members.contains_key(member)
    }

    /// Takes an optional member.
    pub fn take(&mut self, member: &str) -> Option<Value> {
        self.members.remove(member)
    }

    /// Checks that no member is left.
    ///
    /// # Errors
    /// An unknown member.
    pub fn finish(self) -> Result<(), RequestError> {
        match self.members.keys().next() {
            Some(extra) => Err(RequestError::Extra { what: self.what, member: cut(extra) }),
            None => Ok(()),
        }
    }

    /// Takes `format`, the format of counters.
    ///
    /// # Errors
    /// A value that is not a format.
    pub fn format(&mut self) -> Result<StatsFormat, RequestError> {
        let Some(value) = self.members.remove("format") else { return Ok(StatsFormat::Json) };
        match value.as_str() {
            Some("json") => Ok(StatsFormat::Json),
            Some("text") => Ok(StatsFormat::Text),
            Some("prometheus") => Ok(StatsFormat::Prometheus),
            _ => Err(self.kind("format", &value, "json, text or prometheus")),
        }
    }

    /// Takes a boolean member; a missing one is false.
    ///
    /// # Errors
    /// A value that is not a boolean.
    pub fn is_set(&mut self, member: &'static str) -> Result<bool, RequestError> {
        match self.members.remove(member) {
            None => Ok(false),
            Some(Value::Bool(is_set)) => Ok(is_set),
            Some(other) => Err(self.kind(member, &other, "true or false")),
        }
    }

    /// Takes a required member.
    ///
    /// # Errors
    /// The member is missing.
    pub fn needed(
        &mut self,
        member: &'static str,
        expected: &'static str,
    ) -> Result<Value, RequestError> {
        let missing = RequestError::Missing { what: self.what, member, expected };
        self.members.remove(member).ok_or(missing)
    }

    /// Takes a required string.
    ///
    /// # Errors
    /// The member is missing, or not a string.
    pub fn text(
        &mut self,
        member: &'static str,
        expected: &'static str,
    ) -> Result<String, RequestError> {
        match self.needed(member, expected)? {
            Value::String(text) => Ok(text),
            other => Err(self.kind(member, &other, "a string")),
        }
    }

    /// Takes an optional number.
    ///
    /// # Errors
    /// A value that is not a number, or too large.
    pub fn number<T: TryFrom<u64>>(
        &mut self,
        member: &'static str,
    ) -> Result<Option<T>, RequestError> {
        let Some(value) = self.members.remove(member) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| number.try_into().ok());
        let wrong = || self.kind(member, &value, "a number that is not negative and not too large");
        number.map(Some).ok_or_else(wrong)
    }

    /// Creates the error for a member that differs from `expected`.
    pub fn kind(
        &self,
        member: &'static str,
        value: &Value,
        expected: &'static str,
    ) -> RequestError {
        RequestError::Kind { what: self.what, member, got: shown(value), expected }
    }
}

fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

/// Truncates a text: an answer does not repeat megabytes.
fn cut(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= MOST_BYTES_SHOWN);
    end.map_or_else(|| text.to_owned(), |end| format!("{}...", &text[..end]))
}
