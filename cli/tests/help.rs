// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every subcommand explains itself, with an example.

use std::process::Command;

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_freeport"))
        .args(arguments)
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names in the list below `Commands:`.
fn subcommands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn every_subcommand_has_an_example_in_its_help() {
    let top = help(&[]);
    let names = subcommands(&top);
    assert!(names.contains(&"doctor"), "{top}");
    for name in names {
        let text = help(&[name]);
        let example = text.split("Example:").nth(1).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(example.contains(&format!("freeport {name}")), "{name}: {text}");
    }
}

#[test]
fn every_subcommand_of_xdp_has_an_example_in_its_help() {
    let top = help(&["xdp"]);
    let names = subcommands(&top);
    assert!(names.contains(&"load"), "{top}");
    for name in names {
        let text = help(&["xdp", name]);
        let example = text.split("Example:").nth(1).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(example.contains(&format!("freeport xdp {name}")), "{name}: {text}");
    }
}

#[test]
fn a_mistyped_command_fails_and_says_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_freeport")).arg("docter").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("doctor"));
}
