// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers in processes of their own, which are killed while clients send packets. Such a process
//! is this test binary again. All that was acknowledged is there when the folder is read again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use freeport_kv_protocol::batch::{Opcode, Operation, Status};
use freeport_kv_server::{Bind, Options, PersistenceOptions, Policy, Server};
use freeport_testbed::wait_until;

use super::client::{BatchClient, Stream, packet};

/// Name of the test that serves.
const SERVES: &str = "batched::killed_servers::serves_for_other_tests";
/// Variables that configure it.
const FOLDER: &str = "FREEPORT_BATCH_FOLDER";
const WORKERS: &str = "FREEPORT_BATCH_WORKERS";
/// Text before its address in its output.
const READY: &str = "ready at ";
/// Keys of a client, besides its counter.
const KEYS: usize = 50;

fn start(folder: &Path, workers: usize) -> Server {
    let persistence = PersistenceOptions {
        policy: Policy::EverySecond,
        ..PersistenceOptions::new(folder.into())
    };
    let address = Bind::Tcp("127.0.0.1:0".parse().expect("it is an address"));
    let (batch, persistence) = (vec![address], Some(persistence));
    let options = Options { workers, batch, persistence, ..Options::default() };
    Server::start(options).expect("it starts")
}

#[test]
fn serves_for_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let workers = std::env::var(WORKERS).expect("it is set").parse().expect("a number");
    let server = start(Path::new(&folder), workers);
    println!("\n{READY}{}", server.addresses()[0]);
    // An end of any kind is one.
    let _ = std::io::stdin().read_to_end(&mut vec![]);
}

fn server_process(folder: &Path, workers: usize) -> (Child, SocketAddr) {
    let test = std::env::current_exe().expect("a test knows its own file");
    let mut child = Command::new(test)
        .args([SERVES, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(WORKERS, workers.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let address = output.lines().find_map(|line| {
        let line = line.expect("it can be read");
        line.strip_prefix(READY).map(|address| address.parse().expect("an address"))
    });
    (child, address.expect("the server gets ready"))
}

/// The knowledge of a client: the last rounds that it has sent, and that were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sent: u64,
    acknowledged: u64,
}

fn keys(client: usize) -> Vec<String> {
    (0..KEYS).map(|key| format!("client{client}:{key}")).collect()
}

/// Sends packets until the server is gone: each sets all keys to its round, and adds 1 to a
/// counter.
fn write(address: SocketAddr, client: usize, rounds: &AtomicUsize) -> Known {
    let mut stream = BatchClient::over(Stream::tcp(address));
    let (keys, counter) = (keys(client), format!("counter{client}"));
    let one = 1_u64.to_le_bytes();
    let mut known = Known::default();
    stream.put(counter.as_bytes(), &[0; 8]);
    loop {
        let value = (known.sent + 1).to_le_bytes();
        let mut operations: Vec<_> =
            keys.iter().map(|key| Operation::put(key.as_bytes(), &value)).collect();
        operations.push(Operation::call(Opcode::Update, counter.as_bytes(), 3, 3, &one));
        let bytes = packet(known.sent as u32, &operations);
        known.sent += 1;
        if stream.stream.write_all(&bytes).is_err() || stream.receive().is_err() {
            return known;
        }
        known.acknowledged += 1;
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

fn check(server: &Server, client: usize, known: Known) {
    let mut stream = BatchClient::over(Stream::tcp(server.addresses()[0]));
    let mut keys = keys(client);
    keys.push(format!("counter{client}"));
    let gets: Vec<_> = keys.iter().map(|key| Operation::get(key.as_bytes())).collect();
    for (key, (status, value)) in keys.iter().zip(stream.run(&gets)) {
        assert_eq!(status, Status::Done, "{key}");
        let value = value.and_then(|value| value.try_into().ok()).map(u64::from_le_bytes);
        let is_known = value.is_some_and(|it| (known.acknowledged..=known.sent).contains(&it));
        assert!(is_known, "{key} is {value:?}, and {known:?}");
    }
}

#[test]
fn acknowledged_operations_survive_the_kill_of_a_server() {
    const CLIENTS: usize = 3;
    for workers in [1, 3] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mut child, address) = server_process(folder.path(), workers);
        let rounds = AtomicUsize::new(0);
        let known: Vec<Known> = std::thread::scope(|scope| {
            let rounds = &rounds;
            let writers: Vec<_> = (0..CLIENTS)
                .map(|client| scope.spawn(move || write(address, client, rounds)))
                .collect();
            wait_until("they have written", || rounds.load(Ordering::Relaxed) > 300);
            child.kill().expect("it is a child");
            writers.into_iter().map(|writer| writer.join().expect("no client panics")).collect()
        });
        child.wait().expect("it was killed");
        let server = start(folder.path(), workers);
        (0..CLIENTS).for_each(|client| check(&server, client, known[client]));
    }
}
