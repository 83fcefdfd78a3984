// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs that end within a batch, and logs that are damaged: a server starts with the transactions
//! before the place, or it refuses to start and says where the place is.

use std::fs;
use std::path::{Path, PathBuf};

use freeport_kv_server::inspection::{cut, read};
use freeport_kv_server::{Bind, Options, PersistenceOptions, Policy, Server};
use freeport_testbed::usual_or_long;

use crate::client::Client;

const TRANSACTIONS: u64 = 5;
/// Bytes before the first batch of a segment.
const HEADER_BYTES: u64 = freeport_kv_journal::FILE_BYTES;

fn start(folder: &Path) -> Result<Server, String> {
    let policy = Policy::Always;
    let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
    let address = "127.0.0.1:0".parse().expect("it is an address");
    let options = Options {
        resp: vec![Bind::Tcp(address)],
        memory_bytes: 16 << 20,
        memcached_memory_bytes: 1 << 20,
        persistence: Some(persistence),
        ..Options::default()
    };
    Server::start(options).map_err(|error| error.to_string())
}

/// Number of transactions that a server has. Each has changed all keys.
fn transactions(server: &Server) -> u64 {
    let mut client = Client::new(server);
    let values = ["first", "second", "count"].map(|key| client.call(&format!("GET {key}")));
    assert!(values.iter().all(|value| *value == values[0]), "a part of one: {values:?}");
    match values[0].as_str() {
        "(nil)" => 0,
        number => number.trim_matches('"').parse().expect("a number"),
    }
}

/// A folder with a log of transactions, each in a batch of its own, and the end of each batch.
struct Sample {
    folder: tempfile::TempDir,
    ends: Vec<u64>,
}

impl Sample {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(folder.path()).expect("it starts");
        let mut client = Client::new(&server);
        let mut ends = vec![HEADER_BYTES];
        for number in 1..=TRANSACTIONS {
            for line in ["MULTI", "SET first _", "SET second _", "INCR count", "EXEC"] {
                client.send(&line.replace('_', &number.to_string()));
            }
            let replies: Vec<String> = (0..5).map(|_| client.text()).collect();
            assert!(replies[4].contains(&format!("(integer) {number}")), "{replies:?}");
            ends.push(fs::metadata(log(folder.path())).expect("it is there").len());
        }
        drop(server);
        Self { folder, ends }
    }

    /// A copy whose log ends there. A server that ends by itself writes another batch, which says
    /// that everything before is durable.
    fn copy_until(&self, end: u64) -> tempfile::TempDir {
        let copy = self.copy();
        let file = fs::File::options().write(true).open(log(copy.path())).expect("it is there");
        file.set_len(end).expect("it can be cut");
        copy
    }

    fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("a folder");
        for file in fs::read_dir(self.folder.path()).expect("it is there") {
            let file = file.expect("it can be listed");
            fs::copy(file.path(), copy.path().join(file.file_name())).expect("it can be copied");
        }
        copy
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log.1")
}

/// Changes a byte of the log.
fn damage(folder: &Path, offset: u64) {
    let mut bytes = fs::read(log(folder)).expect("it is there");
    bytes[usize::try_from(offset).expect("it is small")] ^= 0x20;
    fs::write(log(folder), bytes).expect("it can be written");
}

#[test]
fn a_log_that_ends_anywhere_has_the_transactions_before() {
    let sample = Sample::new();
    let length = *sample.ends.last().expect("there are some");
    let first = sample.ends[usize::try_from(TRANSACTIONS).expect("few") - 2];
    for end in (first..=length).rev().step_by(usual_or_long(3, 1)) {
        let copy = sample.copy_until(end);
        let server = start(copy.path()).unwrap_or_else(|error| panic!("{end} bytes: {error}"));
        let complete = sample.ends.iter().skip(1).filter(|batch| **batch <= end).count() as u64;
        assert_eq!(transactions(&server), complete, "{end} bytes");
        // The server is able to write after the cut, and starts again.
        assert_eq!(Client::new(&server).call("SET later value"), "OK");
        drop(server);
        let server = start(copy.path()).unwrap_or_else(|error| panic!("again: {error}"));
        assert_eq!(Client::new(&server).call("GET later"), "\"value\"");
    }
}

#[test]
fn a_damaged_log_is_refused_until_it_is_cut() {
    let sample = Sample::new();
    // The third batch; those behind it were written after it was durable.
    for offset in (sample.ends[2]..sample.ends[3]).step_by(usual_or_long(7, 1)) {
        let copy = sample.copy();
        damage(copy.path(), offset);
        let error = start(copy.path()).expect_err("it is damaged");
        let place = format!("{} at offset {}", log(copy.path()).display(), sample.ends[2]);
        for part in [&place, "freeport kv inspect", "--cut"] {
            assert!(error.contains(part), "byte {offset}: {error}");
        }
        let inspection = read(copy.path(), &mut |_| {}).expect("it can be read");
        let bad = inspection.contents.bad_place.expect("there is one");
        assert_eq!((bad.offset, bad.is_torn()), (sample.ends[2], false));

        let bad = cut(copy.path()).expect("nobody uses it").expect("there is a bad place");
        assert_eq!(bad.offset, sample.ends[2]);
        let server = start(copy.path()).unwrap_or_else(|error| panic!("byte {offset}: {error}"));
        assert_eq!(transactions(&server), 2);
    }
}

#[test]
fn damage_of_the_last_batch_is_the_end_of_an_interrupted_write() {
    let sample = Sample::new();
    let [.., last, end] = sample.ends[..] else { panic!("there are several") };
    let copy = sample.copy_until(end);
    damage(copy.path(), last + 50);
    let server = start(copy.path()).expect("it starts");
    assert_eq!(transactions(&server), TRANSACTIONS - 1);
}
