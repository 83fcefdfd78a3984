// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about the element library: each element opens with its manual page and has a golden; and
//! every program has the standard format.

use super::{File, Finding, Tree};
use freeport_clicknp::format::{changes, format_text};

/// Fields that a manual page must fill.
const FIELDS: [&str; 2] = ["purpose", "example"];

/// Every element has a manual page.
pub fn manuals(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for file in elements(tree) {
        for field in FIELDS {
            if !has_field(file, field) {
                findings.push(file.finding(1, format!("the manual block has no `{field}:`")));
            }
        }
    }
    findings
}

/// Every element has a golden with at least one case beside it, and every golden has an element.
pub fn goldens(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for file in elements(tree) {
        let golden = file.path.replace(".cnp", ".test");
        let has_case = |golden: &File| golden.text.lines().any(|line| line.starts_with("case "));
        match tree.file(&golden) {
            Some(found) if has_case(found) => {}
            Some(found) => findings.push(found.finding(0, "it contains no case")),
            None => findings.push(file.finding(0, format!("write a golden, {golden}"))),
        }
    }
    let goldens =
        tree.files.iter().filter(|file| is_in_library(file) && file.extension() == "test");
    let orphans = goldens.filter(|file| tree.file(&file.path.replace(".test", ".cnp")).is_none());
    findings.extend(orphans.map(|file| file.finding(0, "its element does not exist")));
    findings
}

/// The library and the examples are as `freeport fmt` leaves them.
pub fn formatted(tree: &Tree) -> Vec<Finding> {
    let is_program = |file: &&File| {
        file.extension() == "cnp" && (is_in_library(file) || file.path.starts_with("examples/"))
    };
    let finding = |file: &File| match format_text(&file.path, &file.text) {
        Ok(text) => {
            let line = changes(&file.text, &text).first()?.line;
            Some(file.finding(line, "run `freeport fmt elements examples`"))
        }
        Err(reason) => Some(file.finding(0, format!("cannot be formatted: {reason}"))),
    };
    tree.files.iter().filter(is_program).filter_map(finding).collect()
}

/// Returns the library files that define an element or a group; others hold what elements share.
fn elements(tree: &Tree) -> impl Iterator<Item = &File> {
    let is_cnp = |file: &&File| is_in_library(file) && file.extension() == "cnp";
    tree.files.iter().filter(is_cnp).filter(|file| has_element(file))
}

fn has_element(file: &File) -> bool {
    file.text.lines().any(|line| line.starts_with(".element") || line.starts_with("group "))
}

fn is_in_library(file: &File) -> bool {
    file.path.starts_with("elements/")
}

/// Returns whether the block comment before the first code fills `field`.
fn has_field(file: &File, field: &str) -> bool {
    let is_blank = |line: &&str| {
        line.trim().is_empty() || line.starts_with("//") || line.starts_with("import ")
    };
    let mut lines = file.text.lines().skip_while(is_blank);
    if !lines.next().is_some_and(|line| line.starts_with("/**")) {
        return false;
    }
    lines.take_while(|line| !line.contains("*/")).any(|line| {
        let text = line.trim().trim_start_matches(['*', ' ']);
        let value = text.strip_prefix(field).and_then(|rest| rest.trim_start().strip_prefix(':'));
        value.is_some_and(|value| !value.trim().is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const FULL: &str =
        "// licence\nimport \"a.cnp\"\n/**\n * purpose: Does it.\n * example: x\n */\n.element";

    #[test]
    fn a_manual_fills_its_fields() {
        let files = [
            ("elements/a/full.cnp", FULL),
            ("elements/a/hollow.cnp", "// licence\n/**\n * purpose:\n * example: x\n */\n.element"),
            ("elements/a/late.cnp", ".element\n/**\n * purpose: Too late.\n * example: x\n */\n"),
            ("elements/a/plain.cnp", "// purpose: No manual block.\n// example: x\n.element"),
            ("elements/shared.cnp", "// licence\nstruct Shared { uint number; };"),
            ("examples/other.cnp", ".element"),
        ];
        let findings =
            ["hollow", "late", "late", "plain", "plain"].map(|it| format!("elements/a/{it}.cnp:1"));
        assert_eq!(found(manuals, &files), findings);
    }

    #[test]
    fn programs_are_formatted() {
        let files = [
            ("elements/a/good.cnp", "struct A { uint a; };\n"),
            ("elements/a/loose.cnp", "struct A { uint a; };\nstruct B {uint b;};\n"),
            ("examples/wrong.cnp", "struct {{\n"),
            ("other/loose.cnp", "struct B {uint b;};\n"),
        ];
        assert_eq!(found(formatted, &files), ["elements/a/loose.cnp:2", "examples/wrong.cnp:0"]);
    }

    #[test]
    fn an_element_has_a_golden_with_a_case() {
        let files = [
            ("elements/a/good.cnp", ".element Good"),
            ("elements/a/good.test", "case it works\n"),
            ("elements/a/bare.cnp", "group Bare ("),
            ("elements/a/hollow.cnp", ".element Hollow"),
            ("elements/a/hollow.test", "# later\n"),
            ("elements/a/orphan.test", "case it works\n"),
            ("elements/shared.cnp", "struct Shared { uint number; };"),
        ];
        let findings =
            ["elements/a/bare.cnp:0", "elements/a/hollow.test:0", "elements/a/orphan.test:0"];
        assert_eq!(found(goldens, &files), findings);
    }
}
