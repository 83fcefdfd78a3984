// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completions for shells, and manual pages.

use freeport_testbed::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn freeport(words: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_freeport")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Completions that bash offers for the last word of a line.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let code = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
        _freeport freeport \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", code, "bash"]).arg(script).args(words);
    let output = bash.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{words:?}: {said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_and_options() {
    if Command::new("bash").arg("--version").output().is_err() {
        return skip("bash is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("freeport");
    fs::write(&script, freeport(&["completions", "bash"]).stdout).unwrap();
    assert_eq!(offered(&script, &["freeport", "doc"]), ["doctor"]);
    assert_eq!(offered(&script, &["freeport", "xdp", "tra"]), ["trace"]);
    assert_eq!(offered(&script, &["freeport", "xdp", "load", "--count"]), ["--count-runs"]);
    assert_eq!(offered(&script, &["freeport", "tol"]), [""; 0], "an old name is not offered");
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(freeport(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("doctor") && script.contains("count-runs"), "{shell}: {script}");
    }
}

/// The names in the list below `Commands:`.
fn subcommands(words: &[&str]) -> Vec<String> {
    let help = String::from_utf8(freeport(&[words, &["--help"]].concat()).stdout).unwrap();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("share/man/man1");
    freeport(&["man", "--out", out.to_str().unwrap()]);
    let page = |words: &[&str]| {
        let name = format!("freeport-{}", words.join("-"));
        let page = fs::read_to_string(out.join(format!("{name}.1")));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(&format!(".TH {} 1", name.to_uppercase())), "{page}");
        page
    };
    for name in subcommands(&[]) {
        let text = page(&[&name]);
        assert!(text.contains(".SH EXAMPLES\n"), "{name}: {text}");
        for below in subcommands(&[&name]) {
            page(&[&name, &below]);
        }
    }
    assert!(out.join("freeport.1").is_file());
    let printed = String::from_utf8(freeport(&["man", "xdp", "run"]).stdout).unwrap();
    assert_eq!(printed, page(&["xdp", "run"]));
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_freeport"));
    let output = wrong.args(["man", "xdp", "fly"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("has no subcommand `fly`"), "{said}");
}
