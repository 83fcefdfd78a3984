// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPython's own tests of sockets and event loops, plain and accelerated: the results are the same.
//!
//! Most tests talk to a thread of their own process, and their connections stay in the kernel: they
//! show that the library changes nothing. Connections to child processes and of multiprocessing are
//! accelerated.

use crate::harness::{Mode, Node, find};
use freeport_testbed::skip;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MODULES: [&str; 21] = [
    "test_select",
    "test_selectors",
    "test_poll",
    "test_epoll",
    "test_socketserver",
    "test_socket",
    "test_asyncio",
    "test_ssl",
    "test_ftplib",
    "test_httplib",
    "test_httpservers",
    "test_urllib2_localnet",
    "test_xmlrpc",
    "test_poplib",
    "test_imaplib",
    "test_smtplib",
    "test_telnetlib",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_spawn",
    "test_subprocess",
];
/// Tests that hang on virtual machines, with the library or without.
const LEFT_OUT: &str = "ThreadedVSOCKSocketStreamTest";
/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(1200);
/// Number of times that a test with another result is repeated, since some tests fail sometimes.
const AGAIN: usize = 3;

/// An interpreter with its test suite; that of the system has it in a separate package.
fn python() -> Option<PathBuf> {
    let all = [Some(PathBuf::from("/usr/bin/python3")), find("python3")];
    let has_tests = |python: &PathBuf| {
        let mut command = Command::new(python);
        let output = command.args(["-c", "import test.test_socket, test.libregrtest"]).output();
        output.is_ok_and(|it| it.status.success())
    };
    let found = all.into_iter().flatten().find(has_tests);
    if found.is_none() {
        skip("no Python has its tests with it");
    }
    found
}

/// Whether it has these tests: some installations omit some, and later versions have no telnet.
fn has_module(python: &Path, module: &str) -> bool {
    let code = "import importlib.util as it, sys; sys.exit(it.find_spec(sys.argv[1]) is None)";
    let status = Command::new(python).args(["-c", code, &format!("test.{module}")]).status();
    status.is_ok_and(|it| it.success())
}

/// Results by test.
type Results = BTreeMap<String, String>;

/// Runs a module, or those of its tests that are named.
fn run(node: &Node, mode: Mode, python: &Path, module: &str, only: &[String]) -> Results {
    let name = format!("{mode:?}.xml");
    let mut command = node.command(mode, python);
    command.args(["-m", "test", "-u", "network", "--timeout", "900", "--ignore", LEFT_OUT]);
    command.args(["--junit-xml", &name, module]);
    command.args(only.iter().flat_map(|name| ["-m", name]));
    // The results are checked below.
    let mut program = node.start("python", command);
    program.wait_for(PATIENCE);
    let path = node.path().join(name);
    let reported = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", program.printed()));
    fs::remove_file(path).expect("it was written");
    parse(&reported)
}

/// Parses a report: the name and result of each test.
fn parse(report: &str) -> Results {
    let cases = report.split("<testcase ").skip(1);
    let parse = |case: &str| {
        let name = case.split("name=\"").nth(1)?.split('"').next()?.to_owned();
        let body = case.split("</testcase>").next()?;
        let kinds = ["<failure", "<error", "<skipped"].into_iter().filter(|it| body.contains(it));
        Some((name, kinds.collect::<Vec<_>>().concat()))
    };
    cases.filter_map(parse).collect()
}

/// Tests whose results differ or are missing.
fn differing(plain: &Results, accelerated: &Results) -> Vec<String> {
    let is_same = |name: &str, result: &String| accelerated.get(name) == Some(result);
    let differ = plain.iter().filter(|(name, result)| !is_same(name, result));
    differ.map(|(name, _)| name.clone()).collect()
}

#[test]
#[ignore = "long: the tests that Python has of itself are many"]
fn tests_of_python_come_to_the_same() {
    let Some(python) = python() else { return };
    let (node, _monitor) = Node::new();
    for module in MODULES {
        if !has_module(&python, module) {
            skip(format_args!("this Python does not have {module}"));
            continue;
        }
        let modes = [Mode::Plain, Mode::Accelerated];
        let [plain, accelerated] = modes.map(|mode| run(&node, mode, &python, module, &[]));
        assert!(plain.len() > 3, "{module}: {plain:?}");
        let mut left = differing(&plain, &accelerated);
        println!("{module}: {} tests, {} of them differ: {left:?}", plain.len(), left.len());
        for _ in 0..AGAIN {
            if left.is_empty() {
                break;
            }
            let [plain, accelerated] = modes.map(|mode| run(&node, mode, &python, module, &left));
            left = differing(&plain, &accelerated);
        }
        assert!(left.is_empty(), "{module}: {left:?}");
    }
}

#[test]
fn reports_are_read() {
    let report = r#"<testsuites><testsuite><testcase name="a.b" result="completed"/>
        <testcase name="a.c"><failure>no</failure></testcase>
        <testcase name="a.d"><skipped>"why"</skipped></testcase></testsuite></testsuites>"#;
    let results = [("a.b", ""), ("a.c", "<failure"), ("a.d", "<skipped")];
    let results: Results = results.map(|(name, it)| (name.to_owned(), it.to_owned())).into();
    assert_eq!(parse(report), results);
    let other = [("a.b", ""), ("a.d", "<failure")];
    let other: Results = other.map(|(name, it)| (name.to_owned(), it.to_owned())).into();
    assert_eq!(differing(&results, &other), ["a.c", "a.d"]);
}
