// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about the documents: links lead somewhere, every command is described, and the book's
//! table of contents is complete.

use super::{File, Finding, Tree};
use std::collections::BTreeSet;

/// Every subcommand of `freeport` is named in the README or in `docs/`.
pub fn commands(tree: &Tree) -> Vec<Finding> {
    let described = |name: &str| {
        let call = format!("freeport {name}");
        let texts = documents(tree)
            .filter(|file| file.path == "README.md" || file.path.starts_with("docs/"));
        texts.into_iter().any(|file| file.text.contains(&call))
    };
    let commands = tree.files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("cli/src/commands/")?.strip_suffix(".rs")?;
        (name != "mod" && !name.contains('/')).then(|| (file, name.replace('_', "-")))
    });
    let silent = commands.filter(|(_, name)| !described(name));
    silent
        .map(|(file, name)| file.finding(0, format!("describe `freeport {name}` in docs/")))
        .collect()
}

/// Every relative link leads to a file or folder, and to a heading if it names one.
pub fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for file in documents(tree) {
        let mut in_code = false;
        for (at, line) in file.text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            if in_code {
                continue;
            }
            let broken = targets(line).into_iter().filter(|target| !leads(tree, file, target));
            findings.extend(
                broken.map(|target| file.finding(at + 1, format!("`{target}` is not there"))),
            );
        }
    }
    findings
}

/// The table of contents of the book.
const CONTENTS: &str = "docs/SUMMARY.md";

/// `docs/SUMMARY.md` lists every page below `docs/` exactly once, and nothing else.
pub fn contents(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    let mut listed = BTreeSet::new();
    if let Some(summary) = tree.file(CONTENTS) {
        for (at, line) in summary.text.lines().enumerate() {
            for target in targets(line) {
                let page = resolve(CONTENTS, target);
                if !page.starts_with("docs/") || tree.file(&page).is_none() {
                    findings.push(summary.finding(at + 1, format!("`{target}` is no page")));
                } else if !listed.insert(page) {
                    let message = format!("`{target}` is listed above; remove one entry");
                    findings.push(summary.finding(at + 1, message));
                }
            }
        }
    }
    let pages =
        documents(tree).filter(|file| file.path.starts_with("docs/") && file.path != CONTENTS);
    let unlisted = pages.filter(|page| !listed.contains(&page.path));
    findings.extend(unlisted.map(|page| page.finding(0, format!("list this page in {CONTENTS}"))));
    findings
}

fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.extension() == "md")
}

/// What the links in a line point to.
fn targets(line: &str) -> Vec<&str> {
    let after_open = line.split("](").skip(1);
    after_open.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

fn leads(tree: &Tree, from: &File, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path) };
    if !tree.has(&path) {
        return false;
    }
    let headings =
        |file: &File| file.text.lines().any(|line| anchor(line).as_deref() == Some(heading));
    heading.is_empty() || tree.file(&path).is_some_and(headings)
}

/// The path that `target` means in a document at `from`.
pub(super) fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchor that web pages give a heading.
fn anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    Some(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_command_that_no_page_names_is_found() {
        let files = [
            ("cli/src/commands/mod.rs", ""),
            ("cli/src/commands/check.rs", ""),
            ("cli/src/commands/secret.rs", ""),
            ("README.md", "run `freeport check x.cnp`"),
            ("CHANGELOG.md", "freeport secret"),
        ];
        assert_eq!(found(commands, &files), ["cli/src/commands/secret.rs:0"]);
    }

    #[test]
    fn links_lead_somewhere() {
        let page = "[a](b.md) [up](../README.md#good-heading) [w](https://x.y/z)\n\
            [no](gone.md)\n[no](../README.md#bad) [folder](.)\n```\n[code](gone.md)\n```\n";
        let files =
            [("docs/a.md", page), ("docs/b.md", ""), ("README.md", "## Good, heading\n[d](docs)")];
        assert_eq!(found(links, &files), ["docs/a.md:2", "docs/a.md:3"]);
    }

    #[test]
    fn every_page_is_listed_once() {
        let summary = "# Summary\n[Start](README.md)\n- [A](guide/a.md)\n- [A](./guide/a.md)\n\
            - [Gone](guide/gone.md)\n- [Outside](../README.md)\n- [Draft]()\n";
        let files = [
            ("README.md", ""),
            ("docs/README.md", ""),
            ("docs/SUMMARY.md", summary),
            ("docs/guide/a.md", ""),
            ("docs/guide/forgotten.md", ""),
            ("docs/guide/table.csv", ""),
        ];
        let expected = [
            "docs/SUMMARY.md:4",
            "docs/SUMMARY.md:5",
            "docs/SUMMARY.md:6",
            "docs/SUMMARY.md:7",
            "docs/guide/forgotten.md:0",
        ];
        assert_eq!(found(contents, &files), expected);
    }

    #[test]
    fn pages_without_a_table_of_contents_are_found() {
        assert_eq!(found(contents, &[("docs/a.md", "")]), ["docs/a.md:0"]);
    }
}
