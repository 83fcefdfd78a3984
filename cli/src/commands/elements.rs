// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport elements`: the catalogue of the element library, generated from its manual blocks.

use crate::catalogue::{self, Page};
use crate::library::LibraryArguments;
use anyhow::bail;
use clap::Args;
use freeport_clicknp::manual::Field;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport elements\n  freeport elements Count\n  \
    freeport elements --markdown > catalogue.md")]
pub struct Arguments {
    /// Print the page of this element
    name: Option<String>,
    /// Print one JSON object per line, one for each element
    #[arg(long)]
    json: bool,
    /// Print Markdown tables, one for each category
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
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
        bail!(
            "no element library was found; name it with --library FOLDER or in $FREEPORT_ELEMENTS"
        );
    }
    let mut pages = catalogue::read_all(&folders)?;
    if let Some(name) = &arguments.name {
        pages.retain(|page| page.name.eq_ignore_ascii_case(name));
        if pages.is_empty() {
            bail!("there is no element `{name}`; `freeport elements` lists all elements");
        }
    }
    if arguments.markdown {
        print_tables(&pages);
        return Ok(ExitCode::SUCCESS);
    }
    for page in &pages {
        if arguments.json {
            println!("{}", as_json(page));
        } else if arguments.name.is_some() {
            print_page(page);
        } else {
            let purpose = page.manual.first(Field::Purpose).unwrap_or_default();
            let name = format!("{}/{}", page.category, page.name);
            println!("{name:<28} {}", first_sentence(purpose));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a table for each category.
fn print_tables(pages: &[Page]) {
    for category in pages.chunk_by(|one, other| one.category == other.category) {
        println!("\n## {}\n", category[0].category);
        println!("| element | purpose | interval | lines |\n|---|---|---|---|");
        for page in category {
            let purpose = page.manual.first(Field::Purpose).unwrap_or_default();
            let interval = page.manual.first(Field::Interval).unwrap_or("-").replace('\n', " ");
            println!(
                "| `{}` `{}` | {} | {interval} | {} |",
                page.name,
                page.declaration,
                first_sentence(purpose),
                page.lines
            );
        }
    }
}

/// The first sentence of a text, for the list of elements.
fn first_sentence(text: &str) -> String {
    let line = text.replace('\n', " ");
    let end = line.find(". ").map_or(line.len(), |stop| stop + 1);
    line[..end].to_string()
}

fn print_page(page: &Page) {
    println!("{} {}", page.name, page.declaration);
    println!("category   {}", page.category);
    for (key, text) in &page.manual.fields {
        println!("{:<10} {}", key.key(), text.replace('\n', &format!("\n{:11}", "")));
    }
}

fn as_json(page: &Page) -> Value {
    let field = |(key, text): &(Field, String)| json!({ "key": key.key(), "text": text });
    let fields: Vec<Value> = page.manual.fields.iter().map(field).collect();
    json!({
        "name": page.name,
        "category": page.category,
        "declaration": page.declaration,
        "lines": page.lines,
        "fields": fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_first_sentence() {
        assert_eq!(first_sentence("Counts IPv4\npackets. And more."), "Counts IPv4 packets.");
        assert_eq!(first_sentence("One, version 1.5"), "One, version 1.5");
    }
}
