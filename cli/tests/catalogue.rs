// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The catalogue page matches the manual blocks of the library. `BLESS=1` writes it again.

use std::path::Path;
use std::process::Command;

/// Ends the part of the page that is written by hand.
const MARK: &str = "<!-- From here on: freeport elements --markdown -->\n";

#[test]
fn the_page_is_up_to_date() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = repository.join("docs/reference/catalogue.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (by_hand, tables) = page.split_once(MARK).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_freeport"))
        .args(["elements", "--markdown", "--library"])
        .arg(repository.join("elements"))
        .output()
        .unwrap();
    let reported = String::from_utf8(output.stdout).unwrap();
    assert!(reported.contains("| `Count` `(flit in -> flit out)` |"), "{reported}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{by_hand}{MARK}{reported}")).unwrap();
    } else {
        assert_eq!(tables, reported, "write it again with BLESS=1");
    }
}
