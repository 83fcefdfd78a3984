// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A request as an object, of which each member is taken and checked: what is missing, of another
//! shape or unknown is told by name.

use super::StatsFormat;
use crate::steering::CallError;
use serde_json::{Map, Value};

/// Why a line is no request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// No JSON.
    #[error("no JSON: {0}; a request is one object a line, such as {{\"do\": \"stats\"}}")]
    Json(String),
    /// JSON of another kind.
    #[error("a request is an object, such as {{\"do\": \"stats\"}}")]
    NoObject,
    /// Not known.
    #[error("`do` is {got}; it may be {}", known.join(", "))]
    Unknown {
        /// What it is.
        got: String,
        /// What it may be.
        known: &'static [&'static str],
    },
    /// A member that should be there and is not.
    #[error("`{what}` needs `{member}`: {expected}")]
    Missing {
        /// The request.
        what: &'static str,
        /// What is missing.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A member of another kind.
    #[error("`{member}` of `{what}` is {got}: expected {expected}")]
    Kind {
        /// The request.
        what: &'static str,
        /// Which.
        member: &'static str,
        /// What it is.
        got: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A member that means nothing.
    #[error("`{what}` has no `{member}`")]
    Extra {
        /// The request.
        what: &'static str,
        /// Which.
        member: String,
    },
    /// The text of a call.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Bytes of a value that an error repeats.
const MOST_BYTES_SHOWN: usize = 60;

/// The members of a request that nobody has looked at yet.
#[derive(Debug)]
pub struct Members {
    what: &'static str,
    members: Map<String, Value>,
}

impl Members {
    /// Those of an object whose `do` is one of `known`.
    ///
    /// # Errors
    /// No object, or another `do`.
    pub fn of_value(value: Value, known: &'static [&'static str]) -> Result<Self, RequestError> {
        let Value::Object(mut members) = value else { return Err(RequestError::NoObject) };
        let name = members.remove("do").unwrap_or_default();
        let what = known.iter().find(|known| name.as_str() == Some(known));
        let unknown = || RequestError::Unknown { got: shown(&name), known };
        let what = *what.ok_or_else(unknown)?;
        Ok(Self { what, members })
    }

    /// What is to be done.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Whether there is such a member still.
    pub fn has(&self, member: &str) -> bool {
        self.members.contains_key(member)
    }

    /// Takes a member that need not be there.
    pub fn take(&mut self, member: &str) -> Option<Value> {
        self.members.remove(member)
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// A member that means nothing.
    pub fn finish(self) -> Result<(), RequestError> {
        match self.members.keys().next() {
            Some(extra) => Err(RequestError::Extra { what: self.what, member: cut(extra) }),
            None => Ok(()),
        }
    }

    /// Takes `format`: how counters are given.
    ///
    /// # Errors
    /// Something else.
    pub fn format(&mut self) -> Result<StatsFormat, RequestError> {
        let Some(value) = self.members.remove("format") else { return Ok(StatsFormat::Json) };
        match value.as_str() {
            Some("json") => Ok(StatsFormat::Json),
            Some("text") => Ok(StatsFormat::Text),
            Some("prometheus") => Ok(StatsFormat::Prometheus),
            _ => Err(self.kind("format", &value, "json, text or prometheus")),
        }
    }

    /// Takes a member that is true, or false if it is not there.
    ///
    /// # Errors
    /// Something else.
    pub fn is_set(&mut self, member: &'static str) -> Result<bool, RequestError> {
        match self.members.remove(member) {
            None => Ok(false),
            Some(Value::Bool(is_set)) => Ok(is_set),
            Some(other) => Err(self.kind(member, &other, "true or false")),
        }
    }

    /// Takes a member that has to be there.
    ///
    /// # Errors
    /// It is not.
    pub fn needed(
        &mut self,
        member: &'static str,
        expected: &'static str,
    ) -> Result<Value, RequestError> {
        let missing = RequestError::Missing { what: self.what, member, expected };
        self.members.remove(member).ok_or(missing)
    }

    /// Takes a string that has to be there.
    ///
    /// # Errors
    /// It is not, or is something else.
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

    /// Takes a number.
    ///
    /// # Errors
    /// Something else, or one that is too large.
    pub fn number<T: TryFrom<u64>>(
        &mut self,
        member: &'static str,
    ) -> Result<Option<T>, RequestError> {
        let Some(value) = self.members.remove(member) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| number.try_into().ok());
        let wrong = || self.kind(member, &value, "a number that is not negative and not too large");
        number.map(Some).ok_or_else(wrong)
    }

    /// The error of a member that is something else than `expected`.
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

/// The beginning of a text: an answer does not repeat megabytes.
fn cut(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= MOST_BYTES_SHOWN);
    end.map_or_else(|| text.to_owned(), |end| format!("{}...", &text[..end]))
}
