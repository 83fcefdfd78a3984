// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of the README about packet programs and XDP objects succeed as they are written.

use std::path::Path;
use std::process::Command;

/// Commands that the test runs; the others install software or start servers.
const TESTED: [&str; 3] = ["freeport graph ", "freeport run ", "freeport xdp "];
/// Files that the commands write, which go to a temporary folder.
const WRITTEN: [&str; 2] = ["firewall.svg", "allowed.pcap"];

/// The indented lines, without comments, and with variables replaced.
fn commands(readme: &str) -> Vec<String> {
    let mut commands = vec![];
    let (mut command, mut variables) = (String::new(), vec![]);
    for line in readme.lines().filter_map(|line| line.strip_prefix("    ")) {
        let line = line.split(" # ").next().unwrap_or_default().trim();
        if let Some(begin) = line.strip_suffix('\\') {
            command += begin;
            continue;
        }
        command += line;
        let whole = std::mem::take(&mut command);
        match whole.split_once('=') {
            Some((name, value)) if name.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                variables.push((format!("${name}"), value.trim().to_owned()));
            }
            _ => commands.push(whole),
        }
    }
    for command in &mut commands {
        variables.iter().for_each(|(name, value)| *command = command.replace(name, value));
    }
    commands
}

#[test]
fn commands_of_the_readme_succeed() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tested = commands(&readme);
    let tested = tested.iter().filter(|it| TESTED.iter().any(|begin| it.starts_with(begin)));
    let mut count = 0;
    for command in tested {
        let words = command.split_whitespace().skip(1).map(|word| {
            let in_folder = |text: String, name: &&str| {
                text.replace(*name, &folder.path().join(name).display().to_string())
            };
            WRITTEN.iter().fold(word.to_owned(), in_folder)
        });
        let output = Command::new(env!("CARGO_BIN_EXE_freeport"))
            .args(words)
            .current_dir(&repository)
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env_remove("FREEPORT_ELEMENTS")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        count += 1;
    }
    assert!(count >= 4, "{count} commands of the README were run");
    for name in WRITTEN {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
}
