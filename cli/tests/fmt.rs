// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport fmt` on files, folders and standard input.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LOOSE: &str = "struct  A { uint a ; } ;\n\n\n\nstruct B {\n  uint b; // one\n};\n";
const NEAT: &str = "struct A { uint a; };\n\nstruct B {\n    uint b;  // one\n};\n";
const WRONG: &str = "struct  A { uint };\n";

fn fmt(arguments: &[&str], folder: &Path, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_freeport"))
        .arg("fmt")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn files_are_rewritten_only_where_they_change() {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("deep")).unwrap();
    let (loose, neat) = (top.path().join("deep/loose.cnp"), top.path().join("neat.cnp"));
    let wrong = top.path().join("wrong.cnp");
    fs::write(&loose, LOOSE).unwrap();
    fs::write(&neat, NEAT).unwrap();
    fs::write(&wrong, WRONG).unwrap();
    let before = fs::metadata(&neat).unwrap().modified().unwrap();
    let output = fmt(&["deep", "neat.cnp"], top.path(), "");
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "2 file(s): 1 changed, 0 error(s)\n");
    assert_eq!(fs::read_to_string(&loose).unwrap(), NEAT);
    assert_eq!(fs::metadata(&neat).unwrap().modified().unwrap(), before);

    fs::write(&loose, LOOSE).unwrap();
    let output = fmt(&["."], top.path(), "");
    assert!(!output.status.success());
    let reported = text(&output.stderr);
    assert!(
        reported.contains("error[E0110]") && reported.contains("./wrong.cnp:1:18"),
        "{reported}"
    );
    assert!(reported.ends_with("3 file(s): 1 changed, 1 error(s)\n"), "{reported}");
    assert_eq!(fs::read_to_string(&loose).unwrap(), NEAT);
    assert_eq!(fs::read_to_string(&wrong).unwrap(), WRONG);
}

#[test]
fn a_check_tells_the_lines_and_writes_nothing() {
    let top = tempfile::tempdir().unwrap();
    let file = top.path().join("loose.cnp");
    fs::write(&file, LOOSE).unwrap();
    let output = fmt(&["--check", "loose.cnp"], top.path(), "");
    assert!(!output.status.success());
    let reported = "loose.cnp:1:\n-struct  A { uint a ; } ;\n+struct A { uint a; };\n\
        loose.cnp:3:\n-\n-\nloose.cnp:6:\n-  uint b; // one\n+    uint b;  // one\n";
    assert_eq!(text(&output.stdout), reported);
    assert_eq!(fs::read_to_string(&file).unwrap(), LOOSE);
    fs::write(&file, NEAT).unwrap();
    let output = fmt(&["--check", "loose.cnp"], top.path(), "");
    assert!(output.status.success() && output.stdout.is_empty());
}

#[test]
fn standard_input_goes_to_standard_output() {
    let top = tempfile::tempdir().unwrap();
    for input in [LOOSE, NEAT] {
        let output = fmt(&["-"], top.path(), input);
        assert!(output.status.success() && output.stderr.is_empty());
        assert_eq!(text(&output.stdout), NEAT);
    }
    assert!(!fmt(&["--check", "-"], top.path(), LOOSE).status.success());
    let output = fmt(&["-"], top.path(), WRONG);
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(text(&output.stderr).contains("standard input:1:18"));
}

#[test]
fn what_is_not_there_is_told() {
    let top = tempfile::tempdir().unwrap();
    for arguments in [&["none.cnp"][..], &["."], &["-", "none.cnp"], &[]] {
        let output = fmt(arguments, top.path(), "");
        assert!(!output.status.success() && !output.stderr.is_empty(), "{arguments:?}");
    }
}
