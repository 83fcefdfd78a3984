// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The store as processes of this machine: host, processor and clients, with the same histories as
//! on the simulated machine.

use crate::model::{Call, Operation, Reply};
use freeport_study_kv::Alternative;
use freeport_study_verbs::Place;
use freeport_testbed::history::{contradiction, is_linearizable, show};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

/// Number of clients, operations of each, and keys.
const CLIENTS: usize = 3;
const TURNS: usize = 500;
const KEYS: usize = 3;

/// A place that is a process. It ends when this is dropped.
struct Node {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Node {
    /// Starts a place, and waits until it is ready.
    fn start(folder: &Path, place: Place) -> Self {
        // A loaded machine may stop a place for long.
        let patience = "patience_ms=180000";
        let options = ["buckets=2", "bucket_entries=3", "cache_memory=8192", "cached_item_max=256"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_freeport-study-kv-node"))
            .arg(folder)
            .arg(place.to_string())
            .args(options)
            .args(["item_memory=65536", patience])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut node = Self { child, input, output };
        assert_eq!(node.line(), "ready");
        node
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the program writes");
        line.trim_end().into()
    }

    /// Asks a client, and returns the times of begin and end, the number of retries, and the reply.
    fn ask(&mut self, line: &str) -> ([u64; 3], String) {
        writeln!(self.input, "{line}").expect("the program reads");
        let answer = self.line();
        let words: Vec<&str> = answer.splitn(4, ' ').collect();
        let [begin, end, retries, reply] = words[..] else { panic!("{line}: {answer}") };
        ([begin, end, retries].map(|it| it.parse().expect("a number")), reply.into())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets a client carry out random operations, and returns them.
fn record(node: &mut Node, client: usize, seed: u64) -> Vec<Operation> {
    let mut random = fastrand::Rng::with_seed(seed * 100 + client as u64);
    let operations = (0..TURNS).map(|turn| {
        let call = Call::random(&mut random, KEYS, (client * TURNS + turn) as u32);
        let alternative = Alternative::ALL[random.usize(..Alternative::ALL.len())];
        let ([called_ns, returned_ns, _], reply) = node.ask(&match &call {
            Call::Get(key) => format!("get {alternative} {}", Call::key(*key)),
            Call::Put(key, value) => format!("put {} {}", Call::key(*key), Call::value(*value)),
            Call::Delete(key) => format!("delete {}", Call::key(*key)),
        });
        let reply = match (&call, reply.split_once(' ')) {
            (Call::Get(_), Some(("value", value))) => Reply::Value(Some(Call::number(value))),
            (Call::Get(_), None) if reply == "none" => Reply::Value(None),
            (Call::Put(..) | Call::Delete(_), None) if reply == "done" => Reply::Done(true),
            (Call::Delete(_), None) if reply == "none" => Reply::Done(false),
            _ => panic!("{call:?}: {reply}"),
        };
        let (reply, after) = (Some(reply), vec![]);
        Operation { client, call, reply, called_ns, returned_ns, after }
    });
    operations.collect()
}

/// Whether gets meet puts depends on the machine, and is not asserted; those of the simulated
/// machine do.
#[test]
fn histories_of_processes_are_linearizable() {
    let seed = freeport_testbed::seed();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let _host = Node::start(folder.path(), Place::Host);
    let _soc = Node::start(folder.path(), Place::Soc);
    let clients = (0..CLIENTS).map(|number| {
        let mut node = Node::start(folder.path(), Place::Client(number as u16));
        thread::spawn(move || record(&mut node, number, seed))
    });
    let clients: Vec<_> = clients.collect();
    let mut history = vec![];
    for client in clients {
        history.extend(client.join().expect("it does not panic"));
    }
    history.sort_by_key(|operation| operation.called_ns);
    assert!(
        is_linearizable(&history),
        "seed {seed}: no order explains\n{}",
        show(&contradiction(&history))
    );
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, expected) in [
        (vec![], "use: freeport-study-kv-node"),
        (vec!["/tmp", "nowhere"], "nowhere is no place"),
        (vec!["/tmp", "host", "bucket=1"], "no option bucket; there are patience_ms, buckets,"),
        (vec!["/tmp", "host", "soc_memory=1"], "soc_memory is 1 B: less than"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_freeport-study-kv-node"))
            .args(&arguments)
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(expected), "{arguments:?}: {error}");
    }
}
