// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of methods and of tables as text, by name and with values as people write them:
//! `exact.insert({source: 10.0.0.1, source_port: 80}, 1, 5)`.
//!
//! An argument is a number in any form that [`Layout`](crate::layout::Layout) knows, an object
//! `{member: value, ...}`, or a list `[value, ...]`. Names and numbers need no quotes.

use serde_json::{Map, Value};
use std::str::FromStr;

/// A parsed call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// `instance.method`.
    pub path: String,
    /// Arguments, in order.
    pub arguments: Vec<Value>,
}

/// Maximum nesting of objects and lists, which bounds the parser's stack.
const MOST_NESTED: usize = 32;

/// Error for a text that is not a call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason} at character {at}; a call is written instance.method(value, value)")]
pub struct CallError {
    reason: String,
    at: usize,
}

impl FromStr for Call {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        let Some((path, rest)) = text.split_once('(') else {
            return Err(CallError { reason: "no ( was found".into(), at: text.len() });
        };
        let mut parser = Parser { text, at: text.len() - rest.len(), nested: 0 };
        let arguments = parser.list(')')?;
        parser.skip_space();
        match parser.rest().is_empty() && !path.trim().is_empty() {
            true => Ok(Self { path: path.trim().to_owned(), arguments }),
            false => Err(parser.error("there is text after the call, or no name before it")),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nested: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, reason: &str) -> CallError {
        let at = self.text[..self.at].chars().count() + 1;
        CallError { reason: reason.to_owned(), at }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips `mark` if it comes next, and returns whether it did.
    fn passes(&mut self, mark: char) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len_utf8() } else { 0 };
        is_next
    }

    /// Parses values up to the closing mark.
    fn list(&mut self, end: char) -> Result<Vec<Value>, CallError> {
        let mut values = vec![];
        while !self.passes(end) {
            if !values.is_empty() && !self.passes(',') {
                return Err(self.error(&format!("expected , or {end}")));
            }
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn object(&mut self) -> Result<Value, CallError> {
        let mut members = Map::new();
        while !self.passes('}') {
            if !members.is_empty() && !self.passes(',') {
                return Err(self.error("expected , or }"));
            }
            let name = match self.word(":,{}[]()") {
                Some(name) if self.passes(':') => name,
                _ => return Err(self.error("expected `member: value`")),
            };
            let value = self.value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }

    fn value(&mut self) -> Result<Value, CallError> {
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(self.error("values are nested too deeply"));
        }
        let value = if self.passes('{') {
            self.object()?
        } else if self.passes('[') {
            Value::Array(self.list(']')?)
        } else {
            // A colon is part of the word: 02:00:00:00:00:01.
            Value::String(self.word(",{}[]()").ok_or_else(|| self.error("expected a value"))?)
        };
        self.nested -= 1;
        Ok(value)
    }

    /// Parses a word in quotes, or up to one of `ends`.
    fn word(&mut self, ends: &str) -> Option<String> {
        if self.passes('"') {
            let (word, _) = self.rest().split_once('"')?;
            self.at += word.len() + 1;
            return Some(word.to_owned());
        }
        let rest = self.rest();
        let is_end = |mark: char| mark.is_whitespace() || ends.contains(mark);
        let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        self.at += word.len();
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_without_quotes() {
        let call: Call = "fw.exact.insert({a: 10.0.0.1, mac: 02:00:00:00:00:01}, [1, -2], x )"
            .parse()
            .expect("a call");
        assert_eq!(call.path, "fw.exact.insert");
        let key = json!({"a": "10.0.0.1", "mac": "02:00:00:00:00:01"});
        assert_eq!(call.arguments, [key, json!(["1", "-2"]), json!("x")]);
        let json: Call = r#"a.b({"x": "1", "y": [ ]},"7")"#.parse().expect("JSON is a call too");
        assert_eq!(json.arguments, [json!({"x": "1", "y": []}), json!("7")]);
        assert_eq!("a.b()".parse::<Call>().expect("a call").arguments, [] as [Value; 0]);
    }

    #[test]
    fn what_is_no_call_is_told_with_its_place() {
        for text in ["", "a.b", "(", "a.b(", "a.b(1", "a.b(1,)", "a.b(,1)", "a.b(1) x", "(1)"] {
            assert!(text.parse::<Call>().is_err(), "{text}");
        }
        for text in ["a({)", "a({x})", "a({x:})", "a({:1})", "a([1 2)", "a(\"x)", "a({a:1 b:2})"] {
            assert!(text.parse::<Call>().is_err(), "{text}");
        }
        let deep = format!("a({}", "[".repeat(1 << 20));
        assert!(deep.parse::<Call>().is_err());
        let error = "a.b(1, {x 2})".parse::<Call>().expect_err("wrong").to_string();
        assert!(error.starts_with("expected `member: value` at character 11;"), "{error}");
    }
}
