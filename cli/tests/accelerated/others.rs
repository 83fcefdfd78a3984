// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tools of daily use: downloads, transfers, shells, and programs that the library cannot be loaded
//! into.

use crate::harness::{Mode, Node, content, find, find_or_skip, free_port, is_long};
use freeport_testbed::skip;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Size of the downloaded file in bytes.
const DOWNLOAD: usize = 20 << 20;

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn curl_downloads_from_a_server_in_python() {
    let (Some(curl), Some(python)) = (find_or_skip("curl"), find_or_skip("python3")) else {
        return;
    };
    let (node, _monitor) = Node::new();
    let served = content(3, DOWNLOAD);
    node.write("served", &served);
    let port = free_port().to_string();
    let mut command = node.command(Mode::Accelerated, &python);
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port]);
    let _server = node.serve("http.server", command, port.parse().expect("a port"));
    for mode in [Mode::Accelerated, Mode::Plain] {
        let download = || {
            let mut command = node.command(mode, &curl);
            command.args(["--silent", "--show-error", "--fail", "--output", "got"]);
            command.arg(format!("http://127.0.0.1:{port}/served"));
            node.start("curl", command).finish();
            let got = fs::read(node.path().join("got")).expect("it was written");
            assert!(got == served, "another file");
        };
        match mode {
            Mode::Accelerated => node.run_until_moved(1, 1_000_000, download),
            Mode::Plain => download(),
        }
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn iperf3_sends_and_receives_with_one_stream_and_with_four() {
    let Some(iperf) = find_or_skip("iperf3") else { return };
    let (node, _monitor) = Node::new();
    let port = free_port();
    let mut command = node.command(Mode::Accelerated, &iperf);
    command.args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()]);
    let mut server = node.start("iperf3 server", command);
    // It serves one client at a time, and takes each connection for a client.
    server.wait_until("it listens", {
        let listening = format!("0100007F:{port:04X} 00000000:0000 0A");
        move || fs::read_to_string("/proc/net/tcp").unwrap_or_default().contains(&listening)
    });
    let bytes = if is_long() { "4G" } else { "256M" };
    for arguments in [&["-P", "1"][..], &["-P", "4"], &["-R"], &["-R", "-P", "4"]] {
        let streams = if arguments.contains(&"4") { 4 } else { 1 };
        node.run_until_moved(streams, 200 << 20, || {
            let mut command = node.command(Mode::Accelerated, &iperf);
            command.args(["-c", "127.0.0.1", "-p", &port.to_string(), "-n", bytes, "--json"]);
            command.args(arguments);
            let printed = node.start("iperf3", command).finish();
            let reported: Value = serde_json::from_str(&printed).expect("an answer in JSON");
            assert_eq!(reported["error"], Value::Null, "{arguments:?}");
            let received = reported["end"]["sum_received"]["bytes"].as_u64().expect("a number");
            assert!(received >= 200 << 20, "{arguments:?}: {received}");
        });
    }
}

/// Runs a shell command, accelerated and plain; the results must be equal.
fn same_in_both(node: &Node, shell: &Path, text: &str) -> Output {
    let [plain, accelerated] = [Mode::Plain, Mode::Accelerated].map(|mode| {
        let mut command = node.command(mode, shell);
        command.args(["-c", text]).output().expect("it can be begun")
    });
    assert_eq!(plain, accelerated, "{text}");
    plain
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn shells_and_what_they_begin_are_as_before() {
    let (node, _monitor) = Node::new();
    for shell in ["sh", "bash"].into_iter().filter_map(find_or_skip) {
        let same = |text: &str| same_in_both(&node, &shell, text);
        assert_eq!(
            same("seq 1 100000 | sort -rn | head -n 3 | tr '\\n' ' '").stdout,
            b"100000 99999 99998 "
        );
        assert_eq!(same("echo told; echo complained >&2; exit 7").status.code(), Some(7));
        assert_eq!(
            same("x=$(cat <<E\nhere\nE\n); (exec 3>&1; echo $x >&3) | cat").stdout,
            b"here\n"
        );
        same("kill -TERM $$");
        same("yes | head -c 1000000 | cksum");
        same("for each in 1 2 3; do (sleep 0; echo $each) & wait; done; nothing-of-that-name");
    }
    if let Some(bash) = find_or_skip("bash") {
        // The shell opens sockets itself; no process listens on this port.
        let port = free_port();
        same_in_both(&node, &bash, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
        same_in_both(&node, &bash, "diff <(seq 3) <(seq 4)");
        let beside = "coproc cat; echo x >&${COPROC[1]}; read -ru ${COPROC[0]} y; echo $y";
        assert_eq!(same_in_both(&node, &bash, beside).stdout, b"x\n");
    }
}

#[test]
fn programs_that_cannot_be_given_the_library_are_as_before() {
    let (node, _monitor) = Node::new();
    let folders = ["/sbin/ldconfig", "/bin/busybox", "/usr/bin/busybox", "/bin/bash-static"];
    match folders.map(PathBuf::from).into_iter().find(|it| is_static(it)) {
        Some(program) => same_output(&node, &program, &["--help"]),
        None => skip("there is no program that is linked statically"),
    }
    match find("su").or_else(|| find("passwd")) {
        Some(program) => same_output(&node, &program, &["--help"]),
        None => skip("there is no program that runs with more rights"),
    }
}

/// Whether a program is statically linked: it names no loader.
fn is_static(path: &Path) -> bool {
    const INTERPRETER: [u8; 4] = [3, 0, 0, 0];
    let Ok(bytes) = fs::read(path) else { return false };
    let number = |at: usize| bytes.get(at..at + 2).map(|it| u16::from_le_bytes([it[0], it[1]]));
    // The program headers follow the ELF header of 64 bytes.
    let (Some(size), Some(count)) = (number(54), number(56)) else { return false };
    let part = |at: usize| bytes.get(64 + at * usize::from(size)..)?.get(..4);
    let has_loader = (0..usize::from(count)).any(|at| part(at) == Some(&INTERPRETER));
    bytes.starts_with(b"\x7fELF\x02\x01") && !has_loader
}

fn same_output(node: &Node, program: &Path, arguments: &[&str]) {
    let run = |mode| {
        let mut command: Command = node.command(mode, program);
        command.args(arguments).output().expect("it can be begun")
    };
    let (plain, accelerated) = (run(Mode::Plain), run(Mode::Accelerated));
    assert_eq!(plain.status, accelerated.status, "{}", program.display());
    assert_eq!(plain.stdout, accelerated.stdout, "{}", program.display());
    assert!(!plain.stdout.is_empty(), "{} says nothing", program.display());
}
