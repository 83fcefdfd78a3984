// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No command panics, whatever its arguments and its output: it exits silently if the reader closes
//! the pipe, reports other errors, and names the wrong file or option.

use crate::running::{Folder, repository};
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

/// Status that a shell reports for a process that SIGPIPE has killed.
const BROKEN_PIPE: i32 = 141;
/// A number that fits into no type.
const HUGE: &str = "99999999999999999999999999999999999999999";

fn command(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(words).current_dir(folder.path()).stdin(Stdio::null());
    command.env("FREEPORT_RUN", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    command.env("FREEPORT_ELEMENTS", repository().join("elements"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Exit status and errors of a command, which must not panic or be killed; a failure has a message.
fn ended(words: &[&str], output: Output) -> (i32, String) {
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let status = output.status.code().unwrap_or_else(|| panic!("{words:?}: {}", output.status));
    assert!(!reported.contains("panicked") && status != 101, "{words:?}: {reported}");
    let says_nothing = reported.is_empty() && output.stdout.is_empty();
    assert!([0, BROKEN_PIPE].contains(&status) || !says_nothing, "{words:?}: {status}");
    (status, reported)
}

fn end(folder: &Folder, words: &[&str]) -> (i32, String) {
    ended(words, command(folder, words).output().unwrap())
}

/// The names in the list below `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// All commands and their subcommands, each with its help.
fn commands(folder: &Folder) -> Vec<(Vec<String>, String)> {
    let mut found = vec![];
    let mut waiting = vec![vec![]];
    while let Some(words) = waiting.pop() {
        let words: Vec<String> = words;
        let mut line: Vec<&str> = words.iter().map(String::as_str).collect();
        line.push("--help");
        let output = command(folder, &line).output().unwrap();
        assert!(output.status.success(), "{line:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        waiting.extend(subcommands(&help).into_iter().map(|name| [&words[..], &[name]].concat()));
        found.push((words, help));
    }
    found
}

/// A folder with a program that prints and has a table, its golden, and a program with errors.
fn folder() -> Folder {
    let folder = Folder::new();
    let write = |name: &str, text: &str| {
        let licence = "// SPDX-License-Identifier: Apache-2.0 OR MIT\n";
        std::fs::write(folder.path().join(name), format!("{licence}{text}")).unwrap();
    };
    write(
        "program.cnp",
        "
.element Talk (packet in -> packet out) {
    .state {
        uint count;
        table<uint, uint> seen[16];
    }
    .handler {
        packet p = read_input_port(in);
        count++;
        seen.update(count & 7, 1);
        printf(\"packet %u\\n\", count);
        set_output_port(out, p);
    }
    .method uint counted() { return count; }
    .signal {
        ClSignal answer;
        answer.Sig.LParam[0] = count;
        set_signal(answer);
    }
}
Talk :: talk
from_tor -> talk -> to_tor
",
    );
    write("broken.cnp", "Nothing :: n\n");
    write("ugly.cnp", "from_tor->to_tor\n");
    folder
}

/// Runs a command with a closed pipe, and one with a full disk, as standard output.
fn check_outputs(folder: &Folder, words: &[&str]) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(folder, words).stdout(writer).output().unwrap();
    let (status, reported) = ended(words, output);
    assert_eq!(status, BROKEN_PIPE, "{words:?}: {reported}");
    assert!(!reported.contains("freeport: "), "{words:?} ends quietly: {reported}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (status, reported) = ended(words, command(folder, words).stdout(full).output().unwrap());
    assert_eq!(status, 1, "{words:?}: {reported}");
    assert!(
        reported.contains("freeport: standard output cannot be written: No space"),
        "{reported}"
    );
}

#[test]
fn every_command_ends_quietly_without_a_reader_and_tells_a_full_disk() {
    let folder = folder();
    for (words, _) in commands(&folder) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        check_outputs(&folder, &[&words[..], &["--help"]].concat());
    }
    check_outputs(&folder, &["--version"]);
    // There is no place to report this.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command(&folder, &["check", "broken.cnp"]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_commands_print_ends_quietly_as_well() {
    let folder = folder();
    let ends = ["--in", "from_tor=gen:60x20", "--out", "to_tor=count", "--on", "interpreter"];
    let run = [&["run", "program.cnp"][..], &ends].concat();
    for words in [
        &["elements"][..],
        &["elements", "--json"],
        &["elements", "--markdown"],
        &["elements", "Policer"],
        &["graph", "program.cnp"],
        &["check", "--json", "broken.cnp"],
        &["build", "program.cnp", "--output", "built"],
        &["build", "program.cnp", "--output", "built", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["fmt", "--check", "ugly.cnp"],
        &run,
        &[&run[..], &["--get", "talk.count"]].concat(),
        &[&run[..], &["--call", "talk.counted()"]].concat(),
        &[&run[..], &["--then", "talk.counted()"]].concat(),
        &[&run[..], &["--signal", "talk:1"]].concat(),
        &[&run[..], &["--stats", "text"]].concat(),
        &[&run[..], &["--stats", "json"]].concat(),
        &[&run[..], &["--stats", "prometheus"]].concat(),
    ] {
        check_outputs(&folder, words);
    }
}

#[test]
fn what_commands_print_of_a_running_program_ends_quietly_even_if_it_has_no_end() {
    let folder = folder();
    let program = folder.path().join("program.cnp").display().to_string();
    let ends = ["--in", "from_tor=gen:60@1000", "--out", "to_tor=count", "--on", "interpreter"];
    let running = folder.start("talk", &[&[program.as_str()][..], &ends].concat());
    while running.frames_in() < 20 {}
    for words in [
        &["ps"][..],
        &["ps", "--json"],
        &["stats"],
        &["stats", "--json"],
        &["stats", "--prometheus"],
        &["stats", "--watch", "0.01"],
        &["stats", "--watch", "0.01", "--json"],
        &["logs"],
        &["logs", "--json"],
        &["logs", "--follow"],
        &["call", "--list"],
        &["call", "talk.counted()"],
        &["get"],
        &["get", "--json"],
        &["get", "talk.count"],
        &["signal", "talk:1"],
        &["table", "list"],
        &["table", "entries", "talk.seen"],
        &["table", "lookup", "talk.seen", "1"],
        &["replace", "program.cnp"],
        &["replace", "program.cnp", "--json"],
    ] {
        check_outputs(&folder, words);
    }
    drop(running);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("folder.cnp")).unwrap();
    std::fs::write(at("bytes.cnp"), [0xff; 64]).unwrap();
    std::fs::write(at("empty.cnp"), "").unwrap();
    std::fs::write(at("closed.cnp"), "").unwrap();
    std::fs::set_permissions(at("closed.cnp"), Permissions::from_mode(0o0)).unwrap();
    let is_closed = File::open(at("closed.cnp")).is_err();
    if !is_closed {
        eprintln!("this user reads every file: that one stands for an empty one");
    }
    let run = ["run", "program.cnp", "--on", "interpreter"];
    for file in ["missing.cnp", "folder.cnp", "bytes.cnp", "empty.cnp", "closed.cnp"] {
        let is_empty = file == "empty.cnp" || file == "closed.cnp" && !is_closed;
        for words in [
            &["check", file][..],
            &["build", file, "--output", "built"],
            &["graph", file],
            &["run", file],
            &["fmt", "--check", file],
            &["test", file],
            &["xdp", "show", file],
            &["xdp", "run", file, "--trace", file],
            &["xdp", "compile", file],
            &["xdp", "explain", file],
            &["xdp", "estimate", file, "--trace", file],
            &["xdp", "trace", file, "--trace", file],
            &["xdp", "load", file, "--port", "gen:64x1", "--on", "interpreter"],
            &[&run[..], &["--init", file]].concat(),
            &[&run[..], &["--in", &format!("from_tor={file}")]].concat(),
        ] {
            let (status, reported) = end(&folder, words);
            // Folders of goldens and programs may be empty.
            let may_be_folder = ["test", "fmt"].contains(&words[0]);
            let is_wrong = !is_empty && (file != "folder.cnp" || !may_be_folder);
            if is_wrong {
                assert!(status != 0 && reported.contains(file), "{words:?}: {status}: {reported}");
            }
        }
        let target = format!("to_tor=nowhere/{file}");
        let words = [&run[..], &["--in", "from_tor=gen:60x1", "--out", &target]].concat();
        let (status, reported) = end(&folder, &words);
        assert!(
            status != 0 && reported.contains(&target["to_tor=".len()..]),
            "{words:?}: {reported}"
        );
    }
}

#[test]
fn every_option_with_a_value_takes_nonsense_without_a_panic() {
    let folder = folder();
    let mut options = 0;
    for (words, help) in commands(&folder) {
        // The following arguments belong to another command.
        if words.first().is_some_and(|word| word == "exec") {
            continue;
        }
        let takes_value = |line: &&str| line.contains('<') && line.trim_start().starts_with('-');
        let names = help.lines().filter(takes_value).filter_map(|line| {
            line.split_whitespace()
                .map(|word| word.trim_end_matches(','))
                .find(|word| word.starts_with("--") && word.len() > 2)
        });
        let names: BTreeSet<&str> = names.collect();
        for name in names {
            for value in [HUGE, "-1", "", "\u{1f600}", "=", "0"] {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                // A missing file prevents commands that accept the value from running.
                let option = format!("{name}={value}");
                let line = [&words[..], &[&option, "missing.cnp"]].concat();
                if !needs_file(&help) && value != HUGE {
                    continue;
                }
                if !needs_file(&help) && may_begin(&words) {
                    continue;
                }
                let (status, reported) = end(&folder, &line);
                assert!(status != 0, "{line:?}: {reported}");
                options += 1;
            }
        }
    }
    assert!(options > 100, "{options} were tried");
}

/// Whether a command needs an argument that is a file.
fn needs_file(help: &str) -> bool {
    let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
    usage.contains("<FILE>") || usage.contains("<FILES>") || usage.contains("<OBJECT>")
}

/// Whether a command runs regardless of further arguments.
fn may_begin(words: &[&str]) -> bool {
    matches!(words, ["node" | "bench" | "doctor", ..])
}
