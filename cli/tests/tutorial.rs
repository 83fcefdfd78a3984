// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tutorial works as written: the test writes its files, runs its commands, and compares the
//! output with the page.

use std::path::Path;
use std::process::Command;

/// A step of the tutorial.
#[derive(Debug)]
enum Step {
    /// A file to write.
    File { name: String, text: String },
    /// A command, and its output.
    Run { line: usize, command: String, shown: String },
}

/// The steps of a page: a fenced block is the text of the file that the line above it ends in, and
/// an indented `$` is a command.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = vec![];
    let mut named = String::new();
    let mut lines = page.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.starts_with("```") {
            let text = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            let text: String = text.map(|line| format!("{line}\n")).collect();
            steps.push(Step::File { name: named.clone(), text });
        } else if let Some(first) = line.strip_prefix("    $ ") {
            let mut command = first.to_owned();
            while let Some(start) = command.strip_suffix('\\') {
                let (_, rest) = lines.next().expect("a command goes on");
                command = format!("{start}{}", rest.trim_start());
            }
            let mut shown = String::new();
            let is_shown = |line: &str| {
                line.starts_with("    ") && !line.starts_with("    $ ") || line.is_empty()
            };
            while let Some((_, line)) = lines.next_if(|(_, line)| is_shown(line)) {
                shown += line.strip_prefix("    ").unwrap_or(line);
                shown.push('\n');
            }
            let shown = shown.trim_end().to_owned();
            steps.push(Step::Run { line: at + 1, command, shown });
        } else if let Some(name) = line.strip_suffix("`:") {
            named = name.rsplit('`').next().unwrap_or_default().to_owned();
        }
    }
    steps
}

#[test]
fn what_the_tutorial_shows_is_what_is_printed() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(repository.join("docs/guide/tutorial.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trace = "sample.pcap";
    std::fs::copy(repository.join("examples/traces").join(trace), folder.path().join(trace))
        .unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_freeport")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let (mut files, mut runs) = (0, 0);
    for step in steps(&page) {
        match step {
            Step::File { name, text } => {
                std::fs::write(folder.path().join(name), text).unwrap();
                files += 1;
            }
            Step::Run { line, command, shown } => {
                let output = Command::new("bash")
                    .args(["-c", &format!("{command} 2>&1")])
                    .current_dir(folder.path())
                    .env("PATH", &path)
                    .env("FREEPORT_ELEMENTS", repository.join("elements"))
                    .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
                    .output()
                    .unwrap();
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!(printed.trim_end(), shown, "docs/guide/tutorial.md:{line}: {command}");
                runs += 1;
            }
        }
    }
    assert!(files >= 3 && runs >= 4, "{files} files, {runs} commands");
}
