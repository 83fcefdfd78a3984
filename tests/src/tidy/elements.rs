// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about the element library: each element opens with its manual page and has a golden.

use super::{File, Finding, Tree};

/// Fields that a manual page must fill.
const FIELDS: [&str; 2] = ["element", "summary"];

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

/// Every element has a golden with at least one case beside it, and every golden an element.
pub fn goldens(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for file in elements(tree) {
        let golden = file.path.replace(".cnp", ".test");
        let has_case = |golden: &File| golden.text.lines().any(|line| line.starts_with("case "));
        match tree.file(&golden) {
            Some(found) if has_case(found) => {}
            Some(found) => findings.push(found.finding(0, "no case is in it")),
            None => findings.push(file.finding(0, format!("write a golden, {golden}"))),
        }
    }
    let goldens =
        tree.files.iter().filter(|file| is_in_library(file) && file.extension() == "test");
    let orphans = goldens.filter(|file| tree.file(&file.path.replace(".test", ".cnp")).is_none());
    findings.extend(orphans.map(|file| file.finding(0, "its element does not exist")));
    findings
}

fn elements(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| is_in_library(file) && file.extension() == "cnp")
}

fn is_in_library(file: &File) -> bool {
    file.path.starts_with("elements/")
}

fn has_field(file: &File, field: &str) -> bool {
    file.text.lines().take_while(|line| line.trim().is_empty() || is_comment(line)).any(|line| {
        let comment = line.trim().trim_start_matches(['/', '*', ' ']);
        let value =
            comment.strip_prefix(field).and_then(|rest| rest.trim_start().strip_prefix(':'));
        value.is_some_and(|value| !value.trim().is_empty())
    })
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['/', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_manual_fills_its_fields() {
        let files = [
            ("elements/a/full.cnp", "// SPDX\n// element: Full\n// summary: Does it.\n.element"),
            ("elements/a/hollow.cnp", "// element: Hollow\n// summary:\n.element"),
            ("elements/a/late.cnp", ".element\n// element: Late\n// summary: Too late.\n"),
            ("examples/other.cnp", ""),
        ];
        let findings =
            ["elements/a/hollow.cnp:1", "elements/a/late.cnp:1", "elements/a/late.cnp:1"];
        assert_eq!(found(manuals, &files), findings);
    }

    #[test]
    fn an_element_has_a_golden_with_a_case() {
        let files = [
            ("elements/a/good.cnp", ""),
            ("elements/a/good.test", "case it works\n"),
            ("elements/a/bare.cnp", ""),
            ("elements/a/hollow.cnp", ""),
            ("elements/a/hollow.test", "# later\n"),
            ("elements/a/orphan.test", "case it works\n"),
        ];
        let findings =
            ["elements/a/bare.cnp:0", "elements/a/hollow.test:0", "elements/a/orphan.test:0"];
        assert_eq!(found(goldens, &files), findings);
    }
}
