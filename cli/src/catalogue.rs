// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The catalogue of an element library: every element's manual block, with its ports and parameters
//! as declared.

use anyhow::Context;
use freeport_clicknp::ast::{Element, TopItem};
use freeport_clicknp::manual::Manual;
use freeport_clicknp::parser;
use freeport_clicknp::source::SourceMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The element's name.
    pub name: String,
    /// The folder it is in.
    pub category: String,
    /// Its ports as declared, such as `(flit in -> flit out)`, with parameters in front.
    pub declaration: String,
    /// What is said in front of it.
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
        if let TopItem::Element(element) = item {
            pages.push(Page {
                name: element.name.text.clone(),
                category: folder.to_string_lossy().into_owned(),
                declaration: declaration(&sources, element),
                manual: Manual::parse(element.manual.as_deref().unwrap_or_default()),
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
            .element Pass<uint N = 2> (flit in\n -> flit out[N]) { .handler { } }\n";
        fs::write(folder.join("pass.cnp"), text).unwrap();
        let pages = read_all(&[top.path().to_owned()]).unwrap();
        assert_eq!(pages.len(), 1);
        assert_eq!((pages[0].name.as_str(), pages[0].category.as_str()), ("Pass", "basic"));
        assert_eq!(pages[0].declaration, "<uint N = 2> (flit in -> flit out[N])");
        assert_eq!(pages[0].manual.fields, [(Field::Purpose, "Passes.".to_owned())]);
    }
}
