// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients in processes of their own, which are killed. Such a process is this test binary again:
//! a test of it is the client.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use freeport_kv_protocol::batch::Operation;
use freeport_testbed::wait_until;

use super::client::{BatchClient, Stream, Way, served};

/// Name of the test that is the client.
const ACTS: &str = "batched::processes::acts_for_other_tests";
/// Variables that configure it.
const SOCKET: &str = "FREEPORT_BATCH_SOCKET";
const ACT: &str = "FREEPORT_BATCH_ACT";
/// Line that it prints when it is connected and has been served.
const READY: &str = "the client is served";

/// Starts a client, and waits until it has been served.
fn client_process(socket: &Path, act: &str) -> Child {
    let test = std::env::current_exe().expect("a test knows its own file");
    let mut child = Command::new(test)
        .args([ACTS, "--exact", "--nocapture", "--test-threads=1"])
        .env(SOCKET, socket)
        .env(ACT, act)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let is_ready = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains(READY));
    assert!(output.lines().any(is_ready), "the client does not get ready");
    child
}

/// A client acts until it is killed, or until its parent ends.
#[test]
fn acts_for_other_tests() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut client = BatchClient::over(Stream::fabric(&PathBuf::from(socket)));
    client.put(b"large", &vec![b'x'; 50_000]);
    println!("\n{READY}");
    match std::env::var(ACT).as_deref() {
        // Its packets are under way when it is killed.
        Ok("busy") => loop {
            client.put(b"child", b"value");
        },
        // It does not read its replies.
        Ok("silent") => (0..200).for_each(|_| {
            client.send(&[Operation::get(b"large")]);
        }),
        _ => {}
    }
    // This returns when the parent has ended.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn killed_clients_leave_nothing_and_others_are_served() {
    for workers in [1, 3] {
        let served = served(workers);
        let mut regular = served.client(Way::Fabric);
        for act in ["idle", "busy", "silent"] {
            let mut children: Vec<Child> =
                (0..3).map(|_| client_process(&served.path(), act)).collect();
            regular.put(b"key", act.as_bytes());
            for child in &mut children {
                child.kill().expect("it is a child");
                child.wait().expect("it was killed");
                assert_eq!(regular.get(b"key"), Some(act.as_bytes().to_vec()));
            }
            wait_until("they have gone", || served.server.census().connections == 1);
        }
    }
}
