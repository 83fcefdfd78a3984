// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings of `check`, `build` and `run`, and files in the formats of editors on other systems.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const HABIT: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Habit (packet in -> packet out) {
    .handler { packet p = read_input_port(in); set_output_port(out, p); return 0; }
}
Habit :: habit
from_tor -> habit -> to_tor
";

fn freeport(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("FREEPORT_ELEMENTS");
    command.output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn warnings_are_printed_and_refuse_a_program_where_they_are_denied() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("habit.cnp"), HABIT).unwrap();
    let run = ["run", "habit.cnp", "--on", "interpreter", "--in", "from_tor=gen:60x1"];
    let commands: [&[&str]; 3] = [
        &["check", "habit.cnp"],
        &["build", "habit.cnp", "-o", "out"],
        &[&run[..], &["--out", "to_tor=count"]].concat(),
    ];
    for command in commands {
        let output = freeport(top.path(), &[command, &["--deny", "warnings"]].concat());
        let reported = complaint(&output);
        assert!(!output.status.success(), "{command:?}");
        assert!(reported.contains("warning[W0604]: this handler"), "{command:?}: {reported}");
        assert!(reported.contains("denied"), "{command:?}: {reported}");
        assert!(!top.path().join("out").exists(), "it was built all the same");
    }
    let output = freeport(top.path(), &["check", "habit.cnp"]);
    assert!(output.status.success());
    assert!(complaint(&output).contains("0 error(s), 1 warning(s)"), "{}", complaint(&output));
    let output = freeport(top.path(), &["check", "--json", "--deny", "warnings", "habit.cnp"]);
    assert!(!output.status.success());
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&reported["code"], &reported["severity"]), (&"W0604".into(), &"warning".into()));
    let output = freeport(top.path(), &["check", "--deny", "errors", "habit.cnp"]);
    assert!(complaint(&output).contains("possible values: warnings"));
}

#[test]
fn a_file_of_elements_is_no_program_that_runs() {
    let top = tempfile::tempdir().unwrap();
    let elements = HABIT.split("Habit :: habit").next().unwrap().replace("return 0;", "");
    fs::write(top.path().join("element.cnp"), elements).unwrap();
    let check = freeport(top.path(), &["check", "--deny", "warnings", "element.cnp"]);
    assert!(check.status.success(), "{}", complaint(&check));
    let build = ["build", "element.cnp", "-o", "out", "--deny", "warnings"];
    let build = freeport(top.path(), &build);
    assert!(!build.status.success());
    assert!(complaint(&build).contains("warning[W0614]: element.cnp:1:1: no instance"));
}

#[test]
fn byte_order_marks_are_passed_over() {
    let top = tempfile::tempdir().unwrap();
    let marked = |text: &str| format!("\u{feff}{text}");
    let program = HABIT.replace("return 0;", "");
    fs::write(top.path().join("habit.cnp"), marked(&program)).unwrap();
    let empty = "program empty\n";
    fs::write(top.path().join("empty.ir"), marked(empty)).unwrap();
    let output = freeport(top.path(), &["check", "habit.cnp", "empty.ir"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let output = freeport(top.path(), &["fmt", "habit.cnp"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let formatted = fs::read_to_string(top.path().join("habit.cnp")).unwrap();
    assert!(formatted.starts_with("// SPDX"), "{formatted}");
}

#[test]
fn a_table_that_is_too_large_is_refused_with_one_message() {
    let top = tempfile::tempdir().unwrap();
    let state = ".state { table<uint, uint> t[1000000000]; }\n    .handler";
    let program = HABIT.replace("return 0;", "").replace(".handler", state);
    fs::write(top.path().join("large.cnp"), program).unwrap();
    let run = ["run", "large.cnp", "--in", "from_tor=gen:60x1", "--out", "to_tor=count"];
    for command in [&["check", "large.cnp"][..], &run] {
        let output = freeport(top.path(), command);
        assert!(!output.status.success(), "{command:?}");
        let reported = complaint(&output);
        assert!(reported.contains("error[E0410]: this table is not possible"), "{reported}");
        assert!(reported.contains("large.cnp:3:34"), "{reported}");
    }
}
