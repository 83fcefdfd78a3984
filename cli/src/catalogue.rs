// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The catalogue of an element library: the manual block of every element and group, with its ports
//! and parameters as declared.

use anyhow::Context;
use freeport_clicknp::ast::{Name, TopItem};
use freeport_clicknp::manual::Manual;
use freeport_clicknp::parser;
use freeport_clicknp::source::{SourceMap, Span};
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Name of the element or group.
    pub name: String,
    /// Name of its folder.
    pub category: String,
    /// Parameters and ports as declared, such as `<uint N = 2> (flit in -> flit out)`.
    pub declaration: String,
    /// Number of lines of the declaration.
    pub lines: usize,
    /// The manual block before it.
    pub manual: Manual,
}

/// The pages of all elements below `folders`, sorted by category and name.
///
/// # Errors
/// A folder or file that cannot be read, or a file that does not parse.
pub fn read_all(folders: &[PathBuf]) -> anyhow::Result<Vec<Page>> {
    let mut pages = vec![];
    for folder in folders {
        add_folder(folder, &mut pages)?;
    }
    pages.sort_by(|one, other| (&one.category, &one.name).cmp(&(&other.category, &other.name)));
    Ok(pages)
}

fn add_folder(folder: &Path, pages: &mut Vec<Page>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            add_folder(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "cnp") {
            add_file(&path, pages)?;
        }
    }
    Ok(())
}

fn add_file(path: &Path, pages: &mut Vec<Page>) -> anyhow::Result<()> {
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
        let (name, manual, head) = match item {
            TopItem::Element(element) => (&element.name, &element.manual, element.span),
            TopItem::Group(group) => (&group.name, &group.manual, group.span),
            _ => continue,
        };
        pages.push(Page {
            name: name.text.clone(),
            category: folder.to_string_lossy().into_owned(),
            declaration: declaration(&sources, head, name),
            lines: lines(&sources, head),
            manual: Manual::parse(manual.as_deref().unwrap_or_default()),
        });
    }
    Ok(())
}

/// The head of a declaration after the name, on one line.
fn declaration(sources: &SourceMap, head: Span, name: &Name) -> String {
    let head = sources.text(head);
    let after_name = head.split_once(name.text.as_str()).map_or(head, |(_, rest)| rest);
    let before_body = after_name.split('{').next().unwrap_or_default();
    before_body.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Number of lines from a head to the closing brace in the first column.
fn lines(sources: &SourceMap, head: Span) -> usize {
    let text = &sources.files()[head.file as usize].text;
    let rest = text.get(head.start as usize..).unwrap_or_default();
    rest.lines().position(|line| line == "}").map_or(1, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_clicknp::manual::Field;

    #[test]
    fn pages_are_read_from_a_library() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("basic");
        fs::create_dir(&folder).unwrap();
        let text = "/**\n * purpose: Passes.\n */\n\
            .element Pass<uint N = 2> (flit in\n -> flit out[N]) {\n    .handler { }\n}\n\
            group Two (flit in -> flit out) {\n}\n";
        fs::write(folder.join("pass.cnp"), text).unwrap();
        let pages = read_all(&[top.path().to_owned()]).unwrap();
        let names = pages.iter().map(|page| (page.name.as_str(), page.lines));
        assert_eq!(names.collect::<Vec<_>>(), [("Pass", 4), ("Two", 2)]);
        assert_eq!(pages[0].category, "basic");
        assert_eq!(pages[0].declaration, "<uint N = 2> (flit in -> flit out[N])");
        assert_eq!(pages[0].manual.fields, [(Field::Purpose, "Passes.".to_owned())]);
    }
}
