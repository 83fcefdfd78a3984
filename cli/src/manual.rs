// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manual pages of elements: the block comment in front of an element, as fields (`purpose:`,
//! `input:` and so on), with the element's ports and parameters as declared.

use anyhow::Context;
use freeport_clicknp::ast::{Element, TopItem};
use freeport_clicknp::parser;
use freeport_clicknp::source::SourceMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A manual page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manual {
    /// The element's name.
    pub name: String,
    /// The folder it is in.
    pub category: String,
    /// Its ports as declared, such as `(flit in -> flit out)`, with parameters in front.
    pub declaration: String,
    /// Keys and texts, in order; a key may come again.
    pub fields: Vec<(String, String)>,
}

impl Manual {
    /// The text of the first field of that name.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }
}

/// The manual pages of all elements below `folders`, sorted by category and name.
///
/// # Errors
/// A folder or file that cannot be read, or a file that does not parse.
pub fn read_all(folders: &[PathBuf]) -> anyhow::Result<Vec<Manual>> {
    let mut manuals = vec![];
    for folder in folders {
        add_folder(folder, &mut manuals)?;
    }
    manuals.sort_by(|one, other| (&one.category, &one.name).cmp(&(&other.category, &other.name)));
    Ok(manuals)
}

fn add_folder(folder: &Path, manuals: &mut Vec<Manual>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            add_folder(&path, manuals)?;
        } else if path.extension().is_some_and(|extension| extension == "cnp") {
            add_file(&path, manuals)?;
        }
    }
    Ok(())
}

fn add_file(path: &Path, manuals: &mut Vec<Manual>) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let mut sources = SourceMap::default();
    let number = sources.add(path, text);
    let mut diagnostics = vec![];
    let file = parser::parse_file(&sources, number, &mut diagnostics);
    if let Some(first) = diagnostics.first() {
        anyhow::bail!("{}", first.render(&sources));
    }
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    for item in &file.items {
        if let TopItem::Element(element) = item {
            manuals.push(Manual {
                name: element.name.text.clone(),
                category: folder.to_string_lossy().into_owned(),
                declaration: declaration(&sources, element),
                fields: fields(element.manual.as_deref().unwrap_or_default()),
            });
        }
    }
    Ok(())
}

/// The head of an element behind its name, on one line.
fn declaration(sources: &SourceMap, element: &Element) -> String {
    let head = sources.text(element.span);
    let after_name = head.split_once(element.name.text.as_str()).map_or(head, |(_, rest)| rest);
    let before_body = after_name.split('{').next().unwrap_or_default();
    before_body.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines `key: text`; a line that is indented deeper than its key goes on with the text above.
fn fields(block: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = vec![];
    for line in block.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix('*').unwrap_or(line);
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let key = line.split_once(':').filter(|(key, _)| is_key(key));
        match (key, fields.last_mut()) {
            (Some((key, text)), _) => fields.push((key.to_owned(), text.trim().to_owned())),
            (None, Some((_, text))) if !line.trim().is_empty() => {
                *text += if text.is_empty() { "" } else { "\n" };
                *text += line.trim();
            }
            _ => {}
        }
    }
    fields
}

fn is_key(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_fields_that_go_on_over_lines() {
        let block = "\n * purpose: Counts\n *   packets.\n * input: in: any flits\n * example:\n *   a -> b\n";
        let expected =
            [("purpose", "Counts\npackets."), ("input", "in: any flits"), ("example", "a -> b")];
        let owned = expected.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(fields(block), owned);
    }

    #[test]
    fn pages_are_read_from_a_library() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("basic");
        fs::create_dir(&folder).unwrap();
        let text = "/**\n * purpose: Passes.\n */\n\
            .element Pass<uint N = 2> (flit in\n -> flit out[N]) { .handler { } }\n";
        fs::write(folder.join("pass.cnp"), text).unwrap();
        let manuals = read_all(&[top.path().to_owned()]).unwrap();
        assert_eq!(manuals.len(), 1);
        assert_eq!((manuals[0].name.as_str(), manuals[0].category.as_str()), ("Pass", "basic"));
        assert_eq!(manuals[0].declaration, "<uint N = 2> (flit in -> flit out[N])");
        assert_eq!(manuals[0].field("purpose"), Some("Passes."));
    }
}
