// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of `docs/reference/applications.csv`: real servers with real clients, plain and
//! accelerated, whose answers and data are compared.
//!
//! Each run tests one program of a kind; a long run tests all of them, which `make applications`
//! installs. A test whose program is not installed is skipped.

mod apache;
mod cpython;
mod encryption;
mod go;
mod messages;
mod postgres;
pub mod redis_mixed;
mod services;
mod ssh;
mod table;
pub mod tokio_pair;
mod transfers;
pub mod users;
mod web;

use crate::harness::{Mode, Node, find};
use serde_json::Value;

/// Server and client: both accelerated, and each with a plain peer.
const MODES: [[Mode; 2]; 3] =
    [[Mode::Accelerated; 2], [Mode::Accelerated, Mode::Plain], [Mode::Plain, Mode::Accelerated]];

/// Whether a connection can be accelerated.
fn are_accelerated(modes: [Mode; 2]) -> bool {
    modes == [Mode::Accelerated; 2]
}

/// Runs shell commands, which must succeed; returns their output.
fn shell(node: &Node, mode: Mode, text: &str) -> String {
    let shell = find("sh").expect("every system has it");
    let mut command = node.command(mode, &shell);
    command.args(["-e", "-c", text]);
    node.start("sh", command).finish()
}

/// Runs an action. If both sides are accelerated, it is repeated until this number of connections
/// has moved this number of bytes past the kernel; otherwise it runs once, and no byte may be
/// moved.
fn run(node: &Node, modes: [Mode; 2], least: [u64; 2], run: impl FnMut()) {
    let before = node.moved();
    run_with_own(node, modes, least, run);
    if !are_accelerated(modes) {
        assert_eq!(node.moved().bytes, before.bytes, "{modes:?}");
    }
}

/// The same if one side has connections between its own processes.
fn run_with_own(
    node: &Node,
    modes: [Mode; 2],
    [connections, bytes]: [u64; 2],
    mut run: impl FnMut(),
) {
    if are_accelerated(modes) {
        node.run_until_moved(connections, bytes, run);
    } else {
        run();
    }
}

/// Whether two processes have an accelerated connection now.
fn is_between(node: &Node, pids: [i32; 2]) -> bool {
    let is_it = |connection: &Value| {
        let ends = connection["ends"].as_array().into_iter().flatten();
        let found: Vec<_> = ends.filter_map(|end| end["pid"].as_i64()).collect();
        let wanted = pids.map(i64::from);
        connection["transport"] == "shm"
            && (found == wanted || found.iter().rev().eq(wanted.iter()))
    };
    node.connections().iter().any(is_it)
}
