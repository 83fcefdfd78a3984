// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a running XDP program: one JSON object a line, as for graphs.

use freeport_runtime::server::{Members, Protocol, RequestError, StatsFormat};
use freeport_xdp::{EntryName, Setting};
use serde_json::Value;

/// A request that the worker carries out between two rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// `maps`: lists maps.
    Maps(StatsFormat),
    /// `map_dump`: returns the contents of a map.
    Dump {
        /// Name of the map.
        map: String,
        /// Text or JSON.
        format: StatsFormat,
    },
    /// `map_lookup`: returns an entry of a map, named in bpftool's syntax.
    Lookup {
        /// The entry.
        entry: EntryName,
        /// Text or JSON.
        format: StatsFormat,
    },
    /// `map_change`: changes a map, in bpftool's syntax.
    Change(Setting),
    /// `stats`: returns all counters.
    Stats(StatsFormat),
    /// `status`: returns what runs, since when, and between which ports.
    Status,
    /// `stop`: stops the program.
    Stop,
}

/// Characters of an error in an answer, at most, so that it does not repeat megabytes.
const TOLD_MAX: usize = 600;
/// Values of `do`.
const KNOWN: [&str; 7] =
    ["maps", "map_dump", "map_lookup", "map_change", "stats", "status", "stop"];

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// Describes the error in the object to the user.
    pub fn of_value(value: Value) -> Result<Self, String> {
        let reported = |error: RequestError| error.to_string();
        let mut members = Members::of_value(value, &KNOWN).map_err(reported)?;
        let request = match members.what() {
            "maps" => Self::Maps(members.format().map_err(reported)?),
            "map_dump" => Self::Dump {
                map: members.text("map", "the name of a map").map_err(reported)?,
                format: members.format().map_err(reported)?,
            },
            "map_lookup" => {
                let entry = members.text("entry", "NAME key BYTES").map_err(reported)?;
                let entry = entry.parse::<EntryName>().map_err(short)?;
                Self::Lookup { entry, format: members.format().map_err(reported)? }
            }
            "map_change" => {
                let expected = "map update name NAME key BYTES value BYTES";
                let setting = members.text("setting", expected).map_err(reported)?;
                Self::Change(setting.parse::<Setting>().map_err(short)?)
            }
            "stats" => Self::Stats(members.format().map_err(reported)?),
            "status" => Self::Status,
            _ => Self::Stop,
        };
        members.finish().map_err(reported)?;
        Ok(request)
    }
}

/// Shortens an error that quotes another process, and keeps enough of it to recognise the input.
pub(crate) fn short(error: impl ToString) -> String {
    let error = error.to_string();
    match error.char_indices().nth(TOLD_MAX) {
        Some((end, _)) => format!("{}...", &error[..end]),
        None => error,
    }
}

/// The request protocol of XDP programs.
#[derive(Clone, Copy, Debug)]
pub struct OfXdp;

impl Protocol for OfXdp {
    type Work = Request;

    fn work(&self, request: Value) -> Result<Request, String> {
        Request::of_value(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_told_by_name() {
        let dump = Request::Dump { map: "flows".into(), format: StatsFormat::Text };
        let asked = json!({"do": "map_dump", "map": "flows", "format": "text"});
        assert_eq!(Request::of_value(asked), Ok(dump));
        for (value, reason) in [
            (json!({"do": "call"}), "`do` is \"call\"; it may be maps, map_dump"),
            (json!({"do": "map_dump"}), "`map_dump` needs `map`: the name of a map"),
            (json!({"do": "map_lookup", "entry": "flows"}), "there is no key"),
            (json!({"do": "map_change", "setting": "flows"}), "`flows` is not a command"),
            (json!({"do": "stop", "now": 1}), "`stop` has no `now`"),
        ] {
            let error = Request::of_value(value.clone()).unwrap_err();
            assert!(error.starts_with(reason), "{value}: {error}");
        }
        let long = json!({"do": "map_change", "setting": "ä".repeat(1 << 20)});
        assert!(Request::of_value(long).unwrap_err().len() < 2 * TOLD_MAX + 10);
    }
}
