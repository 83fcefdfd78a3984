// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first example of the README does what the README shows.

use std::path::Path;
use std::process::Command;

/// The words of the command after `$ freeport`, and the lines that follow it.
fn example(readme: &str) -> (Vec<String>, String) {
    let mut lines = readme.lines().skip_while(|line| !line.starts_with("    $ freeport "));
    let mut command = String::new();
    for line in lines.by_ref() {
        command += &line.trim().replace('\'', "");
        if !command.ends_with('\\') {
            break;
        }
        command.pop();
    }
    let words = command.split_whitespace().skip(2).map(str::to_owned).collect();
    let shown = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let shown: Vec<&str> = shown.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    (words, shown.join("\n").trim_end().to_owned() + "\n")
}

#[test]
fn the_first_example_prints_what_is_shown() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    let (words, shown) = example(&readme);
    assert!(words.len() > 5 && shown.lines().count() > 10, "{words:?}\n{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pcap").display().to_string();
    let words = words.iter().map(|word| word.replace("out.pcap", &file));
    let output = Command::new(env!("CARGO_BIN_EXE_freeport"))
        .args(words)
        .current_dir(&repository)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("FREEPORT_ELEMENTS")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), shown);
    let program = std::fs::read_to_string(repository.join("examples/capture.cnp")).unwrap();
    for line in program.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        assert!(readme.lines().any(|shown| shown == format!("    {line}")), "{line}");
    }
}
