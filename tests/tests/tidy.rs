// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The repository keeps its own style sheet.

use freeport_tests::repository;
use freeport_tests::tidy::{RULES, Tree};

#[test]
fn every_file_keeps_every_rule() {
    let tree = Tree::read(&repository()).expect("the repository is readable");
    assert!(tree.file("Cargo.toml").is_some(), "this is not the repository");
    let mut report = String::new();
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            report += &format!("{finding} ({name})\n");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
