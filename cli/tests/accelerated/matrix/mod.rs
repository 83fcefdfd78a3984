// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of `docs/reference/applications.csv`: real servers with real clients, plain and
//! accelerated,
//! whose answers and data are compared.
//!
//! Each run tests one program of a kind; a long run tests all of them, which `make applications`
//! installs. A test whose program is not there is skipped.

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

/// Server and client, accelerated both, and each with a plain one.
const MODES: [[Mode; 2]; 3] =
    [[Mode::Accelerated; 2], [Mode::Accelerated, Mode::Plain], [Mode::Plain, Mode::Accelerated]];

/// Whether something can have left the kernel.
fn are_accelerated(modes: [Mode; 2]) -> bool {
    modes == [Mode::Accelerated; 2]
}

/// Runs commands of a shell, which have to succeed; what they print.
fn shell(node: &Node, mode: Mode, text: &str) -> String {
    let shell = find("sh").expect("every system has it");
    let mut command = node.command(mode, &shell);
    command.args(["-e", "-c", text]);
    node.start("sh", command).finish()
}

/// Runs something: if both sides are accelerated until so many connections have moved so many bytes
/// past the kernel, else once, and nothing may be moved.
fn run(node: &Node, modes: [Mode; 2], least: [u64; 2], run: impl FnMut()) {
    let before = node.moved();
    run_with_own(node, modes, least, run);
    if !are_accelerated(modes) {
        assert_eq!(node.moved().bytes, before.bytes, "{modes:?}");
    }
}

/// The same where one of both has connections with itself, between its own processes.
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

/// Whether two processes have a connection past the kernel, now.
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
