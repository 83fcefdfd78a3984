// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a running program: one JSON object per line, `{"do": "call", "call":
//! "exact.insert({source: 10.0.0.1}, 0, 5)"}`. An error names the member that is missing, malformed
//! or unknown. A line comes from another process, so every part of it is checked.

use super::members::{Members, RequestError};
use crate::layout::parse_json;
use crate::steering::Call;
use serde_json::Value;
use std::path::PathBuf;

/// Maximum number of bytes of a line.
pub const MOST_REQUEST_BYTES: usize = 4 << 20;

/// An action that the worker performs between two runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// `call`: calls a method, or a method of a table; returns its result.
    Call(Call),
    /// The same, but the answer "no" is an error.
    CallThatSucceeds(Call),
    /// `signal`: sends a signal; returns the words of its answer.
    Signal {
        /// The receiving instance.
        instance: String,
        /// The command.
        command: u32,
        /// Parameters, `LParam` in ClickNP.
        words: Vec<u64>,
    },
    /// `get`: returns the value of a variable or a part of it.
    Get {
        /// Path of the variable, as in the source.
        path: String,
    },
    /// `set`: writes a variable or a part of it.
    Set {
        /// Path of the variable, as in the source.
        path: String,
        /// The value, in any form that the variable accepts.
        value: Value,
    },
    /// `variables`: returns the values of all variables that are not too long.
    Variables,
    /// `methods`: lists the methods that can be called.
    Methods,
    /// `tables`: lists tables, with the shapes of keys and values.
    Tables,
    /// `stats`: returns all counters.
    Stats(StatsFormat),
    /// `told`: returns the output of printf, log and breakpoint probes from a line number on.
    Reported {
        /// Number of the first line.
        since: u64,
    },
    /// `resume`: resumes an instance from its breakpoint; without one, all paused instances.
    Resume {
        /// The instance.
        instance: Option<String>,
    },
    /// `init`: applies initial values and calls, in the format of an `--init` file.
    Init(Value),
    /// `replace`: replaces the program by that of a file, keeping state; reports what was kept.
    Replace {
        /// Path of the program, as seen by the running process.
        file: PathBuf,
        /// Replaces it even if packets are lost.
        is_forced: bool,
    },
    /// `status`: returns what runs, since when, between which ports.
    Status,
    /// `stop`: ends the program.
    Stop,
}

/// Format of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatsFormat {
    /// A JSON object.
    #[default]
    Json,
    /// Tables in a string.
    Text,
    /// Prometheus' text exposition format in a string.
    Prometheus,
}

/// Accepted values of `do`.
const KNOWN: [&str; 14] = [
    "call",
    "signal",
    "get",
    "set",
    "variables",
    "methods",
    "tables",
    "stats",
    "told",
    "resume",
    "init",
    "replace",
    "status",
    "stop",
];
impl Request {
    /// Parses a line.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        let value: Value =
            parse_json(line).map_err(|error| RequestError::Json(error.to_string()))?;
        Self::of_value(value)
    }

    /// Reads a request from an object.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn of_value(value: Value) -> Result<Self, RequestError> {
        let mut members = Members::of_value(value, &KNOWN)?;
        let request = members.request()?;
        members.finish()?;
        Ok(request)
    }
}

impl Members {
    fn request(&mut self) -> Result<Request, RequestError> {
        Ok(match self.what() {
            "call" => {
                let call = self.call()?;
                match self.is_set("must_succeed")? {
                    true => Request::CallThatSucceeds(call),
                    false => Request::Call(call),
                }
            }
            "signal" => Request::Signal {
                instance: self.text("instance", "the name of an instance")?,
                command: self.number("command")?.unwrap_or(0),
                words: self.words()?,
            },
            "get" => Request::Get { path: self.text("path", "instance.variable")? },
            "set" => Request::Set {
                path: self.text("path", "instance.variable")?,
                value: self.needed("value", "the new value of the variable")?,
            },
            "variables" => Request::Variables,
            "methods" => Request::Methods,
            "tables" => Request::Tables,
            "stats" => Request::Stats(self.format()?),
            "told" => Request::Reported { since: self.number("since")?.unwrap_or(0) },
            "resume" => Request::Resume {
                instance: match self.has("instance") {
                    true => Some(self.text("instance", "the name of an instance")?),
                    false => None,
                },
            },
            "init" => Request::Init(self.needed("values", "an object of instances")?),
            "replace" => Request::Replace {
                file: self.text("file", "the path of a program")?.into(),
                is_forced: self.is_set("force")?,
            },
            "status" => Request::Status,
            _ => Request::Stop,
        })
    }

