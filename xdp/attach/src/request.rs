// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an XDP program at work can be asked: one JSON object a line, as with graphs.

use freeport_runtime::server::{Members, Protocol, RequestError, StatsFormat};
use freeport_xdp::{EntryName, Setting};
use serde_json::Value;

/// Something that the worker does between two rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// `maps`: lists maps.
    Maps(StatsFormat),
    /// `map_dump`: what is in a map.
    Dump {
        /// Its name.
        map: String,
        /// As text or as JSON.
        format: StatsFormat,
    },
    /// `map_lookup`: an entry of a map, in bpftool's words.
    Lookup {
        /// Which.
        entry: EntryName,
        /// As text or as JSON.
        format: StatsFormat,
    },
    /// `map_change`: changes a map, in bpftool's words.
    Change(Setting),
    /// `stats`: all counters.
    Stats(StatsFormat),
    /// `status`: what runs, since when, between which ports.
    Status,
    /// `stop`: ends it.
    Stop,
}

/// Characters of an error that an answer has: it does not repeat megabytes.
const TOLD_MAX: usize = 600;
/// What `do` may be.
const KNOWN: [&str; 7] =
    ["maps", "map_dump", "map_lookup", "map_change", "stats", "status", "stop"];

impl Request {
    /// What an object asks for.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    pub fn of_value(value: Value) -> Result<Self, String> {
        let told = |error: RequestError| error.to_string();
        let mut members = Members::of_value(value, &KNOWN).map_err(told)?;
        let request = match members.what() {
            "maps" => Self::Maps(members.format().map_err(told)?),
            "map_dump" => Self::Dump {
                map: members.text("map", "the name of a map").map_err(told)?,
                format: members.format().map_err(told)?,
            },
            "map_lookup" => {
                let entry = members.text("entry", "NAME key BYTES").map_err(told)?;
                let entry = entry.parse::<EntryName>().map_err(short)?;
                Self::Lookup { entry, format: members.format().map_err(told)? }
            }
            "map_change" => {
                let expected = "map update name NAME key BYTES value BYTES";
                let setting = members.text("setting", expected).map_err(told)?;
                Self::Change(setting.parse::<Setting>().map_err(short)?)
            }
            "stats" => Self::Stats(members.format().map_err(told)?),
            "status" => Self::Status,
            _ => Self::Stop,
        };
        members.finish().map_err(told)?;
        Ok(request)
    }
}

/// An error with no more of what another process has sent than is needed to see what is meant.
pub(crate) fn short(error: impl ToString) -> String {
    let error = error.to_string();
    match error.char_indices().nth(TOLD_MAX) {
        Some((end, _)) => format!("{}...", &error[..end]),
        None => error,
    }
}

/// The requests of XDP programs.
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
            (json!({"do": "map_change", "setting": "flows"}), "`flows` does not say what to do"),
            (json!({"do": "stop", "now": 1}), "`stop` has no `now`"),
        ] {
            let error = Request::of_value(value.clone()).unwrap_err();
            assert!(error.starts_with(reason), "{value}: {error}");
        }
        let long = json!({"do": "map_change", "setting": "ä".repeat(1 << 20)});
        assert!(Request::of_value(long).unwrap_err().len() < 2 * TOLD_MAX + 10);
    }
}
