// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `INFO`: the state of the server, by section. Only lines are shown that something true can be
//! said about.

mod cluster;
mod commands;
mod general;
mod persistence;
pub mod process;
mod replication;
mod values;

use freeport_kv_commands::{Command, Error, Flags, Group, Keys};

use super::{Context, Flow, ServerRun};
use crate::worker::Core;

const FLAGS: Flags = Flags::LOADING.with(Flags::STALE);

/// `INFO`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("info", -1), Group::Server, FLAGS, Keys::All, info)];

/// A section.
struct Section {
    /// Name, as it is shown.
    name: &'static str,
    /// It is shown without being asked for.
    is_default: bool,
    /// Writes its lines.
    write: fn(&Core, &mut Lines),
}

const SECTIONS: [Section; 13] = [
    Section { name: "Server", is_default: true, write: general::server },
    Section { name: "Clients", is_default: true, write: general::clients },
    Section { name: "Memory", is_default: true, write: values::memory },
    Section { name: "Persistence", is_default: true, write: persistence::persistence },
    Section { name: "Stats", is_default: true, write: general::statistics },
    Section { name: "Replication", is_default: true, write: replication::replication },
    Section { name: "CPU", is_default: true, write: general::processor },
    Section { name: "Modules", is_default: true, write: |_, _| () },
    Section { name: "Commandstats", is_default: false, write: commands::calls },
    Section { name: "Errorstats", is_default: true, write: commands::errors },
    Section { name: "Latencystats", is_default: false, write: commands::latencies },
    Section { name: "Cluster", is_default: true, write: cluster::cluster },
    Section { name: "Keyspace", is_default: true, write: values::keys },
];

/// Lines of a section.
struct Lines(String);

impl Lines {
    /// A line with a name and a value.
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0 += &format!("{name}:{value}\r\n");
    }

    /// Bytes, as a number and for people.
    fn add_bytes(&mut self, name: &str, bytes: u64) {
        self.add(name, bytes);
        self.add(&format!("{name}_human"), human(bytes));
    }
}

/// Bytes with a unit.
fn human(bytes: u64) -> String {
    let units = [(1_u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, letter)) => format!("{:.2}{letter}", bytes as f64 / *unit as f64),
        None => format!("{bytes}B"),
    }
}

fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let text = sections(context.core, &context.arguments[1..]);
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

/// The sections that words ask for; without words the usual ones.
fn sections(core: &Core, words: &[&[u8]]) -> String {
    let has = |word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word.as_bytes()));
    let is_all = has("all") || has("everything");
    let is_default = words.is_empty() || has("default");
    let mut text = String::new();
    for section in &SECTIONS {
        if is_all || is_default && section.is_default || has(section.name) {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            let mut lines = Lines(String::new());
            (section.write)(core, &mut lines);
            text += &format!("{separator}# {}\r\n{}", section.name, lines.0);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(human(1_023), "1023B");
        assert_eq!(human(1_163_144), "1.11M");
        assert_eq!(human(25_276_502_016), "23.54G");
    }
}
