// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp map`: the maps of a running XDP program, with the syntax of bpftool.

use crate::running::To;
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp map list --to fw\n  \
    freeport xdp map dump flows --to fw\n  \
    freeport xdp map lookup inside key 0 0 0 0 --to fw\n  \
    freeport xdp map update inside key hex 00 00 00 00 value hex 02 00 00 00 --to fw\n  \
    freeport xdp map delete ways key 1 0 0 0 --to fw\n\n\
    Bytes are decimal, or hexadecimal after `hex`. Maps of programs or of maps take `value name\n\
    NAME`. `push` and `enqueue` add values to stacks and queues. A dump of a queue, stack or ring\n\
    buffer removes its contents.")]
pub struct Arguments {
    /// list; dump MAP; lookup MAP key BYTES; update MAP key BYTES value BYTES [any|exist|noexist];
    /// delete MAP key BYTES; push MAP value BYTES; `name` is allowed before the map
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: To,
}

/// Sends the request to the program and prints the answer.
///
/// # Errors
/// An unknown command, no such running program, or an operation that the map refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    let request = request(&words, if arguments.json { "json" } else { "text" })?;
    match arguments.to.connect()?.ask(&request)? {
        Value::Null if !arguments.json => {}
        Value::String(text) => print!("{text}"),
        value => println!("{value}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The request for a command.
fn request(words: &[&str], format: &str) -> anyhow::Result<Value> {
    let Some((command, rest)) = words.split_first() else { bail!("name a command, such as list") };
    let rest = match rest {
        ["name", rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    Ok(match (*command, rest) {
        ("list" | "show", []) => json!({ "do": "maps", "format": format }),
        ("dump", [map]) => json!({ "do": "map_dump", "map": map, "format": format }),
        ("lookup", [_, ..]) => {
            json!({ "do": "map_lookup", "entry": rest.join(" "), "format": format })
        }
        ("update" | "delete" | "push" | "enqueue", [_, ..]) => {
            let setting = format!("map {command} name {}", rest.join(" "));
            json!({ "do": "map_change", "setting": setting })
        }
        _ => bail!(
            "`{}` is not a command for maps: use list, dump MAP, lookup MAP key BYTES, update MAP \
             key BYTES value BYTES, delete MAP key BYTES, or push MAP value BYTES",
            words.join(" ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bpftools() {
        let asked = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            request(&words, "text").map_err(|error| error.to_string())
        };
        let dump = json!({ "do": "map_dump", "map": "flows", "format": "text" });
        assert_eq!(asked("dump flows"), Ok(dump.clone()));
        assert_eq!(asked("dump name flows"), Ok(dump));
        let change = json!({ "do": "map_change", "setting": "map delete name ways key 1" });
        assert_eq!(asked("delete ways key 1"), Ok(change));
        let lookup = json!({ "do": "map_lookup", "entry": "a key hex ff", "format": "text" });
        assert_eq!(asked("lookup name a key hex ff"), Ok(lookup));
        for text in ["dump", "dump a b", "fly a", "update", "list a"] {
            assert!(asked(text).unwrap_err().contains("is not a command for maps"), "{text}");
        }
    }
}