    /// Takes a call as text, or as a path with a list of arguments.
    fn call(&mut self) -> Result<Call, RequestError> {
        if self.has("call") {
            return Ok(self.text("call", "instance.method(value, value)")?.parse()?);
        }
        let path = self.text("path", "instance.method, or `call` with the whole call")?;
        let arguments = self.take("arguments").unwrap_or(Value::Array(vec![]));
        let arguments = match arguments {
            Value::Array(arguments) => arguments,
            other => return Err(self.kind("arguments", &other, "a list")),
        };
        Ok(Call { path, arguments })
    }

    fn words(&mut self) -> Result<Vec<u64>, RequestError> {
        let expected = "a list of numbers from 0 to 18446744073709551615";
        let Some(value) = self.take("words") else { return Ok(vec![]) };
        let words = value.as_array().and_then(|words| words.iter().map(Value::as_u64).collect());
        words.ok_or_else(|| self.kind("words", &value, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> Result<Request, String> {
        Request::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_are_objects_with_what_to_do() {
        let call = Call { path: "fw.insert".into(), arguments: vec![json!("1"), json!(["2"])] };
        assert_eq!(
            parse(r#"{"do":"call","call":"fw.insert(1, [2])"}"#),
            Ok(Request::Call(call.clone()))
        );
        let text = r#"{"do":"call","call":"fw.insert(1, [2])","must_succeed":true}"#;
        assert_eq!(parse(text), Ok(Request::CallThatSucceeds(call)));
        let call = Call { path: "fw.insert".into(), arguments: vec![json!(1), json!({"a": 2})] };
        let text = r#"{"do":"call","path":"fw.insert","arguments":[1,{"a":2}]}"#;
        assert_eq!(parse(text), Ok(Request::Call(call)));
        let signal = Request::Signal { instance: "cnt".into(), command: 1, words: vec![u64::MAX] };
        let text = r#"{"do":"signal","instance":"cnt","command":1,"words":[18446744073709551615]}"#;
        assert_eq!(parse(text), Ok(signal));
        let set = Request::Set { path: "a.b".into(), value: json!([1]) };
        assert_eq!(parse(r#"{"do":"set","path":"a.b","value":[1]}"#), Ok(set));
        let stats = Request::Stats(StatsFormat::Prometheus);
        assert_eq!(parse(r#"{"do":"stats","format":"prometheus"}"#), Ok(stats));
        assert_eq!(parse(r#"{"do":"told"}"#), Ok(Request::Reported { since: 0 }));
        assert_eq!(parse(r#"{"do":"resume"}"#), Ok(Request::Resume { instance: None }));
        assert_eq!(parse(r#" {"do":"stop"} "#), Ok(Request::Stop));
    }

    #[test]
    fn what_is_wrong_is_told_by_name() {
        for (text, message) in [
            ("", "not JSON"),
            ("{\"do\":", "not JSON"),
            ("[]", "a request is an object"),
            ("{}", "`do` is null; it may be call, signal,"),
            (r#"{"do":"fly"}"#, r#"`do` is "fly"; it may be"#),
            (r#"{"do":"get"}"#, "`get` needs `path`: instance.variable"),
            (r#"{"do":"get","path":7}"#, "`path` of `get` is 7: expected a string"),
            (r#"{"do":"set","path":"a"}"#, "`set` needs `value`"),
            (r#"{"do":"stop","now":true}"#, "`stop` has no `now`"),
            (r#"{"do":"told","since":-1}"#, "`since` of `told` is -1"),
            (r#"{"do":"signal","instance":"a","command":4294967296}"#, "`command` of `signal`"),
            (r#"{"do":"signal","instance":"a","words":[-1]}"#, "`words` of `signal` is [-1]"),
            (r#"{"do":"stats","format":"xml"}"#, "expected json, text or prometheus"),
            (r#"{"do":"call","call":"a.b(1"}"#, "expected , or ) at character 6"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        let long = format!(r#"{{"do":"{}"}}"#, "ä".repeat(1_000));
        assert!(parse(&long).unwrap_err().len() < 400);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = fastrand::Rng::with_seed(7);
        let good =
            br#"{"do":"call","path":"a.b","arguments":[1,{"x":"1"}],"call":"a.b({x: [1, 2]})"}"#;
        let mut parsed = 0;
        for _ in 0..20_000 {
            let mut line = good.to_vec();
            for _ in 0..random.usize(0..4) {
                let at = random.usize(0..line.len());
                match random.u8(0..3) {
                    0 => line[at] = random.u8(..),
                    1 => drop(line.remove(at)),
                    _ => line.insert(at, *random.choice(b"{}[]()\",:\\0a").unwrap_or(&0)),
                }
            }
            parsed += u32::from(Request::parse(&line).is_ok());
            let noise: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(..)).collect();
            assert!(Request::parse(&noise).is_err());
        }
        assert!(parsed < 20_000, "mutations are noticed");
        let deep = [&b"[".repeat(1 << 20)[..], b"{"].concat();
        assert!(Request::parse(&deep).is_err());
    }
}
