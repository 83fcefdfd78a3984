// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets why`: each reason for which a connection is not accelerated, with real
//! programs.

mod bounds;
mod documented;
mod library;
mod monitors;
mod outside;

use crate::harness::{Mode, Node, Program, find_or_skip, wait_until};
use freeport_testbed::skip;
use serde_json::Value;

/// The program that opens the connections.
const PROGRAM: &str = include_str!("../programs/reasons.py");

/// A program whose connection is inspected.
struct Scene<'a> {
    node: &'a Node,
    // The program ends when this is dropped.
    _program: Program,
    /// Process ID and descriptor.
    end: String,
}

impl<'a> Scene<'a> {
    /// `None`: it cannot run here; the test is skipped.
    fn new(node: &'a Node, mode: Mode, words: &[&str]) -> Option<Self> {
        let python = find_or_skip("python3")?;
        let path = node.write("reasons.py", PROGRAM);
        let mut command = node.command(mode, &python);
        command.arg("-B").arg(path).args(words);
        let mut program = node.start(words[0], command);
        let said = |program: &Program, what: &str| {
            let printed = program.printed();
            let found = printed.lines().find_map(|line| line.strip_prefix(what));
            found.map(str::to_owned)
        };
        wait_until("it says whom to ask about", || {
            let is_said = said(&program, "ask ").is_some() || said(&program, "cannot").is_some();
            assert!(is_said || program.ended().is_none(), "{words:?}: {}", program.printed());
            is_said
        });
        if said(&program, "cannot").is_some() {
            skip(format_args!("{}: {}", words[0], program.printed().trim()));
            return None;
        }
        let end = said(&program, "ask ").expect("see above");
        Some(Self { node, _program: program, end })
    }

    fn reported(&self) -> Value {
        self.node.ask(&["sockets", "why", &self.end, "--json"]).expect("it can be asked")
    }

    /// Waits until a state is reported.
    fn comes_to(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut reported = self.reported();
        let begin = std::time::Instant::now();
        while !is_so(&reported) {
            let is_late = begin.elapsed() > crate::harness::PATIENCE;
            assert!(!is_late, "{what} is expected: {reported}\n{}", self.node.listed());
            std::thread::sleep(std::time::Duration::from_millis(20));
            reported = self.reported();
        }
        reported
    }

    /// Asserts that this is the reason; returns its text.
    fn is_for(&self, reason: &str) -> String {
        let reported = self.comes_to(reason, |reported| name(reported) == reason);
        reported["text"].as_str().expect("a text").to_owned()
    }
}

/// The reported reason.
fn name(reported: &Value) -> &str {
    let reason = reported["reason"].as_str().or(reported["refusal"]["reason"].as_str());
    reason.unwrap_or_default()
}
