// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport elements`: the catalogue of the element library, made of its manual blocks.

use crate::library::LibraryArguments;
use crate::manual::{self, Manual};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport elements\n  freeport elements Count")]
pub struct Arguments {
    /// Print the page of this element
    name: Option<String>,
    /// Print one JSON object a line, one for each element
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Prints the list, or one page.
///
/// # Errors
/// No library, an unknown element, or a library file that does not parse.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folders = arguments.library.folders();
    if folders.is_empty() {
        bail!("no element library found; name it with --library FOLDER or $FREEPORT_ELEMENTS");
    }
    let mut manuals = manual::read_all(&folders)?;
    if let Some(name) = &arguments.name {
        manuals.retain(|manual| manual.name.eq_ignore_ascii_case(name));
        if manuals.is_empty() {
            bail!("there is no element `{name}`; `freeport elements` lists those there are");
        }
    }
    for manual in &manuals {
        if arguments.json {
            println!("{}", as_json(manual));
        } else if arguments.name.is_some() {
            print_page(manual);
        } else {
            let purpose = manual.field("purpose").unwrap_or_default().replace('\n', " ");
            let name = format!("{}/{}", manual.category, manual.name);
            println!("{name:<28} {purpose}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_page(manual: &Manual) {
    println!("{} {}", manual.name, manual.declaration);
    println!("category   {}", manual.category);
    for (key, text) in &manual.fields {
        println!("{key:<10} {}", text.replace('\n', &format!("\n{:11}", "")));
    }
}

fn as_json(manual: &Manual) -> Value {
    let field = |(key, text): &(String, String)| json!({ "key": key, "text": text });
    let fields: Vec<Value> = manual.fields.iter().map(field).collect();
    json!({
        "name": manual.name,
        "category": manual.category,
        "declaration": manual.declaration,
        "fields": fields,
    })
}
