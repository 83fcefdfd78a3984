// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reference of the command line matches its parser. `BLESS=1` writes it again.

use std::path::Path;
use std::process::Command;

/// Ends the part of the page that is written by hand.
const MARK: &str = "<!-- From here on: freeport man --markdown -->\n";

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/commands.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (by_hand, generated) = page.split_once(MARK).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_freeport")).args(["man", "--markdown"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("\n### freeport xdp run\n"), "{printed}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{by_hand}{MARK}{printed}")).unwrap();
    } else {
        assert_eq!(generated, printed, "write it again with BLESS=1");
    }
}
