// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of `docs/applications.csv`: real servers with real clients, plain and accelerated,
//! whose answers and data are compared.
//!
//! Who installs them all (`make applications`) has all of it tested; a program that is not there is
//! told, and nothing is tested with it.

mod postgres;
pub mod redis_mixed;
mod ssh;
mod table;
pub mod tokio_pair;
mod users;

use crate::harness::{Mode, Node, find_or_say};
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
    let shell = find_or_say("sh").expect("every system has it");
    let mut command = node.command(mode, &shell);
    command.args(["-e", "-c", text]);
    node.start("sh", command).finish()
}

/// Whether two processes have a connection past the kernel.
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
