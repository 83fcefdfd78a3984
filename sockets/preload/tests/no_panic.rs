// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The library runs inside any program, so none of its entry points may reach a panic, the heap, or
//! a function of another library except those listed here. This test reads the machine code of a
//! release build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of other libraries that may be called.
const ALLOWED: [&str; 13] = [
    "__errno_location",
    "__register_atfork",
    "_Unwind_Resume",
    "__dso_handle",
    "bcmp",
    "clock_gettime",
    "dlsym",
    "getenv",
    "memcpy",
    "memmove",
    "memset",
    "sched_getcpu",
    "strlen",
];

/// Makes a release build of the library in a folder of its own.
fn library() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_panic");
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--release", "--locked", "--offline", "--quiet"]);
    command.arg("--manifest-path").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    command.arg("--target-dir").arg(&folder);
    let output = command.output().expect("there is a cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("release/libfreeport_preload.so")
}

fn output(command: &str, options: &[&str], file: &Path) -> String {
    let output = Command::new(command).args(options).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are text")
}

/// The name between the last `<` and `>` of a line, up to a `+` or `@`.
fn named(line: &str) -> Option<&str> {
    let (_, behind) = line.rsplit_once('<')?;
    let name = behind.split_once('>')?.0;
    name.split(['+', '@']).next()
}

/// The names that each function refers to.
fn calls(assembly: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut calls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut current = "";
    for line in assembly.lines() {
        if line.ends_with(">:") {
            current = named(line).unwrap_or_default();
        } else if let Some(name) = named(line).filter(|name| *name != current) {
            calls.entry(current).or_default().insert(name);
        }
    }
    calls
}

/// The functions that can be reached from some, each with the one that reaches it first.
fn reachable<'a>(
    calls: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let mut found: BTreeMap<_, _> = from.map(|name| (name, "")).collect();
    let mut open: Vec<_> = found.keys().copied().collect();
    while let Some(name) = open.pop() {
        for called in calls.get(name).into_iter().flatten() {
            if !found.contains_key(called) {
                found.insert(called, name);
                open.push(called);
            }
        }
    }
    found
}

fn way<'a>(found: &BTreeMap<&'a str, &'a str>, to: &'a str) -> String {
    let mut way = vec![to];
    while let Some(from) = found.get(way[way.len() - 1]).filter(|from| !from.is_empty()) {
        way.push(from);
    }
    way.join("\n  from ")
}

#[test]
fn no_entry_point_reaches_a_panic_or_the_heap() {
    let library = library();
    let assembly = output("objdump", &["-d", "--no-show-raw-insn"], &library);
    let exported = output("nm", &["-D", "--defined-only"], &library);
    let foreign = output("nm", &["-D", "--undefined-only"], &library);
    let name = |line: &str| {
        let name = line.rsplit(' ').next().unwrap_or_default();
        name.split('@').next().unwrap_or_default().to_owned()
    };
    let exported: Vec<_> = exported.lines().map(name).collect();
    let foreign: BTreeSet<_> = foreign.lines().map(name).collect();
    assert!(exported.iter().any(|name| name == "recv") && exported.len() > 40, "{exported:?}");

    let calls = calls(&assembly);
    let found = reachable(&calls, exported.iter().map(String::as_str));
    assert!(found.len() > 100, "the calls are read: {}", found.len());
    let is_panic = |name: &&&str| {
        ["panic", "unwrap_failed", "expect_failed"].iter().any(|part| name.contains(part))
            && !name.contains("no_panic")
    };
    let panics: Vec<_> = found.keys().filter(is_panic).map(|name| way(&found, name)).collect();
    assert!(panics.is_empty(), "{}", panics.join("\n"));
    let others = found.keys().filter(|name| foreign.contains(**name) && !ALLOWED.contains(*name));
    let others: Vec<_> = others.map(|name| way(&found, name)).collect();
    assert!(others.is_empty(), "{}", others.join("\n"));

    // The test finds a panic from a function that has one.
    let panicking =
        calls.iter().find(|(_, called)| called.iter().any(|name| name.contains("panicking")));
    let (from, _) = panicking.expect("the standard library is linked, and has some");
    assert!(reachable(&calls, [*from].into_iter()).keys().any(|name| name.contains("panic")));
}
