// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport table`: reads and changes the tables of a running program.

use crate::running::To;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport table list --to fw\n  \
    freeport table entries --to nat nat.flows\n  \
    freeport table set --to nat nat.flows '{address: 10.0.0.1, port: 80}' 7\n  \
    freeport table set --to router router.routes 10.1.0.0/16 3\n  \
    freeport table delete --to nat nat.flows '{address: 10.0.0.1, port: 80}'")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// An operation on tables.
#[derive(Subcommand)]
enum Action {
    /// List tables, with the shapes of their keys and values
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        to: To,
    },
    /// Print all entries
    Entries {
        /// The table
        #[arg(value_name = "INSTANCE.TABLE")]
        table: String,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        to: To,
    },
    /// Print the value that a key matches
    Lookup {
        /// The table
        #[arg(value_name = "INSTANCE.TABLE")]
        table: String,
        /// The key: a number, an address, or {member: value}
        key: String,
        #[command(flatten)]
        to: To,
    },
    /// Set the value of a key
    Set {
        /// The table
        #[arg(value_name = "INSTANCE.TABLE")]
        table: String,
        /// The key: a number, an address, or {member: value}; KEY/LENGTH is a prefix
        key: String,
        /// The value, written like a key
        value: String,
        #[command(flatten)]
        to: To,
    },
    /// Remove a key
    Delete {
        /// The table
        #[arg(value_name = "INSTANCE.TABLE")]
        table: String,
        /// The key: a number, an address, or {member: value}; KEY/LENGTH is a prefix
        key: String,
        #[command(flatten)]
        to: To,
    },
}

/// Carries out the operation.
///
/// # Errors
/// No such running program or table, or a malformed key or value.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::List { json, to } => {
            let tables = to.connect()?.ask(&json!({"do": "tables"}))?;
            for table in tables.as_array().into_iter().flatten() {
                if *json {
                    println!("{table}");
                    continue;
                }
                let word = |member: &str| table[member].as_str().unwrap_or_default().to_owned();
                let (name, kind) = (word("table"), word("kind"));
                let [room, key, value] = ["capacity", "key", "value"].map(|it| &table[it]);
                println!("{name}: {kind}, {room} entries at most, {key} = {value}");
            }
        }
        Action::Entries { table, json, to } => {
            let entries = call(to, format!("{table}.entries()"))?;
            for entry in entries.as_array().into_iter().flatten() {
                match (json, &entry["length"]) {
                    (true, _) => println!("{entry}"),
                    (_, Value::Null) => println!("{} = {}", entry["key"], entry["value"]),
                    (_, length) => println!("{}/{length} = {}", entry["key"], entry["value"]),
                }
            }
        }
        Action::Lookup { table, key, to } => match call(to, format!("{table}.lookup({key})"))? {
            Value::Null => return absent("no entry matches"),
            value => println!("{value}"),
        },
        Action::Set { table, key, value, to } => {
            let done = call(to, format!("{table}.update({}, {value})", prefix(key)))?;
            if done == json!(false) {
                return absent("the table is full, or the prefix is too long");
            }
        }
        Action::Delete { table, key, to } => {
            if call(to, format!("{table}.delete({})", prefix(key)))? == json!(false) {
                return absent("there is no such entry");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn call(to: &To, call: String) -> anyhow::Result<Value> {
    Ok(to.connect()?.ask(&json!({"do": "call", "call": call}))?)
}

/// Reports on standard error, and to scripts by the status, that there is no result.
fn absent(what: &str) -> anyhow::Result<ExitCode> {
    eprintln!("{what}");
    Ok(ExitCode::FAILURE)
}

/// Splits `10.1.0.0/16` into two arguments of a call.
fn prefix(key: &str) -> String {
    key.replacen('/', ", ", 1)
}
