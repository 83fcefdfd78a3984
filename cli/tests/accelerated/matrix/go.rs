// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Go, whose programs make system calls without the C library: they and their peers work as without
//! acceleration, whether they are linked to the C library or not.

use super::web::files;
use crate::harness::{Mode, Node, find_or_skip, free_port};
use crate::nginx::{self, PLAIN};
use freeport_testbed::usual_or_long;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Limit for compiling on a loaded machine.
const COMPILING: Duration = Duration::from_secs(900);

/// Compiles the program, linked to the C library or not.
fn compile(node: &Node, is_static: bool) -> Option<PathBuf> {
    let go = find_or_skip("go")?;
    let source = node.write("serve.go", include_str!("../programs/serve.go"));
    let mut command = node.command(Mode::Plain, &go);
    command.args(["build", "-o", "serve"]).arg(source);
    command.env("CGO_ENABLED", if is_static { "0" } else { "1" });
    command.env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"));
    command.env("GO111MODULE", "off").env("GOTOOLCHAIN", "local");
    // The first time, it compiles the standard library too.
    node.start("go", command).finish_within(COMPILING);
    Some(node.path().join("serve"))
}

/// Reasons for the state of each socket of a process.
fn reasons(node: &Node, pid: i32) -> Vec<Value> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it is there");
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|it| it.to_string_lossy().starts_with("socket:"))
    };
    let sockets = descriptors.flatten().filter(is_socket);
    let numbers = sockets.filter_map(|it| it.file_name().into_string().ok());
    let why = |number: String| {
        let socket = format!("{pid}:{number}");
        let output = node.freeport(&["sockets", "why", &socket, "--json"]).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    };
    numbers.filter_map(why).collect()
}

/// Whether one of these is the given reason.
fn is_said(reported: &[Value], part: &str) -> bool {
    reported.iter().any(|it| it.to_string().contains(part))
}

#[test]
fn programs_in_go_stay_in_the_kernel_and_it_is_said_why() {
    // Compiling the standard library takes longest, and each way of linking has its own.
    for &is_static in usual_or_long(&[true][..], &[true, false]) {
        let (node, _monitor) = Node::new();
        let Some(program) = compile(&node, is_static) else { return };
        let (port, files) = (free_port(), files(&node));
        let mut command = node.command(Mode::Accelerated, &program);
        command.args(["serve", &port.to_string()]).arg(&files);
        let server = node.serve("go server", command, port);
        // A client gets the file from it.
        let get = |port: u16| {
            let mut command = node.command(Mode::Accelerated, &program);
            command.args(["get", &port.to_string()]).arg(&files);
            node.start("go client", command).finish();
        };
        get(port);
        let stop = node.path().join("stop");
        let argument = format!("{port} {}", stop.display());
        let mut clients = node.role(Mode::Accelerated, "http load", &argument);
        let pid = clients.pid();
        clients.wait_until("who asks is told", || is_said(&reasons(&node, pid), "PeerPlain"));
        if is_static {
            let has_reported = || is_said(&reasons(&node, server.pid()), "linked statically");
            clients.wait_until("it is told", has_reported);
        } else {
            let has_reported = || is_said(&reasons(&node, server.pid()), "NoCalls");
            clients.wait_until("it is told", has_reported);
        }
        fs::write(stop, "").expect("it can be written");
        clients.finish();
        // It gets a file from an accelerated server.
        let behind = nginx::begin(&node, "behind", &PLAIN);
        get(behind.port);
        behind.quit(&node, "behind");
        assert_eq!(node.moved().bytes, 0);
    }
}
